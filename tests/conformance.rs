//! The same scenarios through Apache Kafka's `TopologyTestDriver` (answered once, kept in `tests/data`) and through
//! ours: names, description, outputs, bytes of internal topics and stores must be equal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::{Driver, RawOutput};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Nullable text whose closures answer owned text: what Java's `Serdes.String()` is.
#[derive(Clone, Copy)]
struct Nullable;

impl Schema for Nullable {
    type View<'a> = Option<&'a str>;
    type Out<'a> = Option<String>;
    fn lend<'s, 'a: 's>(out: &'s Option<String>) -> Option<&'s str> {
        out.as_deref()
    }
    fn shorten<'s, 'a: 's>(view: Option<&'a str>) -> Option<&'s str> {
        view
    }
}

impl Codec for Nullable {
    type Owned = Option<String>;
    fn decode(&self, bytes: &[u8]) -> Result<Option<String>, DecodeError> {
        Text.decode(bytes).map(Some)
    }
    fn decode_null(&self) -> Result<Option<String>, DecodeError> {
        Ok(None)
    }
    fn is_null(view: Option<&str>) -> bool {
        view.is_none()
    }
    fn encode(&self, view: Option<&str>, out: &mut Scratch) {
        out.extend(view.unwrap_or_default().as_bytes());
    }
    fn view(owned: &Option<String>) -> Option<&str> {
        owned.as_deref()
    }
    fn own(view: Option<&str>) -> Option<String> {
        view.map(str::to_owned)
    }
}

type T = Nullable;

enum Handle {
    Stream(KStream<T, T>),
    Updates(KStream<T, Opt<T>>),
    Counts(KStream<T, Opt<I64>>),
    Grouped(KGroupedStream<T, T>),
    Table(KTable<T, T>),
    CountTable(KTable<T, I64>),
}

fn predicate(name: &str) -> fn(Option<&str>, Option<&str>) -> bool {
    match name {
        "key_not_null" => |k, _| k.is_some(),
        "value_not_null" => |_, v| v.is_some(),
        "len_even" => |_, v| v.is_some_and(|v| v.len() % 2 == 0),
        "has_a" => |_, v| v.is_some_and(|v| v.contains('a')),
        "has_b" => |_, v| v.is_some_and(|v| v.contains('b')),
        other => panic!("predicate {other}"),
    }
}

fn value_function(name: &str) -> fn(Option<&str>) -> Option<String> {
    match name {
        "identity" => |v| v.map(str::to_owned),
        "upper" => |v| v.map(str::to_uppercase),
        "reverse" => |v| v.map(|v| v.chars().rev().collect()),
        "append_x" => |v| Some(format!("{}x", v.unwrap_or_default())),
        "first" => |v| v.and_then(|v| v.get(..1)).map(str::to_owned),
        "null_if_has_a" => |v| v.filter(|v| !v.contains('a')).map(str::to_owned),
        other => panic!("value function {other}"),
    }
}

fn key_function(name: &str) -> fn(Option<&str>, Option<&str>) -> Option<String> {
    match name {
        "identity" => |k, _| k.map(str::to_owned),
        "value" => |_, v| v.map(str::to_owned),
        "value_first" => |_, v| v.and_then(|v| v.get(..1)).map(str::to_owned),
        "upper" => |k, _| k.map(str::to_uppercase),
        "constant" => |_, _| Some("all".to_owned()),
        other => panic!("key function {other}"),
    }
}

fn pieces(name: &str) -> fn(Option<&str>) -> Vec<String> {
    match name {
        "words" => |v| v.unwrap_or_default().split(' ').filter(|w| !w.is_empty()).map(str::to_owned).collect(),
        "chars" => |v| v.unwrap_or_default().chars().map(String::from).collect(),
        "twice" => |v| v.map(|v| vec![v.to_owned(); 2]).unwrap_or_default(),
        other => panic!("flat function {other}"),
    }
}

fn reduce_function(name: &str) -> fn(&mut Option<String>, Option<&str>) {
    fn concat(a: &mut Option<String>, b: Option<&str>) {
        a.get_or_insert_default().push_str(b.unwrap_or_default());
    }
    match name {
        "identity" | "concat" => concat,
        "last" => |a, b| *a = b.map(str::to_owned),
        "max" => |a, b| {
            if a.as_deref() < b {
                *a = b.map(str::to_owned);
            }
        },
        "null_on_b" => |a, b| if b.is_some_and(|b| b.contains('b')) { *a = None } else { concat(a, b) },
        other => panic!("reducer {other}"),
    }
}

struct Building<'s> {
    builder: StreamsBuilder,
    handles: HashMap<String, Handle>,
    sinks: BTreeMap<String, bool>,
    scenario: &'s Value,
}

fn text<'v>(node: &'v Value, field: &str) -> Option<&'v str> {
    node[field].as_str()
}

fn materialized(node: &Value) -> Materialized {
    let named = text(node, "store").map_or_else(Materialized::new, Materialized::named);
    named.caching(node["cache"].as_bool().unwrap_or(true)).logging(node["logging"].as_bool().unwrap_or(true))
}

