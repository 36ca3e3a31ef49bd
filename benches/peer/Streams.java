import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Kafka Streams' side: one stream thread, `pass` or `count`, measured or until standard input ends. Takes its task from
 * the same environment as the other programs and prints the same line of JSON.
 */
public final class Streams {
    private static final long LOOK_MS = 20;
    private static final long PATIENCE_MS = 60_000;

    private Streams() {
    }

    public static void main(String[] arguments) throws Exception {
        Thread watcher = new Thread(Streams::endWithStandardInput);
        watcher.setDaemon(true);
        watcher.start();
        boolean serve = env("SERVE").equals("true");
        KafkaStreams streams = new KafkaStreams(topology(env("CASE"), env("INPUT"), env("OUTPUT")), settings(serve));
        streams.start();
        if (serve) {
            while (streams.state() != KafkaStreams.State.RUNNING) {
                Thread.sleep(20);
            }
            System.out.println("RUNNING");
            Thread.currentThread().join();
        } else {
            System.out.println(measure(streams, Long.parseLong(env("RECORDS"))));
            streams.close(Duration.ofSeconds(30));
            System.exit(0);
        }
    }

    private static String env(String name) {
        return System.getenv("PEER_" + name);
    }

    private static void endWithStandardInput() {
        try (InputStream input = System.in) {
            while (input.read() >= 0) {
                continue;
            }
        } catch (java.io.IOException ended) {
            // As at the end.
        }
        Runtime.getRuntime().halt(0);
    }

    private static Topology topology(String name, String input, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        switch (name) {
            case "pass":
                builder.stream(input, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
                    .filter((key, value) -> value.length > 0)
                    .to(output, Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
                break;
            case "count":
                builder.stream(input, Consumed.with(Serdes.String(), Serdes.ByteArray()))
                    .groupByKey()
                    .count()
                    .toStream()
                    .to(output, Produced.with(Serdes.String(), Serdes.Long()));
                break;
            default:
                throw new IllegalArgumentException("no such case: " + name);
        }
        return builder.build();
    }

    private static Properties settings(boolean serve) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", env("BOOTSTRAP"));
        settings.put("application.id", env("ID"));
        settings.put("state.dir", env("STATE"));
        settings.put("num.stream.threads", "1");
        settings.put("processing.guarantee", "at_least_once");
        settings.put("auto.offset.reset", serve ? "latest" : "earliest");
        settings.put("commit.interval.ms", env("COMMIT_MS"));
        settings.put("statestore.cache.max.bytes", env("CACHE_BYTES"));
        settings.put("producer.linger.ms", env("LINGER_MS"));
        settings.put("producer.batch.size", env("BATCH_BYTES"));
        settings.put("producer.acks", "all");
        settings.put("producer.enable.idempotence", "true");
        settings.put("producer.compression.type", "none");
        return settings;
    }

    private static String measure(KafkaStreams streams, long records) throws Exception {
        Metric processed = null;
        long before = 0;
        long began = 0;
        double cpu = 0;
        long started = System.nanoTime();
        while (true) {
            Thread.sleep(LOOK_MS);
            processed = processed == null ? metric(streams, "process-total") : processed;
            long count = processed == null ? 0 : value(processed);
            if (count == 0) {
                if (System.nanoTime() - started > PATIENCE_MS * 1_000_000) {
                    throw new IllegalStateException("no record after " + PATIENCE_MS + " ms: " + streams.state());
                }
            } else if (before == 0) {
                before = count;
                began = System.nanoTime();
                cpu = cpuSeconds();
            } else if (count >= records) {
                double seconds = (System.nanoTime() - began) / 1e9;
                awaitCommit(streams);
                double used = cpuSeconds() - cpu;
                double counted = count - before;
                return String.format(Locale.ROOT, "{\"records\":%d,\"rate\":%.0f,\"cpu_s_per_m\":%.4f,"
                    + "\"peak_rss_mib\":%.1f,\"cache_bytes\":%s,\"batch_bytes\":%s}", count, counted / seconds,
                    used / counted * 1e6, peakRssMib(), env("CASE").equals("count") ? env("CACHE_BYTES") : "0",
                    env("BATCH_BYTES"));
            }
        }
    }

    /** All output is acknowledged when the first commit after the last record is done. */
    private static void awaitCommit(KafkaStreams streams) throws InterruptedException {
        Metric commits = metric(streams, "commit-total");
        long before = value(commits);
        long deadline = System.nanoTime() + PATIENCE_MS * 1_000_000;
        while (value(commits) == before && System.nanoTime() < deadline) {
            Thread.sleep(LOOK_MS);
        }
    }

    private static Metric metric(KafkaStreams streams, String name) {
        for (Map.Entry<MetricName, ? extends Metric> entry : streams.metrics().entrySet()) {
            if (entry.getKey().name().equals(name) && entry.getKey().group().equals("stream-thread-metrics")) {
                return entry.getValue();
            }
        }
        return null;
    }

    private static long value(Metric metric) {
        return ((Number) metric.metricValue()).longValue();
    }

    /** CPU time of this process so far, user and system, all threads. */
    private static double cpuSeconds() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime() / 1e9;
    }

    private static double peakRssMib() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return Long.parseLong(line.replaceAll("\\D", "")) / 1024.0;
            }
        }
        return 0;
    }
}
