//! `pairs KIND COUNT`: allocates and frees COUNT blocks, for counting instructions.
//!
//! KIND: `c-tracked` (malloc, free), `c-plain` (jemalloc's own), `rust-tracked` (the global allocator),
//! `rust-plain` (a global allocator over plain jemalloc), each on a thread whose home is Engine.

use plimsoll_alloc::{Module, Plimsoll, bind_home, probe};
use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use tikv_jemalloc_sys as je;

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

/// The global allocator over plain jemalloc, as the crates for it write it.
struct Plain;

// SAFETY: memory comes from jemalloc with size and alignment as asked, and goes back with the same layout.
unsafe impl GlobalAlloc for Plain {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise: a size above zero.
        unsafe {
            match flags(layout) {
                0 => je::malloc(layout.size()).cast(),
                flags => je::mallocx(layout.size(), flags).cast(),
            }
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise: a live block with this layout.
        unsafe { je::sdallocx(at.cast(), layout.size(), flags(layout)) };
    }
}

fn flags(layout: Layout) -> i32 {
    if layout.align() <= 16 && layout.align() <= layout.size() { 0 } else { layout.align().trailing_zeros() as i32 }
}

/// Not inlined, as the compiler's own shims are not.
#[inline(never)]
unsafe fn get<A: GlobalAlloc>(allocator: &A, layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { allocator.alloc(layout) }
}

#[inline(never)]
unsafe fn put<A: GlobalAlloc>(allocator: &A, at: *mut u8, layout: Layout) {
    // SAFETY: the caller's promise.
    unsafe { allocator.dealloc(at, layout) };
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
