//! The measured programs as child processes. None outlives this one: they end with their standard input.
use crate::support::broker::jars;
use plimsoll_peer::{Outcome, Task};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Who is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum System {
    Plimsoll,
    KafkaStreams,
    RawLibrdkafka,
    /// The same loop on the tracking allocator: only when asked for.
    RawTracked,
}

impl System {
    pub(crate) const ALL: [Self; 4] = [Self::Plimsoll, Self::KafkaStreams, Self::RawLibrdkafka, Self::RawTracked];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plimsoll => "plimsoll",
            Self::KafkaStreams => "kafka-streams",
            Self::RawLibrdkafka => "raw-librdkafka",
            Self::RawTracked => "raw-tracked",
        }
    }

    /// The plain loop keeps no state; Kafka Streams stands beside the others where all is as by default.
    pub(crate) fn does(self, case: &str) -> bool {
        match self {
            Self::Plimsoll => true,
            Self::KafkaStreams => matches!(case, "pass" | "count"),
            Self::RawLibrdkafka | Self::RawTracked => case != "count",
        }
    }
}

/// How each program is started.
pub(crate) struct Programs {
    /// Where this program is, and the others beside it.
    beside: PathBuf,
    /// Kafka's jars.
    jars: PathBuf,
    /// The compiled Java source.
    classes: tempfile::TempDir,
}

impl Programs {
    /// Compiles what is not compiled yet.
    pub(crate) fn prepare() -> Outcome<Self> {
        let jars = jars()?.to_owned();
        let classes = tempfile::tempdir()?;
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/Streams.java");
        let compiled = Command::new("javac")
            .arg("-d")
            .arg(classes.path())
            .arg("-cp")
            .arg(format!("{}/*", jars.display()))
            .arg(source)
            .status()?;
        if !compiled.success() {
            return Err(format!("{source} cannot be compiled").into());
        }
        let beside = std::env::current_exe()?.parent().ok_or("this program has no directory")?.to_owned();
        Ok(Self { beside, jars, classes })
    }

    fn command(&self, system: System) -> Command {
        let native = |name: &str| Command::new(self.beside.join(name));
        match system {
            System::Plimsoll => native("peer-plimsoll"),
            System::RawLibrdkafka => native("peer-raw"),
            System::RawTracked => native("peer-raw-tracked"),
            System::KafkaStreams => {
                let mut java = Command::new("java");
                java.arg("-cp").arg(format!("{}:{}/*", self.classes.path().display(), self.jars.display()));
                java.arg("Streams");
                java
            }
        }
    }

    /// Starts a system on a task. Its log goes to a file in the state directory.
    pub(crate) fn start(&self, system: System, task: &Task) -> Outcome<Running> {
        let log = Path::new(&task.state).join("log");
        let verbose = std::env::var_os("PEER_VERBOSE").is_some();
        let mut child = self
            .command(system)
            .envs(task.environment())
            .current_dir(&task.state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if verbose { Stdio::inherit() } else { std::fs::File::create(&log)?.into() })
            .spawn()
            .map_err(|error| {
                format!("{}: {error}; build it with `cargo build --release -p plimsoll-peer`", system.name())
            })?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        Ok(Running { system, child, stdout: BufReader::new(stdout), log })
    }
}

/// A running system. Dropping it kills it.
pub(crate) struct Running {
    system: System,
    child: Child,
    stdout: BufReader<ChildStdout>,
    log: PathBuf,
}

impl Running {
    /// Waits for the next line on its standard output that begins so; what came before is passed over.
    pub(crate) fn line(&mut self, begins: &str) -> Outcome<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.stdout.read_line(&mut line)? == 0 {
                return Err(self.ended());
            }
            if line.starts_with(begins) {
                return Ok(line);
            }
        }
    }

    fn ended(&self) -> Box<dyn std::error::Error> {
        let mut log = String::new();
        let _ = std::fs::File::open(&self.log).and_then(|mut file| file.read_to_string(&mut log));
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(20)..].join("\n");
        format!("{} ended without a result:\n{tail}", self.system.name()).into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
