//! Words counted from a Kafka topic under a memory line, with a live table of every module.
//!
//! ```text
//! make demo                       # or: cargo run --release --example demo
//! DEMO_LINE=96MiB DEMO_SECONDS=20 DEMO_RATE=20000 make demo
//! ```
//!
//! A child process holds librdkafka's mock cluster and a generator of lines; this process counts their words.
#![allow(clippy::print_stdout, clippy::print_stderr)] // what it prints is what it is for

mod child;
mod report;
mod screen;
mod words;

use clap::Parser;
use plimsoll::prelude::*;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

plimsoll::install_allocator!();

/// Settings of the demo.
#[derive(Parser, Debug)]
#[command(about = "Counts words from a topic under a memory line and shows where the memory is.")]
struct Options {
    /// The line: all the memory that the counting process may use.
    #[arg(long, env = "DEMO_LINE", default_value = "64MiB")]
    line: String,
    /// How long to count, in seconds.
    #[arg(long, env = "DEMO_SECONDS", default_value_t = 30)]
    seconds: u64,
    /// Lines a second that the generator writes.
    #[arg(long, env = "DEMO_RATE", default_value_t = 10_000)]
    rate: u64,
    /// Runs the mock cluster and the generator (the demo starts itself with this).
    #[arg(long, hide = true)]
    child: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let done = if options.child { child::run(options.rate) } else { count(&options) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Counts until the time is over or Ctrl-C is pressed.
fn count(options: &Options) -> Result<(), Box<dyn Error>> {
    let line: Memory = options.line.parse()?;
    let latency = words::Latencies::new()?;
    let topology = words::topology(&latency)?;
    let state = tempfile::tempdir()?;
    let stop = Arc::new(AtomicBool::new(false));
    let ctrl_c = Arc::clone(&stop);
    ctrlc::set_handler(move || ctrl_c.store(true, Ordering::Release))?;

    let mut cluster = child::Child::start(options.rate)?;
    let app = App::builder(words::APPLICATION, cluster.bootstrap())
        .memory(line)
        .threads(1)
        .state_dir(state.path())
        .config("commit.interval.ms", "200")
        .config("fetch.max.wait.ms", "10")
        .config("linger.ms", "20")
        .count_allocations(true)
        .start(topology)?;

    let started = Instant::now();
    let mut screen = screen::Screen::new();
    let mut window = report::Window::new();
    while started.elapsed() < Duration::from_secs(options.seconds)
        && !stop.load(Ordering::Acquire)
        && !app.state().is_final()
    {
        std::thread::sleep(Duration::from_millis(100));
        cluster.progress(app.stats().records_in)?;
        if screen.due() {
            let seen = window.look(&app, &latency, started.elapsed());
            screen.draw(&report::table(&seen))?;
        }
    }
    let seen = window.look(&app, &latency, started.elapsed());
    let plan = app.plan();
    app.close(Duration::from_secs(10))?;
    screen.leave()?;
    if let Some(plan) = plan {
        println!("{}", report::plan_beside_peaks(&plan, &seen));
    }
    println!("{}", words::top(&cluster.counts()?, 10));
    println!("{}", report::json(&seen));
    Ok(())
}
