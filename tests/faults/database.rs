//! RocksDB stops in the middle of the work: the application opens it again and restores by itself.
use crate::process::{Kind, Process, Spec};
use crate::records::{await_committed, counts, made, of_keys, truth, write};
use crate::support;
use std::path::{Path, PathBuf};

/// More rows than the memtables hold, so that they are flushed.
const ROWS: usize = 45_000;

/// The directory that holds the database's `CURRENT`.
fn database(directory: &Path) -> Option<PathBuf> {
    let mut below = std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    let here = directory.join("CURRENT").exists().then(|| directory.to_owned());
    here.or_else(|| below.find_map(|path| if path.is_dir() { database(&path) } else { None }))
}

/// Its files disappear under it, and what is written next cannot be flushed.
fn lose_the_files(spec: &Spec) {
    std::fs::remove_dir_all(database(&spec.state_dir).unwrap()).unwrap();
    write(spec, &of_keys(ROWS, ROWS, 2));
}

/// Twice within ten minutes that is put right, with every count; the third time the application says why it ends.
#[test]
fn a_database_that_stops_is_opened_again_and_restored_and_the_third_time_is_the_end() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let mut spec = made(kafka, Kind::Count, "stopped", 2, state.path());
    spec.line = "64 MiB".to_owned();
    write(&spec, &of_keys(3_000, 1_000, 2));
    let mut process = Process::running(&spec);
    await_committed(&spec);
    for _ in 0..2 {
        lose_the_files(&spec);
        process.expect("state REBALANCING");
        process.expect("state RUNNING");
        await_committed(&spec);
        assert_eq!(process.ask("failure"), "none");
    }
    let (truth, counts) = (truth(&spec), counts(&spec));
    let last = format!("k{}", ROWS - 1);
    assert_eq!((truth.len(), truth["k0"], truth[&last]), (ROWS, 5, 2), "the input is what was written");
    // At least once: what was counted and not committed when the database stopped is counted again.
    let lost: Vec<_> = truth.iter().filter(|(key, count)| counts.get(*key) < Some(count)).take(5).collect();
    assert!(lost.is_empty(), "{lost:?}");

    lose_the_files(&spec);
    let failed = process.expect("failed ");
    assert!(failed.contains("the state database stopped: "), "{failed}");
    assert!(failed.contains("check the disk of the state directory"), "{failed}");
    process.expect("state ERROR");
}
