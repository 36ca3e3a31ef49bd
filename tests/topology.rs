//! Topologies as Apache Kafka 4.3.1 describes them: what the optimiser merges, sources that are one. The texts under
//! `data/topology` are Kafka's own for the same calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::Driver;

fn stream(builder: &StreamsBuilder, topic: &str) -> KStream<Utf8, Utf8> {
    builder.stream(topic, Consumed::with(Utf8, Utf8))
}

fn append(all: &mut String, next: &str) {
    all.push_str(next);
}

fn built(builder: StreamsBuilder) -> String {
    builder.build_with(Optimization::ALL).unwrap().describe()
}

#[test]
fn two_groupings_below_one_change_of_the_key_share_a_repartition_topic() {
    let builder = StreamsBuilder::new();
    let keyed = stream(&builder, "in").select_key(Utf8, |_, value| value);
    keyed.group_by_key().count(Materialized::new());
    keyed.group_by_key().reduce(Materialized::new(), append).to_stream().to("out");
    let topology = builder.build_with(Optimization::ALL).unwrap();
    assert_eq!(topology.describe(), include_str!("data/topology/two-groups.txt"));

    let driver = Driver::options().application_id("app").build(&topology).unwrap();
    let input = driver.input("in", Utf8, Utf8);
    input.pipe("x", "a").unwrap();
    input.pipe("y", "a").unwrap();
    let reduced = driver.output("out", Utf8, Utf8).read_pairs().unwrap();
    assert_eq!(reduced, [("a".to_owned(), "a".to_owned()), ("a".to_owned(), "aa".to_owned())]);
    let mut repartitioned = 0;
    while driver.read_raw("app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition").is_some() {
        repartitioned += 1;
    }
    assert_eq!(repartitioned, 2);
    assert!(!driver.written_topics().iter().any(|topic| topic.contains("REDUCE") && topic.ends_with("repartition")));
}

#[test]
fn a_merged_repartition_is_written_above_what_keeps_the_value_and_bears_the_first_name() {
    let builder = StreamsBuilder::new();
    let keyed = stream(&builder, "in").select_key(Utf8, |_, value| value);
    keyed.filter(|_, v| v.contains('a')).group_by_key_with(Grouped::named("first")).count(Materialized::new());
    keyed.peek(|_, _| ()).group_by_key().reduce(Materialized::new(), append).to_stream().to("out");
    keyed.to("out2");
    assert_eq!(built(builder), include_str!("data/topology/filter-separate.txt"));
}

#[test]
fn no_repartition_moves_above_what_changes_the_value() {
    let builder = StreamsBuilder::new();
    let keyed = stream(&builder, "in").select_key(Utf8, |_, value| value);
    keyed.map_values(Utf8, |value| value).group_by_key().count(Materialized::new());
    keyed.group_by_key().reduce(Materialized::new(), append).to_stream().to("out");
    assert_eq!(built(builder), include_str!("data/topology/values-changed.txt"));
}

#[test]
fn merged_streams_that_changed_their_keys_are_repartitioned_once_behind_the_merge() {
    let builder = StreamsBuilder::new();
    let left = stream(&builder, "in").select_key(Utf8, |_, value| value);
    let right = stream(&builder, "in2").map(Utf8, Utf8, |key, value| (value, key));
    let merged = left.merge(&right);
    merged.group_by_key().count(Materialized::new());
    merged.group_by_key().reduce(Materialized::new(), append).to_stream().to("out");
    assert_eq!(built(builder), include_str!("data/topology/merged.txt"));
}

#[test]
fn repartitions_that_share_an_operator_are_refused_as_kafka_refuses_them() {
    let builder = StreamsBuilder::new();
    let shared = stream(&builder, "in").select_key(Utf8, |_, value| value).filter(|_, _| true);
    shared.group_by_key().count(Materialized::new());
    shared.group_by_key().reduce(Materialized::new(), append);
    let error = builder.build_with(Optimization::ALL).unwrap_err();
    assert_eq!(error, BuildError::NotMergeable { name: "KSTREAM-KEY-SELECT-0000000001".into() });
}

