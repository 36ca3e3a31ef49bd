//! What can go wrong, typed: installing, binding, reading the kernel's view.

use crate::Module;

/// Why the allocator does not own this process's memory. See [`probe`](crate::probe).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotInstalled {
    /// The program does not contain the macro.
    #[error("the tracking allocator is not installed: add `plimsoll_alloc::install!();` to the program's main file")]
    Missing,
    /// The platform has no tracking allocator (Linux with glibc on x86-64 or aarch64 has).
    #[error(
        "no tracking allocator on this platform: it needs linux with glibc, dynamically linked, on x86-64 or aarch64"
    )]
    Platform,
    /// The program is instrumented (fuzzing, sanitizers) and built with the allocator switched off.
    #[error("the tracking allocator is switched off in this build (sanitizer, fuzzing, or `plimsoll_no_allocator`)")]
    SwitchedOff,
    /// Setting up at the start of the program failed.
    #[error("the tracking allocator could not be set up: {0}")]
    Setup(#[from] AllocError),
    /// A function of the C allocator is not ours for the rest of the process: another library defines it
    /// first, or this code lives in a shared library that was loaded into a program without the macro.
    #[error("`{symbol}` is another allocator's in this process: install the macro in the executable itself")]
    Shadowed {
        /// The C symbol.
        symbol: &'static str,
    },
    /// An allocation made through this language did not arrive in the module's window.
    #[error("allocations made by {language} are not tracked: another allocator is linked in front of ours")]
    Untracked {
        /// "rust", "c" or "c++".
        language: &'static str,
    },
    /// An option of jemalloc has another value than the tracking needs.
    #[error(
        "jemalloc option `{name}` is {found} and must be {expected}: \
         unset the environment variable _RJEM_MALLOC_CONF and remove any other `_rjem_malloc_conf`"
    )]
    Option {
        /// The option, as jemalloc names it.
        name: &'static str,
        /// The value it has.
        found: String,
        /// The value it must have.
        expected: &'static str,
    },
}

/// Why an operation of the allocator failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocError {
    /// The address windows could not be reserved.
    #[error(
        "cannot reserve {bytes} bytes of address space (errno {errno}): \
         raise `ulimit -v`, or set vm.overcommit_memory to 0 or 1 (reserved is not used)"
    )]
    Reserve {
        /// Bytes of address space asked for.
        bytes: usize,
        /// The operating system's error number.
        errno: i32,
    },
    /// jemalloc refused a control operation.
    #[error("jemalloc refused `{name}` (error {errno})")]
    Control {
        /// The operation, as jemalloc names it.
        name: &'static str,
        /// jemalloc's error number.
        errno: i32,
    },
    /// A thread key could not be made.
    #[error("cannot create a thread key (error {errno}): the process has used all of them")]
    ThreadKey {
        /// The operating system's error number.
        errno: i32,
    },
    /// A thread could not be bound to its module.
    #[error("cannot bind this thread to module {module} (error {errno})")]
    Bind {
        /// The module.
        module: Module,
        /// jemalloc's error number.
        errno: i32,
    },
    /// A file of `/proc/self` could not be read or did not have the expected form.
    #[error("cannot read {file} (errno {errno})")]
    Proc {
        /// Its path.
        file: &'static str,
        /// The operating system's error number, 0 when its text was not understood.
        errno: i32,
    },
}
