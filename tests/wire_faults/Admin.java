// Leaders, for the proof under faults: what librdkafka has no calls for. Reads orders from standard input, a line each,
// and answers "ok" or what went wrong.
//   java -cp 'kafka/*' Admin.java BOOTSTRAP
//   lead TOPIC BROKER     makes a broker the leader of every partition of the topic that it has a replica of
import java.io.*;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.errors.ElectionNotNeededException;

public class Admin {
    public static void main(String[] args) throws IOException {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
        System.setOut(System.err);
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0]);
        try (var admin = org.apache.kafka.clients.admin.Admin.create(settings);
             var orders = new BufferedReader(new InputStreamReader(System.in))) {
            for (String order; (order = orders.readLine()) != null; ) {
                String[] words = order.split(" ");
                try {
                    lead(admin, words[1], Integer.parseInt(words[2]));
                    answers.println("ok");
                } catch (Exception e) {
                    answers.println(e);
                }
            }
        }
    }

    static void lead(org.apache.kafka.clients.admin.Admin admin, String topic, int broker) throws Exception {
        TopicDescription told = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        Map<TopicPartition, Optional<NewPartitionReassignment>> moves = new HashMap<>();
        for (TopicPartitionInfo partition : told.partitions()) {
            List<Integer> replicas = new ArrayList<>(partition.replicas().stream().map(Node::id).toList());
            if (!replicas.remove((Integer) broker)) continue;
            replicas.add(0, broker);
            moves.put(new TopicPartition(topic, partition.partition()), Optional.of(new NewPartitionReassignment(replicas)));
        }
        admin.alterPartitionReassignments(moves).all().get();
        while (!admin.listPartitionReassignments(moves.keySet()).reassignments().get().isEmpty()) Thread.sleep(10);
        var outcomes = admin.electLeaders(ElectionType.PREFERRED, moves.keySet()).partitions().get();
        for (Optional<Throwable> outcome : outcomes.values())
            if (outcome.isPresent() && !(outcome.get() instanceof ElectionNotNeededException))
                throw new IOException(outcome.get());
    }
}
