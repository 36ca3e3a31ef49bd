//! Tasks that fail, wait or cannot write.
use crate::process::{Kind, Process, Spec};
use crate::records::{await_committed, committed, counts, made, now, of_keys, one, truth, until, values, write};
use crate::support;
use crate::support::broker::{Cluster, Options};
use crate::support::oracle::{self, Rec};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use std::time::{Duration, Instant};

/// The states of an application that starts, runs and is closed, each told once and in order.
#[test]
fn the_state_listener_sees_each_step() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let spec = made(kafka, Kind::Pass, "states", 1, state.path());
    let lines = Process::running(&spec).close();
    let states: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("state ")).collect();
    let expected = [
        "REBALANCING from CREATED",
        "RUNNING from REBALANCING",
        "PENDING_SHUTDOWN from RUNNING",
        "NOT_RUNNING from PENDING_SHUTDOWN",
    ];
    assert_eq!(states, expected);
}

#[test]
fn a_panic_in_user_code_fails_the_task_and_nothing_is_committed_over_it() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let spec = made(kafka, Kind::Count, "panic", 1, state.path()).set("commit.interval.ms", "600000");
    write(&spec, &of_keys(10, 2, 1));
    write(&spec, &[one("k0", "panic"), one("k1", "v")]);
    let mut process = Process::start(&spec);
    assert_eq!(process.expect("failed"), "user code panicked in task 0_0: told to");
    process.expect("state ERROR from PENDING_ERROR");
    assert_eq!(process.ask("failure"), "user code panicked in task 0_0: told to");
    assert_eq!(process.count("failed"), 1, "the handler is asked once");
    assert_eq!((committed(&spec), counts(&spec).len()), (0, 0), "what was not committed is discarded");
}

/// The brokers are silent when a task starts again: its offsets are asked for until they answer, but not for ever.
#[test]
fn a_task_that_starts_while_the_brokers_are_silent_asks_until_they_answer_or_its_time_is_over() {
    let Some(kafka) = Cluster::start(&Options::brokers(1)) else { return };
    let state = tempfile::tempdir().unwrap();
    let mut spec = made(&kafka, Kind::Count, "silent", 1, state.path()).set("session.timeout.ms", "30000");
    spec.replace = true;
    let fall_silent = |process: &mut Process| {
        write(&spec, &[one("k0", "block-panic-once"), one("k1", "v")]);
        process.expect("blocked");
        kafka.pause(0);
        process.tell("release");
        assert_eq!(process.expect("failed"), "user code panicked in task 0_0: told to, late");
    };
    let mut process = Process::running(&spec);
    write(&spec, &of_keys(10, 2, 1));
    await_committed(&spec);
    fall_silent(&mut process);
    let asked = Instant::now();
    while !process.ask("waiting").starts_with("the committed offsets: ") {
        assert!(asked.elapsed() < Duration::from_secs(30), "it does not say what it waits for");
        std::thread::sleep(Duration::from_millis(50));
    }
    kafka.resume(0);
    process.expect("state RUNNING");
    await_committed(&spec);
    process.close();
    assert_eq!(counts(&spec), truth(&spec));

    let mut process = Process::running(&spec.clone().set("task.timeout.ms", "1000"));
    fall_silent(&mut process);
    let why = process.expect("failed");
    assert!(why.starts_with("the committed offsets: no answer within task.timeout.ms (1000 ms): "), "{why}");
    process.expect("state ERROR");
    kafka.resume(0);
}

#[test]
fn a_replaced_task_starts_again_from_its_last_commit_and_counts_exactly() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let mut spec = made(kafka, Kind::Count, "replace", 1, state.path());
    spec.replace = true;
    let mut process = Process::running(&spec);
    write(&spec, &of_keys(10, 2, 1));
    await_committed(&spec);
    // All in one batch, so that work of the same commit interval is discarded with the panic.
    let after: Vec<Rec> = of_keys(7, 2, 1).into_iter().chain([one("k0", "panic-once"), one("k1", "v")]).collect();
    write(&spec, &after);
    assert_eq!(process.expect("failed"), "user code panicked in task 0_0: told to, once");
    process.expect("state RUNNING");
    await_committed(&spec);
    process.close();
    assert_eq!(truth(&spec), [("k0".to_owned(), 10), ("k1".to_owned(), 9)].into());
    assert_eq!(counts(&spec), truth(&spec));
}

/// The broker refuses to write what came of two records until the delivery times out. The task fails at its commit, its
/// input is read again, and nothing is missing: the refused records exist nowhere but in their input.
#[test]
fn a_write_that_times_out_fails_the_task_and_nothing_is_committed_over_it() {
    let mock: MockCluster<'_, DefaultProducerContext> = MockCluster::new(1).unwrap();
    let state = tempfile::tempdir().unwrap();
    let mut spec = Spec::new(Kind::Count, &mock.bootstrap_servers(), "poison", state.path())
        .set("delivery.timeout.ms", "1500")
        .set("request.timeout.ms", "1000");
    spec.replace = true;
    for topic in [&spec.input, &spec.output, &"poison-counts-changelog".to_owned()] {
        mock.create_topic(topic, 1, 1).unwrap();
    }
    let mut process = Process::running(&spec);
    write(&spec, &of_keys(4, 2, 1));
    await_committed(&spec);
    write(&spec, &[one("k0", "block"), one("k1", "v")]);
    process.expect("blocked");
    mock.request_errors(RDKafkaApiKey::Produce, &[NOT_LEADER; 1_000]);
    process.tell("release");
    let why = process.expect("failed");
    let expected = format!("writing failed in task 0_0: {}: partition 0: not acknowledged within ", spec.output);
    assert!(why.starts_with(&expected) && why.contains("delivery.timeout.ms (1500 ms)"), "{why}");
    assert_eq!(committed(&spec), 4, "committed over what was not written");
    mock.clear_request_errors(RDKafkaApiKey::Produce);
    process.expect("state RUNNING");
    await_committed(&spec);
    process.close();
    assert_eq!(truth(&spec), [("k0".to_owned(), 3), ("k1".to_owned(), 3)].into());
    assert_eq!(counts(&spec), truth(&spec));
}

