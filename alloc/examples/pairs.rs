//! `pairs KIND COUNT`: allocates and frees COUNT blocks, for counting instructions.
//!
//! KIND: `c-tracked` (malloc, free), `c-plain` (jemalloc's own), `rust-tracked` (the global allocator),
//! `rust-plain` (a global allocator over plain jemalloc), each on a thread whose home is Engine.

use plain::{Plain, get, put};
use plimsoll_alloc::{Module, Plimsoll, bind_home, probe};
use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use tikv_jemalloc_sys as je;

#[path = "../benches/plain/mod.rs"]
mod plain;

plimsoll_alloc::install!();

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (kind, count) = (arguments.next(), arguments.next().and_then(|count| count.parse().ok()));
    let (Some(kind), Some(count)) = (kind, count) else {
        std::process::exit(2);
    };
    let run: fn(u32) = match kind.as_str() {
        "c-tracked" => c_tracked,
        "c-plain" => c_plain,
        "rust-tracked" => rust_tracked,
        "rust-plain" => rust_plain,
        _ => std::process::exit(2),
    };
    if probe().is_err() || bind_home(Module::Engine).is_err() {
        std::process::exit(3);
    }
    run(count);
}

/// Sizes of records, by turns.
fn size(i: u32) -> usize {
    [16, 24, 48, 64, 100, 128, 200, 256, 512, 1000, 1024, 40, 80, 96, 160, 320][i as usize % 16]
}

#[inline(never)]
fn c_tracked(count: u32) {
    for i in 0..count {
        // SAFETY: a fresh block, freed once.
        unsafe { libc::free(black_box(libc::malloc(size(i)))) };
    }
}

#[inline(never)]
fn c_plain(count: u32) {
    for i in 0..count {
        // SAFETY: a fresh block, freed once.
        unsafe { je::free(black_box(je::malloc(size(i)))) };
    }
}

fn rust_tracked(count: u32) {
    rust(&Plimsoll, count);
}

fn rust_plain(count: u32) {
    rust(&Plain, count);
}

#[inline(never)]
fn rust<A: GlobalAlloc>(allocator: &A, count: u32) {
    for i in 0..count {
        // SAFETY: a size above zero, a power of two; a fresh block, freed once with its layout.
        unsafe {
            let layout = black_box(Layout::from_size_align_unchecked(size(i), 8));
            let at = black_box(get(allocator, layout));
            put(allocator, at, layout);
        }
    }
}
