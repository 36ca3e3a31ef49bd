//! Topologies in the driver: what a user of Kafka Streams expects of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::StartError;
use plimsoll::prelude::*;
use plimsoll::testing::{Driver, DriverError};
use std::time::Duration;

fn word_count(materialized: Materialized) -> Topology {
    let builder = StreamsBuilder::new();
    builder
        .stream("lines", Consumed::values(Utf8))
        .flat_map_values(Utf8, |line, out| line.split_whitespace().for_each(|word| out.push(word)))
        .group_by(Utf8, |_, word| word)
        .count(materialized)
        .to_stream()
        .to("word-counts");
    builder.build().unwrap()
}

fn counts(driver: &Driver) -> String {
    let pairs = driver.output("word-counts", Utf8, I64).read_pairs().unwrap();
    pairs.iter().map(|(word, n)| format!("{word}{n}")).collect::<Vec<_>>().join(" ")
}

/// The text was printed by Apache Kafka 4.3.1 for the same topology.
const WORD_COUNT: &str = "Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [lines])
      --> KSTREAM-FLATMAPVALUES-0000000001
    Processor: KSTREAM-FLATMAPVALUES-0000000001 (stores: [])
      --> KSTREAM-KEY-SELECT-0000000002
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-KEY-SELECT-0000000002 (stores: [])
      --> counts-repartition-filter
      <-- KSTREAM-FLATMAPVALUES-0000000001
    Processor: counts-repartition-filter (stores: [])
      --> counts-repartition-sink
      <-- KSTREAM-KEY-SELECT-0000000002
    Sink: counts-repartition-sink (topic: counts-repartition)
      <-- counts-repartition-filter

  Sub-topology: 1
    Source: counts-repartition-source (topics: [counts-repartition])
      --> KSTREAM-AGGREGATE-0000000003
    Processor: KSTREAM-AGGREGATE-0000000003 (stores: [counts])
      --> KTABLE-TOSTREAM-0000000007
      <-- counts-repartition-source
    Processor: KTABLE-TOSTREAM-0000000007 (stores: [])
      --> KSTREAM-SINK-0000000008
      <-- KSTREAM-AGGREGATE-0000000003
    Sink: KSTREAM-SINK-0000000008 (topic: word-counts)
      <-- KTABLE-TOSTREAM-0000000007

";

#[test]
fn word_count_is_described_as_kafka_streams_describes_it() {
    assert_eq!(word_count(Materialized::named("counts")).describe(), WORD_COUNT);
}

