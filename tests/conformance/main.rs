//! The same scenarios (`conformance/FORMAT.md`) through Apache Kafka's `TopologyTestDriver` and through the library's
//! `Driver`: descriptions, outputs, bytes of internal topics, stores and refused topologies must be equal.
//!
//! Without arguments: the stored scenarios, whose answers Kafka gave once, and where there is Java so many fresh ones.
//! `--seeds FIRST:COUNT` (`--generator handed` for the scenarios of `generate.py`) or `--files A.json…`: these.
//! `--record FILE` keeps them with Kafka's answers, `--print` only shows the scenarios. The last line is
//! `N passed, N failed`.
#![allow(missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]
mod build;
mod compare;
mod datum;
mod functions;
mod handed;
mod handle;
mod joins;
mod known;
mod oracle;
mod processors;
mod random;
mod run;
mod scenario;
mod stored;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod tables;
mod wide;
mod windows;

use known::Verdict;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

plimsoll::install_allocator!();

/// Fresh scenarios in `make test`.
const FRESH: u64 = 100;
/// The first of those that were once found equal.
const SETTLED: u64 = 2_400;

/// What became of scenarios.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    known: usize,
    /// Scenarios by the operation that is missing.
    not_yet: BTreeMap<String, usize>,
}

impl Tally {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Equal => self.passed += 1,
            Verdict::Known => (self.passed, self.known) = (self.passed + 1, self.known + 1),
            Verdict::NotYet(op) => *self.not_yet.entry(op.clone()).or_default() += 1,
            Verdict::Different(_) => self.failed += 1,
        }
    }

    /// Adds one and shows what is wrong with it.
    fn judge(&mut self, scenario: &Value, kafka: &Value) {
        let verdict = known::verdict(scenario, kafka);
        if let Verdict::Different(differences) = &verdict {
            for difference in differences {
                println!("{} {difference}", scenario["name"].as_str().unwrap_or("?"));
            }
        }
        self.add(&verdict);
    }

    /// The last lines, and whether all is well.
    fn end(&self) -> ExitCode {
        let (passed, missing) = (self.passed, self.not_yet.values().sum::<usize>());
        for (op, count) in &self.not_yet {
            println!("not yet: {count} scenarios with {op}");
        }
        let all = passed + self.failed + missing;
        if self.known > 0 {
            println!("{} of {all} with a known difference (conformance/known.json)", self.known);
        }
        let many = self.known * 100 > all.max(100);
        if many {
            println!("known differences must be at most 1 % of the scenarios");
        }
        let failed = self.failed + missing + usize::from(many);
        println!("test result: {}. {passed} passed; {failed} failed", if failed == 0 { "ok" } else { "FAILED" });
        println!("{passed} passed, {failed} failed");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn main() -> ExitCode {
    let (seeds, files) = (argument("--seeds"), arguments("--files"));
    let scenarios: Vec<Value> = match (seeds, files.is_empty()) {
        (Some(seeds), _) => generated(&seeds, argument("--generator").as_deref()),
        (None, false) => files.iter().flat_map(|file| read(file)).collect(),
        (None, true) => return short(),
    };
    if std::env::args().any(|arg| arg == "--print") {
        println!("{}", Value::Array(scenarios));
        return ExitCode::SUCCESS;
    }
    let mut tally = Tally::default();
    let mut record = argument("--record").map(|path| stored::Writer::create(&path));
    let asked = oracle::ask(scenarios, |scenario, kafka| {
        tally.judge(scenario, kafka);
        if let Some(record) = &mut record {
            record.add(scenario, kafka);
        }
    });
    if let Err(why) = asked {
        println!("Kafka cannot be asked: {why}");
        return ExitCode::FAILURE;
    }
    if let Some(record) = record {
        record.finish();
    }
    tally.end()
}

/// What stands behind an argument.
fn argument(name: &str) -> Option<String> {
    arguments(name).into_iter().next()
}

fn arguments(name: &str) -> Vec<String> {
    std::env::args().skip_while(|arg| arg != name).skip(1).take_while(|arg| !arg.starts_with("--")).collect()
}

fn generated(seeds: &str, generator: Option<&str>) -> Vec<Value> {
    let (first, count): (u64, u64) = match seeds.split_once(':') {
        Some((first, count)) => (first.parse().unwrap(), count.parse().unwrap()),
        None => (seeds.parse().unwrap(), 1),
    };
    let make = match generator {
        None | Some("wide") => wide::scenario,
        Some("handed") => handed::scenario,
        Some(other) => panic!("--generator handed or wide, not {other}"),
    };
    (first..first + count).map(make).collect()
}

/// The scenarios of a file: one after the other, or in arrays.
fn read(file: &str) -> Vec<Value> {
    let text = std::fs::read(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut scenarios = Vec::new();
    for value in serde_json::Deserializer::from_slice(&text).into_iter::<Value>() {
        match value.unwrap_or_else(|error| panic!("{file}: {error}")) {
            Value::Array(values) => scenarios.extend(values),
            value => scenarios.push(value),
        }
    }
    scenarios
}

/// The stored scenarios, and fresh ones: another hundred each time, but always the same where a failure would not be
/// the change's fault.
fn short() -> ExitCode {
    let mut tally = Tally::default();
    stored::judge(&mut tally);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let first = if std::env::var_os("CI").is_some() { SETTLED } else { now() };
    println!("seeds {first}:{FRESH} of the handed generator");
    let fresh = (first..first + FRESH).map(handed::scenario).collect();
    if let Err(why) = oracle::ask(fresh, |scenario, kafka| tally.judge(scenario, kafka)) {
        support::skipped(&why);
    }
    tally.end()
}