impl Building<'_> {
    fn stream(&self, id: &str) -> &KStream<T, T> {
        match &self.handles[id] {
            Handle::Stream(stream) => stream,
            _ => panic!("{id} is no stream of text"),
        }
    }

    fn grouped(&self, id: &str) -> &KGroupedStream<T, T> {
        match &self.handles[id] {
            Handle::Grouped(grouped) => grouped,
            _ => panic!("{id} is not grouped"),
        }
    }

    fn build(mut self) -> (Topology, BTreeMap<String, bool>) {
        for node in self.scenario["topology"].as_array().unwrap() {
            self.add(node);
        }
        (self.builder.build().unwrap(), self.sinks)
    }

    fn add(&mut self, node: &Value) {
        let id = text(node, "id").unwrap().to_owned();
        let of = text(node, "of").unwrap_or_default();
        let fun = text(node, "fn").unwrap_or("identity");
        let name = text(node, "name");
        let named = |stream: KStream<T, T>| Handle::Stream(name.map_or(stream.clone(), |name| stream.named(name)));
        let made = match text(node, "op").unwrap() {
            "stream" => self.source(node),
            "filter" => named(self.stream(of).filter(predicate(fun))),
            "filter_not" => named(self.stream(of).filter_not(predicate(fun))),
            "map_values" => named(self.stream(of).map_values(Nullable, value_function(fun))),
            "select_key" => named(self.stream(of).select_key(Nullable, key_function(fun))),
            "map" => {
                let swap = |k: Option<&str>, v: Option<&str>| (v.map(str::to_owned), k.map(str::to_owned));
                named(self.stream(of).map(Nullable, Nullable, swap))
            }
            "flat_map_values" => {
                let pieces = pieces(fun);
                named(self.stream(of).flat_map_values(Nullable, move |v, out| {
                    pieces(v).into_iter().for_each(|piece| out.push(Some(piece)));
                }))
            }
            "flat_map" => {
                let pieces = pieces(fun);
                named(self.stream(of).flat_map(Nullable, Nullable, move |k, v, out| {
                    pieces(v).into_iter().for_each(|piece| out.push(Some(piece), k.map(str::to_owned)));
                }))
            }
            "peek" => named(self.stream(of).peek(|_, _| ())),
            "merge" => named(self.stream(of).merge(self.stream(text(node, "with").unwrap()))),
            "branch" => return self.branch(node, &id),
            "repartition" => {
                let how = name.map_or_else(Repartitioned::new, |name| Repartitioned::new().named(name));
                Handle::Stream(self.stream(of).repartition(how))
            }
            "group_by_key" => Handle::Grouped(self.stream(of).group_by_key_with(grouped(name))),
            "group_by" => Handle::Grouped(self.stream(of).group_by_with(Nullable, key_function(fun), grouped(name))),
            "count" => Handle::CountTable(self.grouped(of).count(materialized(node))),
            "reduce" => Handle::Table(self.grouped(of).reduce(materialized(node), reduce_function(fun))),
            "aggregate" => {
                let add = reduce_function("concat");
                let init = || Some(String::new());
                let table = self.grouped(of).aggregate(Nullable, materialized(node), init, move |_, v, a| add(a, v));
                Handle::Table(table)
            }
            "to_stream" => match &self.handles[of] {
                Handle::Table(table) => Handle::Updates(table.to_stream()),
                Handle::CountTable(table) => Handle::Counts(table.to_stream()),
                _ => panic!("{of} is no table"),
            },
            "to" => return self.sink(node, of),
            other => panic!("operator {other}"),
        };
        self.handles.insert(id, made);
    }

    fn source(&self, node: &Value) -> Handle {
        let how = Consumed::with(Nullable, Nullable);
        let how = text(node, "name").map_or(how.clone(), |name| how.named(name));
        let topics: Vec<String> = match &node["topic"] {
            Value::Array(topics) => topics.iter().map(|t| t.as_str().unwrap().to_owned()).collect(),
            topic => vec![topic.as_str().unwrap().to_owned()],
        };
        Handle::Stream(self.builder.stream(topics, how))
    }

    fn branch(&mut self, node: &Value, id: &str) {
        let mut split = self.stream(text(node, "of").unwrap()).split_named(&format!("{id}-"));
        let mut made = Vec::new();
        for (number, name) in node["preds"].as_array().unwrap().iter().enumerate() {
            let stream = split.branch_named(&number.to_string(), predicate(name.as_str().unwrap()));
            made.push((format!("{id}.{number}"), stream));
        }
        if node["default"].as_bool().unwrap_or(true) {
            made.push((format!("{id}.default"), split.default_branch_named("default")));
        }
        self.handles.extend(made.into_iter().map(|(id, stream)| (id, Handle::Stream(stream))));
    }

    fn sink(&mut self, node: &Value, of: &str) {
        let topic = text(node, "topic").unwrap();
        let long = match &self.handles[of] {
            Handle::Stream(stream) => (stream.to(topic), false).1,
            Handle::Updates(stream) => (stream.to(topic), false).1,
            Handle::Counts(stream) => (stream.to(topic), true).1,
            _ => panic!("{of} cannot be written"),
        };
        self.sinks.insert(topic.to_owned(), long);
    }
}

