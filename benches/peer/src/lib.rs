//! What the measured programs share: their task, told by environment, and how a process measures itself.
//!
//! No allocator and nothing of the engine is named here: the plain loop links this too and stays on the system's
//! malloc.
#![cfg_attr(not(test), allow(clippy::print_stdout, clippy::print_stderr))]

mod meter;
mod task;

pub use meter::{Figures, Meter, cpu_seconds, peak_rss_mib};
pub use task::Task;

/// What a program may fail with.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Ends this process when its standard input does, so that none outlives the bench.
pub fn end_with_stdin() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(0);
    });
}
