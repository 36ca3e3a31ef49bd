//! Operators on a real Apache Kafka answer what they answer in the driver, also when the application is closed in the
//! middle and goes on with nothing but its topics: every store is then restored from its changelog.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod support;

use plimsoll::prelude::*;
use plimsoll::testing::{Driver, RawOutput};
use rdkafka::consumer::Consumer as _;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use support::oracle::{self, Rec};

plimsoll::install_allocator!();

/// Input topics, one partition each.
const INPUTS: [&str; 3] = ["left", "right", "table"];
/// Outputs whose last value of each key counts: their stores are cached, so not every change is forwarded.
const LAST: [&str; 8] =
    ["tables-joined", "grouped-table", "left-filtered", "counted", "tumbling", "sliding", "sessions", "foreign"];
/// Outputs of which every record counts.
const EVERY: [&str; 3] = ["with-table", "streams-joined", "processed"];
/// Records of each input.
const RECORDS: i64 = 600;
/// How long the application may take to catch up; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(90);

fn topology() -> Topology {
    let builder = StreamsBuilder::new();
    let text = || Consumed::with(Utf8, Opt(Utf8));
    let (left, right) = (builder.stream("left", text()), builder.stream("right", text()));
    let rows = builder.table("table", Consumed::with(Utf8, Utf8));
    let both = |a: &str, b: &str| format!("{a}+{b}");

    left.filter(|_, value| value.is_some())
        .join_table(&rows, Text, move |v, row| both(v.unwrap_or(""), row))
        .to("with-table");
    let latest = right.to_table(Materialized::named("latest"));
    let joined = rows.outer_join(&latest, Text, |a, b| format!("{a:?}{b:?}"));
    joined.to_stream().to("tables-joined");
    let by_value = rows.group_by(Utf8, Utf8, |key, value| (value, key)).count(Materialized::named("by-value"));
    by_value.to_stream().to("grouped-table");
    let foreign = rows.join_on(&by_value, |_, row| row, Text, Materialized::new(), |row, n| format!("{row}: {n}"));
    foreign.to_stream().to("foreign");
    let kept = rows.filter_with(Materialized::named("kept"), |_, row| row.ends_with(['1', '3', '5']));
    kept.to_stream().to("left-filtered");
    left.group_by(Utf8, |_, v| v.unwrap_or("none")).count(Materialized::named("counts")).to_stream().to("counted");
    windows(&left, &right);
    let sums = builder.add_state_store(Stores::key_value("sums", Utf8, I64));
    let how = Processing::new().stores(&[&sums]);
    right.process_with(Utf8, I64, move || Sums { sums: sums.clone() }, how).to("processed");
    builder.build().unwrap()
}

/// Sums the lengths of a key's values; a null begins again.
struct Sums {
    sums: KeyValueStore<Utf8, I64>,
}

impl Processor for Sums {
    type KIn = Utf8;
    type VIn = Opt<Utf8>;
    type KOut = Utf8;
    type VOut = I64;

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Opt<Utf8>>) -> Processed {
        let sums = cx.store(&self.sums)?;
        let sum = match record.value {
            Some(value) => sums.get(record.key)?.unwrap_or(0) + value.len() as i64,
            None => 0,
        };
        sums.put(record.key, sum)?;
        cx.forward(Record::new(record.key, sum, record.timestamp))
    }
}

fn windows(left: &KStream<Utf8, Opt<Utf8>>, right: &KStream<Utf8, Opt<Utf8>>) {
    let ms = Duration::from_millis;
    let grouped = left.filter(|_, value| value.is_some()).group_by_key();
    let tumbling = grouped.windowed_by(TimeWindows::of_size_with_no_grace(ms(2_000)));
    tumbling.count(Materialized::named("tumbling")).to_stream().to("tumbling");
    let sliding = grouped.windowed_by(SlidingWindows::of_time_difference_with_no_grace(ms(500)));
    sliding.count(Materialized::named("sliding")).to_stream().to("sliding");
    let sessions = grouped.windowed_by(SessionWindows::of_inactivity_gap_with_no_grace(ms(331)));
    sessions.count(Materialized::named("sessions")).to_stream().to("sessions");
    let within = JoinWindows::of_time_difference_with_no_grace(ms(400));
    left.join_stream(right, within, Text, |a, b| format!("{a:?}{b:?}")).to("streams-joined");
}

/// Records in the order of their times, the inputs in turn: `(input, record)`.
fn records(from: i64) -> Vec<(usize, Rec)> {
    let record = |n: i64| {
        let input = (n % 3) as usize;
        let key = format!("k{}", (n / 3 * 7) % 11);
        let mut record = Rec::new(0, from + n * 10, &key, &format!("v{}", (n * 5) % 9));
        // Now and then a row goes away.
        if n % 13 == 5 {
            record.value = None;
        }
        (input, record)
    };
    (0..RECORDS * 3).map(record).collect()
}

/// What the driver writes to each output.
fn expected(topology: &Topology, records: &[(usize, Rec)]) -> BTreeMap<String, Vec<RawOutput>> {
    let driver = Driver::new(topology).unwrap();
    for (input, record) in records {
        driver.pipe(INPUTS[*input], record.key.as_deref(), record.value.as_deref(), record.timestamp).unwrap();
    }
    let read = |topic: &str| std::iter::from_fn(|| driver.read_raw(topic)).collect();
    LAST.iter().chain(&EVERY).map(|topic| ((*topic).to_owned(), read(topic))).collect()
}

