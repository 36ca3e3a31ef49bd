//! What cannot start says why and what to change.
use crate::process::{Kind, Process};
use crate::records::{made, one, write};
use crate::support::{self, oracle};
use plimsoll::prelude::*;
use plimsoll::testing::Driver;
use plimsoll::{AppBuilder, StartError, WithLine};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Nothing listens there.
const NOBODY: &str = "127.0.0.1:1";

/// At most one application runs in a process: tests that may start one here take turns.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn topology() -> Topology {
    let builder = StreamsBuilder::new();
    let lines = builder.stream("lines", Consumed::with(Utf8, Utf8));
    lines.group_by_key().count(Materialized::named("counts")).to_stream().to("counts");
    builder.build().unwrap()
}

fn builder(state: &std::path::Path) -> AppBuilder<WithLine> {
    App::builder("app", NOBODY).memory(Memory::total(96 * MIB)).state_dir(state)
}

fn refused(builder: AppBuilder<WithLine>) -> StartError {
    builder.start(topology()).map(|_| ()).unwrap_err()
}

#[test]
fn a_line_too_small_is_refused_with_the_floors_by_row() {
    let _alone = alone();
    let state = tempfile::tempdir().unwrap();
    let error = refused(builder(state.path()).memory(Memory::total(8 * MIB)));
    assert!(matches!(error, StartError::Plan(_)));
    let text = error.to_string();
    assert!(text.starts_with("the line of 8.0 MiB is too small: raise it to at least "), "{text}");
    for row in ["frames", "batches", "block cache"] {
        assert!(text.contains(row), "{row}: {text}");
    }
}

#[test]
fn settings_that_the_plan_owns_that_are_unknown_or_wrong_are_refused_by_name() {
    let _alone = alone();
    let state = tempfile::tempdir().unwrap();
    let text = |key: &str, value: &str| refused(builder(state.path()).config(key, value)).to_string();
    let owned = text("fetch.max.bytes", "1048576");
    assert!(owned.starts_with("fetch.max.bytes is decided by the plan's row \""), "{owned}");
    assert!(owned.ends_with("; change the memory total or its shares instead"), "{owned}");
    assert_eq!(text("fetch.max.byte", "1"), "the setting fetch.max.byte is not known; settings have Kafka's names");
    assert_eq!(
        text("commit.interval.ms", "soon"),
        "commit.interval.ms=soon is not valid; expected milliseconds, at least 0"
    );
}

#[test]
fn a_state_directory_that_cannot_be_written_is_named() {
    let _alone = alone();
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = refused(builder(file.path())).to_string();
    let path = file.path().join("app").display().to_string();
    assert!(text.starts_with(&format!("the state directory {path} cannot be written: ")), "{text}");
    assert!(text.ends_with("; choose another with state.dir"), "{text}");
}

/// No broker is an outage and no error: the start is tried again, says so, and ends when asked to. Meanwhile no second
/// application starts in the process, but a driver does.
#[test]
fn without_a_broker_it_keeps_trying_says_so_and_closes_when_asked_to() {
    let _alone = alone();
    let state = tempfile::tempdir().unwrap();
    let app = builder(state.path()).start(topology()).unwrap();
    let expected = format!("no broker of {NOBODY} answers");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !app.waiting_for().is_some_and(|what| what.starts_with(&expected)) {
        assert!(Instant::now() < deadline, "{:?}", app.waiting_for());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(app.state(), State::Rebalancing);

    let second = refused(builder(state.path()));
    assert!(matches!(second, StartError::AlreadyRunning));
    assert_eq!(
        second.to_string(),
        "an application is already running in this process; one process holds one line, so close it first"
    );
    let driver = Driver::new(&topology()).unwrap();
    driver.input("lines", Utf8, Utf8).pipe("k", "v").unwrap();

    let asked = Instant::now();
    app.close(Duration::from_secs(5)).unwrap();
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert_eq!(app.state(), State::NotRunning);
}

#[test]
fn a_state_directory_in_use_by_another_process_is_named() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let spec = made(kafka, Kind::Count, "locked", 1, state.path());
    let first = Process::running(&spec);
    let why = Process::start(&spec).expect("refused");
    let path = state.path().join(&spec.application).display().to_string();
    assert_eq!(
        why,
        format!("the state directory {path} is locked by another process; give each process its own state.dir")
    );
    first.close();
}

#[test]
fn a_missing_input_topic_is_named() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let mut spec = made(kafka, Kind::Pass, "missing", 1, state.path());
    spec.input = kafka.unique("no-such-topic");
    let mut process = Process::start(&spec);
    let expected =
        format!("the input topic \"{}\" does not exist; create it before the application starts", spec.input);
    assert_eq!(process.expect("failed"), expected);
    process.expect("state ERROR from PENDING_ERROR");
    assert_eq!(process.ask("failure"), expected);
    assert_eq!(process.count("failed"), 1);
}

#[test]
fn an_internal_topic_with_another_partition_count_is_refused_with_both_numbers() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let spec = made(kafka, Kind::CountValues, "partitions", 2, state.path());
    let topic = format!("{}-counts-repartition", spec.application);
    oracle::create_topic(kafka.bootstrap(), &topic, 3, &[]);
    let mut process = Process::start(&spec);
    let why = process.expect("failed");
    let expected = format!("internal topic: internal topic `{topic}` has 3 partitions and the topology needs 2: ");
    assert!(why.starts_with(&expected), "{why}");
    process.expect("state ERROR");
}

#[test]
fn a_topic_whose_records_may_exceed_the_frames_is_refused_by_name() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let mut spec = made(kafka, Kind::Pass, "huge", 1, state.path());
    spec.input = kafka.unique("huge-records");
    oracle::create_topic(kafka.bootstrap(), &spec.input, 1, &[("max.message.bytes", "200000000")]);
    let mut process = Process::start(&spec);
    let why = process.expect("failed");
    let expected = format!("the topic \"{}\" allows records of 200000000 bytes, but a frame holds ", spec.input);
    assert!(why.starts_with(&expected), "{why}");
    assert!(why.ends_with("; raise the total or lower the topic's max.message.bytes"), "{why}");
    process.expect("state ERROR");
}

/// A topic that nodes write to and that does not exist fails the task, not the process, once the producer has waited.
#[test]
fn a_missing_output_topic_is_named() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let mut spec = made(kafka, Kind::Pass, "no-output", 1, state.path()).set("max.block.ms", "1500");
    spec.output = kafka.unique("no-such-output");
    write(&spec, &[one("k", "v")]);
    let mut process = Process::start(&spec);
    let why = process.expect("failed");
    assert!(why.starts_with(&format!("writing failed in task 0_0: {}: ", spec.output)), "{why}");
    assert!(why.contains("create it"), "{why}");
    process.expect("state ERROR");
}
