//! Apache Kafka's own answers: one Java process (`conformance/Oracle.java`) for any number of scenarios.
use super::support::broker;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conformance/Oracle.java");

/// Shows each scenario with Kafka's answer. It runs ahead while the last is looked at.
///
/// # Errors
/// There is no Java, or Kafka's jars cannot be had.
pub fn ask(scenarios: Vec<Value>, mut answered: impl FnMut(&Value, &Value)) -> Result<(), String> {
    let jars = broker::jars()?;
    let mut child = Command::new("java")
        .args(["-Xmx512m", "-XX:+UseSerialGC", "-cp"])
        .arg(format!("{}/*", jars.display()))
        .args([PROGRAM, "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("java: {error}"))?;
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let scenarios = Arc::new(scenarios);
    let sent = Arc::clone(&scenarios);
    // Ends when the process does: its pipe is closed then.
    let writer = std::thread::spawn(move || {
        let _ = sent.iter().try_for_each(|scenario| writeln!(stdin, "{scenario}"));
    });
    let mut lines = BufReader::new(stdout).lines();
    for scenario in scenarios.iter() {
        let line = lines.next().unwrap_or_else(|| panic!("the oracle ended before {}", scenario["name"])).unwrap();
        answered(scenario, &serde_json::from_str(&line).unwrap());
    }
    writer.join().unwrap();
    child.wait().map_err(|error| error.to_string())?;
    Ok(())
}
