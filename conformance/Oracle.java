import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.*;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Runs scenarios (FORMAT.md) through Apache Kafka's own TopologyTestDriver and prints what Kafka Streams answers, one JSON line a scenario.
 * Usage: java -cp 'JARS/*' Oracle.java FILE.json... (a file holds scenarios or arrays of them, one after the other); `-` reads standard
 * input and answers each scenario as soon as it is there.
 */
@SuppressWarnings({"unchecked", "rawtypes"})
public class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        for (String a : args) {
            InputStream in = a.equals("-") ? System.in : new FileInputStream(a);
            try (MappingIterator<JsonNode> roots = JSON.readerFor(JsonNode.class).readValues(in)) {
                while (roots.hasNext()) {
                    JsonNode root = roots.next();
                    Iterable<JsonNode> all = root.isArray() ? root : List.of(root);
                    for (JsonNode s : all) { System.out.println(JSON.writeValueAsString(new Oracle(s).run())); System.out.flush(); }
                }
            }
        }
        Files.walk(STATE).sorted(Comparator.reverseOrder()).forEach(f -> f.toFile().delete());
    }

    /** Scenarios and processes must not share the directory: the application's id is the same. */
    static final Path STATE;
    static int made;
    static { try { STATE = Files.createTempDirectory("oracle-"); } catch (IOException e) { throw new UncheckedIOException(e); } }

    final JsonNode scenario;
    final StreamsBuilder builder;
    final Map<String, Object> nodes = new HashMap<>();
    final Map<String, Serde> serdes = new HashMap<>();
    final Map<String, String> sinkKey = new LinkedHashMap<>(), sinkValue = new LinkedHashMap<>();
    final Properties props = new Properties();

    Oracle(JsonNode scenario) {
        this.scenario = scenario;
        props.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        props.put(StreamsConfig.STATE_DIR_CONFIG, STATE.resolve(String.valueOf(made++)).toString());
        props.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:1");
        props.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        props.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        JsonNode c = scenario.path("config");
        if (c.has("topology.optimization")) props.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, c.get("topology.optimization").asText());
        builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(props)));
    }

    static Serde serde(String n) {
        switch (n) {
            case "string": return Serdes.String();
            case "long": return Serdes.Long();
            case "integer": return Serdes.Integer();
            case "double": return Serdes.Double();
            case "bytes": return Serdes.ByteArray();
            default: throw new IllegalArgumentException("serde " + n);
        }
    }

    // ---- named functions, each defined in FORMAT.md -------------------------------------------------
    static String s(Object o) { return o == null ? null : String.valueOf(o); }

    static boolean pred(String f, Object k, Object v) {
        switch (f) {
            case "true": return true;
            case "false": return false;
            case "key_not_null": return k != null;
            case "value_not_null": return v != null;
            case "len_even": return v != null && s(v).length() % 2 == 0;
            case "has_a": return v != null && s(v).contains("a");
            case "has_b": return v != null && s(v).contains("b");
            default: throw new IllegalArgumentException("predicate " + f);
        }
    }

    static Object value(String f, Object v) {
        switch (f) {
            case "identity": return v;
            case "upper": return v == null ? null : s(v).toUpperCase(Locale.ROOT);
            case "reverse": return v == null ? null : new StringBuilder(s(v)).reverse().toString();
            case "append_x": return v == null ? "x" : s(v) + "x";
            case "first": return v == null || s(v).isEmpty() ? null : s(v).substring(0, 1);
            case "null_if_has_a": return v == null || s(v).contains("a") ? null : v;
            case "to_string": return s(v);
            case "len": return v == null ? null : Long.valueOf(s(v).length());
            default: throw new IllegalArgumentException("value function " + f);
        }
    }

    static Object key(String f, Object k, Object v) {
        switch (f) {
            case "identity": return k;
            case "value": return s(v);
            case "value_first": return v == null || s(v).isEmpty() ? null : s(v).substring(0, 1);
            case "upper": return k == null ? null : s(k).toUpperCase(Locale.ROOT);
            case "constant": return "all";
            default: throw new IllegalArgumentException("key function " + f);
        }
    }

    static List<Object> flat(String f, Object v) {
        List<Object> out = new ArrayList<>();
        if (v == null) return out;
        switch (f) {
            case "words": for (String w : s(v).split(" ")) if (!w.isEmpty()) out.add(w); return out;
            case "chars": for (char ch : s(v).toCharArray()) out.add(String.valueOf(ch)); return out;
            case "twice": out.add(v); out.add(v); return out;
            default: throw new IllegalArgumentException("flat function " + f);
        }
    }

    static Object reduce(String f, Object a, Object b) {
        switch (f) {
            case "concat": return s(a) + s(b);
            case "last": return b;
            case "max": return s(a).compareTo(s(b)) >= 0 ? a : b;
            case "null_on_b": return s(b).contains("b") ? null : s(a) + s(b);
            default: throw new IllegalArgumentException("reducer " + f);
        }
    }

    static final ValueJoiner JOIN = (l, r) -> s(l) + "/" + s(r);

    // ---- building -----------------------------------------------------------------------------------
    static String text(JsonNode n, String f, String d) { return n.hasNonNull(f) ? n.get(f).asText() : d; }
    static Duration ms(JsonNode n, String f, long d) { return Duration.ofMillis(n.has(f) ? n.get(f).asLong() : d); }
    <T> T of(JsonNode n) { return node(n, "of"); }
    <T> T node(JsonNode n, String f) {
        Object o = nodes.get(n.get(f).asText());
        if (o == null) throw new IllegalArgumentException("no node " + n.get(f).asText());
        return (T) o;
    }
    static final class Generated extends Named { Generated() { super((String) null); } }
    static Named named(JsonNode n) { return hasName(n) ? Named.as(n.get("name").asText()) : new Generated(); }
    static boolean hasName(JsonNode n) { return n.hasNonNull("name"); }

    static Materialized mat(JsonNode n, String valueSerde) {
        Materialized m = n.hasNonNull("store") ? Materialized.as(n.get("store").asText()) : Materialized.with(Serdes.String(), serde(valueSerde));
        m = m.withKeySerde(Serdes.String()).withValueSerde(serde(valueSerde));
        if (n.path("cache").isBoolean()) m = n.get("cache").asBoolean() ? m.withCachingEnabled() : m.withCachingDisabled();
        if (n.path("logging").isBoolean() && !n.get("logging").asBoolean()) m = m.withLoggingDisabled();
        if (n.has("retention")) m = m.withRetention(ms(n, "retention", 0));
        if ("in_memory".equals(text(n, "store_type", ""))) m = m.withStoreType(new BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers());
        return m;
    }

    static Suppressed.BufferConfig buffer(JsonNode n) {
        Suppressed.BufferConfig b = n.has("max_records") ? Suppressed.BufferConfig.maxRecords(n.get("max_records").asLong()) : n.has("max_bytes") ? Suppressed.BufferConfig.maxBytes(n.get("max_bytes").asLong()) : Suppressed.BufferConfig.unbounded();
        return b;
    }

    void add(JsonNode n) {
        String id = n.get("id").asText(), op = n.get("op").asText(), fn = text(n, "fn", "identity");
        Serde ks = serde(text(n, "key", "string")), vs = serde(text(n, "value", "string"));
        Object r;
        switch (op) {
            case "stream": {
                Consumed c = Consumed.with(ks, vs); if (hasName(n)) c = c.withName(n.get("name").asText());
                if (n.get("topic").isArray()) { List<String> t = new ArrayList<>(); n.get("topic").forEach(x -> t.add(x.asText())); r = builder.stream(t, c); }
                else r = builder.stream(n.get("topic").asText(), c);
                break; }
            case "table": r = n.hasNonNull("store") ? builder.table(n.get("topic").asText(), Consumed.with(ks, vs), mat(n, text(n, "value", "string"))) : builder.table(n.get("topic").asText(), Consumed.with(ks, vs)); break;
            case "global_table": r = builder.globalTable(n.get("topic").asText(), Consumed.with(ks, vs)); break;
            case "versioned_table": r = builder.table(n.get("topic").asText(), Consumed.with(ks, vs), Materialized.as(Stores.persistentVersionedKeyValueStore(n.get("store").asText(), ms(n, "history", 60000))).withKeySerde(ks).withValueSerde(vs)); break;
            case "filter": r = nodes.get(n.get("of").asText()) instanceof KTable
                    ? (n.hasNonNull("store") ? ((KTable) of(n)).filter((k, v) -> pred(fn, k, v), mat(n, "string")) : ((KTable) of(n)).filter((k, v) -> pred(fn, k, v)))
                    : ((KStream) of(n)).filter((k, v) -> pred(fn, k, v), named(n)); break;
            case "filter_not": r = nodes.get(n.get("of").asText()) instanceof KTable ? ((KTable) of(n)).filterNot((k, v) -> pred(fn, k, v)) : ((KStream) of(n)).filterNot((k, v) -> pred(fn, k, v), named(n)); break;
            case "map_values": r = nodes.get(n.get("of").asText()) instanceof KTable
                    ? (n.hasNonNull("store") ? ((KTable) of(n)).mapValues(v -> value(fn, v), mat(n, text(n, "value", "string"))) : ((KTable) of(n)).mapValues(v -> value(fn, v)))
                    : ((KStream) of(n)).mapValues(v -> value(fn, v), named(n)); break;
            case "select_key": r = ((KStream) of(n)).selectKey((k, v) -> key(fn, k, v), named(n)); break;
            case "map": r = ((KStream) of(n)).map((k, v) -> new KeyValue(v, k), named(n)); break; // swap
            case "flat_map_values": r = ((KStream) of(n)).flatMapValues(v -> flat(fn, v), named(n)); break;
            case "flat_map": r = ((KStream) of(n)).flatMap((k, v) -> { List<KeyValue> l = new ArrayList<>(); for (Object x : flat(fn, v)) l.add(new KeyValue(x, k)); return l; }, named(n)); break;
            case "peek": r = ((KStream) of(n)).peek((k, v) -> { }, named(n)); break;
            case "merge": r = ((KStream) of(n)).merge((KStream) node(n, "with"), named(n)); break;
            case "branch": {
                BranchedKStream b = ((KStream) of(n)).split(Named.as(id + "-")); int i = 0;
                for (JsonNode p : n.get("preds")) { String f = p.asText(); b = b.branch((k, v) -> pred(f, k, v), Branched.as(String.valueOf(i++))); }
                Map<String, KStream> m = n.path("default").asBoolean(true) ? b.defaultBranch(Branched.as("default")) : b.noDefaultBranch();
                m.forEach((k, v) -> nodes.put(id + "." + k.substring(id.length() + 1), v)); return; }
            case "repartition": r = ((KStream) of(n)).repartition(hasName(n) ? Repartitioned.with(ks, vs).withName(n.get("name").asText()) : Repartitioned.with(ks, vs)); break;
            case "to_table": r = ((KStream) of(n)).toTable(mat(n, text(n, "value", "string"))); break;
            case "to_stream": r = "windowed".equals(text(n, "key_map", "")) ? ((KTable) of(n)).toStream((k, v) -> { Windowed w = (Windowed) k; return w.key() + "@" + w.window().start() + "/" + w.window().end(); }) : ((KTable) of(n)).toStream(); break;
            case "group_by_key": r = ((KStream) of(n)).groupByKey(hasName(n) ? Grouped.with(n.get("name").asText(), ks, vs) : Grouped.with(ks, vs)); break;
            case "group_by": r = nodes.get(n.get("of").asText()) instanceof KTable
                    ? ((KTable) of(n)).groupBy((k, v) -> new KeyValue(key(fn, k, v), v), hasName(n) ? Grouped.with(n.get("name").asText(), ks, vs) : Grouped.with(ks, vs))
                    : ((KStream) of(n)).groupBy((k, v) -> key(fn, k, v), hasName(n) ? Grouped.with(n.get("name").asText(), ks, vs) : Grouped.with(ks, vs)); break;
            case "cogroup": { CogroupedKStream c = ((KGroupedStream) of(n)).cogroup((k, v, a) -> s(a) + "1" + s(v)); if (n.has("with")) c = c.cogroup((KGroupedStream) node(n, "with"), (k, v, a) -> s(a) + "2" + s(v)); r = c; break; }
            case "windowed_by": r = windowed(n); break;
            case "emit_on_close": { Object o = of(n); r = o instanceof TimeWindowedKStream ? ((TimeWindowedKStream) o).emitStrategy(EmitStrategy.onWindowClose()) : ((SessionWindowedKStream) o).emitStrategy(EmitStrategy.onWindowClose()); break; }
            case "count": r = count(n); break;
            case "reduce": r = reduceOp(n, fn); break;
            case "aggregate": r = aggregate(n); break;
            case "suppress": r = "window_close".equals(n.get("until").asText()) ? ((KTable) of(n)).suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
                    : ((KTable) of(n)).suppress(Suppressed.untilTimeLimit(ms(n, "ms", 0), buffer(n))); break;
            case "join": case "left_join": case "outer_join": r = join(n, op); break;
            case "fk_join": r = ((KTable) of(n)).join((KTable) node(n, "with"), v -> key(fn.equals("identity") ? "value_first" : fn, null, v), JOIN, mat(n, "string")); break;
            case "left_fk_join": r = ((KTable) of(n)).leftJoin((KTable) node(n, "with"), v -> key(fn.equals("identity") ? "value_first" : fn, null, v), JOIN, mat(n, "string")); break;
            case "process": r = process(n); break;
            case "to": { String t = n.get("topic").asText(); sinkKey.put(t, text(n, "key", "string")); sinkValue.put(t, text(n, "value", "string")); ((KStream) of(n)).to(t, Produced.with(ks, vs)); return; }
            default: throw new IllegalArgumentException("op " + op);
        }
        nodes.put(id, r);
    }

    Object windowed(JsonNode n) {
        Object g = of(n); long size = n.path("size").asLong(), grace = n.path("grace").asLong(0);
        switch (n.get("kind").asText()) {
            case "tumbling": { Windows w = TimeWindows.ofSizeAndGrace(Duration.ofMillis(size), Duration.ofMillis(grace)); return g instanceof CogroupedKStream ? ((CogroupedKStream) g).windowedBy(w) : ((KGroupedStream) g).windowedBy(w); }
            case "hopping": { Windows w = TimeWindows.ofSizeAndGrace(Duration.ofMillis(size), Duration.ofMillis(grace)).advanceBy(ms(n, "advance", size)); return g instanceof CogroupedKStream ? ((CogroupedKStream) g).windowedBy(w) : ((KGroupedStream) g).windowedBy(w); }
            case "sliding": { SlidingWindows w = SlidingWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(size), Duration.ofMillis(grace)); return g instanceof CogroupedKStream ? ((CogroupedKStream) g).windowedBy(w) : ((KGroupedStream) g).windowedBy(w); }
            case "session": { SessionWindows w = SessionWindows.ofInactivityGapAndGrace(Duration.ofMillis(size), Duration.ofMillis(grace)); return g instanceof CogroupedKStream ? ((CogroupedKStream) g).windowedBy(w) : ((KGroupedStream) g).windowedBy(w); }
            default: throw new IllegalArgumentException("window " + n);
        }
    }

    Object count(JsonNode n) {
        Object o = of(n); Materialized m = mat(n, "long");
        if (o instanceof KGroupedStream) return ((KGroupedStream) o).count(m);
        if (o instanceof KGroupedTable) return ((KGroupedTable) o).count(m);
        if (o instanceof TimeWindowedKStream) return ((TimeWindowedKStream) o).count(m);
        return ((SessionWindowedKStream) o).count(m);
    }

    Object reduceOp(JsonNode n, String fn) {
        Object o = of(n); Materialized m = mat(n, "string"); String f = fn.equals("identity") ? "concat" : fn;
        if (o instanceof KGroupedStream) return ((KGroupedStream) o).reduce((a, b) -> reduce(f, a, b), m);
        if (o instanceof KGroupedTable) return ((KGroupedTable) o).reduce((a, b) -> s(a) + "+" + s(b), (a, b) -> s(a) + "-" + s(b), m);
        if (o instanceof TimeWindowedKStream) return ((TimeWindowedKStream) o).reduce((a, b) -> reduce(f, a, b), m);
        return ((SessionWindowedKStream) o).reduce((a, b) -> reduce(f, a, b), m);
    }

    Object aggregate(JsonNode n) {
        Object o = of(n); Materialized m = mat(n, "string"); Initializer init = () -> ""; Aggregator add = (k, v, a) -> s(a) + s(v); Merger merge = (k, a, b) -> s(a) + s(b);
        if (o instanceof KGroupedStream) return ((KGroupedStream) o).aggregate(init, add, m);
        if (o instanceof KGroupedTable) return ((KGroupedTable) o).aggregate(init, (k, v, a) -> s(a) + "+" + s(v), (k, v, a) -> s(a) + "-" + s(v), m);
        if (o instanceof TimeWindowedKStream) return ((TimeWindowedKStream) o).aggregate(init, add, m);
        if (o instanceof SessionWindowedKStream) return ((SessionWindowedKStream) o).aggregate(init, add, merge, m);
        if (o instanceof CogroupedKStream) return ((CogroupedKStream) o).aggregate(init, m);
        if (o instanceof TimeWindowedCogroupedKStream) return ((TimeWindowedCogroupedKStream) o).aggregate(init, m);
        return ((SessionWindowedCogroupedKStream) o).aggregate(init, merge, m);
    }

    Object join(JsonNode n, String op) {
        Object l = of(n), r = node(n, "with");
        if (l instanceof KStream && r instanceof KStream) {
            JoinWindows w = JoinWindows.ofTimeDifferenceAndGrace(ms(n, "within", 0), ms(n, "grace", 0));
            if (n.has("before")) w = w.before(ms(n, "before", 0)); if (n.has("after")) w = w.after(ms(n, "after", 0));
            StreamJoined j = StreamJoined.with(Serdes.String(), serde(text(n, "value", "string")), serde(text(n, "other_value", "string"))); if (hasName(n)) j = j.withName(n.get("name").asText()); if (n.hasNonNull("store")) j = j.withStoreName(n.get("store").asText());
            return op.equals("join") ? ((KStream) l).join((KStream) r, JOIN, w, j) : op.equals("left_join") ? ((KStream) l).leftJoin((KStream) r, JOIN, w, j) : ((KStream) l).outerJoin((KStream) r, JOIN, w, j);
        }
        if (l instanceof KStream && r instanceof GlobalKTable) { String f = text(n, "fn", "identity"); KeyValueMapper km = (k, v) -> key(f, k, v);
            return op.equals("join") ? ((KStream) l).join((GlobalKTable) r, km, JOIN) : ((KStream) l).leftJoin((GlobalKTable) r, km, JOIN); }
        if (l instanceof KStream) { Joined j = Joined.with(Serdes.String(), Serdes.String(), Serdes.String()); if (n.has("grace")) j = j.withGracePeriod(ms(n, "grace", 0)); if (hasName(n)) j = j.withName(n.get("name").asText());
            return op.equals("join") ? ((KStream) l).join((KTable) r, JOIN, j) : ((KStream) l).leftJoin((KTable) r, JOIN, j); }
        if (n.hasNonNull("store")) { Materialized m = mat(n, "string"); return op.equals("join") ? ((KTable) l).join((KTable) r, JOIN, m) : op.equals("left_join") ? ((KTable) l).leftJoin((KTable) r, JOIN, m) : ((KTable) l).outerJoin((KTable) r, JOIN, m); }
        return op.equals("join") ? ((KTable) l).join((KTable) r, JOIN) : op.equals("left_join") ? ((KTable) l).leftJoin((KTable) r, JOIN) : ((KTable) l).outerJoin((KTable) r, JOIN);
    }

    /** "latest": keeps the last value of a key in a store; forwards only on change. "tick": forwards ("tick:TYPE", time) every `ms` of stream or wall-clock time. */
    Object process(JsonNode n) {
        String kind = n.get("kind").asText(); String store = text(n, "store", null);
        if (kind.equals("latest")) { builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(store), Serdes.String(), Serdes.String()));
            return ((KStream) of(n)).process(() -> new Processor<Object, Object, Object, Object>() {
                ProcessorContext<Object, Object> c; KeyValueStore<Object, Object> st;
                public void init(ProcessorContext<Object, Object> c) { this.c = c; st = c.getStateStore(store); }
                public void process(Record<Object, Object> r) { if (r.key() == null) return; Object old = st.get(r.key()); if (!Objects.equals(old, r.value())) { st.put(r.key(), r.value()); c.forward(r); } } }, store); }
        PunctuationType type = kind.equals("tick_stream") ? PunctuationType.STREAM_TIME : PunctuationType.WALL_CLOCK_TIME;
        return ((KStream) of(n)).process(() -> new Processor<Object, Object, Object, Object>() {
            public void init(ProcessorContext<Object, Object> c) { c.schedule(ms(n, "ms", 1000), type, t -> c.forward(new Record<>("tick", String.valueOf(t), t))); }
            public void process(Record<Object, Object> r) { } });
    }

    // ---- running ------------------------------------------------------------------------------------
    static String hex(byte[] b) { return b == null ? null : HexFormat.of().formatHex(b); }
    JsonNode json(Object o) {
        if (o instanceof byte[]) return TextNode.valueOf(hex((byte[]) o));
        if (o instanceof org.apache.kafka.common.utils.Bytes) return TextNode.valueOf(hex(((org.apache.kafka.common.utils.Bytes) o).get()));
        if (o == null || o instanceof String || o instanceof Number || o instanceof Boolean) return JSON.valueToTree(o);
        throw new UnsupportedOperationException(o.getClass().getName());
    }

    ObjectNode run() {
        ObjectNode out = JSON.createObjectNode(); out.put("name", text(scenario, "name", ""));
        try { scenario.get("topology").forEach(this::add); } catch (Exception e) { out.put("build_error", e.getClass().getSimpleName()); return out; }
        Topology t; try { t = builder.build(props); } catch (Exception e) { out.put("build_error", e.getClass().getSimpleName()); return out; }
        out.put("describe", t.describe().toString());
        ArrayNode steps = out.putArray("steps");
        TopologyTestDriver d = new TopologyTestDriver(t, props, Instant.ofEpochMilli(scenario.path("wall").asLong(0)));
        try {
            Map<String, TestInputTopic> in = new HashMap<>(); Map<String, TestOutputTopic> outs = new LinkedHashMap<>();
            Map<String, ArrayNode> internal = new TreeMap<>();
            for (JsonNode st : scenario.get("steps")) {
                ArrayNode got = steps.addArray();
                try {
                    if (st.has("wall")) d.advanceWallClockTime(Duration.ofMillis(st.get("wall").asLong()));
                    else { String topic = st.get("in").asText();
                        TestInputTopic it = in.computeIfAbsent(topic, x -> d.createInputTopic(x, new ByteArraySerializer(), new ByteArraySerializer()));
                        RecordHeaders h = new RecordHeaders(); if (st.has("h")) st.get("h").fields().forEachRemaining(e -> h.add(e.getKey(), e.getValue().asText().getBytes(StandardCharsets.UTF_8)));
                        it.pipeInput(new TestRecord(bytes(st.get("k")), bytes(st.get("v")), h, st.get("t").asLong())); }
                } catch (Exception e) { Throwable c = e; while (c.getCause() != null) c = c.getCause(); got.addObject().put("error", c.getClass().getSimpleName()); break; }
                for (String topic : new TreeSet<>(d.producedTopicNames())) {
                    boolean sink = sinkKey.containsKey(topic);
                    TestOutputTopic ot = outs.computeIfAbsent(topic, x -> d.createOutputTopic(x, sink ? serde(sinkKey.get(x)).deserializer() : new ByteArrayDeserializer(), sink ? serde(sinkValue.get(x)).deserializer() : new ByteArrayDeserializer()));
                    while (!ot.isEmpty()) { TestRecord r = ot.readRecord(); ObjectNode o = sink ? got.addObject().put("topic", topic) : internal.computeIfAbsent(topic, x -> JSON.createArrayNode()).addObject();
                        o.set("k", json(r.key())); o.set("v", json(r.value())); o.put("t", r.timestamp());
                        if (r.headers().toArray().length > 0) { ObjectNode h = o.putObject("h"); for (Header x : r.headers()) h.put(x.key(), sink ? new String(x.value(), StandardCharsets.UTF_8) : hex(x.value())); } }
                }
            }
            ObjectNode i = out.putObject("internal"); internal.forEach(i::set);
            ObjectNode stores = out.putObject("stores");
            for (String name : new TreeMap<>(d.getAllStateStores()).keySet()) stores.set(name, dump(d, name));
        } finally {
            try { d.close(); } catch (RuntimeException e) { System.err.println("after a failed step: " + e); }
        }
        return out;
    }

    byte[] bytes(JsonNode n) {
        if (n == null || n.isNull()) return null;
        if (n.isObject() && n.has("hex")) return HexFormat.of().parseHex(n.get("hex").asText());
        if (n.isObject() && n.has("long")) return new LongSerializer().serialize("", n.get("long").asLong());
        if (n.isObject() && n.has("integer")) return new IntegerSerializer().serialize("", n.get("integer").asInt());
        return n.asText().getBytes(StandardCharsets.UTF_8);
    }

    ArrayNode dump(TopologyTestDriver d, String name) {
        ArrayNode a = JSON.createArrayNode(); StateStore st = d.getAllStateStores().get(name);
        try {
            if (st instanceof TimestampedKeyValueStore) { try (KeyValueIterator it = ((KeyValueStore) st).all()) { while (it.hasNext()) { KeyValue e = (KeyValue) it.next(); ValueAndTimestamp v = (ValueAndTimestamp) e.value; a.addArray().add(json(e.key)).add(json(v.value())).add(v.timestamp()); } } }
            else if (st instanceof KeyValueStore) { try (KeyValueIterator it = ((KeyValueStore) st).all()) { while (it.hasNext()) { KeyValue e = (KeyValue) it.next(); a.addArray().add(json(e.key)).add(json(e.value)); } } }
            else if (st instanceof TimestampedWindowStore) { try (KeyValueIterator it = ((WindowStore) st).all()) { while (it.hasNext()) { KeyValue e = (KeyValue) it.next(); Windowed w = (Windowed) e.key; ValueAndTimestamp v = (ValueAndTimestamp) e.value; a.addArray().add(json(w.key())).add(w.window().start()).add(json(v.value())).add(v.timestamp()); } } }
            else if (st instanceof WindowStore) { try (KeyValueIterator it = ((WindowStore) st).all()) { while (it.hasNext()) { KeyValue e = (KeyValue) it.next(); Windowed w = (Windowed) e.key; a.addArray().add(json(w.key())).add(w.window().start()).add(json(e.value)); } } }
            else a.add("kind not dumped");
        } catch (RuntimeException e) { a.removeAll(); a.add("kind not dumped"); }
        return a;
    }
}
