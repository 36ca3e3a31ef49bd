//! The scenarios of `generate.py`, number for number: its seeds stay reproducible here without Python.
use super::scenario::Scenario;
use serde_json::{Value, json};

const FAMILIES: &[&str] = &[
    "stateless",
    "branch",
    "aggregate",
    "window",
    "window",
    "session",
    "stream_stream",
    "stream_stream",
    "stream_table",
    "table_table",
    "table_table",
    "table_group",
    "foreign_key",
    "global",
    "process",
    "to_table",
    "merge",
];
const STATELESS: &[&str] =
    &["filter", "filter_not", "map_values", "select_key", "flat_map_values", "flat_map", "map", "peek"];
const JOINS: &[&str] = &["join", "left_join", "outer_join"];

/// The scenario of a seed.
pub fn scenario(seed: u64) -> Value {
    let mut s = Scenario::new(seed, String::new());
    let family = s.choice(FAMILIES);
    s.name = format!("seed-{seed}-{family}");
    match family {
        "stateless" => {
            let source = s.stream();
            let of = stateless(&mut s, source, 5);
            s.to(&of, None);
        }
        "branch" => branch(&mut s),
        "merge" => {
            let first = source_chain(&mut s, 2);
            let second = source_chain(&mut s, 1);
            let merged = s.add("merge", json!({"of": first, "with": second}));
            grouped_table(&mut s, merged);
        }
        "aggregate" => {
            let of = source_chain(&mut s, 2);
            grouped_table(&mut s, of);
        }
        "window" | "session" => windows(&mut s, family),
        "stream_stream" => stream_stream(&mut s),
        "stream_table" => {
            let op = s.choice(&["join", "left_join"]);
            let of = source_chain(&mut s, 1);
            let table = s.table();
            let with = table_chain(&mut s, table, 1);
            let joined = s.add(op, json!({"of": of, "with": with}));
            s.to(&joined, None);
        }
        "table_table" => table_table(&mut s),
        "table_group" => table_group(&mut s),
        "foreign_key" => {
            let op = s.choice(&["fk_join", "left_fk_join"]);
            let (of, with) = (s.table(), s.table());
            let store = s.maybe(0.5, format!("fk-{}", s.n));
            let joined = s.add(op, json!({"of": of, "with": with, "store": store}));
            s.table_to(&joined, None, false);
        }
        "global" => {
            let op = s.choice(&["join", "left_join"]);
            let of = s.stream();
            let topic = s.topic();
            let with = s.add("global_table", json!({"topic": topic}));
            let key = s.choice(&["identity", "value_first", "value"]);
            let joined = s.add(op, json!({"of": of, "with": with, "fn": key}));
            s.to(&joined, None);
        }
        "process" => process(&mut s),
        _ => {
            let of = source_chain(&mut s, 2);
            let store = s.maybe(0.5, format!("tt-{}", s.n));
            let table = s.add("to_table", json!({"of": of, "store": store}));
            let table = table_chain(&mut s, table, 1);
            s.table_to(&table, None, false);
        }
    }
    s.build()
}

/// A source and some operators without state.
pub fn source_chain(s: &mut Scenario, most: usize) -> String {
    let source = s.stream();
    stateless(s, source, most)
}

/// At most so many operators without state.
pub fn stateless(s: &mut Scenario, mut of: String, most: usize) -> String {
    for _ in 0..s.random.between(0, most) {
        let op = s.choice(STATELESS);
        let fields = match op {
            "filter" | "filter_not" => {
                let function = s.choice(&["key_not_null", "value_not_null", "len_even", "has_a", "has_b"]);
                let name = s.maybe(0.2, format!("named-{}", s.n));
                json!({"of": of, "fn": function, "name": name})
            }
            "map_values" => {
                json!({"of": of, "fn": s.choice(&["upper", "reverse", "append_x", "first", "null_if_has_a"])})
            }
            "select_key" => json!({"of": of, "fn": s.choice(&["value", "value_first", "upper", "constant"])}),
            "flat_map_values" | "flat_map" => json!({"of": of, "fn": s.choice(&["words", "chars", "twice"])}),
            _ => json!({"of": of}),
        };
        of = s.add(op, fields);
    }
    of
}

/// At most so many operators on a table.
pub fn table_chain(s: &mut Scenario, mut of: String, most: usize) -> String {
    for _ in 0..s.random.between(0, most) {
        let op = s.choice(&["filter", "filter_not", "map_values"]);
        let store = if op == "filter_not" { Value::Null } else { s.maybe(0.4, format!("t-store-{}", s.n)) };
        let function = if op == "map_values" {
            s.choice(&["upper", "append_x", "first", "null_if_has_a"])
        } else {
            s.choice(&["has_a", "len_even", "value_not_null"])
        };
        of = s.add(op, json!({"of": of, "fn": function, "store": store}));
    }
    of
}