#[test]
fn a_topic_read_twice_is_one_source() {
    let builder = StreamsBuilder::new();
    let filtered = stream(&builder, "in").filter(|_, v| v.contains('a'));
    stream(&builder, "in").peek(|_, _| ()).to("out");
    filtered.to("out2");
    assert_eq!(builder.build().unwrap().describe(), include_str!("data/topology/twice.txt"));
}

#[test]
fn a_topic_read_twice_in_two_ways_is_refused() {
    let builder = StreamsBuilder::new();
    builder.stream(["a", "b"], Consumed::with(Utf8, Utf8)).to("out");
    builder.stream(["b", "c"], Consumed::with(Utf8, Utf8)).to("out2");
    assert_eq!(builder.build().unwrap_err(), BuildError::TopicTwice { topic: "b".into() });

    let builder = StreamsBuilder::new();
    builder.stream("a", Consumed::with(Utf8, Utf8)).to("out");
    builder.stream("a", Consumed::with(Utf8, Utf8).reset(OffsetReset::Latest)).to("out2");
    assert_eq!(builder.build().unwrap_err(), BuildError::ResetDiffers { topic: "a".into() });
}

#[test]
fn a_stream_merged_with_itself_passes_each_record_once() {
    let builder = StreamsBuilder::new();
    let lines = stream(&builder, "in");
    lines.merge(&lines).to("out");
    let topology = builder.build().unwrap();
    assert_eq!(topology.describe(), include_str!("data/topology/merge-self.txt"));
    let driver = Driver::new(&topology).unwrap();
    driver.input("in", Utf8, Utf8).pipe("x", "ab").unwrap();
    assert_eq!(driver.output("out", Utf8, Utf8).read_pairs().unwrap(), [("x".to_owned(), "ab".to_owned())]);
}

#[test]
fn a_partitioner_sends_a_record_to_some_partitions_or_drops_it() {
    let builder = StreamsBuilder::new();
    let input = builder.stream("in", Consumed::with(Utf8, I64));
    input.to_partitioned("out", Produced::named("writer"), |_, amount, to| match amount {
        0 => {}
        1 => to.by_key(),
        2 => to.all(),
        _ => to.partition(1),
    });
    let wide = Repartitioned::with_partitions(1).named("wide");
    input.repartition_partitioned(wide, |_, _, to| to.partition(to.count() - 1)).to("again");
    let topology = builder.build().unwrap();
    assert!(topology.describe().contains("Sink: writer (topic: out)"));
    let driver = Driver::new(&topology).unwrap();
    let input = driver.input("in", Utf8, I64);
    for amount in 0..3 {
        input.pipe("k", amount).unwrap();
    }
    let pairs = |topic: &str| driver.output(topic, Utf8, I64).read_pairs().unwrap();
    assert_eq!(pairs("out"), [("k".to_owned(), 1), ("k".to_owned(), 2)]);
    assert_eq!(driver.records_dropped(), 1);
    assert_eq!(pairs("again"), [("k".to_owned(), 0), ("k".to_owned(), 1), ("k".to_owned(), 2)]);
    let error = input.pipe("k", 3).unwrap_err().to_string();
    assert!(error.contains("partition 1 of 1"), "{error}");
}

#[test]
fn records_name_their_topic_and_the_description_the_closure() {
    let builder = StreamsBuilder::new();
    let input = builder.stream("in", Consumed::with(Utf8, Utf8));
    input.to_by(Produced::named("routed"), |_, value| if value.len() > 3 { "long" } else { "short" });
    builder.stream("short", Consumed::with(Utf8, Utf8)).to("read-again");
    let topology = builder.build().unwrap();
    let text = topology.describe();
    assert!(text.contains("Sink: routed (extractor class: topology::records_name_their_topic"), "{text}");
    let driver = Driver::new(&topology).unwrap();
    let input = driver.input("in", Utf8, Utf8);
    input.pipe("a", "abcd").unwrap();
    input.pipe("b", "ab").unwrap();
    let pairs = |topic: &str| driver.output(topic, Utf8, Utf8).read_pairs().unwrap();
    assert_eq!(pairs("long"), [("a".to_owned(), "abcd".to_owned())]);
    assert_eq!(pairs("short"), [("b".to_owned(), "ab".to_owned())]);
    assert_eq!(pairs("read-again"), [("b".to_owned(), "ab".to_owned())]);
}
