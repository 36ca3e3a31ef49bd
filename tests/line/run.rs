//! One job in its container: started, looked at fifty times a second, asked at the end.
use crate::container::{Charged, Container};
use crate::job::{self, Job, Told};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time from one look to the next.
const LOOK: Duration = Duration::from_millis(20);

/// Bytes of the process as the kernel counts them, each at its highest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peaks {
    /// `Rss` of `smaps_rollup`, or `VmHWM` if that is more.
    pub rss: u64,
    /// `Anonymous` of `smaps_rollup`.
    pub anonymous: u64,
    /// Looks that succeeded.
    pub looks: u64,
}

/// What came of a job.
#[derive(Debug)]
pub struct Outcome {
    pub told: Told,
    pub peaks: Peaks,
    /// `None` where the machine has no container for us.
    pub charged: Option<Charged>,
}

/// Ends its process when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the job from `program` (this test's binary or a copy of it) in a container, where there is one.
pub fn run(job: &Job, program: &Path, container: Option<Container>) -> Outcome {
    let program = program.display().to_string();
    let mut command = container.as_ref().map_or_else(|| Command::new(&program), |within| within.command(&program));
    let child = command
        .env(job::JOB, serde_json::to_string(job).unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let pid = running.0.id();
    let mut out = BufReader::new(running.0.stdout.take().unwrap());
    let over = AtomicBool::new(false);
    let mut line = String::new();
    let (peaks, charged) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(pid, container.as_ref(), &over));
        out.read_line(&mut line).unwrap();
        over.store(true, Ordering::Release);
        watcher.join().unwrap()
    });
    let told = serde_json::from_str(&line).unwrap_or_else(|_| Told::Failed("the process ended without a word".into()));
    drop(running.0.stdin.take());
    running.0.wait().unwrap();
    let charged = container.as_ref().map(|container| charged.max(container.charged()));
    Outcome { told, peaks, charged }
}

/// Looks at the process and its container until it is over, and once more then, while the process still waits.
fn watch(pid: u32, container: Option<&Container>, over: &AtomicBool) -> (Peaks, Charged) {
    let (mut peaks, mut charged) = (Peaks::default(), Charged::default());
    loop {
        let last = over.load(Ordering::Acquire);
        if let Some(rollup) = field_of(pid, "smaps_rollup") {
            peaks.rss = peaks.rss.max(rollup("Rss:"));
            peaks.anonymous = peaks.anonymous.max(rollup("Anonymous:"));
            peaks.looks += 1;
        }
        if last {
            let _ = fs::write(
                format!("/tmp/comms.{pid}"),
                fs::read_dir(format!("/proc/{pid}/task"))
                    .unwrap()
                    .map(|t| fs::read_to_string(t.unwrap().path().join("comm")).unwrap())
                    .collect::<String>(),
            );
            peaks.rss = peaks.rss.max(field_of(pid, "status").map_or(0, |status| status("VmHWM:")));
            return (peaks, charged);
        }
        charged = container.map_or(charged, |container| charged.max(container.charged()));
        std::thread::sleep(LOOK);
    }
}

/// Reads a file of `/proc` about a process: numbers of kB by their names, in bytes.
fn field_of(pid: u32, file: &str) -> Option<impl Fn(&str) -> u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    Some(move |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
        number.unwrap_or(0) << 10
    })
}

/// A copy of this binary that no page of is in memory, so that the container pays for each that is used.
pub fn fresh_copy(into: &Path) -> std::path::PathBuf {
    let copy = into.join("fresh");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let file = fs::File::open(&copy).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    copy
}