/// Groups by the key there is or another.
pub fn group(s: &mut Scenario, of: &str) -> String {
    if s.chance(0.5) {
        let name = s.maybe(0.2, format!("grp-{}", s.n));
        s.add("group_by_key", json!({"of": of, "name": name}))
    } else {
        let key = s.choice(&["value_first", "value", "constant"]);
        s.add("group_by", json!({"of": of, "fn": key}))
    }
}

/// An aggregation, and the serde of its values where it is not text.
pub fn aggregate(s: &mut Scenario, of: &str, reducers: &[&str]) -> (String, Option<&'static str>) {
    let op = s.choice(&["count", "reduce", "aggregate"]);
    let reducer = (op == "reduce" && !reducers.is_empty()).then(|| s.choice(reducers));
    let store = s.maybe(0.5, format!("agg-{}", s.n));
    (s.add(op, json!({"of": of, "fn": reducer, "store": store})), (op == "count").then_some("long"))
}

fn grouped_table(s: &mut Scenario, of: String) {
    let grouped = group(s, &of);
    let (table, value) = aggregate(s, &grouped, &["concat", "last", "max", "null_on_b"]);
    s.table_to(&table, value, false);
}

fn branch(s: &mut Scenario) {
    let of = source_chain(s, 1);
    let count = s.random.between(1, 3);
    let predicates = s.random.sample(&["has_a", "has_b", "len_even"], count);
    let branch = s.add("branch", json!({"of": of, "preds": predicates}));
    for way in (0..count).map(|way| way.to_string()).chain(["default".to_owned()]) {
        if s.chance(0.8) {
            let of = stateless(s, format!("{branch}.{way}"), 1);
            s.to(&of, None);
        }
    }
}

fn windows(s: &mut Scenario, family: &str) {
    let kind = if family == "session" { "session" } else { s.choice(&["tumbling", "hopping", "sliding"]) };
    let size = s.choice(&[5, 10, 20]);
    let of = source_chain(s, 1);
    let of = group(s, &of);
    let advance = (kind == "hopping").then(|| (size / s.choice(&[1, 2, 3])).max(1));
    let grace = s.choice(&[0, 3, 10]);
    let fields = json!({"of": of, "kind": kind, "size": size, "advance": advance, "grace": grace});
    let mut windowed = s.add("windowed_by", fields);
    let close = s.chance(0.25);
    if close {
        windowed = s.add("emit_on_close", json!({"of": windowed}));
    }
    let (mut table, value) = aggregate(s, &windowed, &["concat", "last", "max"]);
    if !close && s.chance(0.3) {
        table = s.add("suppress", json!({"of": table, "until": "window_close"}));
    }
    s.table_to(&table, value, true);
}

fn stream_stream(s: &mut Scenario) {
    let (of, with) = (source_chain(s, 1), source_chain(s, 1));
    let op = s.choice(JOINS);
    let (within, grace) = (s.choice(&[0, 5, 10]), s.choice(&[0, 5, 20]));
    let before = s.choice(&[0, 3]);
    let before = s.maybe(0.3, before);
    let after = s.choice(&[0, 7]);
    let after = s.maybe(0.3, after);
    let fields = json!({"of": of, "with": with, "within": within, "grace": grace, "before": before, "after": after});
    let joined = s.add(op, fields);
    let of = stateless(s, joined, 1);
    s.to(&of, None);
}

fn table_table(s: &mut Scenario) {
    let first = s.table();
    let first = table_chain(s, first, 1);
    let second = s.table();
    let second = table_chain(s, second, 1);
    let op = s.choice(JOINS);
    let store = s.maybe(0.5, format!("j-{}", s.n));
    let mut joined = s.add(op, json!({"of": first, "with": second, "store": store}));
    if s.chance(0.4) {
        let op = s.choice(JOINS);
        let with = s.table();
        joined = s.add(op, json!({"of": joined, "with": with}));
    }
    if s.chance(0.3) {
        let wait = s.choice(&[0, 5, 15]);
        let most = s.choice(&[1, 2, 5]);
        let most = s.maybe(0.5, most);
        joined = s.add("suppress", json!({"of": joined, "until": "time_limit", "ms": wait, "max_records": most}));
    }
    s.table_to(&joined, None, false);
}

fn table_group(s: &mut Scenario) {
    let table = s.table();
    let table = table_chain(s, table, 1);
    let key = s.choice(&["value_first", "constant", "value"]);
    let grouped = s.add("group_by", json!({"of": table, "fn": key}));
    let (table, value) = aggregate(s, &grouped, &[]);
    s.table_to(&table, value, false);
}

fn process(s: &mut Scenario) {
    let made = if s.chance(0.5) {
        let of = source_chain(s, 1);
        s.add("process", json!({"of": of, "kind": "latest", "store": "latest"}))
    } else {
        let of = s.stream();
        let (kind, every) = (s.choice(&["tick_stream", "tick_wall"]), s.choice(&[5, 10, 30]));
        s.add("process", json!({"of": of, "kind": kind, "ms": every}))
    };
    s.to(&made, None);
}
