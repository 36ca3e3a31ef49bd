//! Foreign-key joins in the driver: what Apache Kafka's `TopologyTestDriver` answers for the same records, and the
//! bytes of its internal topics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::Driver;

fn tables() -> (StreamsBuilder, KTable<Utf8, Utf8>, KTable<Utf8, Utf8>) {
    let builder = StreamsBuilder::new();
    let table = |topic: &str| {
        let kept = Materialized::named(&format!("store-{topic}"));
        builder.table_with(topic, Consumed::with(Utf8, Utf8), kept)
    };
    let (left, right) = (table("in1"), table("in2"));
    (builder, left, right)
}

/// The first letter is the foreign key; empty text has none.
fn first<'a>(_: &'a str, value: &'a str) -> Option<&'a str> {
    value.get(..1)
}

/// Pipes `topic key value time`; a value `-` is null. Answers what it makes in the sink: `key=value@time`.
fn pipe(driver: &Driver, record: &str) -> String {
    let parts: Vec<&str> = record.split(' ').collect();
    let [topic, key, value, time] = parts[..] else { panic!("{record}") };
    let value = (value != "-").then(|| value.replace('_', " "));
    driver.pipe(topic, Some(key.as_bytes()), value.as_deref().map(str::as_bytes), time.parse().unwrap()).unwrap();
    let text = |bytes: Option<Vec<u8>>| bytes.map_or("-".to_owned(), |b| String::from_utf8(b).unwrap());
    let records = std::iter::from_fn(|| driver.read_raw("out"));
    let all: Vec<_> = records.map(|r| format!("{}={}@{}", text(r.key), text(r.value), r.timestamp)).collect();
    all.join(" ")
}

/// A topic's records in hex: `key value time`.
fn bytes(driver: &Driver, topic: &str) -> Vec<String> {
    let hex = |bytes: Option<Vec<u8>>| {
        bytes.map_or("-".to_owned(), |bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    };
    let records = std::iter::from_fn(|| driver.read_raw(topic));
    records.map(|r| format!("{} {} {}", hex(r.key), hex(r.value), r.timestamp)).collect()
}

/// With keys of the right table that may be null, so that a left row may have none.
#[test]
fn a_left_foreign_key_join_answers_and_writes_what_kafka_streams_does() {
    let builder = StreamsBuilder::new();
    let kept = |topic: &str| Materialized::named(&format!("store-{topic}"));
    let left = builder.table_with("in1", Consumed::with(Utf8, Utf8), kept("in1"));
    let right = builder.table_with("in2", Consumed::with(Opt(Utf8), Utf8), kept("in2"));
    let slash = |l: &str, r: Option<&str>| format!("{l}/{}", r.unwrap_or("null"));
    left.left_join_on(&right, first, Text, Materialized::new(), slash).to_stream().to("out");
    let driver = Driver::options().application_id("app").build(&builder.build().unwrap()).unwrap();
    for (record, expected) in [
        ("in2 K b 6", ""),
        ("in1 ab xyz 5", "ab=xyz/null@5"),
        ("in1 b abc_d 6", "b=abc d/null@6"),
        ("in2 a bb_cc 0", "b=abc d/bb cc@0"),
        ("in1 ab c 6", "ab=c/null@6"),
        ("in1 c abc_d 12", "c=abc d/bb cc@12"),
        ("in1 b - 43", "b=-@43"),
    ] {
        assert_eq!(pipe(&driver, record), expected, "{record}");
    }
    let subscriptions = bytes(&driver, "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000004-topic");
    let expected = [
        "78 010232fe685d1daad156e723b6e1cd42367e616200000000 5",
        "61 010287220d70ce4ff4e3334549bc943a32976200000000 6",
        "78 0100e1079c105716b71f49d5b86783db5779616200000000 6",
        "63 0102e1079c105716b71f49d5b86783db5779616200000000 6",
        "61 010287220d70ce4ff4e3334549bc943a32976300000000 12",
        "61 81006200000000 43",
        "- 81026200000000 43",
    ];
    assert_eq!(subscriptions, expected);
    let answers = bytes(&driver, "app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000012-topic");
    let expected = [
        "6162 0032fe685d1daad156e723b6e1cd42367e 5",
        "62 0087220d70ce4ff4e3334549bc943a3297 6",
        "62 0087220d70ce4ff4e3334549bc943a32976262206363 0",
        "6162 00e1079c105716b71f49d5b86783db5779 6",
        "63 0087220d70ce4ff4e3334549bc943a32976262206363 12",
        "62 80 43",
    ];
    assert_eq!(answers, expected);
    let kept = bytes(&driver, "app-KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000008-changelog");
    assert_eq!(kept[1], "000000016162 010287220d70ce4ff4e3334549bc943a32976200000000 6");
    assert_eq!((&*kept[2], kept.len()), ("00000001786162 - 6", 6));
}

#[test]
fn an_inner_foreign_key_join_has_a_row_where_both_are() {
    let (builder, left, right) = tables();
    let named = TableJoined::named("fk");
    let right = right.filter(|_, v| v != "hidden");
    let by = left.map_values(Text, |v| v.to_owned());
    let right = right.map_values(Text, |v| v.to_owned());
    by.join_on_with(
        &right,
        |_, v| v.get(..1).unwrap_or("?"),
        Text,
        named,
        Materialized::named("joined"),
        |l, r| format!("{l}/{r}"),
    )
    .to_stream()
    .to("out");
    let topology = builder.build().unwrap();
    assert!(topology.describe().contains("fk-subscription-response-resolver"));
    let driver = Driver::options().application_id("app").build(&topology).unwrap();
    for (record, expected) in [
        ("in1 one ax 1", ""),
        ("in2 a A 2", "one=ax/A@2"),
        ("in1 two ay 3", "two=ay/A@3"),
        ("in2 a B 4", "one=ax/B@4 two=ay/B@4"),
        ("in2 a hidden 5", "one=-@5 two=-@5"),
        ("in2 b C 5", ""),
        ("in1 one bx 6", "one=bx/C@6"),
        ("in1 one - 7", "one=-@7"),
        ("in2 b D 8", ""),
    ] {
        assert_eq!(pipe(&driver, record), expected, "{record}");
    }
    let rows = driver.store("joined", Utf8, Utf8).unwrap().rows().unwrap();
    assert!(rows.is_empty(), "{rows:?}");
}
