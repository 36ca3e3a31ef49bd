//! The allocator itself, on the platforms that have it.
//!
//! From the bottom: `ctl` (jemalloc's control interface), `window` (address space), `hooks` (pages and counters),
//! `local` (thread-local block), `registry`, `tcache`, `install` (set-up), `abi` (the malloc family), `thread` (homes
//! and scopes), `stats`, `resident`, `identity`, `purge`, `counting`, `probe`.

mod abi;
mod counting;
mod ctl;
mod hooks;
mod identity;
mod install;
mod local;
mod probe;
mod purge;
mod registry;
mod resident;
mod stats;
mod tcache;
mod thread;
mod window;

pub use abi::Plimsoll;
pub use counting::{count_calls, thread_allocations};
pub use identity::rss_identity;
pub use probe::{is_installed, probe};
pub use purge::purge;
pub use resident::resident_scan;
pub use stats::{committed, committed_all, live_all};
pub use thread::{
    Scope, bind_home, bind_home_c, current, owner_of, scope, thread_allocated_bytes, thread_deallocated_bytes, threads,
};

/// What the macro's expansion names, and what benchmarks compare with. No promise of stability.
pub mod private {
    pub use super::abi::{aligned_alloc, calloc, free, malloc, malloc_usable_size, posix_memalign, realloc, valloc};
    pub use super::install::{Address, Conf, Symbols, start};
    pub use super::thread::pthread_create;
    pub use libc::{pthread_attr_t, pthread_t};
}
