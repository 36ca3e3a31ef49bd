//! A Java program of ours over Kafka's own jars: one process, spoken to over its standard input and output.
use super::broker;
use std::io::BufReader;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

/// The process and its pipes; one order at a time. Dropping it kills the process.
pub struct JavaProgram {
    pub pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    child: Child,
}

impl JavaProgram {
    /// Runs `source`, a path in this repository, which is told where the brokers are.
    pub fn start(source: &str, heap_mib: usize, bootstrap: &str) -> Self {
        let jars = broker::jars().expect("there is a cluster, so there are jars");
        let command = broker::java(jars, heap_mib, false);
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .arg(format!("{}/{source}", env!("CARGO_MANIFEST_DIR")))
            .arg(bootstrap)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pipes = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { pipes: Mutex::new(pipes), child }
    }
}

impl Drop for JavaProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
