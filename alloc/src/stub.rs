//! The same functions where there is no tracking allocator: nothing is tracked, and [`probe`] says so.

use crate::{AllocError, Module, NotInstalled, Residents, RssIdentity};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_int;
use std::marker::PhantomData;

/// The system's allocator: this platform has no tracking one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plimsoll;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Plimsoll {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Nothing; see [`scope`].
#[must_use = "the scope ends when this value is dropped"]
#[derive(Debug)]
pub struct Scope(PhantomData<*const ()>);

/// Nothing: there is no tracking on this platform.
pub fn scope(_module: Module) -> Scope {
    Scope(PhantomData)
}

/// App.
#[must_use]
pub fn current() -> Module {
    Module::App
}

/// `None`.
#[must_use]
pub fn owner_of<T: ?Sized>(_block: *const T) -> Option<Module> {
    None
}

/// Nothing.
///
/// # Errors
/// None.
pub fn bind_home(_module: Module) -> Result<(), AllocError> {
    Ok(())
}

/// Zero for the index of a module, else an error number.
pub extern "C" fn bind_home_c(module: u32) -> c_int {
    if (module as usize) < Module::COUNT { 0 } else { 22 }
}

/// Empty.
#[must_use]
pub fn threads() -> Vec<(u32, String, Module)> {
    Vec::new()
}

/// False.
#[must_use]
pub fn is_installed() -> bool {
    false
}

/// Never succeeds here.
///
/// # Errors
/// [`NotInstalled::SwitchedOff`] or [`NotInstalled::Platform`].
pub fn probe() -> Result<(), NotInstalled> {
    Err(if cfg!(any(miri, plimsoll_no_allocator)) { NotInstalled::SwitchedOff } else { NotInstalled::Platform })
}

/// Zero.
#[must_use]
pub fn committed(_module: Module) -> u64 {
    0
}

/// Zeros.
#[must_use]
pub fn committed_all() -> [u64; Module::COUNT] {
    [0; Module::COUNT]
}

/// Zeros.
#[must_use]
pub fn live_all() -> [u64; Module::COUNT] {
    [0; Module::COUNT]
}

/// Zeros.
///
/// # Errors
/// None.
pub fn resident_scan() -> Result<Residents, AllocError> {
    Ok(Residents::default())
}

/// Zeros.
///
/// # Errors
/// None.
pub fn rss_identity() -> Result<RssIdentity, AllocError> {
    Ok(RssIdentity::default())
}

/// Nothing.
pub fn purge(_module: Module) {}

/// Zero.
#[must_use]
pub fn thread_allocated_bytes() -> u64 {
    0
}

/// Zero.
#[must_use]
pub fn thread_deallocated_bytes() -> u64 {
    0
}

/// False.
pub fn count_calls(_on: bool) -> bool {
    false
}

/// Zeros.
#[must_use]
pub fn thread_allocations() -> [u64; Module::COUNT] {
    [0; Module::COUNT]
}