fn grouped(name: Option<&str>) -> Grouped {
    name.map_or_else(Grouped::default, Grouped::named)
}

fn hex(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>().into())
}

fn string(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| String::from_utf8(bytes.to_vec()).unwrap().into())
}

fn long(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| i64::from_be_bytes(bytes.try_into().unwrap()).into())
}

fn record(raw: &RawOutput, sink: Option<(&str, bool)>) -> Value {
    let (key, value) = (raw.key.as_deref(), raw.value.as_deref());
    let mut row = match sink {
        Some((topic, is_long)) => {
            json!({"topic": topic, "k": string(key), "v": if is_long { long(value) } else { string(value) }})
        }
        None => json!({"k": hex(key), "v": hex(value)}),
    };
    row["t"] = raw.timestamp.into();
    if !raw.headers.is_empty() {
        let show = if sink.is_some() { string } else { hex };
        let headers = raw.headers.iter().map(|(key, value)| (key.clone(), show(value.as_deref())));
        row["h"] = Value::Object(headers.collect::<Map<_, _>>());
    }
    row
}

fn stores(scenario: &Value, expected: &Value, driver: &Driver) -> Value {
    let counts = |name: &str| {
        let at = scenario["topology"].as_array().unwrap().iter().position(|node| text(node, "store") == Some(name));
        let op = at.map(|at| scenario["topology"][at]["op"].as_str().unwrap());
        // A generated name tells the operator: count and aggregate share a prefix, so what was expected decides.
        op.map_or(expected["stores"][name][0][1].is_i64(), |op| op == "count")
    };
    let mut all = Map::new();
    for name in expected["stores"].as_object().unwrap().keys() {
        let Ok(store) = driver.store(name, Nullable, I64) else { continue };
        let rows = if counts(name) {
            let rows = store.rows().unwrap();
            rows.into_iter().map(|row| json!([row.key, row.value, row.timestamp])).collect::<Vec<_>>()
        } else {
            let rows = driver.store(name, Nullable, Nullable).unwrap().rows().unwrap();
            rows.into_iter().map(|row| json!([row.key, row.value, row.timestamp])).collect()
        };
        all.insert(name.clone(), rows.into());
    }
    all.into()
}

fn answer(scenario: &Value, expected: &Value) -> Value {
    let building =
        Building { builder: StreamsBuilder::new(), handles: HashMap::new(), sinks: BTreeMap::new(), scenario };
    let (topology, sinks) = building.build();
    let driver = Driver::options().application_id("app").build(&topology).unwrap();
    let mut internal: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut steps = Vec::new();
    for step in scenario["steps"].as_array().unwrap() {
        if let Some(by) = step["wall"].as_u64() {
            driver.advance_wall_clock(Duration::from_millis(by)).unwrap();
        } else {
            let headers: Vec<(&str, &[u8])> = step["h"].as_object().map_or_else(Vec::new, |h| {
                h.iter().map(|(k, v)| (k.as_str(), v.as_str().unwrap().as_bytes())).collect()
            });
            let (topic, time) = (text(step, "in").unwrap(), step["t"].as_i64().unwrap());
            let (key, value) = (text(step, "k").map(str::as_bytes), text(step, "v").map(str::as_bytes));
            driver.pipe_with_headers(topic, key, value, time, &headers).unwrap();
        }
        let mut got = Vec::new();
        for topic in driver.written_topics() {
            while let Some(raw) = driver.read_raw(&topic) {
                match sinks.get(&topic) {
                    Some(long) => got.push(record(&raw, Some((&topic, *long)))),
                    None => internal.entry(topic.clone()).or_default().push(record(&raw, None)),
                }
            }
        }
        steps.push(Value::Array(got));
    }
    json!({
        "name": scenario["name"],
        "describe": topology.describe(),
        "steps": steps,
        "internal": internal,
        "stores": stores(scenario, expected, &driver),
    })
}

#[test]
fn every_scenario_is_answered_as_apache_kafka_answers_it() {
    let lines = include_str!("data/conformance.jsonl");
    let mut wrong = Vec::new();
    let mut records = 0;
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (scenario, expected) = (&case["scenario"], &case["expected"]);
        let ours = answer(scenario, expected);
        records +=
            expected["steps"].as_array().unwrap().iter().map(|step| step.as_array().unwrap().len()).sum::<usize>();
        for part in ["describe", "steps", "internal", "stores"] {
            if ours[part] != expected[part] {
                let (ours, theirs) = (show(&ours[part]), show(&expected[part]));
                wrong.push(format!("{} {part}\nours   {ours}\ntheirs {theirs}", scenario["name"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences, the first:\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n"));
    assert!(lines.lines().count() >= 100 && records > 2000, "{records} records");
}

fn show(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