/// Key, value (numbers in escaped bytes) and time.
type Row = (String, String, i64);

/// The last value of each key. Not its time: which of two tables forwards first at a commit decides about the time of a
/// row that is gone in one of them, here and in Kafka Streams.
fn last(rows: impl IntoIterator<Item = Row>) -> BTreeMap<String, String> {
    let last: BTreeMap<String, String> = rows.into_iter().map(|(key, value, _)| (key, value)).collect();
    // A key that came and went between two commits is never forwarded.
    last.into_iter().filter(|(_, value)| value != "null").collect()
}

fn run(bootstrap: &str, application: &str, state: &Path, inputs: &[(&str, i64)]) {
    let app = App::builder(application, bootstrap)
        .memory(Memory::total(128 * MIB))
        .state_dir(state)
        .commit_interval(Duration::from_millis(100))
        // The records of all inputs of a task are taken in the order of their times.
        .config("max.task.idle.ms", "2000")
        .start(topology())
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    let done = || inputs.iter().all(|(topic, end)| committed(bootstrap, application, topic) >= *end);
    while !done() {
        assert!(!app.state().is_final(), "{:?}", app.failure());
        assert!(Instant::now() < deadline, "{:?} {:?}", app.stats(), app.waiting_for());
        std::thread::sleep(Duration::from_millis(100));
    }
    settle(bootstrap, application, deadline);
    app.close(Duration::from_secs(30)).unwrap();
}

fn committed(bootstrap: &str, application: &str, topic: &str) -> i64 {
    oracle::committed(bootstrap, application, topic, 1)[0].as_ref().map_or(0, |(offset, _)| *offset)
}

/// Waits until the topics between the tasks are read, too, and nothing comes any more.
fn settle(bootstrap: &str, application: &str, deadline: Instant) {
    let mut quiet = 0;
    while quiet < 3 {
        assert!(Instant::now() < deadline, "the topics between the tasks are not read to their ends");
        let read =
            |topic: &String| committed(bootstrap, application, topic) >= oracle::watermarks(bootstrap, topic, 0).1;
        quiet = if between(bootstrap, application).iter().all(read) { quiet + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(150));
    }
}

/// The application's own topics that are no changelogs.
fn between(bootstrap: &str, application: &str) -> Vec<String> {
    let consumer = oracle::consumer(bootstrap, "plimsoll-oracle", &[]);
    let metadata = consumer.fetch_metadata(None, PATIENCE).unwrap();
    let names = metadata.topics().iter().map(|topic| topic.name().to_owned());
    let own: Vec<String> =
        names.filter(|name| name.starts_with(application) && !name.ends_with("-changelog")).collect();
    assert_eq!(own.len(), 4, "two repartitions, subscriptions and their answers: {own:?}");
    own
}

#[test]
fn operators_answer_as_in_the_driver_and_their_stores_are_restored() {
    let Some(kafka) = support::kafka() else { return };
    let (bootstrap, application) = (kafka.bootstrap(), kafka.unique("operators"));
    for topic in INPUTS.iter().chain(&LAST).chain(&EVERY) {
        oracle::create_topic(bootstrap, topic, 1, &[]);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64 - RECORDS * 30;
    let records = records(now);
    let expected = expected(&topology(), &records);

    for half in records.chunks(records.len() / 2) {
        for (input, topic) in INPUTS.iter().enumerate() {
            let of: Vec<Rec> = half.iter().filter(|(of, _)| *of == input).map(|(_, record)| record.clone()).collect();
            oracle::produce(bootstrap, topic, &of, &[]);
        }
        let ends = INPUTS.map(|topic| (topic, oracle::watermarks(bootstrap, topic, 0).1));
        // Each time with an empty directory.
        let state = tempfile::tempdir().unwrap();
        run(bootstrap, &application, state.path(), &ends);
    }

    for topic in EVERY {
        let ours: Vec<Row> = written(bootstrap, topic).collect();
        let wanted: Vec<Row> = expected[topic].iter().map(row).collect();
        assert!(wanted.len() > 100, "{topic}: {}", wanted.len());
        assert_eq!(ours, wanted, "{topic}");
    }
    for topic in LAST {
        let (ours, wanted) = (last(written(bootstrap, topic)), last(expected[topic].iter().map(row)));
        assert!(wanted.len() > 2, "{topic}: {wanted:?}");
        let differ: Vec<_> = wanted.iter().filter(|(key, row)| ours.get(*key) != Some(row)).collect();
        let instead: Vec<_> = differ.iter().map(|(key, _)| ours.get(*key)).collect();
        assert!(differ.is_empty() && ours.len() == wanted.len(), "{topic}: {differ:?} but {instead:?}");
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    bytes.map_or("null".to_owned(), |bytes| bytes.escape_ascii().to_string())
}

fn row(output: &RawOutput) -> Row {
    (text(output.key.as_deref()), text(output.value.as_deref()), output.timestamp)
}

fn written(bootstrap: &str, topic: &str) -> impl Iterator<Item = Row> {
    oracle::read_all(bootstrap, topic)
        .into_iter()
        .map(|r| (text(r.key.as_deref()), text(r.value.as_deref()), r.timestamp))
}
