//! What the tests share: counters are the process's, so tests that read them take turns; some start a child.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use plimsoll_alloc::{Module, committed_all, live_all, purge};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Everything but App, which also pays for the test harness.
pub const FOREIGN: [Module; 8] = [
    Module::Engine,
    Module::Consumer,
    Module::Restore,
    Module::Producer,
    Module::Batch,
    Module::Cache,
    Module::Store,
    Module::BlockCache,
];

/// Only one test of this process at a time.
pub fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Live bytes by module after this thread's caches were emptied and all freed pages given back.
pub fn settled_live() -> [u64; Module::COUNT] {
    settle();
    live_all()
}

/// Committed bytes by module after this thread's caches were emptied and all freed pages given back.
pub fn settled_committed() -> [u64; Module::COUNT] {
    settle();
    committed_all()
}

/// Live bytes are what they were: exactly for every module but App, for which the test harness allocates meanwhile.
#[track_caller]
pub fn assert_no_drift(before: [u64; Module::COUNT]) {
    let after = settled_live();
    assert_eq!(after[1..], before[1..], "live bytes by module");
    assert!(after[0].abs_diff(before[0]) < 256 << 10, "app: {} then {}", before[0], after[0]);
}

fn settle() {
    for module in Module::ALL {
        purge(module);
    }
}

/// A program that runs one ignored test of this test program, as a child process.
pub fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command
}

/// Runs a child that must succeed and have run exactly one test; gives what it printed.
pub fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{text}");
    text
}

/// As [`run`], for [`child`]: the named test exists and ran.
pub fn run_test(command: &mut Command) -> String {
    let text = run(command);
    assert!(text.contains("1 passed"), "the child ran no test:\n{text}");
    text
}

/// Builds an example of this package as the running test was built; gives the directory it lies in.
pub fn build_example(name: &str) -> std::path::PathBuf {
    let exe = std::env::current_exe().unwrap();
    let profile = exe.parent().unwrap().parent().unwrap().to_path_buf();
    let target = profile.parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    cargo.args(["--example", name]).arg("--target-dir").arg(target);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    run(&mut cargo);
    profile.join("examples")
}

/// Reports a test that cannot run here, past the harness' capture and in the file that `PLIMSOLL_SKIPPED` names, so
/// that a run can count it. Under `CI=true` it fails instead.
pub fn skipped(test: &str, why: &str) {
    use std::io::Write;
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{test} must not be skipped under CI: {why}");
    let line = format!("SKIPPED {test}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Ok(path) = std::env::var("PLIMSOLL_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
