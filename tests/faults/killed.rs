//! `kill -9` and what is there afterwards.
use crate::process::{Kind, Process, Spec};
use crate::records::{await_committed, counts, made, now, of_keys, one, truth, until, write};
use crate::support::oracle::{self, Rec};
use crate::support::{self, broker::Cluster};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::path::Path;
use std::time::{Duration, Instant};

/// Killed at rest, more than a second after the last commit: the counts go on exactly where they were.
fn killed_at_rest(kafka: &Cluster, keep_state: bool) {
    let state = tempfile::tempdir().unwrap();
    let mut spec = made(kafka, Kind::Count, "at-rest", 2, state.path());
    write(&spec, &of_keys(300, 10, 2));
    let process = Process::running(&spec);
    await_committed(&spec);
    std::thread::sleep(Duration::from_millis(1_100));
    process.kill();

    let other = tempfile::tempdir().unwrap();
    if !keep_state {
        spec.state_dir = other.path().to_owned();
    }
    write(&spec, &of_keys(205, 10, 2));
    let process = Process::running(&spec);
    await_committed(&spec);
    process.close();
    let truth = truth(&spec);
    assert_eq!((truth["k0"], truth["k9"]), (51, 50), "the input is what was written");
    assert_eq!(counts(&spec), truth);
}

#[test]
fn killed_at_rest_and_started_again_with_its_state_counts_exactly() {
    let Some(kafka) = support::kafka() else { return };
    killed_at_rest(kafka, true);
}

#[test]
fn killed_at_rest_and_started_again_without_its_state_counts_exactly() {
    let Some(kafka) = support::kafka() else { return };
    killed_at_rest(kafka, false);
}

/// Killed three times while records come: nothing is lost, with and without the state directory. What was counted and
/// not committed is counted again.
#[test]
fn killed_in_mid_run_loses_nothing() {
    let Some(kafka) = support::kafka() else { return };
    let states = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut spec = made(kafka, Kind::CountValues, "mid-run", 2, states[0].path());
    for state in [0, 0, 1] {
        spec.state_dir = states[state].path().to_owned();
        let process = Process::running(&spec);
        let (writing, records) = (spec.clone(), of_words(3_000));
        let writer = std::thread::spawn(move || {
            for part in records.chunks(600) {
                write(&writing, part);
            }
        });
        let before = oracle::watermarks(&spec.bootstrap, &spec.output, 0).1;
        until("some counts", || oracle::watermarks(&spec.bootstrap, &spec.output, 0).1 > before);
        process.kill();
        writer.join().unwrap();
    }
    let process = Process::running(&spec);
    await_committed(&spec);
    settle(&spec);
    process.close();
    let counts = counts(&spec);
    // Three times 3,000 words: of the first four one more each time.
    for (word, truth) in [("w0", 1_287), ("w3", 1_287), ("w4", 1_284), ("w6", 1_284)] {
        assert!(counts[word] >= truth, "{word}: {} of {truth}", counts[word]);
    }
    assert_eq!(counts.len(), 7);
}

/// Values `w0` to `w6` in turn, over two partitions.
fn of_words(count: usize) -> Vec<Rec> {
    let now = now();
    let record = |i: usize| Rec::new((i % 2) as i32, now, "k", &format!("w{}", i % 7));
    (0..count).map(record).collect()
}

/// Waits until the repartition topic is read and committed too.
fn settle(spec: &Spec) {
    let topic = format!("{}-counts-repartition", spec.application);
    until("the repartition topic to be read", || {
        let committed = oracle::committed(&spec.bootstrap, &spec.application, &topic, 2);
        (0..2).zip(&committed).all(|(partition, at)| {
            at.as_ref().map_or(0, |(offset, _)| *offset) >= oracle::watermarks(&spec.bootstrap, &topic, partition).1
        })
    });
}

/// Keys of the changelog that is restored; large, so that the database writes files while it is restored.
const ROWS: usize = 60_000;

/// A restore that is killed goes on at the offset that the database holds. The changelog's first records are deleted
/// meanwhile: who began from its beginning would miss them, and who goes on still has them.
#[test]
fn a_killed_restore_goes_on_where_it_was() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let mut spec = made(kafka, Kind::Count, "restore", 1, state.path());
    let changelog = format!("{}-counts-changelog", spec.application);
    oracle::create_topic(&spec.bootstrap, &changelog, 1, &[("cleanup.policy", "compact")]);
    let row = |i: usize| Rec { value: Some(41i64.to_be_bytes().to_vec()), ..one(&key(i), "") };
    let rows: Vec<Rec> = (0..ROWS).map(row).collect();
    oracle::produce(&spec.bootstrap, &changelog, &rows, &[]);

    // A restore that was over before the kill proves nothing: again, from nothing.
    let restored_in_part = (0..5).any(|attempt| {
        spec.state_dir = state.path().join(attempt.to_string());
        let mut process = Process::start(&spec);
        let deadline = Instant::now() + Duration::from_secs(60);
        while database_files(&spec.state_dir) < 2 && process.count("state RUNNING") == 0 {
            assert!(Instant::now() < deadline, "neither files nor an end of the restore");
            std::thread::sleep(Duration::from_millis(2));
        }
        let ended = process.count("state RUNNING") > 0;
        process.kill();
        !ended
    });
    assert!(restored_in_part, "each of five restores was over before it was killed");
    delete_before(&spec.bootstrap, &changelog, 100);
    assert_eq!(oracle::watermarks(&spec.bootstrap, &changelog, 0).0, 100);

    write(&spec, &[one(&key(7), "v"), one(&key(ROWS - 1), "v")]);
    let process = Process::running(&spec);
    await_committed(&spec);
    process.close();
    let counts = counts(&spec);
    assert_eq!((counts[&key(7)], counts[&key(ROWS - 1)]), (42, 42));
}

fn key(i: usize) -> String {
    format!("{i:0>300}")
}

/// Table files below a directory.
fn database_files(directory: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let count = |path: &Path| if path.is_dir() { database_files(path) } else { usize::from(is_table(path)) };
    entries.flatten().map(|entry| count(&entry.path())).sum()
}

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sst")
}

/// Deletes records, which a compacted topic allows only while it is not.
fn delete_before(bootstrap: &str, topic: &str, offset: i64) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", bootstrap).create().unwrap();
    let options = AdminOptions::new().request_timeout(Some(Duration::from_secs(30)));
    let policy = |policy| {
        let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set("cleanup.policy", policy);
        for changed in oracle::block_on(admin.alter_configs(&[change], &options)).unwrap() {
            changed.unwrap();
        }
    };
    policy("delete");
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(offset)).unwrap();
    // The broker may not know of the new policy at once.
    oracle::wait("the deletion", || {
        let deleted = oracle::block_on(admin.delete_records(&list, &options)).ok()?;
        deleted.elements().iter().all(|element| element.error().is_ok()).then_some(())
    });
    oracle::wait("the log's new start", || (oracle::watermarks(bootstrap, topic, 0).0 == offset).then_some(()));
    policy("compact");
}
