//! Tables in the driver: what Apache Kafka's `TopologyTestDriver` answers for the same records.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::Driver;

fn driver(builder: StreamsBuilder) -> Driver {
    Driver::options().application_id("app").build(&builder.build().unwrap()).unwrap()
}

fn pipe(driver: &Driver, topic: &str, key: &str, value: Option<&str>, time: i64) {
    driver.pipe(topic, Some(key.as_bytes()), value.map(str::as_bytes), time).unwrap();
}

/// All that was written to a topic: `key=value@time`, a null as `-`.
fn written(driver: &Driver, topic: &str) -> String {
    let text = |bytes: Option<Vec<u8>>| bytes.map_or("-".to_owned(), |b| String::from_utf8(b).unwrap());
    let records = std::iter::from_fn(|| driver.read_raw(topic));
    let all: Vec<_> = records.map(|r| format!("{}={}@{}", text(r.key), text(r.value), r.timestamp)).collect();
    all.join(" ")
}

fn text() -> Consumed<Utf8, Utf8> {
    Consumed::with(Utf8, Utf8)
}

#[test]
fn a_table_of_a_stream_maps_its_values_and_passes_deletions() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream("in", Consumed::with(Opt(Utf8), Opt(Utf8)));
    let upper = stream.to_table(Materialized::new()).map_values(Text, |v| v.unwrap_or_default().to_uppercase());
    upper.to_stream().to("out");
    let driver = driver(builder);
    let records = [("b", None, 5), ("K", None, 5), ("ab", Some("c"), 17), ("K", Some("a"), 18), ("ab", None, 40)];
    for (key, value, time) in records {
        pipe(&driver, "in", key, value, time);
    }
    driver.pipe("in", None, Some(b""), 36).unwrap();
    pipe(&driver, "in", "K", Some(""), 54);
    assert_eq!(written(&driver, "out"), "b=-@5 K=-@5 ab=C@17 K=A@18 ab=-@40 K=@54");
    assert_eq!((driver.records_dropped(), driver.written_topics()), (1, vec!["out".to_owned()]));
}

#[test]
fn what_a_filter_does_not_want_is_deleted() {
    let builder = StreamsBuilder::new();
    let odd = builder.table("in", text()).filter_not(|_, v| v.len() % 2 == 0);
    odd.to_stream().to("out");
    let driver = driver(builder);
    for (key, value, time) in [
        ("ab", Some("ab"), 1),
        ("c", Some("xyz"), 18),
        ("b", None, 19),
        ("c", Some("bb cc"), 20),
        ("c", Some("aa"), 44),
    ] {
        pipe(&driver, "in", key, value, time);
    }
    assert_eq!(written(&driver, "out"), "ab=-@1 c=xyz@18 b=-@19 c=bb cc@20 c=-@44");
}

#[test]
fn a_filter_below_a_kept_table_sends_nothing_where_nothing_was_and_nothing_is() {
    let builder = StreamsBuilder::new();
    let kept = builder.table_with("in", text(), Materialized::named("all"));
    kept.filter_with(Materialized::named("with-a"), |_, v| v.contains('a')).to_stream().to("out");
    let driver = driver(builder);
    for (key, value, time) in
        [("k", Some("b"), 1), ("k", Some("a"), 2), ("k", Some("c"), 3), ("k", None, 4), ("k", Some("ab"), 9)]
    {
        pipe(&driver, "in", key, value, time);
    }
    assert_eq!(written(&driver, "out"), "k=a@2 k=-@3 k=ab@9");
    assert_eq!(written(&driver, "app-with-a-changelog"), "k=a@2 k=-@3 k=ab@9");
    assert_eq!(written(&driver, "app-all-changelog"), "k=b@1 k=a@2 k=c@3 k=-@4 k=ab@9");
}
