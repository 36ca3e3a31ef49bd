//! Scenarios beyond those of `generate.py`: any operation of the format, on whatever was made before.
//!
//! A scenario begins with some sources and goes on with some operations, each drawn among those that the streams and
//! tables so far allow; most of what is left over is written to topics.
use super::handed::{self, stateless};
use super::scenario::Scenario;
use serde_json::{Value, json};

/// A table by its node, the serde of its values, and whether its keys are windowed.
#[derive(Clone)]
struct Table {
    id: String,
    value: Option<&'static str>,
    windowed: bool,
}

/// A scenario being made.
struct Wide {
    s: Scenario,
    streams: Vec<String>,
    tables: Vec<Table>,
    globals: Vec<String>,
    /// Versioned tables, for joins with grace.
    versioned: Vec<String>,
}

/// The scenario of a seed.
pub fn scenario(seed: u64) -> Value {
    let s = Scenario::new(seed ^ 0x5eed_0000_0000, format!("wide-{seed}"));
    let mut wide = Wide { s, streams: Vec::new(), tables: Vec::new(), globals: Vec::new(), versioned: Vec::new() };
    for _ in 0..wide.s.random.between(1, 3) {
        wide.source();
    }
    for _ in 0..wide.s.random.between(1, 5) {
        wide.operation();
    }
    wide.sinks();
    let mut config = json!({});
    if wide.s.chance(0.25) {
        config["topology.optimization"] = "all".into();
    }
    let wall = wide.s.chance(0.1).then_some(1000);
    let steps = steps(&mut wide.s);
    let mut scenario = json!({"name": wide.s.name, "topology": wide.s.nodes, "steps": steps});
    if config != json!({}) {
        scenario["config"] = config;
    }
    if let Some(wall) = wall {
        scenario["wall"] = wall.into();
    }
    scenario
}

impl Wide {
    fn source(&mut self) {
        let kind = self.s.choice(&["stream", "stream", "stream", "table", "table", "global", "versioned", "topics"]);
        match kind {
            "stream" => {
                let stream = handed::source_chain(&mut self.s, 1);
                self.streams.push(stream);
            }
            "topics" => {
                let topics = [self.s.topic(), self.s.topic()];
                let name = self.s.maybe(0.5, format!("source-{}", self.s.n));
                let stream = self.s.add("stream", json!({"topic": topics, "name": name}));
                self.streams.push(stream);
            }
            "table" => {
                let topic = self.s.topic();
                let mut fields = self.store(0.6, &format!("store-{topic}"));
                fields["topic"] = topic.into();
                self.table("table", fields, None, false);
            }
            "global" => {
                let topic = self.s.topic();
                let global = self.s.add("global_table", json!({"topic": topic}));
                self.globals.push(global);
            }
            _ => {
                let topic = self.s.topic();
                let (store, history) = (format!("versioned-{topic}"), self.s.choice(&[20, 100, 60_000]));
                let fields = json!({"topic": topic, "store": store, "history": history});
                self.table("versioned_table", fields, None, false);
                let id = self.tables.last().map(|table| table.id.clone()).unwrap_or_default();
                self.versioned.push(id);
            }
        }
    }

    fn table(&mut self, op: &str, fields: Value, value: Option<&'static str>, windowed: bool) {
        let id = self.s.add(op, fields);
        self.tables.push(Table { id, value, windowed });
    }

    /// Options of a store that so often has a name.
    fn store(&mut self, often: f64, name: &str) -> Value {
        let s = &mut self.s;
        let store = s.maybe(often, name);
        let mut fields = json!({"store": store});
        if s.chance(0.25) {
            fields["cache"] = s.chance(0.3).into();
        }
        if s.chance(0.15) {
            fields["logging"] = false.into();
        }
        if s.chance(0.2) {
            fields["store_type"] = "in_memory".into();
        }
        fields
    }

    fn any_stream(&mut self) -> String {
        if self.streams.is_empty() {
            let stream = handed::source_chain(&mut self.s, 1);
            self.streams.push(stream);
        }
        self.streams[self.s.random.below(self.streams.len())].clone()
    }

    /// A table that is not windowed.
    fn any_table(&mut self) -> Table {
        let plain: Vec<Table> = self.tables.iter().filter(|table| !table.windowed).cloned().collect();
        if plain.is_empty() {
            let id = self.s.table();
            let table = Table { id, value: None, windowed: false };
            self.tables.push(table.clone());
            return table;
        }
        plain[self.s.random.below(plain.len())].clone()
    }

