//! The gate: a tracked malloc and free on a home thread take at most 12 instructions more than plain jemalloc's.
//!
//! Counted by callgrind over the difference of two runs, so that start-up and exit cancel out. Without valgrind the
//! test says so and passes, except under `CI=true`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::process::Command;

const GATE: f64 = 12.0;

fn instructions(program: &std::path::Path, kind: &str, count: u64) -> u64 {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args([kind, &count.to_string()]);
    let text = common::run(&mut valgrind);
    let collected = text.lines().find_map(|line| line.split("Collected :").nth(1));
    collected.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("no count in:\n{text}"))
}

fn per_pair(program: &std::path::Path, kind: &str) -> f64 {
    let (few, many) = (10_000, 210_000);
    (instructions(program, kind, many) - instructions(program, kind, few)) as f64 / (many - few) as f64
}

#[test]
fn a_tracked_pair_takes_at_most_twelve_instructions_more_than_plain() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return common::skipped("instructions", "valgrind is not installed, instructions were not counted");
    }
    let program = common::build_example("pairs").join("pairs");
    for language in ["c", "rust"] {
        let plain = per_pair(&program, &format!("{language}-plain"));
        let tracked = per_pair(&program, &format!("{language}-tracked"));
        println!("{language}: plain {plain:.1}, tracked {tracked:.1}: {:+.1} instructions a pair", tracked - plain);
        assert!(plain > 20.0, "counted {plain} for a pair of jemalloc's: too few to be true");
        assert!(tracked - plain <= GATE, "{language}: {plain} plain, {tracked} tracked");
    }
}
