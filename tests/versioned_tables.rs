//! Versioned tables: literal answers of Apache Kafka Streams 4.3.1 (`conformance/Oracle.java`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::Driver;
use std::time::Duration;

fn text() -> Consumed<Utf8, Utf8> {
    Consumed::with(Utf8, Utf8)
}

fn kept(name: &str, history: u64) -> Materialized {
    Materialized::named(name).versioned(Duration::from_millis(history))
}

fn driver(builder: StreamsBuilder) -> Driver {
    Driver::options().application_id("app").build(&builder.build().unwrap()).unwrap()
}

/// What a record makes: `topic value@time`, a null as `-`.
fn piped(driver: &Driver, topic: &str, value: Option<&str>, time: i64) -> Vec<String> {
    driver.pipe(topic, Some(b"k"), value.map(str::as_bytes), time).unwrap();
    let mut all = Vec::new();
    for topic in ["at", "filtered", "joined", "sums"] {
        all.extend(std::iter::from_fn(|| driver.read_raw(topic)).map(|raw| {
            let value = raw.value.map_or("-".to_owned(), |v| String::from_utf8(v).unwrap());
            format!("{topic} {value}@{}", raw.timestamp)
        }));
    }
    all
}

/// A stream that asks for the table's past, a join of two versioned tables, a filter and a grouping.
fn all_below_a_versioned_table() -> StreamsBuilder {
    let builder = StreamsBuilder::new();
    let left = builder.table_with("left", text(), kept("left", 5));
    let right = builder.table_with("right", text(), kept("right", 5));
    let stream = builder.stream("in", text());
    stream.join_table(&left, Text, |n, row| format!("{n}/{row}")).to("at");
    left.join(&right, Text, |l, r| format!("{l}/{r}")).to_stream().to("joined");
    left.filter(|_, value| value.contains('a')).to_stream().to("filtered");
    let sums = left.group_by(Utf8, Utf8, |_, value| ("all", value)).aggregate(
        Text,
        Materialized::named("sums").caching(false),
        String::new,
        |_, value, sum| sum.push_str(&format!("+{value}")),
        |_, value, sum| sum.push_str(&format!("-{value}")),
    );
    sums.to_stream().to("sums");
    builder
}

#[test]
fn a_stream_sees_the_value_of_its_time_and_late_updates_change_only_the_past() {
    let driver = driver(all_below_a_versioned_table());
    let left = |value, time| piped(&driver, "left", value, time);
    assert_eq!(left(Some("a"), 10), ["filtered a@10", "sums +a@10"]);
    assert_eq!(piped(&driver, "right", Some("x"), 11), ["joined a/x@11"]);
    assert_eq!(left(Some("b"), 20), ["filtered -@20", "joined b/x@20", "sums +a-a+b@20"]);
    assert_eq!(left(Some("ca"), 15), ["filtered ca@15"], "out of order");
    assert!(left(Some("late"), 14).is_empty(), "older than the history");
    assert_eq!(left(None, 17), ["filtered -@17"]);
    assert!(piped(&driver, "right", Some("w"), 9).is_empty());
    let ask = |value, time| piped(&driver, "in", Some(value), time);
    assert_eq!(ask("1", 21), ["at 1/b@21"]);
    assert_eq!(ask("2", 16), ["at 2/ca@16"]);
    assert!(ask("3", 18).is_empty(), "deleted at that time");
    assert_eq!(ask("4", 15), ["at 4/ca@15"]);
    assert!(ask("5", 14).is_empty(), "the history does not go back so far");
    assert_eq!(left(None, 22), ["filtered -@22", "joined -@22", "sums +a-a+b-b@22"]);
    assert_eq!(ask("6", 21), ["at 6/b@21"]);
    assert!(ask("7", 22).is_empty());
    let logged = std::iter::from_fn(|| driver.read_raw("app-left-changelog"));
    let logged: Vec<_> = logged.map(|raw| (raw.value.map(|v| String::from_utf8(v).unwrap()), raw.timestamp)).collect();
    let value = |text: &str| Some(text.to_owned());
    let expected = [(value("a"), 10), (value("b"), 20), (value("ca"), 15), (value("late"), 14), (None, 17), (None, 22)];
    assert_eq!(logged, expected);
}

#[test]
fn a_table_is_versioned_below_filters_that_keep_nothing() {
    let with_grace = |table: &KTable<Utf8, Utf8>, builder: &StreamsBuilder| {
        let patient = Joined::named("patient").grace(Duration::from_millis(3));
        builder.stream("in", text()).join_table_with(table, Text, patient, |n, row| format!("{n}/{row}")).to("out");
    };
    let refused = Err(BuildError::GraceNotVersioned { name: "patient".into() });
    type Table = fn(&StreamsBuilder) -> KTable<Utf8, Utf8>;
    let cases: [(bool, Table); 5] = [
        (true, |builder| builder.table_with("left", text(), kept("left", 5))),
        (true, |builder| builder.table_with("left", text(), kept("left", 5)).filter(|_, _| true)),
        (true, |builder| builder.stream("left", text()).to_table(kept("left", 5)).map_values(Utf8, |v| v)),
        (false, |builder| {
            let left = builder.table_with("left", text(), kept("left", 5));
            left.filter_with(Materialized::named("some"), |_, _| true)
        }),
        (false, |builder| builder.table_with("left", text(), Materialized::named("left"))),
    ];
    for (n, (is_versioned, table)) in cases.into_iter().enumerate() {
        let builder = StreamsBuilder::new();
        with_grace(&table(&builder), &builder);
        let built = builder.build().map(|_| ());
        assert_eq!(built, if is_versioned { Ok(()) } else { refused.clone() }, "case {n}");
    }
}

#[test]
fn what_cannot_be_versioned_is_refused() {
    let builder = StreamsBuilder::new();
    let table = builder.table_with("left", text(), kept("left", 5));
    let _ = table.suppress(Suppressed::until_time_limit(Duration::from_secs(1), BufferConfig::max_records(9)));
    let what = "a table whose updates are suppressed";
    assert_eq!(builder.build().map(|_| ()), Err(BuildError::Versioned { what }));
    let builder = StreamsBuilder::new();
    builder.stream("in", text()).group_by_key().count(kept("counts", 5));
    assert_eq!(builder.build().map(|_| ()), Err(BuildError::Versioned { what: "the aggregation of a stream" }));
    let builder = StreamsBuilder::new();
    builder.global_table_with("in", text(), kept("all", 5));
    assert_eq!(builder.build().map(|_| ()), Err(BuildError::Versioned { what: "a global table" }));
}

#[test]
fn a_result_kept_in_versions_sends_the_latest_old_value() {
    let builder = StreamsBuilder::new();
    let left = builder.table_with("left", text(), Materialized::named("left").caching(false));
    let kept = left.filter_with(kept("some", 100), |_, _| true);
    let sums = kept.group_by(Utf8, Utf8, |_, value| ("all", value)).aggregate(
        Text,
        Materialized::named("sums").caching(false),
        String::new,
        |_, value, sum| sum.push_str(&format!("+{value}")),
        |_, value, sum| sum.push_str(&format!("-{value}")),
    );
    sums.to_stream().to("sums");
    let driver = driver(builder);
    assert_eq!(piped(&driver, "left", Some("a"), 10), ["sums +a@10"]);
    assert_eq!(piped(&driver, "left", Some("b"), 20), ["sums +a-a+b@20"]);
    assert!(piped(&driver, "left", Some("c"), 15).is_empty());
    assert_eq!(piped(&driver, "left", Some("d"), 30), ["sums +a-a+b-b+d@30"]);
}
