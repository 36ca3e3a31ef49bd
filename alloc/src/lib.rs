//! A tracking allocator over jemalloc: every byte of a process, C and C++ included, has an owner.

#[cfg(not(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("see stub");

#[doc(hidden)]
pub mod abi;
mod ctl;
mod error;
mod hooks;
mod install;
mod local;
mod module;
mod probe;
mod purge;
mod registry;
mod resident;
mod stats;
mod tcache;
pub mod testing;
mod thread;
mod window;

pub use abi::Plimsoll;
pub use error::{AllocError, NotInstalled};
pub use module::Module;
pub use probe::{is_installed, probe};
pub use purge::purge;
pub use resident::Residents;
pub use stats::{committed, committed_all, live_all};
pub use testing::thread_allocations;
pub use thread::{
    Scope, bind_home, bind_home_c, current, scope, thread_allocated_bytes, thread_deallocated_bytes, threads,
};

/// What the macro's expansion names. No promise of stability.
#[doc(hidden)]
pub mod __private {
    pub use crate::abi::{
        aligned_alloc, calloc, free, malloc, malloc_usable_size, posix_memalign, realloc, valloc,
    };
    pub use crate::install::{Address, Conf, Symbols, start};
    pub use crate::thread::pthread_create;
    pub use libc::{pthread_attr_t, pthread_t};
}
