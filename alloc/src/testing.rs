//! For tests of other crates: what a closure allocates, by module.
//!
//! ```
//! use plimsoll_alloc::testing::allocations;
//! let (sum, seen) = allocations(|| (1..=10).sum::<u32>());
//! assert_eq!((sum, seen.calls(), seen.bytes), (55, 0, 0));
//! ```

use crate::{Module, count_calls, thread_allocated_bytes, thread_allocations, thread_deallocated_bytes};

/// What one thread allocated while it was watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Allocations {
    /// Calls that allocate or reallocate, by [`Module::index`].
    pub by_module: [u64; Module::COUNT],
    /// Bytes allocated, in size classes.
    pub bytes: u64,
    /// Bytes freed, in size classes.
    pub freed: u64,
}

impl Allocations {
    /// Calls of all modules.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.by_module.iter().sum()
    }
}

/// Runs `work` on this thread and says what it allocated: the zero-allocation gate.
///
/// Counts the calls of this thread only, C and C++ included, in every module. Without an installed allocator all is
/// zero, so a gate asserts [`is_installed`](crate::is_installed) first.
pub fn allocations<T>(work: impl FnOnce() -> T) -> (T, Allocations) {
    let was = count_calls(true);
    let calls = thread_allocations();
    let (bytes, freed) = (thread_allocated_bytes(), thread_deallocated_bytes());
    let result = work();
    let mut seen = Allocations {
        bytes: thread_allocated_bytes() - bytes,
        freed: thread_deallocated_bytes() - freed,
        ..Default::default()
    };
    let after = thread_allocations();
    for (to, (after, before)) in seen.by_module.iter_mut().zip(after.iter().zip(calls)) {
        *to = after - before;
    }
    count_calls(was);
    (result, seen)
}