#[test]
fn words_are_counted_logged_and_kept() {
    let driver = Driver::options().application_id("app").build(&word_count(Materialized::named("counts"))).unwrap();
    driver.input("lines", Utf8, Utf8).pipe_value("a b a").unwrap();
    assert_eq!(counts(&driver), "a1 b1 a2");
    assert_eq!(driver.written_topics(), ["app-counts-changelog", "app-counts-repartition", "word-counts"]);
    let logged = driver.read_raw("app-counts-changelog").unwrap();
    assert_eq!((logged.key.as_deref(), logged.value.as_deref()), (Some(&b"a"[..]), Some(&1i64.to_be_bytes()[..])));
    let store = driver.store("counts", Utf8, I64).unwrap();
    let rows: Vec<_> = store.rows().unwrap().into_iter().map(|row| (row.key, row.value)).collect();
    assert_eq!(rows, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    assert_eq!(store.get("c").unwrap(), None);
    assert_eq!(driver.store("other", Utf8, I64).unwrap_err().to_string(), "the topology has no store \"other\"");
}

#[test]
fn with_caching_a_key_goes_on_once_a_commit_and_in_the_order_of_last_changes() {
    let driver = Driver::options().commit_each(false).build(&word_count(Materialized::new())).unwrap();
    driver.input("lines", Utf8, Utf8).pipe_value("b a c a b b").unwrap();
    assert_eq!(counts(&driver), "");
    driver.commit().unwrap();
    assert_eq!(counts(&driver), "c1 a2 b3");
    driver.input("lines", Utf8, Utf8).pipe_value("c b").unwrap();
    driver.commit().unwrap();
    assert_eq!(counts(&driver), "c2 b4");
}

#[test]
fn without_caching_each_change_goes_on_at_once_with_a_changelog_record() {
    let how = Materialized::named("counts").caching(false);
    let driver = Driver::options().application_id("app").commit_each(false).build(&word_count(how)).unwrap();
    driver.input("lines", Utf8, Utf8).pipe_value("a b a").unwrap();
    assert_eq!(counts(&driver), "a1 b1 a2");
    assert_eq!(std::iter::from_fn(|| driver.read_raw("app-counts-changelog")).count(), 3);
}

#[test]
fn without_logging_there_is_no_changelog() {
    let how = Materialized::named("counts").logging(false);
    let driver = Driver::options().application_id("app").build(&word_count(how)).unwrap();
    driver.input("lines", Utf8, Utf8).pipe_value("a b a").unwrap();
    assert_eq!(driver.written_topics(), ["app-counts-repartition", "word-counts"]);
}

/// 3,000 keys do not fit 64 KiB: most are evicted, read again and evicted again, and every count is still right.
#[test]
fn a_store_larger_than_its_room_evicts_and_counts_right() {
    for caching in [true, false] {
        let topology = word_count(Materialized::named("counts").caching(caching));
        let driver = Driver::options().commit_each(false).overlay_bytes(64 << 10).build(&topology).unwrap();
        let lines = driver.input("lines", Utf8, Utf8);
        for round in 0..4 {
            for key in 0..3000 {
                lines.pipe_value(&format!("word-{key} word-{}", (key * 7 + round) % 3000)).unwrap();
                assert!(driver.overlay_bytes() <= 64 << 10, "{} bytes", driver.overlay_bytes());
            }
            if round == 1 {
                driver.commit().unwrap();
            }
        }
        driver.commit().unwrap();
        let mut last = std::collections::HashMap::new();
        for (word, n) in driver.output("word-counts", Utf8, I64).read_pairs().unwrap() {
            assert!(last.insert(word.clone(), n) < Some(n), "{word} never goes back");
        }
        assert_eq!((last.len(), last.values().all(|n| *n == 8)), (3000, true));
        let rows = driver.store("counts", Utf8, I64).unwrap().rows().unwrap();
        assert_eq!((rows.len(), rows.iter().all(|row| row.value == 8)), (3000, true));
    }
}

#[test]
fn an_evicted_entry_goes_on_inside_the_record_that_needed_its_room() {
    let builder = StreamsBuilder::new();
    let grouped = builder.stream("in", Consumed::with(Utf8, Utf8)).group_by_key();
    let texts = grouped.reduce(Materialized::named("texts"), |text, more| text.push_str(more));
    texts.to_stream().to("out");
    let topology = builder.build().unwrap();
    let driver = Driver::options().commit_each(false).overlay_bytes(100 << 10).build(&topology).unwrap();
    let (input, output) = (driver.input("in", Utf8, Utf8), driver.output("out", Utf8, Utf8));
    for key in ["a", "b", "c"] {
        input.pipe(key, &"x".repeat(30_000)).unwrap();
    }
    assert!(output.read().unwrap().is_none());
    input.pipe("d", &"x".repeat(30_000)).unwrap();
    assert_eq!(output.read().unwrap().unwrap().key, "a", "the first that was changed");
    input.pipe("a", "y").unwrap();
    driver.commit().unwrap();
    let rest: Vec<_> = output.read_pairs().unwrap().into_iter().map(|(key, text)| (key, text.len())).collect();
    let expected = [("b", 30_000), ("c", 30_000), ("d", 30_000), ("a", 30_001)];
    assert_eq!(rest, expected.map(|(key, len)| (key.to_owned(), len)));
}

#[test]
fn a_record_larger_than_all_its_room_still_passes() {
    let driver = Driver::options().overlay_bytes(1000).build(&word_count(Materialized::named("counts"))).unwrap();
    driver.input("lines", Utf8, Utf8).pipe_value("a b a").unwrap();
    assert_eq!(counts(&driver), "a1 b1 a2");
}

#[test]
fn an_aggregates_time_is_the_highest_of_its_records() {
    let builder = StreamsBuilder::new();
    builder
        .stream("in", Consumed::with(Utf8, I64))
        .group_by_key()
        .reduce(Materialized::new(), |sum, n| *sum += n)
        .to_stream()
        .to("out");
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    let (input, output) = (driver.input("in", Utf8, I64), driver.output("out", Utf8, I64));
    for (n, time) in [(1, 50), (2, 20), (4, 60)] {
        input.pipe_at("k", n, time).unwrap();
    }
    let times: Vec<_> = std::iter::from_fn(|| output.read().unwrap()).map(|r| (r.value, r.timestamp)).collect();
    assert_eq!(times, [(1, 50), (3, 50), (7, 60)]);
    assert_eq!(driver.stream_time(), 60);
}

#[test]
fn a_record_that_cannot_be_decoded_names_its_place_and_side() {
    let builder = StreamsBuilder::new();
    builder.stream("in", Consumed::with(Utf8, I64)).to("out");
    let topology = builder.build().unwrap();
    let driver = Driver::new(&topology).unwrap();
    driver.pipe("in", Some(b"k"), Some(&[0; 8]), 1).unwrap();
    let refused = driver.pipe("in", Some(b"k"), Some(b"abc"), 2).unwrap_err();
    assert_eq!(refused.to_string(), "in-0 at offset 1: value: 3 bytes where 8 are needed");
    let refused = driver.pipe("in", Some(b"\xff"), Some(&[0; 8]), 3).unwrap_err();
    assert_eq!(refused.to_string(), "in-0 at offset 2: key: not utf-8 from byte 0 on");
    let null = driver.pipe("in", None, Some(&[0; 8]), 4).unwrap_err();
    assert!(null.to_string().contains("wrap it in Opt"), "{null}");
    let skipping = Driver::options().skip_undecodable(true).build(&topology).unwrap();
    skipping.pipe("in", Some(b"k"), Some(b"abc"), 1).unwrap();
    skipping.pipe("in", Some(b"k"), Some(&[0; 8]), 2).unwrap();
    assert_eq!((skipping.records_undecodable(), skipping.records_written()), (1, 1));
}

#[test]
fn an_error_of_the_users_fails_the_task_and_drops_what_it_did_since_the_commit() {
    let builder = StreamsBuilder::new();
    let numbers = builder.stream("in", Consumed::with(Utf8, Utf8)).try_map_values(I64, |text| Ok(text.parse()?));
    numbers.group_by_key().reduce(Materialized::named("sums"), |sum, n| *sum += n).to_stream().to("out");
    let driver = Driver::options().commit_each(false).build(&builder.build().unwrap()).unwrap();
    let input = driver.input("in", Utf8, Utf8);
    input.pipe("k", "1").unwrap();
    driver.commit().unwrap();
    input.pipe("k", "10").unwrap();
    let failed = input.pipe("k", "ten").unwrap_err();
    assert_eq!(failed, DriverError::Failed { reason: "invalid digit found in string".to_owned() });
    input.pipe("k", "2").unwrap();
    driver.commit().unwrap();
    assert_eq!(driver.store("sums", Utf8, I64).unwrap().get("k").unwrap(), Some(3));
}

#[test]
fn null_keys_and_values_are_not_aggregated_and_counted_as_dropped() {
    let builder = StreamsBuilder::new();
    let grouped = builder.stream("in", Consumed::with(Opt(Utf8), Opt(Utf8))).group_by_key();
    grouped.count(Materialized::new()).to_stream().to("out");
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    let input = driver.input("in", Opt(Utf8), Opt(Utf8));
    for (key, value) in [(None, Some("v")), (Some("k"), None), (Some("k"), Some("v"))] {
        input.pipe(key, value).unwrap();
    }
    assert_eq!(driver.records_dropped(), 2);
    assert_eq!(driver.output("out", Utf8, I64).read_pairs().unwrap(), [("k".to_owned(), 1)]);
}

#[test]
fn the_wall_clock_moves_only_when_told_and_stamps_records() {
    let builder = StreamsBuilder::new();
    builder.stream("in", Consumed::with(Utf8, Utf8).timestamps(TimestampPolicy::Wallclock)).to("out");
    let driver = Driver::options().wall_ms(1000).build(&builder.build().unwrap()).unwrap();
    driver.pipe("in", Some(b"k"), None, -5).unwrap_err();
    driver.advance_wall_clock(Duration::from_secs(1)).unwrap();
    driver.pipe("in", Some(b"k"), Some(b"v"), -5).unwrap();
    assert_eq!(driver.read_raw("out").unwrap().timestamp, 2000);
    let builder = StreamsBuilder::new();
    builder.stream("in", Consumed::with(Utf8, Utf8)).to("out");
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    let refused = driver.pipe("in", Some(b"k"), Some(b"v"), -5).unwrap_err();
    assert_eq!(refused, DriverError::InvalidTimestamp { topic: "in".to_owned(), timestamp: -5 });
}

#[test]
fn what_a_topology_may_not_be_is_refused_by_name() {
    let build = |f: fn(&StreamsBuilder)| {
        let builder = StreamsBuilder::new();
        f(&builder);
        builder.build().map(|_| ()).unwrap_err().to_string()
    };
    let both = || Consumed::with(Utf8, Utf8);
    assert_eq!(build(|_| ()), "the topology reads no topic; begin with stream()");
    assert_eq!(
        build(|b| {
            b.stream("in", Consumed::with(Utf8, Utf8)).filter(|_, _| true).named("same").to("a");
            b.stream("in2", Consumed::with(Utf8, Utf8)).named("same").to("b");
        }),
        "the name \"same\" is used twice; give one of them another name"
    );
    assert!(build(|b| b.stream("a b", Consumed::with(Utf8, Utf8)).to("out")).contains("\"a b\" cannot be used"));
    assert!(build(|b| b.stream(Vec::new(), Consumed::with(Utf8, Utf8)).to("out")).contains("reads no topic"));
    let zero =
        build(|b| b.stream("in", Consumed::with(Utf8, Utf8)).repartition(Repartitioned::with_partitions(0)).to("o"));
    assert!(zero.contains("at least one"), "{zero}");
    let (one, other) = (StreamsBuilder::new(), StreamsBuilder::new());
    one.stream("a", both()).merge(&other.stream("b", both())).to("out");
    assert_eq!(one.build().map(|_| ()).unwrap_err(), BuildError::OtherBuilder);
}

#[test]
fn a_topology_is_shared_between_threads() {
    let topology = std::sync::Arc::new(word_count(Materialized::named("counts")));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let topology = std::sync::Arc::clone(&topology);
            std::thread::spawn(move || {
                let driver = Driver::new(&topology).unwrap();
                driver.input("lines", Utf8, Utf8).pipe_value("a a").unwrap();
                counts(&driver)
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), "a1 a2");
    }
}

/// This test program does not install the allocator: the driver needs none, an application under a line does.
#[test]
fn an_application_without_the_allocator_is_refused_and_told_the_line_to_add() {
    let state = tempfile::tempdir().unwrap();
    let topology = word_count(Materialized::named("counts"));
    let builder = App::builder("app", "127.0.0.1:1").memory(Memory::total(96 * MIB)).state_dir(state.path());
    let error = builder.start(topology).map(|_| ()).unwrap_err();
    assert!(matches!(error, StartError::AllocatorNotInstalled(_)), "{error:?}");
    let expected = "; put plimsoll::install_allocator!() into the binary, or choose Memory::planned, which only plans";
    assert!(error.to_string().ends_with(expected), "{error}");
}
