//! What tracking costs over plain prefixed jemalloc, in one process and in turns: one JSON object a line,
//! `{"case","size","ns","baseline_ns","ratio"}`, nanoseconds a malloc+free pair, minimum of batches.
//!
//! Cases: `home` (Rust's allocator on a home thread), `c_malloc_home` (C's malloc there), `tagged_mixed` (in a scope of
//! a foreign module), `two_threads_home` (two home threads at once; the slower one counts).
//!
//! `cargo bench -p plimsoll-alloc --bench cost -- --batches 200`

use clap::Parser;
use plain::{Plain, get, put};
use plimsoll_alloc::{Module, Plimsoll, bind_home, probe, scope};
use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::io::Write;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;
use tikv_jemalloc_sys as je;

mod plain;

plimsoll_alloc::install!();

/// What tracking costs over plain jemalloc.
#[derive(Clone, Copy, Parser)]
struct Arguments {
    /// Batches a case and size; the fastest counts.
    #[arg(long, default_value_t = 200)]
    batches: usize,
    /// Pairs a batch.
    #[arg(long, default_value_t = 10_000)]
    pairs: usize,
    /// What cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

const SIZES: [usize; 7] = [16, 64, 128, 256, 512, 1024, 4096];

/// The best of some batches, tracked and plain, in nanoseconds a pair.
#[derive(Clone, Copy)]
struct Best {
    tracked: f64,
    plain: f64,
}

impl Best {
    const NONE: Self = Self { tracked: f64::MAX, plain: f64::MAX };

    fn print(self, case: &str, size: usize) -> std::io::Result<()> {
        let Self { tracked, plain } = self;
        let ratio = tracked / plain;
        writeln!(
            std::io::stdout().lock(),
            r#"{{"case":"{case}","size":{size},"ns":{tracked:.2},"baseline_ns":{plain:.2},"ratio":{ratio:.3}}}"#
        )
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    probe()?;
    for size in SIZES {
        let measured = thread::spawn(move || one_thread(arguments, size)).join();
        for (case, best) in measured.map_err(|_| "the measuring thread failed")? {
            best.print(case, size)?;
        }
        two_threads(arguments, size)?.print("two_threads_home", size)?;
    }
    Ok(())
}

/// A home thread; and the scope of a foreign module on it.
fn one_thread(arguments: Arguments, size: usize) -> Vec<(&'static str, Best)> {
    if bind_home(Module::Engine).is_err() {
        return Vec::new();
    }
    let (mut home, mut c, mut tagged) = (Best::NONE, Best::NONE, Best::NONE);
    for _ in 0..arguments.batches {
        home.plain = home.plain.min(batch(arguments.pairs, || rust_pair(&Plain, size)));
        home.tracked = home.tracked.min(batch(arguments.pairs, || rust_pair(&Plimsoll, size)));
        c.plain = c.plain.min(batch(arguments.pairs, || plain_pair(size)));
        c.tracked = c.tracked.min(batch(arguments.pairs, || c_pair(size)));
        let _scope = scope(Module::Store);
        tagged.tracked = tagged.tracked.min(batch(arguments.pairs, || rust_pair(&Plimsoll, size)));
    }
    tagged.plain = home.plain;
    vec![("home", home), ("c_malloc_home", c), ("tagged_mixed", tagged)]
}

/// Two home threads of different modules that run their batches at the same time.
fn two_threads(arguments: Arguments, size: usize) -> Result<Best, &'static str> {
    let barrier = Barrier::new(2);
    let one = |module| {
        let _ = bind_home(module);
        let mut best = Best::NONE;
        for _ in 0..arguments.batches {
            barrier.wait();
            best.plain = best.plain.min(batch(arguments.pairs, || rust_pair(&Plain, size)));
            barrier.wait();
            best.tracked = best.tracked.min(batch(arguments.pairs, || rust_pair(&Plimsoll, size)));
        }
        best
    };
    thread::scope(|threads| {
        let one = &one;
        let other = threads.spawn(move || one(Module::Cache));
        let mine = threads.spawn(move || one(Module::Batch)).join().map_err(|_| "a measuring thread failed")?;
        let other = other.join().map_err(|_| "a measuring thread failed")?;
        Ok(Best { tracked: mine.tracked.max(other.tracked), plain: mine.plain.max(other.plain) })
    })
}

fn batch(pairs: usize, mut pair: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..pairs {
        pair();
    }
    start.elapsed().as_nanos() as f64 / pairs as f64
}

#[inline(always)]
fn rust_pair<A: GlobalAlloc>(allocator: &A, size: usize) {
    // SAFETY: a size above zero, a power of two; a fresh block, freed once with its layout.
    unsafe {
        let layout = Layout::from_size_align_unchecked(black_box(size), 8);
        put(allocator, black_box(get(allocator, layout)), layout);
    }
}

#[inline(always)]
fn c_pair(size: usize) {
    // SAFETY: a fresh block, freed once.
    unsafe { libc::free(black_box(libc::malloc(black_box(size)))) };
}

#[inline(always)]
fn plain_pair(size: usize) {
    // SAFETY: a fresh block, freed once.
    unsafe { je::free(black_box(je::malloc(black_box(size)))) };
}
