//! Plimsoll's side: one stream thread, `pass` or `count`, measured or until standard input ends.
#![allow(clippy::print_stdout, clippy::print_stderr)]
use plimsoll::prelude::*;
use plimsoll::{Module, RowId};
use plimsoll_peer::{Meter, Outcome, Task, end_with_stdin};
use std::time::{Duration, Instant};

plimsoll::install_allocator!();

/// Time between two looks at the counters.
const LOOK: Duration = Duration::from_millis(20);
/// Longest wait for the application to run, and for the last commit.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Outcome<()> {
    let task = Task::from_environment()?;
    end_with_stdin();
    let topology = match task.case.as_str() {
        "count" => count(&task)?,
        _ => pass(&task)?,
    };
    let mut builder = App::builder(&task.id, &task.bootstrap)
        .memory(task.line.parse()?)
        .threads(1)
        .state_dir(&task.state)
        .config("linger.ms", task.linger_ms.to_string())
        .config("commit.interval.ms", task.commit_ms.to_string())
        .config("compression.type", &task.compression)
        .config("auto.offset.reset", if task.serve { "latest" } else { "earliest" });
    for (name, value) in task.security() {
        builder = builder.config(name, value);
    }
    let app = builder.start(topology)?;
    if task.serve {
        serve(&app)
    } else {
        let figures = measure(&app, &task)?;
        if std::env::var_os("PEER_VERBOSE").is_some() {
            report(&app);
        }
        println!("{figures}");
        app.close(PATIENCE)?;
        Ok(())
    }
}

/// As Kafka Streams' side: a filter between two topics of bytes.
fn pass(task: &Task) -> Outcome<Topology> {
    let builder = StreamsBuilder::new();
    builder.stream(&task.input, Consumed::with(Bytes, Bytes)).filter(|_, value| !value.is_empty()).to(&task.output);
    Ok(builder.build()?)
}

/// Records counted by their key.
fn count(task: &Task) -> Outcome<Topology> {
    let builder = StreamsBuilder::new();
    let records = builder.stream(&task.input, Consumed::with(Utf8, Bytes));
    records.group_by_key().count(Materialized::named("counts")).to_stream().to(&task.output);
    Ok(builder.build()?)
}

fn measure(app: &App, task: &Task) -> Outcome<String> {
    let started = Instant::now();
    let mut meter = None;
    loop {
        // Read before the records: a commit that is counted later covers what was seen.
        let commits = app.stats().commits;
        let records = app.stats().records_in;
        if let Some(error) = app.failure() {
            return Err(error.into());
        }
        if records == 0 && started.elapsed() > PATIENCE {
            return Err(format!("no record after {PATIENCE:?}: {:?}", app.waiting_for()).into());
        }
        if records > 0 {
            let meter = meter.get_or_insert_with(|| Meter::start(records));
            if records >= task.records {
                meter.last_record();
                let last = Instant::now();
                while app.stats().commits == commits && last.elapsed() < PATIENCE {
                    std::thread::sleep(LOOK);
                }
                let plan = app.plan();
                let cache = plan.as_ref().and_then(|plan| plan.row(RowId::Overlay)).map_or(0, |row| row.bytes);
                let figures = meter.finish(records, cache, plan.map_or(0, |plan| plan.batch_bytes() as u64));
                return Ok(serde_json::to_string(&figures)?);
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// Rows beside peaks, for whoever runs this program by hand.
fn report(app: &App) {
    let mut memory = plimsoll::MemoryReport::default();
    app.memory(&mut memory);
    if let Some(plan) = app.plan() {
        eprintln!("{plan}");
        for module in Module::ALL {
            let of = memory.module(module);
            eprintln!("{:<12} peak {:>12} of {:>12}", module.name(), of.resident_peak, plan.module_bytes(module));
        }
    }
}

fn serve(app: &App) -> Outcome<()> {
    if app.await_running(PATIENCE) != State::Running {
        return Err(format!("not running after {PATIENCE:?}: {:?}", app.waiting_for()).into());
    }
    println!("RUNNING");
    app.wait()?;
    Ok(())
}
