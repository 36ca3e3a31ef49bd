// Apache Kafka's own clients for the differential proof: one process that writes and reads what it is told on its
// standard input and answers on its standard output. `java.rs` beside this file speaks to it.
//   java -cp 'kafka/*' Peer.java BOOTSTRAP
// Numbers are big-endian; bytes and texts have their length in front as an int, -1 for null.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.*;

public class Peer {
    static final long PATIENCE_MS = 20_000;
    static DataInputStream in;
    static DataOutputStream out;
    static String bootstrap;

    public static void main(String[] args) throws IOException {
        bootstrap = args[0];
        in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16));
        System.setOut(System.err);
        for (int order; (order = in.read()) >= 0; out.flush()) {
            ByteArrayOutputStream answer = new ByteArrayOutputStream();
            try {
                if (order == 'W') write(); else read(new DataOutputStream(answer));
                out.writeByte(0);
                answer.writeTo(out);
            } catch (EOFException e) {
                return;
            } catch (Exception e) {
                out.writeByte(1);
                put(out, String.valueOf(e).getBytes(StandardCharsets.UTF_8));
            }
        }
    }

    /// Topic, partition, codec, batch size, transactional id (empty: none), runs; a run: how it ends (0 flushed,
    /// 1 committed, 2 aborted) and its records.
    static void write() throws Exception {
        String topic = text();
        int partition = in.readInt();
        Properties settings = common();
        settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, text());
        settings.put(ProducerConfig.BATCH_SIZE_CONFIG, in.readInt());
        settings.put(ProducerConfig.LINGER_MS_CONFIG, 5);
        String transactional = text();
        if (!transactional.isEmpty()) settings.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, transactional);
        List<Integer> ends = new ArrayList<>();
        List<List<ProducerRecord<byte[], byte[]>>> runs = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            ends.add(in.readInt());
            List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
            for (int count = in.readInt(); count > 0; count--) records.add(record(topic, partition));
            runs.add(records);
        }
        try (var producer = new KafkaProducer<byte[], byte[]>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            if (!transactional.isEmpty()) producer.initTransactions();
            for (int run = 0; run < runs.size(); run++) {
                if (!transactional.isEmpty()) producer.beginTransaction();
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (ProducerRecord<byte[], byte[]> record : runs.get(run)) sent.add(producer.send(record));
                producer.flush();
                for (Future<RecordMetadata> each : sent) each.get();
                if (ends.get(run) == 1) producer.commitTransaction();
                if (ends.get(run) == 2) producer.abortTransaction();
            }
        }
    }

    static ProducerRecord<byte[], byte[]> record(String topic, int partition) throws IOException {
        long timestamp = in.readLong();
        byte[] key = bytes(), value = bytes();
        List<Header> headers = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) headers.add(new RecordHeader(text(), bytes()));
        return new ProducerRecord<>(topic, partition, timestamp, key, value, headers);
    }

    /// Whether committed only, then topics, partitions and the ends to read to; answers the records of each.
    static void read(DataOutputStream answer) throws Exception {
        Properties settings = common();
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, in.readByte() == 1 ? "read_committed" : "read_uncommitted");
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        settings.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, 20);
        Map<TopicPartition, Long> ends = new LinkedHashMap<>();
        for (int left = in.readInt(); left > 0; left--)
            ends.put(new TopicPartition(text(), in.readInt()), in.readLong());
        Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> read = new HashMap<>();
        try (var consumer = new KafkaConsumer<byte[], byte[]>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(ends.keySet());
            for (TopicPartition at : ends.keySet()) consumer.seek(at, 0);
            long deadline = System.currentTimeMillis() + PATIENCE_MS;
            while (!ends.entrySet().stream().allMatch(e -> consumer.position(e.getKey()) >= e.getValue())) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(50));
                for (TopicPartition at : records.partitions())
                    read.computeIfAbsent(at, x -> new ArrayList<>()).addAll(records.records(at));
                if (System.currentTimeMillis() > deadline) throw new IOException("the end does not come: " + ends);
            }
            for (TopicPartition at : ends.keySet()) {
                answer.writeLong(consumer.position(at));
                List<ConsumerRecord<byte[], byte[]>> records = read.getOrDefault(at, List.of());
                answer.writeInt(records.size());
                for (ConsumerRecord<byte[], byte[]> record : records) put(answer, record);
            }
        }
    }

    static void put(DataOutputStream answer, ConsumerRecord<byte[], byte[]> record) throws IOException {
        answer.writeLong(record.offset());
        answer.writeLong(record.timestamp());
        put(answer, record.key());
        put(answer, record.value());
        Header[] headers = record.headers().toArray();
        answer.writeInt(headers.length);
        for (Header header : headers) {
            put(answer, header.key().getBytes(StandardCharsets.UTF_8));
            put(answer, header.value());
        }
    }

    static Properties common() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }

    static void put(DataOutputStream to, byte[] bytes) throws IOException {
        to.writeInt(bytes == null ? -1 : bytes.length);
        if (bytes != null) to.write(bytes);
    }

    static byte[] bytes() throws IOException {
        int length = in.readInt();
        return length < 0 ? null : in.readNBytes(length);
    }

    static String text() throws IOException {
        return new String(bytes(), StandardCharsets.UTF_8);
    }
}