    fn operation(&mut self) {
        let all: &[fn(&mut Self)] = &[
            Self::chain,
            Self::merge,
            Self::branch,
            Self::repartition,
            Self::as_table,
            Self::aggregate,
            Self::aggregate,
            Self::windows,
            Self::windows,
            Self::cogroup,
            Self::table_chain,
            Self::table_group,
            Self::join_streams,
            Self::join_streams,
            Self::join_table,
            Self::join_global,
            Self::join_tables,
            Self::foreign_key,
            Self::suppress,
            Self::process,
            Self::as_stream,
        ];
        let operation = self.s.choice(all);
        operation(self);
    }

    fn chain(&mut self) {
        let of = self.any_stream();
        let made = stateless(&mut self.s, of, 3);
        self.streams.push(made);
    }

    fn merge(&mut self) {
        let (of, with) = (self.any_stream(), self.any_stream());
        let name = self.s.maybe(0.2, format!("merged-{}", self.s.n));
        let made = self.s.add("merge", json!({"of": of, "with": with, "name": name}));
        self.streams.push(made);
    }

    fn branch(&mut self) {
        let of = self.any_stream();
        let predicates = self.s.random.sample(&["has_a", "has_b", "len_even"], 2);
        let default = self.s.chance(0.6);
        let made = self.s.add("branch", json!({"of": of, "preds": predicates, "default": default}));
        self.streams.extend([format!("{made}.0"), format!("{made}.1")]);
        if default {
            self.streams.push(format!("{made}.default"));
        }
    }

    fn repartition(&mut self) {
        let of = self.any_stream();
        let name = self.s.maybe(0.5, format!("rep-{}", self.s.n));
        let made = self.s.add("repartition", json!({"of": of, "name": name}));
        self.streams.push(made);
    }

    fn as_table(&mut self) {
        let of = self.any_stream();
        let mut fields = self.store(0.5, &format!("tt-{}", self.s.n));
        fields["of"] = of.into();
        self.table("to_table", fields, None, false);
    }

    fn grouped(&mut self) -> String {
        let of = self.any_stream();
        let mut grouped = handed::group(&mut self.s, &of);
        if self.s.chance(0.2) {
            let name = format!("grouped-{}", self.s.n);
            grouped = self.s.add("group_by", json!({"of": of, "fn": "value_first", "name": name}));
        }
        grouped
    }

    /// An aggregation of what is grouped or windowed.
    fn fold(&mut self, of: &str, ops: &[&str], windowed: bool, retention: Option<u64>) {
        let op = self.s.choice(ops);
        let mut fields = self.store(0.5, &format!("agg-{}", self.s.n));
        fields["of"] = of.into();
        if op == "reduce" {
            let reducers: &[&str] =
                if windowed { &["concat", "last", "max"] } else { &["concat", "last", "max", "null_on_b"] };
            fields["fn"] = self.s.choice(reducers).into();
        }
        if let Some(retention) = retention {
            fields["retention"] = retention.into();
        }
        self.table(op, fields, (op == "count").then_some("long"), windowed);
    }

    fn aggregate(&mut self) {
        let of = self.grouped();
        self.fold(&of, &["count", "reduce", "aggregate"], false, None);
        if self.s.chance(0.2) {
            self.fold(&of, &["count", "reduce", "aggregate"], false, None);
        }
    }

    /// A window over what is grouped or cogrouped; the retention that its store may be given.
    fn windowed(&mut self, of: &str) -> (String, Option<u64>) {
        let s = &mut self.s;
        let kind = s.choice(&["tumbling", "hopping", "sliding", "session"]);
        let size = s.choice(&[1, 5, 10, 20]);
        let advance = (kind == "hopping").then(|| (size / s.choice(&[1, 2, 3, 5])).max(1));
        let grace = s.choice(&[0, 0, 3, 10, 40]);
        let fields = json!({"of": of, "kind": kind, "size": size, "advance": advance, "grace": grace});
        let retention = s.chance(0.15).then(|| size + grace + s.choice(&[0, 10, 100]));
        (s.add("windowed_by", fields), retention)
    }

    fn windows(&mut self) {
        let of = self.grouped();
        let (mut windowed, retention) = self.windowed(&of);
        let close = self.s.chance(0.3);
        if close {
            windowed = self.s.add("emit_on_close", json!({"of": windowed}));
        }
        self.fold(&windowed, &["count", "reduce", "aggregate"], true, retention);
        if !close && self.s.chance(0.4) {
            self.suppress_last();
        }
    }

