//! An application in a process of its own: what it is to do goes in as a [`Spec`], what happens comes out as lines.
use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Names the variable that carries the spec.
pub(crate) const SPEC: &str = "PLIMSOLL_FAULTS_SPEC";
/// Begins every line that is meant for the test.
pub(crate) const MARK: &str = "@@";
/// Generous: the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is computed. Values pass [`act`](crate::app::act) on their way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Counts the records of each key.
    Count,
    /// Counts the records of each value, through a repartition topic.
    CountValues,
    /// Writes the values on.
    Pass,
    /// Merges two topics, `input` and this one, in one task.
    Merge(String),
}

/// An application.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) application: String,
    pub(crate) bootstrap: String,
    pub(crate) state_dir: PathBuf,
    pub(crate) line: String,
    pub(crate) kind: Kind,
    pub(crate) input: String,
    pub(crate) output: String,
    pub(crate) configs: Vec<(String, String)>,
    /// Failed tasks are started again; otherwise the application closes.
    pub(crate) replace: bool,
    /// Undecodable records are skipped; otherwise the task fails.
    pub(crate) skip: bool,
}

impl Spec {
    /// Commits every 100 ms and rebalances quickly.
    pub(crate) fn new(kind: Kind, bootstrap: &str, name: &str, state_dir: &Path) -> Self {
        let configs = [
            ("commit.interval.ms", "100"),
            ("fetch.max.wait.ms", "50"),
            ("heartbeat.interval.ms", "200"),
            // The group waits so long for a member that was killed.
            ("session.timeout.ms", "4000"),
        ]
        .map(pair);
        Self {
            application: name.to_owned(),
            bootstrap: bootstrap.to_owned(),
            state_dir: state_dir.to_owned(),
            line: "96 MiB".to_owned(),
            kind,
            input: format!("{name}-in"),
            output: format!("{name}-out"),
            configs: configs.to_vec(),
            replace: false,
            skip: false,
        }
    }

    /// One more setting; a later one wins.
    #[must_use]
    pub(crate) fn set(mut self, key: &str, value: &str) -> Self {
        self.configs.push(pair((key, value)));
        self
    }
}

fn pair((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// A running application. Dropping it kills it.
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Process {
    /// Starts it; it says `state RUNNING` when it runs.
    pub(crate) fn start(spec: &Spec) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--test-threads=1"])
            .env(SPEC, serde_json::to_string(spec).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let Some(at) = line.find(MARK) else { continue };
                if send.send(line[at + MARK.len()..].to_owned()).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, lines, seen: Vec::new() }
    }

    /// As [`Self::start`], and waits until it runs.
    pub(crate) fn running(spec: &Spec) -> Self {
        let mut process = Self::start(spec);
        process.expect("state RUNNING");
        process
    }

    /// Waits for a line that begins so and answers the rest of it.
    pub(crate) fn expect(&mut self, prefix: &str) -> String {
        self.within(PATIENCE, prefix).unwrap_or_else(|why| panic!("no `{prefix}` ({why}): {:#?}", self.seen))
    }

    /// Waits so long for a line that begins so.
    pub(crate) fn within(&mut self, time: Duration, prefix: &str) -> Result<String, RecvTimeoutError> {
        let deadline = Instant::now() + time;
        loop {
            let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))?;
            self.seen.push(line.clone());
            if let Some(rest) = line.strip_prefix(prefix) {
                return Ok(rest.trim().to_owned());
            }
        }
    }

    /// Lines that came so far.
    pub(crate) fn seen(&mut self) -> &[String] {
        self.seen.extend(self.lines.try_iter());
        &self.seen
    }

    /// How often a line that begins so came.
    pub(crate) fn count(&mut self, prefix: &str) -> usize {
        self.seen().iter().filter(|line| line.starts_with(prefix)).count()
    }

    /// Gives a command; see [`app::run`](crate::app::run).
    pub(crate) fn tell(&mut self, command: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{command}").unwrap();
    }

    /// Asks for something and answers what comes back.
    pub(crate) fn ask(&mut self, what: &str) -> String {
        self.tell(what);
        self.expect(what)
    }

    /// Closes the application, which must end well, and waits for the end of its process.
    pub(crate) fn close(mut self) -> Vec<String> {
        self.tell("close 30000");
        assert_eq!(self.expect("closed"), "ok");
        drop(self.stdin.take());
        self.child.wait().unwrap();
        self.seen().to_vec()
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
