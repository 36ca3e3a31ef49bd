//! A tracking allocator over jemalloc: every byte of a process, C and C++ included, has an owner.
//!
//! A process that links librdkafka, RocksDB and Rust code into one has one heap, and nobody can say who fills it. This
//! crate divides the heap among nine [`Module`]s. Each has a jemalloc arena of its own in a reserved window of the
//! address space, so a block's owner is read off its address, on free as on reallocation, from any thread and any
//! language, without a header in front of it.
//!
//! ```standalone_crate
//! use plimsoll_alloc::{Module, committed, probe, scope};
//!
//! plimsoll_alloc::install!(); // in the main file of the program
//!
//! fn main() -> Result<(), plimsoll_alloc::NotInstalled> {
//!     probe()?; // Rust, C and C++ allocate through it, and its options are as they must be
//!     let table = {
//!         let _cache = scope(Module::Cache);
//!         vec![1u8; 8 << 20]
//!     };
//!     assert!(committed(Module::Cache) >= 8 << 20); // nine loads read all modules; no lock
//!     drop(table); // credited to the cache, wherever it happens
//!     Ok(())
//! }
//! ```
//!
//! - **Who pays**: a thread works for its home module ([`bind_home`]) at the price of plain jemalloc; a [`scope`]
//!   redirects it for a while. Threads started inside a scope, by C and C++ too, are bound to its module.
//! - **What is counted**: [`committed`] pages, by the extent hooks: an upper bound of what is resident, exact to the
//!   run of pages, in O(1). [`resident_scan`] asks the kernel; [`rss_identity`] takes the whole process apart;
//!   [`live_all`] asks jemalloc.
//! - **Exact weights**: [`thread_allocated_bytes`] before and after. **The zero-allocation gate**: [`testing`].
//! - **Without the macro** the same code runs: scopes change nothing, counters are zero, [`probe`] says why.
//!
//! It changes the host in these ways: malloc is jemalloc's; a background thread gives freed pages back within half a
//! second; 1.1 TiB of address space are reserved (not memory: `ulimit -v` and strict overcommit refuse it, and
//! [`probe`] says so); transparent huge pages are off unless `install!(keep_huge_pages)`. After `fork` without `exec`
//! the child has no background thread, so it gives pages back only while it allocates.

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, plimsoll_no_allocator))
))]
mod tracked;
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, plimsoll_no_allocator))
))]
use tracked as platform;

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, plimsoll_no_allocator))
)))]
mod stub;
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, plimsoll_no_allocator))
)))]
use stub as platform;

mod error;
mod macros;
mod module;
mod report;
pub mod testing;

pub use error::{AllocError, NotInstalled};
pub use module::Module;
pub use platform::{
    Plimsoll, Scope, bind_home, bind_home_c, committed, committed_all, count_calls, current, is_installed, live_all,
    owner_of, probe, purge, resident_scan, rss_identity, scope, thread_allocated_bytes, thread_allocations,
    thread_deallocated_bytes, threads,
};
pub use report::{Residents, RssIdentity};

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, plimsoll_no_allocator))
))]
#[doc(hidden)]
pub use platform::private as __private;
