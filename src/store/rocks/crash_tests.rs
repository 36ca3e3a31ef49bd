//! Crashes and other processes. Each is a child: this test binary runs itself with the name of a scene in its
//! environment.
#![allow(clippy::print_stdout)]
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use super::memory_tests;
use super::tests::{A, ROWS, count, fill, offset, open, options, settings};
use super::*;

const SCENE: &str = "PLIMSOLL_TEST_SCENE";
const DIRECTORY: &str = "PLIMSOLL_TEST_DIRECTORY";
const KILL_AT: &str = "PLIMSOLL_TEST_KILL_AT";

/// The real process dies here when the scene says so.
pub(super) fn step(name: &str) {
    if std::env::var(KILL_AT).is_ok_and(|at| at == name) {
        die();
    }
}

fn die() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
}

fn child(scene: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "store::rocks::crash_tests::scene_of_a_child_process", "--ignored", "--nocapture"]);
    command.env(SCENE, scene).env(DIRECTORY, directory);
    command
}

/// Runs a scene that asserts by itself.
pub(in crate::store) fn scene_passes(scene: &str) {
    let directory = tempfile::tempdir().unwrap();
    let output = child(scene, directory.path()).output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{scene}: {output:?}");
}

fn killed(output: &Output) -> bool {
    output.status.signal() == Some(9)
}

#[test]
#[ignore = "run by other tests as a process of its own"]
fn scene_of_a_child_process() {
    let Ok(scene) = std::env::var(SCENE) else { return };
    let directory = std::path::PathBuf::from(std::env::var(DIRECTORY).unwrap());
    match scene.as_str() {
        "crash" => {
            let backend = open(&directory);
            fill(&backend, A, 1, 10);
            backend.flush(A).unwrap();
            fill(&backend, A, 2, 10);
            die();
        }
        "drop" => {
            let backend = open(&directory);
            for partition in 0..3 {
                fill(&backend, A, partition, ROWS);
                backend.flush(A).unwrap();
            }
            backend.with(|db| db.compact(A.0)).unwrap();
            backend.drop_partition(A, 1).unwrap();
            die();
        }
        "hold" => {
            let _held = open(&directory);
            println!("held");
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
        "modules" => memory_tests::modules(&directory),
        "load" => memory_tests::load(&directory),
        "fixed" => memory_tests::fixed(&directory),
        other => panic!("no scene {other}"),
    }
}

#[test]
fn what_was_flushed_survives_kill_9_with_its_offset_and_the_rest_is_gone_with_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let output = child("crash", directory.path()).output().unwrap();
    assert!(killed(&output), "{output:?}");
    let backend = open(directory.path());
    assert_eq!((offset(&backend, 1), count(&backend, A, 1)), (Some(10), 10));
    assert_eq!((offset(&backend, 2), count(&backend, A, 2)), (None, 0));
}

#[test]
fn a_clean_close_keeps_everything() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path());
    fill(&backend, A, 1, 700);
    drop(backend);
    let backend = open(directory.path());
    assert_eq!((offset(&backend, 1), count(&backend, A, 1)), (Some(700), 700));
}

#[test]
fn a_drop_that_is_killed_at_any_step_leaves_no_silent_hole() {
    let mut holes_on_disk = 0;
    let steps = [
        ("drop-begun", true),
        ("drop-offset-deleted", true),
        ("drop-offset-flushed", false),
        ("drop-files-deleted", false),
        ("drop-range-deleted", false),
        ("at the end", false),
    ];
    for (step, is_kept) in steps {
        let directory = tempfile::tempdir().unwrap();
        let output = child("drop", directory.path()).env(KILL_AT, step).output().unwrap();
        assert!(killed(&output), "{step}: {output:?}");
        if !is_kept {
            holes_on_disk += u32::from(raw_rows(directory.path()) < ROWS);
        }
        let backend = open(directory.path());
        let expected = if is_kept { (Some(ROWS.into()), ROWS) } else { (None, 0) };
        assert_eq!((offset(&backend, 1), count(&backend, A, 1)), expected, "{step}");
        for neighbour in [0, 2] {
            let found = (offset(&backend, neighbour), count(&backend, A, neighbour));
            assert_eq!(found, (Some(ROWS.into()), ROWS), "{step}");
        }
    }
    // The danger is real: files were gone while their range tombstone was not on disk.
    assert!(holes_on_disk >= 2, "{holes_on_disk}");
}

/// Rows of partition 1 on disk before anybody deletes what has no offset.
fn raw_rows(directory: &Path) -> u32 {
    let db = Db::open(&directory.join(DATABASE), &settings(directory, 2).families(), &options()).unwrap();
    let mut rows = db.rows(A.0, &partition_prefix(1), &partition_end(1), false).unwrap();
    let mut count = 0;
    while rows.next().unwrap().is_some() {
        count += 1;
    }
    count
}

#[test]
fn a_directory_of_another_process_is_refused_and_its_holder_named() {
    use std::io::BufRead;
    let directory = tempfile::tempdir().unwrap();
    let mut command = child("hold", directory.path());
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut holder = command.spawn().unwrap();
    let lines = std::io::BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("held")));
    let refused = RocksBackend::open(settings(directory.path(), 2)).unwrap_err();
    holder.kill().unwrap();
    holder.wait().unwrap();
    match refused {
        StoreError::Locked { path, holder: Some(pid) } => {
            assert_eq!((path.as_path(), pid), (directory.path(), holder.id()))
        }
        other => panic!("{other:?}"),
    }
    open(directory.path());
}

#[test]
fn an_unwritable_directory_is_refused_by_name() {
    // Below a file: there even root may not write, and the test binary needs no other user's rights.
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let directory = file.join("state");
    match RocksBackend::open(settings(&directory, 2)).unwrap_err() {
        StoreError::NotWritable { path, .. } => assert_eq!(path, directory),
        other => panic!("{other:?}"),
    }
}