    fn cogroup(&mut self) {
        let of = self.grouped();
        let with = if self.s.chance(0.7) { Some(self.grouped()) } else { None };
        let cogrouped = self.s.add("cogroup", json!({"of": of, "with": with}));
        if self.s.chance(0.5) {
            self.fold(&cogrouped, &["aggregate"], false, None);
        } else {
            let (windowed, retention) = self.windowed(&cogrouped);
            self.fold(&windowed, &["aggregate"], true, retention);
        }
    }

    fn table_chain(&mut self) {
        let of = self.any_table();
        let op = self.s.choice(&["filter", "filter_not", "map_values", "map_values"]);
        let number = self.s.n;
        let mut fields = if op == "filter_not" || op == "filter" && of.value.is_some() {
            json!({})
        } else {
            self.store(0.4, &format!("t-store-{number}"))
        };
        if fields["store"].is_null() {
            fields = json!({});
        }
        fields["of"] = of.id.clone().into();
        let mut value = of.value;
        fields["fn"] = if op == "map_values" {
            let function = self.s.choice(&["upper", "append_x", "first", "null_if_has_a", "to_string", "len"]);
            value = match function {
                "len" => Some("long"),
                "null_if_has_a" => of.value,
                _ => None,
            };
            fields["value"] = value.into();
            function
        } else {
            self.s.choice(&["has_a", "len_even", "value_not_null", "true", "false"])
        }
        .into();
        self.table(op, fields, value, false);
    }

    fn table_group(&mut self) {
        let of = self.any_table();
        if of.value.is_some() {
            return;
        }
        let key = self.s.choice(&["value_first", "constant", "value", "identity", "upper"]);
        let name = self.s.maybe(0.3, format!("table-grp-{}", self.s.n));
        let grouped = self.s.add("group_by", json!({"of": of.id, "fn": key, "name": name}));
        let op = self.s.choice(&["count", "reduce", "aggregate"]);
        let mut fields = self.store(0.5, &format!("agg-{}", self.s.n));
        fields["of"] = grouped.into();
        self.table(op, fields, (op == "count").then_some("long"), false);
    }

    fn join_streams(&mut self) {
        let (of, with) = (self.any_stream(), self.any_stream());
        let s = &mut self.s;
        let op = s.choice(&["join", "left_join", "outer_join"]);
        let (within, grace) = (s.choice(&[0, 5, 10, 30]), s.choice(&[0, 5, 20]));
        let before = s.choice(&[0, 3, 12]);
        let before = s.maybe(0.3, before);
        let after = s.choice(&[0, 7, 15]);
        let after = s.maybe(0.3, after);
        let name = s.maybe(0.3, format!("joined-{}", s.n));
        let store = s.maybe(0.3, format!("join-store-{}", s.n));
        let fields = json!({
            "of": of, "with": with, "within": within, "grace": grace, "before": before, "after": after,
            "name": name, "store": store,
        });
        let made = s.add(op, fields);
        self.streams.push(made);
    }

    fn join_table(&mut self) {
        let of = self.any_stream();
        let op = self.s.choice(&["join", "left_join"]);
        let name = self.s.maybe(0.2, format!("with-table-{}", self.s.n));
        let mut fields = json!({"of": of, "name": name});
        if !self.versioned.is_empty() && self.s.chance(0.6) {
            fields["with"] = self.versioned[self.s.random.below(self.versioned.len())].clone().into();
            if self.s.chance(0.6) {
                fields["grace"] = self.s.choice(&[0, 3, 15]).into();
            }
        } else {
            fields["with"] = self.any_table().id.into();
        }
        let made = self.s.add(op, fields);
        self.streams.push(made);
    }

    fn join_global(&mut self) {
        if self.globals.is_empty() {
            let topic = self.s.topic();
            let global = self.s.add("global_table", json!({"topic": topic}));
            self.globals.push(global);
        }
        let of = self.any_stream();
        let with = self.globals[0].clone();
        let op = self.s.choice(&["join", "left_join"]);
        let key = self.s.choice(&["identity", "value_first", "value", "upper", "constant"]);
        let made = self.s.add(op, json!({"of": of, "with": with, "fn": key}));
        self.streams.push(made);
    }

