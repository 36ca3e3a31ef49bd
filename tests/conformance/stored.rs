//! Scenarios with Kafka's answers, stored: they are judged without Java.
use super::Tally;
use super::handed;
use super::known::{Verdict, verdict};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};

/// Lines of scenario and answer.
const STORED: &[u8] = include_bytes!("../data/conformance.jsonl.gz");
/// Scenarios that are stored, at least.
const AT_LEAST: usize = 300;
/// Operations that the library does not have yet.
const NOT_YET: &[&str] = &[];
/// Stored scenarios that are still answered differently.
const OPEN: &str = include_str!("../data/conformance_open.txt");

/// Judges them all. What is listed as missing or different must be so: the lists can only shrink.
pub fn judge(tally: &mut Tally) {
    let open: BTreeSet<&str> = OPEN.lines().filter(|line| !line.is_empty()).collect();
    let mut not_yet = BTreeSet::new();
    let mut count = 0;
    for line in BufReader::new(GzDecoder::new(STORED)).lines() {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let (scenario, kafka) = (&case["scenario"], &case["kafka"]);
        let name = scenario["name"].as_str().unwrap();
        if let Some(seed) = name.strip_prefix("seed-").and_then(|rest| rest.split('-').next()) {
            assert_eq!(&handed::scenario(seed.parse().unwrap()), scenario, "the generators differ");
        }
        count += 1;
        match verdict(scenario, kafka) {
            Verdict::NotYet(op) => _ = not_yet.insert(op),
            Verdict::Different(_) if open.contains(name) => (),
            Verdict::Equal | Verdict::Known if open.contains(name) => {
                println!("{name} is equal now: take it out of tests/data/conformance_open.txt");
                tally.failed += 1;
            }
            _ => tally.judge(scenario, kafka),
        }
    }
    assert!(count >= AT_LEAST, "{count} stored scenarios");
    let listed: BTreeSet<String> = NOT_YET.iter().map(|op| (*op).to_owned()).collect();
    for op in not_yet.symmetric_difference(&listed) {
        println!("{op}: is the list of missing operations right?");
        tally.failed += 1;
    }
}

/// Writes such a file.
pub struct Writer(GzEncoder<File>);

impl Writer {
    pub fn create(path: &str) -> Self {
        Self(GzEncoder::new(File::create(path).unwrap(), Compression::best()))
    }

    pub fn add(&mut self, scenario: &Value, kafka: &Value) {
        writeln!(self.0, "{}", json!({"scenario": scenario, "kafka": kafka})).unwrap();
    }

    pub fn finish(self) {
        self.0.finish().unwrap();
    }
}
