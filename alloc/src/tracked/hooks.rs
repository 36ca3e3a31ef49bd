//! jemalloc's extent hooks: pages come from the module's window, and every page that becomes usable is counted.
//!
//! Invariant: a module's counter is the number of bytes of its window that jemalloc holds committed, so it is
//! never below what is resident there. The counters are updated by jemalloc's slow path only (a new run of pages,
//! pages given back), never by an allocation; they are read without a lock. They never clamp: a difference
//! that does not come back to zero is a bug and must show.
//!
//! Growth is handed out uncommitted (`*commit` stays as jemalloc passed it), giving pages back succeeds as
//! `decommit`, and so each reuse arrives at `commit`. Answering `decommit` with failure, or growth with
//! "committed", makes the two sides count different things and the counter runs away.

use super::window;
use crate::Module;
use std::cell::UnsafeCell;
use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tikv_jemalloc_sys as je;

/// A counter on a cache line of its own.
#[repr(align(64))]
struct Counter(AtomicU64);

static COMMITTED: [Counter; Module::COUNT] = [const { Counter(AtomicU64::new(0)) }; Module::COUNT];
/// Bytes of the default arena's extents that are older than the windows; they belong to App.
static OUTSIDE: AtomicU64 = AtomicU64::new(0);

/// One module's hooks; jemalloc hands the address back, which is how a hook knows its module.
#[repr(C)]
struct ModuleHooks {
    hooks: je::extent_hooks_t,
    module: usize,
}

struct Table(UnsafeCell<[ModuleHooks; Module::COUNT]>);

// SAFETY: the table is never written after its constant initialisation; jemalloc only reads it.
unsafe impl Sync for Table {}

static TABLE: Table = Table(UnsafeCell::new({
    let mut table = [const { ModuleHooks { hooks: HOOKS, module: 0 } }; Module::COUNT];
    let mut i = 0;
    while i < Module::COUNT {
        table[i].module = i;
        i += 1;
    }
    table
}));

const HOOKS: je::extent_hooks_t = je::extent_hooks_t {
    alloc: Some(alloc),
    dalloc: Some(dalloc),
    destroy: None,
    commit: Some(commit),
    decommit: Some(decommit),
    purge_lazy: None,
    purge_forced: Some(purge_forced),
    split: Some(split),
    merge: Some(merge),
};

/// The hooks to give jemalloc for a module's arena; valid for the life of the process.
pub(crate) fn of(module: usize) -> *mut je::extent_hooks_t {
    TABLE.0.get().cast::<ModuleHooks>().wrapping_add(module).cast()
}

/// Committed bytes of a module's window.
#[inline]
pub(crate) fn committed(module: usize) -> u64 {
    COMMITTED[module].0.load(Relaxed)
}

/// Committed bytes of the default arena's oldest extents, which lie outside the windows.
pub(crate) fn outside() -> u64 {
    OUTSIDE.load(Relaxed)
}

/// States how many bytes the default arena held before it got its hooks.
pub(crate) fn set_outside(bytes: u64) {
    OUTSIDE.store(bytes, Relaxed);
}

/// The counter that the pages at `addr` belong to.
fn counter(addr: usize) -> &'static AtomicU64 {
    if window::contains(addr) { &COMMITTED[window::owner(addr)].0 } else { &OUTSIDE }
}

unsafe extern "C" fn alloc(
    hooks: *mut je::extent_hooks_t,
    new_addr: *mut c_void,
    size: usize,
    alignment: usize,
    zero: *mut bool,
    commit: *mut bool,
    _arena: c_uint,
) -> *mut c_void {
    if !new_addr.is_null() {
        return ptr::null_mut(); // growing in place at a given address: never possible, windows grow at their end
    }
    // SAFETY: jemalloc passes the pointer it was given by `of`, so it is the first field of a `ModuleHooks`.
    let module = unsafe { (*hooks.cast::<ModuleHooks>()).module };
    let Some(at) = window::take(module, size, alignment) else {
        return ptr::null_mut();
    };
    // SAFETY: jemalloc passes valid pointers to both. The pages were never touched, hence zero.
    unsafe {
        *zero = true;
        if *commit {
            COMMITTED[module].0.fetch_add(size as u64, Relaxed);
        }
    }
    at as *mut c_void
}

/// Address space is kept for reuse: jemalloc then decommits it and calls [`commit`] when it takes it again.
unsafe extern "C" fn dalloc(
    _hooks: *mut je::extent_hooks_t,
    _addr: *mut c_void,
    _size: usize,
    _committed: bool,
    _arena: c_uint,
) -> bool {
    true
}

unsafe extern "C" fn commit(
    _hooks: *mut je::extent_hooks_t,
    addr: *mut c_void,
    _size: usize,
    offset: usize,
    length: usize,
    _arena: c_uint,
) -> bool {
    counter(addr as usize + offset).fetch_add(length as u64, Relaxed);
    false
}

unsafe extern "C" fn decommit(
    _hooks: *mut je::extent_hooks_t,
    addr: *mut c_void,
    _size: usize,
    offset: usize,
    length: usize,
    _arena: c_uint,
) -> bool {
    // SAFETY: jemalloc owns these pages of ours and has no live object in them.
    if unsafe { !drop_pages(addr, offset, length) } {
        return true;
    }
    // After the pages are gone, so that the counter is never below what is resident.
    counter(addr as usize + offset).fetch_sub(length as u64, Relaxed);
    false
}

unsafe extern "C" fn purge_forced(
    _hooks: *mut je::extent_hooks_t,
    addr: *mut c_void,
    _size: usize,
    offset: usize,
    length: usize,
    _arena: c_uint,
) -> bool {
    // SAFETY: as in `decommit`; the pages stay committed.
    unsafe { !drop_pages(addr, offset, length) }
}

unsafe extern "C" fn split(
    _hooks: *mut je::extent_hooks_t,
    _addr: *mut c_void,
    _size: usize,
    _size_a: usize,
    _size_b: usize,
    _committed: bool,
    _arena: c_uint,
) -> bool {
    false
}

/// Neighbours may be joined when both are in the same window, or both outside (one mapping each would do no harm:
/// nothing is ever unmapped).
unsafe extern "C" fn merge(
    _hooks: *mut je::extent_hooks_t,
    addr_a: *mut c_void,
    _size_a: usize,
    addr_b: *mut c_void,
    _size_b: usize,
    _committed: bool,
    _arena: c_uint,
) -> bool {
    let (a, b) = (addr_a as usize, addr_b as usize);
    window::contains(a) != window::contains(b) || window::owner(a) != window::owner(b)
}

/// Gives pages back to the kernel; they read as zero afterwards.
///
/// # Safety
/// The pages belong to jemalloc and hold no live object.
unsafe fn drop_pages(addr: *mut c_void, offset: usize, length: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { libc::madvise(addr.byte_add(offset), length, libc::MADV_DONTNEED) == 0 }
}
