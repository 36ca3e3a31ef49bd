//! The stream threads allocate nothing per record, from socket to socket: counted by the allocator itself, in all
//! modules, C and C++ included, over a million records from a real Apache Kafka.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
mod support;

use plimsoll::Stats;
use plimsoll::prelude::*;
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::load::{self, Load, Order};
use support::{broker::Cluster, oracle};

plimsoll::install_allocator!();

const WARM_UP: u64 = 100_000;
const RECORDS: u64 = 1_000_000;
const LOAD: Load = Load { partitions: 4, keys: 10_000, records: WARM_UP + RECORDS, order: Order::InTurn };
/// Most allocating calls of a commit that writes 10,000 keys into RocksDB, however many records lie between two: its
/// memtable grows by blocks of 16 KiB.
const CALLS_A_COMMIT: f64 = 100.0;
const PATIENCE: Duration = Duration::from_secs(120);

/// One application a process: the tests take turns.
static TURNS: Mutex<()> = Mutex::new(());

/// The broker, with the million records in topic `in`, and the turn.
fn broker() -> Option<(MutexGuard<'static, ()>, &'static Cluster)> {
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let kafka = support::kafka()?;
    if oracle::partitions(kafka.bootstrap(), "in").is_none() {
        oracle::create_topic(kafka.bootstrap(), "in", LOAD.partitions, &[]);
        load::write(kafka.bootstrap(), "in", LOAD, 0);
    }
    Some((turn, kafka))
}

/// An application over this topology. Its topics begin with `name`; it commits only as often as it is told.
fn start(kafka: &Cluster, name: &str, commit_ms: u64, topology: Topology) -> (App, tempfile::TempDir) {
    let state = tempfile::tempdir().unwrap();
    let app = App::builder(name, kafka.bootstrap())
        .memory(Memory::total(128 * MIB))
        .state_dir(state.path())
        .commit_interval(Duration::from_millis(commit_ms))
        .count_allocations(true)
        .start(topology)
        .unwrap();
    (app, state)
}

/// Waits until so many records were taken.
fn taken(app: &App, records: u64) -> Stats {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let stats = app.stats();
        if stats.records_in >= records {
            return stats;
        }
        assert!(!app.state().is_final(), "{:?}", app.failure());
        assert!(Instant::now() < deadline, "{stats:?} {:?}", app.waiting_for());
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Allocating calls over all records behind the warm-up, without a commit among them.
fn calls_between_commits(kafka: &Cluster, name: &str, build: impl FnOnce(&StreamsBuilder)) -> u64 {
    let builder = StreamsBuilder::new();
    build(&builder);
    let (app, _state) = start(kafka, name, 3_600_000, builder.build().unwrap());
    let warm = taken(&app, WARM_UP);
    let end = taken(&app, LOAD.records);
    assert!(warm.records_in < WARM_UP + RECORDS / 10, "the warm-up ended late: {warm:?}");
    assert_eq!(warm.commits, end.commits, "no commit in between");
    let calls = end.allocations - warm.allocations;
    println!(
        "{name}: {calls} allocating calls over {} records; {} before",
        end.records_in - warm.records_in,
        warm.allocations
    );
    app.close(Duration::from_secs(30)).unwrap();
    calls
}

/// Makes an output topic.
fn output(kafka: &Cluster, name: &str) -> String {
    let out = format!("{name}-out");
    oracle::create_topic(kafka.bootstrap(), &out, LOAD.partitions, &[]);
    out
}

#[test]
fn pass_through_allocates_nothing_over_a_million_records() {
    let Some((_turn, kafka)) = broker() else { return };
    let out = output(kafka, "pass");
    let calls = calls_between_commits(kafka, "pass", |builder| {
        builder.stream("in", Consumed::with(Bytes, Bytes)).to(&out);
    });
    assert_eq!(calls, 0);
}

#[test]
fn count_allocates_nothing_over_a_million_hits() {
    let Some((_turn, kafka)) = broker() else { return };
    let out = output(kafka, "count");
    let calls = calls_between_commits(kafka, "count", |builder| {
        let counts = builder.stream("in", Consumed::with(Bytes, Bytes)).group_by_key();
        counts.count(Materialized::named("counts")).to_stream().to(&out);
    });
    assert_eq!(calls, 0);
}

#[test]
fn count_that_forwards_every_update_allocates_nothing_over_a_million_hits() {
    let Some((_turn, kafka)) = broker() else { return };
    let out = output(kafka, "each");
    let calls = calls_between_commits(kafka, "each", |builder| {
        let counts = builder.stream("in", Consumed::with(Bytes, Bytes)).group_by_key();
        counts.count(Materialized::named("counts").caching(false)).to_stream().to(&out);
    });
    assert_eq!(calls, 0);
}

/// Allocating calls for each commit while records flow, and the records for each commit.
fn calls_of_commits(kafka: &Cluster, name: &str, build: impl FnOnce(&StreamsBuilder)) -> (f64, u64) {
    let builder = StreamsBuilder::new();
    build(&builder);
    let (app, _state) = start(kafka, name, 20, builder.build().unwrap());
    let warm = taken(&app, WARM_UP);
    let end = taken(&app, LOAD.records);
    let (commits, records) = (end.commits - warm.commits, end.records_in - warm.records_in);
    assert!(commits >= 4, "{warm:?} {end:?}");
    let calls = (end.allocations - warm.allocations) as f64 / commits as f64;
    println!("{name}: {calls:.2} allocating calls a commit, {commits} commits over {records} records");
    app.close(Duration::from_secs(30)).unwrap();
    (calls, records / commits)
}

#[test]
fn a_commit_allocates_a_constant_number_of_times() {
    let Some((_turn, kafka)) = broker() else { return };
    let out = output(kafka, "pass-commits");
    let (calls, records) = calls_of_commits(kafka, "pass-commits", |builder| {
        builder.stream("in", Consumed::with(Bytes, Bytes)).to(&out);
    });
    assert!(calls == 0.0 && records > 1_000, "{calls} calls, {records} records");
    let out = output(kafka, "count-commits");
    let (calls, records) = calls_of_commits(kafka, "count-commits", |builder| {
        let counts = builder.stream("in", Consumed::with(Bytes, Bytes)).group_by_key();
        counts.count(Materialized::named("counts")).to_stream().to(&out);
    });
    assert!(calls <= CALLS_A_COMMIT && records > 1_000, "{calls} calls, {records} records");
}

#[test]
fn a_node_that_allocates_is_detected() {
    let Some((_turn, kafka)) = broker() else { return };
    let out = output(kafka, "boxes");
    let calls = calls_between_commits(kafka, "boxes", |builder| {
        let boxes = builder.stream("in", Consumed::with(Bytes, Bytes)).peek(|_, _| {
            black_box(Box::new(1u64));
        });
        boxes.to(&out);
    });
    assert!(calls >= RECORDS - RECORDS / 10, "{calls}: one call for each record");
}
