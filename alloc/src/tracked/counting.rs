//! Counting a thread's allocating calls, on demand.

use super::install::ready;
use super::local::{COUNTING, local};
use super::window;
use crate::Module;

/// Switches the counting of this thread's allocating calls on or off; gives what it was.
///
/// Off is the default, because counting would cost every allocation a few instructions; while it is on, allocations of
/// the home module leave the fast path.
pub fn count_calls(on: bool) -> bool {
    let local = local();
    let mode = local.mode.get();
    if ready() {
        local.mode.set(if on { mode | COUNTING } else { mode & !COUNTING });
        // `realloc` asks only for the home window; off, the next block freed notes it again.
        local.start.set(if on { window::NOWHERE } else { 0 });
    }
    mode & COUNTING != 0
}

/// Allocating calls of this thread while counting was on, by [`Module::index`]. See [`count_calls`].
///
/// To gate on bytes without switching anything on, compare [`thread_allocated_bytes`](crate::thread_allocated_bytes).
#[must_use]
pub fn thread_allocations() -> [u64; Module::COUNT] {
    let local = local();
    std::array::from_fn(|module| local.calls[module].get())
}