    fn join_tables(&mut self) {
        let (of, with) = (self.any_table(), self.any_table());
        let op = self.s.choice(&["join", "left_join", "outer_join"]);
        let mut fields = self.store(0.5, &format!("j-{}", self.s.n));
        if fields["store"].is_null() {
            fields = json!({});
        }
        (fields["of"], fields["with"]) = (of.id.into(), with.id.into());
        self.table(op, fields, None, false);
    }

    fn foreign_key(&mut self) {
        let (of, with) = (self.any_table(), self.any_table());
        if of.value.is_some() || with.value.is_some() {
            return;
        }
        let op = self.s.choice(&["fk_join", "left_fk_join"]);
        let mut fields = self.store(0.5, &format!("fk-{}", self.s.n));
        fields["fn"] = self.s.choice(&["value_first", "value_first", "value", "constant"]).into();
        (fields["of"], fields["with"]) = (of.id.into(), with.id.into());
        self.table(op, fields, None, false);
    }

    /// Suppresses the table that was made last.
    fn suppress_last(&mut self) {
        let Some(of) = self.tables.last().cloned() else { return };
        let s = &mut self.s;
        let fields = if of.windowed && s.chance(0.6) {
            json!({"of": of.id, "until": "window_close"})
        } else {
            let wait = s.choice(&[0, 5, 15, 40]);
            let mut fields = json!({"of": of.id, "until": "time_limit", "ms": wait});
            match s.choice(&[0, 1, 2]) {
                0 => (),
                1 => fields["max_records"] = s.choice(&[1, 2, 5]).into(),
                _ => fields["max_bytes"] = s.choice(&[1, 150, 400, 2000]).into(),
            }
            fields
        };
        self.table("suppress", fields, of.value, of.windowed);
    }

    fn suppress(&mut self) {
        self.any_table();
        let last = self.tables.last().map(|table| table.id.as_str()).unwrap_or_default();
        // Kafka Streams refuses a versioned table: seldom is enough.
        if !self.versioned.iter().any(|id| id == last) || self.s.chance(0.1) {
            self.suppress_last();
        }
    }

    fn process(&mut self) {
        let of = self.any_stream();
        let s = &mut self.s;
        let number = s.n;
        let made = if s.chance(0.5) {
            let store = format!("latest-{number}");
            s.add("process", json!({"of": of, "kind": "latest", "store": store}))
        } else {
            let kind = s.choice(&["tick_stream", "tick_wall"]);
            let every = s.choice(&[1, 5, 10, 30]);
            s.add("process", json!({"of": of, "kind": kind, "ms": every}))
        };
        self.streams.push(made);
    }

    fn as_stream(&mut self) {
        let of = self.any_table();
        let made = self.s.add("to_stream", json!({"of": of.id}));
        if of.value.is_none() {
            self.streams.push(made);
        } else {
            self.s.to(&made, of.value);
        }
    }

    /// Writes most of what there is to topics.
    fn sinks(&mut self) {
        for table in self.tables.clone() {
            if self.s.chance(0.7) {
                self.s.table_to(&table.id, table.value, table.windowed);
            }
        }
        for stream in self.streams.clone() {
            if self.s.chance(0.5) {
                self.s.to(&stream, None);
            }
        }
    }
}

/// Steps with more late records and more nulls than the handed generator's, as the scenario draws.
fn steps(s: &mut Scenario) -> Vec<Value> {
    let (late, nulls, tombstones) = (s.choice(&[0.1, 0.3]), s.choice(&[0.0, 0.05, 0.2]), s.choice(&[0.05, 0.2, 0.4]));
    let (mut time, mut steps) = (0i64, Vec::new());
    for _ in 0..s.random.between(5, 60) {
        if s.chance(0.05) {
            steps.push(json!({"wall": s.choice(&[1, 10, 100])}));
            continue;
        }
        time += s.choice(&[0, 0, 1, 1, 2, 5, 12, 40]);
        let topic = s.inputs[s.random.below(s.inputs.len())].clone();
        let key = if s.chance(nulls) { None } else { Some(s.choice(super::scenario::KEYS)) };
        let value = if s.chance(tombstones) { None } else { Some(s.choice(super::scenario::WORDS)) };
        let behind = if s.chance(late) { s.choice(&[1, 4, 9, 30, 70]) } else { 0 };
        let mut step = json!({"in": topic, "k": key, "v": value, "t": (time - behind).max(0)});
        if s.chance(0.1) {
            step["h"] = json!({"trace": s.choice(super::scenario::WORDS)});
        }
        steps.push(step);
    }
    steps
}
