//! The process under the line: counts or copies what a topic holds, then tells what it measured.
use plimsoll::prelude::*;
use plimsoll::{MemoryReport, PlanError, RunError, StartError};
use serde::{Deserialize, Serialize};
use std::io::BufRead as _;
use std::time::{Duration, Instant};

/// What is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// Every record to the output topic as it is.
    Pass,
    /// Records counted by their key.
    Count,
    /// Records counted by the beginning of their value: over a repartition topic, as word count does.
    Words,
}

/// What the process is told, as JSON in the environment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub kind: Kind,
    pub bootstrap: String,
    pub application: String,
    pub input: String,
    pub output: String,
    pub records: u64,
    pub line: u64,
    pub threads: usize,
    pub state: std::path::PathBuf,
}

/// One module: the sum of its rows and what it had at most, in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModuleFigures {
    pub module: String,
    pub row: u64,
    pub committed_peak: u64,
    pub resident_peak: u64,
    pub live: u64,
    pub denied: u64,
}

/// What the process tells at its end, as one line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Told {
    /// All records were processed and committed.
    Done(Box<Figures>),
    /// The line is too small; the lowest that would do, in bytes.
    TooSmall(u64),
    /// Anything else.
    Failed(String),
}

/// Figures of a finished job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Records of the input.
    pub records: u64,
    /// Records taken, those of the repartition topic included.
    pub taken: u64,
    /// From the first record to the last.
    pub seconds: f64,
    pub commits: u64,
    /// The plan as a table.
    pub plan: String,
    pub line: u64,
    pub rows: u64,
    pub slack: u64,
    pub modules: Vec<ModuleFigures>,
    /// Parts of the process's memory at the end, in bytes.
    pub anonymous: u64,
    pub file: u64,
    pub allocator: u64,
    pub stacks: u64,
    pub data: u64,
    pub unexplained: i64,
    /// Sum of the plan's rows outside of the heap.
    pub program_row: u64,
    pub tables_row: u64,
    pub stacks_row: u64,
}

impl Figures {
    /// Records of the input a second.
    pub fn rate(&self) -> f64 {
        self.records as f64 / self.seconds
    }
}

/// Name of the variable that makes a process the one under the line.
pub const JOB: &str = "PLIMSOLL_LINE_JOB";

const PATIENCE: Duration = Duration::from_secs(300);

/// The whole process: runs, prints one line, waits until its standard input is closed so that it can be looked at.
pub fn main(job: &str) {
    let job: Job = serde_json::from_str(job).unwrap();
    println!("{}", serde_json::to_string(&run(&job)).unwrap());
    let _ = std::io::stdin().lock().read_line(&mut String::new());
}

fn topology(job: &Job) -> Topology {
    let builder = StreamsBuilder::new();
    let input = builder.stream(&job.input, Consumed::with(Bytes, Bytes));
    match job.kind {
        Kind::Pass => input.to(&job.output),
        Kind::Count => input.group_by_key().count(Materialized::named("counts")).to_stream().to(&job.output),
        Kind::Words => {
            let words = input.group_by(Bytes, |_, value| &value[..crate::support::load::KEY_BYTES]);
            words.count(Materialized::named("counts")).to_stream().to(&job.output);
        }
    }
    builder.build().unwrap()
}

fn run(job: &Job) -> Told {
    let started = App::builder(&job.application, &job.bootstrap)
        .memory(Memory::total(job.line))
        .threads(job.threads)
        .state_dir(&job.state)
        .commit_interval(Duration::from_millis(1_000))
        .start(topology(job));
    let app = match started {
        Ok(app) => app,
        Err(StartError::Plan(PlanError::LineTooSmall { needed, .. })) => return Told::TooSmall(needed),
        Err(error) => return Told::Failed(error.to_string()),
    };
    let (taken, seconds) = match work(job, &app) {
        Ok(done) => done,
        Err(told) => return told,
    };
    if let Err(error) = app.close(Duration::from_secs(60)) {
        return Told::Failed(error.to_string());
    }
    Told::Done(Box::new(figures(&app, job.records, taken, seconds)))
}

/// Waits until everything was taken: how many records, and the seconds from the first to the last.
fn work(job: &Job, app: &App) -> Result<(u64, f64), Told> {
    let wanted = if job.kind == Kind::Words { 2 * job.records } else { job.records };
    let deadline = Instant::now() + PATIENCE;
    let mut first = None;
    loop {
        let taken = app.stats().records_in;
        if taken > 0 && first.is_none() {
            first = Some(Instant::now());
        }
        if taken >= wanted {
            let seconds = first.map_or(0.0, |first: Instant| first.elapsed().as_secs_f64());
            return Ok((taken, seconds));
        }
        if app.state().is_final() {
            let failure = app.failure();
            if let Some(RunError::Plan(plan)) = &failure
                && let PlanError::LineTooSmall { needed, .. } = **plan
            {
                return Err(Told::TooSmall(needed));
            }
            return Err(Told::Failed(format!("{failure:?}")));
        }
        if Instant::now() > deadline {
            let waiting = app.waiting_for();
            return Err(Told::Failed(format!("{taken} of {wanted} records: {} {waiting:?}", app.state())));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn figures(app: &App, records: u64, taken: u64, seconds: f64) -> Figures {
    let plan = app.plan().unwrap();
    let mut memory = MemoryReport::default();
    app.memory(&mut memory);
    let row = |id| plan.row(id).map_or(0, |row| row.bytes);
    let modules = memory.modules.iter().map(|module| ModuleFigures {
        module: module.module.name().to_owned(),
        row: plan.module_bytes(module.module),
        committed_peak: module.committed_peak,
        resident_peak: module.resident_peak,
        live: module.live,
        denied: module.denied,
    });
    Figures {
        records,
        taken,
        seconds,
        commits: app.stats().commits,
        plan: plan.to_string(),
        line: plan.line(),
        rows: plan.rows().iter().map(|row| row.bytes).sum(),
        slack: plan.slack(),
        modules: modules.collect(),
        anonymous: memory.anonymous,
        file: memory.file,
        allocator: memory.allocator,
        stacks: memory.stacks,
        data: memory.data,
        unexplained: memory.unexplained,
        program_row: row(plimsoll::RowId::Program),
        tables_row: row(plimsoll::RowId::AllocatorTables),
        stacks_row: row(plimsoll::RowId::Stacks),
    }
}
