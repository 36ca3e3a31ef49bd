//! Kafka's own administration client, for the calls that librdkafka does not have.
use crate::support::java::JavaProgram;
use std::io::{BufRead as _, Write as _};

/// The process and its pipes.
pub struct Admin(JavaProgram);

impl Admin {
    pub fn start(bootstrap: &str) -> Self {
        Self(JavaProgram::start("tests/wire_faults/Admin.java", 128, bootstrap))
    }

    /// Makes a broker, by its id, the leader of all partitions of the topic, and waits until it is.
    pub fn lead(&self, topic: &str, broker: i32) -> Result<(), String> {
        let mut pipes = self.0.pipes.lock().unwrap();
        writeln!(pipes.0, "lead {topic} {broker}").unwrap();
        let mut answer = String::new();
        pipes.1.read_line(&mut answer).unwrap();
        if answer.trim() == "ok" { Ok(()) } else { Err(format!("broker {broker} does not lead {topic}: {answer}")) }
    }
}
