//! A shared library that contains the macro: it cannot own the process that loads it, and its probe says so.

use plimsoll_alloc::{NotInstalled, probe};
use std::ffi::c_int;

plimsoll_alloc::install!();

/// 0: installed; 1: the macro is missing; 2: another allocator's symbol comes first; 3: allocations do not arrive here;
/// 4: anything else.
#[unsafe(no_mangle)]
pub extern "C" fn plimsoll_example_probe() -> c_int {
    match probe() {
        Ok(()) => 0,
        Err(NotInstalled::Missing) => 1,
        Err(NotInstalled::Shadowed { .. }) => 2,
        Err(NotInstalled::Untracked { .. }) => 3,
        Err(_) => 4,
    }
}
