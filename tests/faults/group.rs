//! Several processes in one group: who leaves, who takes over, and who comes too late.
use crate::process::{Kind, Process, Spec};
use crate::records::{await_committed, committed, counts, made, of_keys, one, truth, write};
use crate::support::{self, broker::Cluster};
use std::path::Path;
use std::time::{Duration, Instant};

/// Two processes share the tasks; each is replaced in turn while records come.
#[test]
fn counts_stay_right_over_a_rolling_restart() {
    let Some(kafka) = support::kafka() else { return };
    let states = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let specs = made_twice(kafka, states.each_ref().map(tempfile::TempDir::path));
    let mut processes: Vec<Process> = specs.iter().map(Process::running).collect();
    for index in [0, 1] {
        write(&specs[0], &of_keys(1_000, 20, 4));
        processes.remove(0).close();
        write(&specs[0], &of_keys(1_000, 20, 4));
        processes.push(Process::running(&specs[index]));
    }
    write(&specs[0], &of_keys(1_000, 20, 4));
    await_committed(&specs[0]);
    for process in processes {
        process.close();
    }
    assert_eq!(truth(&specs[0])["k19"], 250);
    assert_eq!(counts(&specs[0]), truth(&specs[0]));
}

fn made_twice(kafka: &Cluster, states: [&Path; 2]) -> [Spec; 2] {
    let first = made(kafka, Kind::Count, "shared", 4, states[0]);
    let second = Spec { state_dir: states[1].to_owned(), ..first.clone() };
    [first, second]
}

/// The group would notice a silent member after its session time-out, 45 seconds.
#[test]
fn closing_leaves_the_group_at_once() {
    let Some(kafka) = support::kafka() else { return };
    let states = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let specs = made_twice(kafka, states.each_ref().map(tempfile::TempDir::path))
        .map(|spec| spec.set("session.timeout.ms", "45000"));
    let first = Process::running(&specs[0]);
    let mut second = Process::running(&specs[1]);
    first.close();
    let left = Instant::now();
    second.expect("state REBALANCING");
    second.expect("state RUNNING");
    write(&specs[0], &of_keys(40, 20, 4));
    await_committed(&specs[0]);
    assert!(left.elapsed() < Duration::from_secs(20), "{:?}", left.elapsed());
    second.close();
    assert_eq!(counts(&specs[0]), truth(&specs[0]));
}

/// A thread is in user code while the group gives its task away. When it comes back, its commit is refused: what the
/// new owner has committed stays.
#[test]
fn the_late_commit_of_a_thread_that_was_stuck_is_refused() {
    let Some(kafka) = support::kafka() else { return };
    let states = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let first = made(kafka, Kind::Count, "stuck", 1, states[0].path())
        .set("max.poll.interval.ms", "8000")
        .set("session.timeout.ms", "6000")
        .set("client.id", "b");
    // The group's range rule deals by member id, which begins with the client's: the one partition moves to `a`.
    let second = Spec { state_dir: states[1].path().to_owned(), ..first.clone() }.set("client.id", "a");
    write(&first, &of_keys(6, 2, 1));
    write(&first, &[one("k0", "block"), one("k1", "v")]);
    let mut stuck = Process::running(&first);
    stuck.expect("blocked");
    let mut other = Process::start(&second);
    other.expect("blocked");
    other.tell("release");
    await_committed(&second);
    write(&second, &of_keys(2, 2, 1));
    await_committed(&second);
    assert_eq!((committed(&second), stuck.count("state PENDING_ERROR")), (10, 0));
    stuck.tell("release");
    // Its commit would be 8 and come within the commit interval.
    let watched = Instant::now();
    while watched.elapsed() < Duration::from_millis(1_500) {
        assert_eq!(committed(&second), 10, "the late commit came through");
    }
    write(&second, &of_keys(2, 2, 1));
    await_committed(&second);
    other.close();
    assert_eq!(counts(&second), truth(&second));
    stuck.close();
}

/// A killed process is missed by the group after its session time-out; another goes on with its tasks, from their last
/// commits.
#[test]
fn another_process_takes_over_from_one_that_was_killed() {
    let Some(kafka) = support::kafka() else { return };
    let states = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [first, second] = made_twice(kafka, states.each_ref().map(tempfile::TempDir::path));
    let killed = Process::running(&first);
    let process = Process::running(&second);
    write(&first, &of_keys(400, 20, 4));
    await_committed(&first);
    std::thread::sleep(Duration::from_millis(1_100));
    killed.kill();
    write(&first, &of_keys(400, 20, 4));
    await_committed(&first);
    process.close();
    assert_eq!(counts(&first), truth(&first));
}

/// A task fails while its process is asked to give tasks back, and stays with the process: the next assignment starts
/// it again instead of keeping what is no longer there.
#[test]
fn a_task_that_fails_during_a_rebalance_starts_again_with_the_next_assignment() {
    let Some(kafka) = support::kafka() else { return };
    let states = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut first = made(kafka, Kind::Count, "kept", 2, states[0].path()).set("client.id", "a");
    first.replace = true;
    // Range gives partition 0 to `a`, as before, and partition 1 to `b`.
    let second = Spec { state_dir: states[1].path().to_owned(), ..first.clone() }.set("client.id", "b");
    write(&first, &of_keys(20, 4, 2));
    let mut process = Process::running(&first);
    await_committed(&first);
    write(&first, &[one("k0", "block-panic-once"), one("k2", "v")]);
    process.expect("blocked");
    let mut other = Process::start(&second);
    process.expect("state REBALANCING");
    process.tell("release");
    assert_eq!(process.expect("failed"), "user code panicked in task 0_0: told to, late");
    process.expect("state RUNNING");
    other.expect("state RUNNING");
    write(&first, &of_keys(20, 4, 2));
    await_committed(&first);
    process.close();
    other.close();
    assert_eq!(truth(&first)["k0"], 11);
    assert_eq!(counts(&first), truth(&first));
}