/// Passes when the metadata is asked for again: the producer tries again until the delivery times out.
const NOT_LEADER: RDKafkaRespErr = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;

/// One input brings far more than the frames hold; the task waits for the other, whose record is earlier.
#[test]
fn a_task_gets_the_record_it_waits_for_at_once_though_another_input_floods_it() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let awaited = kafka.unique("awaited");
    oracle::create_topic(kafka.bootstrap(), &awaited, 1, &[]);
    let spec = made(kafka, Kind::Merge(awaited.clone()), "flood", 1, state.path()).set("max.task.idle.ms", "600000");
    let now = now();
    let flood: Vec<Rec> = (0..20_000).map(|i| Rec::new(0, now + i, "k", &"f".repeat(2_000))).collect();
    write(&spec, &flood);
    let mut process = Process::running(&spec);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(oracle::watermarks(&spec.bootstrap, &spec.output, 0).1, 0, "it waits");
    let written = Instant::now();
    oracle::produce(&spec.bootstrap, &awaited, &[Rec::new(0, now - 1, "k", "early")], &[]);
    until("the awaited record", || oracle::watermarks(&spec.bootstrap, &spec.output, 0).1 > 0);
    assert!(written.elapsed() < Duration::from_secs(5), "{:?}", written.elapsed());
    // A second one behind the first of the flood: both come, and in the order of their times.
    oracle::produce(&spec.bootstrap, &awaited, &[Rec::new(0, now, "k", "late")], &[]);
    until("the second one", || oracle::watermarks(&spec.bootstrap, &spec.output, 0).1 > 2);
    let first: Vec<String> = values(&spec).into_iter().take(3).map(|value| value[..1].to_owned()).collect();
    assert_eq!(first, ["e", "f", "l"]);
    assert_eq!(process.count("failed"), 0);
    process.close();
}

#[test]
fn a_record_that_cannot_be_decoded_fails_the_task_and_is_named() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let spec = made(kafka, Kind::Pass, "undecodable", 1, state.path());
    write(&spec, &[one("k", "v"), Rec { value: Some(vec![0xff, 0xfe]), ..one("k", "") }, one("k", "w")]);
    let mut process = Process::start(&spec);
    let why = process.expect("failed");
    let place = format!("{}-0 at offset 1: value: ", spec.input);
    assert!(why.starts_with(&place), "{why}");
    assert!(why.ends_with("; a deserialization handler may skip such records"), "{why}");
    process.expect("state ERROR");
    assert!(committed(&spec) <= 1, "nothing is committed over it");
}

#[test]
fn a_record_that_cannot_be_decoded_is_skipped_and_counted_when_the_handler_says_so() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let mut spec = made(kafka, Kind::Pass, "skipped", 1, state.path());
    spec.skip = true;
    write(&spec, &[one("k", "v"), Rec { value: Some(vec![0xff, 0xfe]), ..one("k", "") }, one("k", "w")]);
    let mut process = Process::running(&spec);
    await_committed(&spec);
    assert_eq!(process.ask("dropped"), "1");
    assert_eq!(process.count("undecodable"), 1);
    process.close();
    assert_eq!(values(&spec), ["v", "w"]);
}

/// A batch that is small on the wire and larger than any buffer once it is decompressed.
#[test]
fn a_record_larger_than_the_frames_is_refused_by_place_and_size() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let spec = made(kafka, Kind::Pass, "large-in", 1, state.path());
    let large = one("k", &"z".repeat(12 << 20));
    oracle::produce(
        &spec.bootstrap,
        &spec.input,
        &[one("k", "v"), large],
        &[("compression.type", "gzip"), ("message.max.bytes", "20000000"), ("batch.num.messages", "1")],
    );
    let mut process = Process::start(&spec);
    let why = process.expect("failed");
    assert!(why.starts_with(&format!("{}-0 at offset 1: ", spec.input)), "{why}");
    assert!(why.contains("frame") && why.contains("bytes"), "{why}");
    process.expect("state ERROR");
    assert!(committed(&spec) <= 1, "nothing is committed over it");
}

#[test]
fn a_record_larger_than_the_batches_is_refused_and_nothing_is_committed_over_it() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let spec = made(kafka, Kind::Pass, "large-out", 1, state.path());
    write(&spec, &[one("k", "v"), one("k", "grow 20000000")]);
    let mut process = Process::start(&spec);
    let why = process.expect("failed");
    assert!(why.starts_with("writing failed in task 0_0: ") && why.contains("bytes"), "{why}");
    process.expect("state ERROR");
    assert!(committed(&spec) <= 1, "nothing is committed over it");
}
