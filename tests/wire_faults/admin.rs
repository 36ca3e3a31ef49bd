//! Kafka's own administration client, for the calls that librdkafka does not have.
use crate::support::broker;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

/// The process and its pipes.
pub struct Admin {
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    child: Child,
}

impl Admin {
    pub fn start(bootstrap: &str) -> Self {
        let jars = broker::jars().expect("there is a cluster, so there are jars");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire_faults/Admin.java");
        let mut child = Command::new("java")
            .args(["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"])
            .arg(format!("{}/*", jars.display()))
            .args([source, bootstrap])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pipes = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { pipes: Mutex::new(pipes), child }
    }

    /// Makes a broker, by its id, the leader of all partitions of the topic, and waits until it is.
    pub fn lead(&self, topic: &str, broker: i32) -> Result<(), String> {
        let mut pipes = self.pipes.lock().unwrap();
        writeln!(pipes.0, "lead {topic} {broker}").unwrap();
        let mut answer = String::new();
        pipes.1.read_line(&mut answer).unwrap();
        if answer.trim() == "ok" { Ok(()) } else { Err(format!("broker {broker} does not lead {topic}: {answer}")) }
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
