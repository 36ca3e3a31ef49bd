//! Tables of windows are tables as any other: they are joined, filtered and looked up by key and window.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::Driver;
use std::time::Duration;

fn counted(builder: &StreamsBuilder, topic: &str) -> KTable<Windowed<Utf8>, I64> {
    let grouped = builder.stream(topic, Consumed::with(Utf8, Utf8)).group_by_key();
    grouped.windowed_by(TimeWindows::of_size_with_no_grace(Duration::from_secs(10))).count(Materialized::named(topic))
}

fn read(driver: &Driver, topic: &str) -> Vec<String> {
    let out = driver.output(topic, Utf8, Opt(Utf8));
    let line = |(key, value): (String, Option<String>)| format!("{key} {}", value.as_deref().unwrap_or("null"));
    out.read_pairs().unwrap().into_iter().map(line).collect()
}

fn pipe(driver: &Driver, records: &[(&str, &str, i64)]) {
    for (topic, key, second) in records {
        driver.input(topic, Utf8, Utf8).pipe_at(key, "v", second * 1_000).unwrap();
    }
}

#[test]
fn two_counts_by_window_are_joined_by_key_and_window() {
    let builder = StreamsBuilder::new();
    let (clicks, views) = (counted(&builder, "clicks"), counted(&builder, "views"));
    let both = clicks.join(&views, Text, |clicks, views| format!("{clicks} of {views}"));
    both.to_stream().select_key(Text, |at, _| format!("{}@{}", at.key, at.start / 1_000)).to("out");
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    pipe(&driver, &[("views", "a", 1), ("views", "a", 2), ("clicks", "a", 3), ("clicks", "b", 4), ("views", "b", 12)]);
    assert_eq!(read(&driver, "out"), ["a@0 1 of 2"]);
    pipe(&driver, &[("clicks", "b", 13), ("clicks", "a", 14), ("views", "b", 15)]);
    assert_eq!(read(&driver, "out"), ["b@10 1 of 1", "b@10 1 of 2"]);
}

#[test]
fn a_count_by_window_is_filtered_and_kept_and_joined_again() {
    let builder = StreamsBuilder::new();
    let counts = counted(&builder, "clicks");
    let many = counts.filter_with(Materialized::named("many"), |_, n| n > 1);
    let shown = many.left_join(&counts, Text, |many, all| format!("{many} {all:?}"));
    shown.to_stream().select_key(Text, |at, _| format!("{}@{}", at.key, at.start / 1_000)).to("out");
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    pipe(&driver, &[("clicks", "a", 1), ("clicks", "a", 2)]);
    assert_eq!(read(&driver, "out").last().map(String::as_str), Some("a@0 2 Some(2)"));
}
