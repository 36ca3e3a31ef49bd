//! Global tables in the driver.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::Driver;

fn written(driver: &Driver) -> String {
    let text = |bytes: Option<Vec<u8>>| bytes.map_or("-".to_owned(), |b| String::from_utf8(b).unwrap());
    let records = std::iter::from_fn(|| driver.read_raw("out"));
    let all: Vec<_> = records.map(|r| format!("{}={}@{}", text(r.key), text(r.value), r.timestamp)).collect();
    all.join(" ")
}

fn driver(left: bool) -> (Driver, String) {
    let builder = StreamsBuilder::new();
    let table = builder.global_table("table", Consumed::with(Opt(Utf8), Utf8));
    let stream = builder.stream("in", Consumed::with(Opt(Utf8), Opt(Utf8)));
    let joined = if left {
        stream.left_join_global_table(&table, Text, first, |l, r| format!("{}/{}", l.unwrap(), r.unwrap_or("null")))
    } else {
        stream.join_global_table(&table, Text, first, |l, r| format!("{}/{r}", l.unwrap()))
    };
    joined.to("out");
    let topology = builder.build().unwrap();
    let text = topology.describe();
    (Driver::options().application_id("app").commit_each(false).build(&topology).unwrap(), text)
}

fn first<'a>(_: Option<&'a str>, value: Option<&'a str>) -> Option<&'a str> {
    value?.get(..1)
}

fn pipe_all(driver: &Driver) {
    for (topic, key, value, time) in [
        ("in", Some("k"), Some("ax"), 5),
        ("table", Some("a"), Some("A"), 9),
        ("in", Some("k"), Some("ay"), 6),
        ("in", None, Some("az"), 7),
        ("in", Some("k"), Some(""), 8),
        ("in", None, Some(""), 8),
        ("in", Some("k"), None, 9),
        ("table", Some("a"), None, 1),
        ("table", None, Some("A"), 1),
        ("in", Some("k"), Some("aw"), 10),
    ] {
        driver.pipe(topic, key.map(str::as_bytes), value.map(str::as_bytes), time).unwrap();
    }
}

#[test]
fn a_stream_is_joined_with_what_a_global_table_has_at_once() {
    let (driver, described) = driver(false);
    let global = "Sub-topology: 0 for global store (will not generate tasks)\n    Source: KSTREAM-SOURCE-0000000001";
    assert!(described.contains(global), "{described}");
    assert!(described.contains("Processor: KSTREAM-LEFTJOIN-0000000004 (stores: [])"), "{described}");
    pipe_all(&driver);
    assert_eq!(written(&driver), "k=ay/A@6 -=az/A@7");
    assert_eq!(driver.records_dropped(), 4, "three without a key to look up or a value, one without a table's key");
}

#[test]
fn a_left_join_with_a_global_table_answers_what_has_no_row_and_no_key() {
    let (driver, _) = driver(true);
    pipe_all(&driver);
    assert_eq!(written(&driver), "k=ax/null@5 k=ay/A@6 -=az/A@7 k=/null@8 -=/null@8 k=aw/null@10");
    assert_eq!((driver.records_dropped(), driver.stream_time()), (2, 10));
}
