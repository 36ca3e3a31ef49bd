//! Explicit thread caches for foreign modules: made on first use, destroyed when the thread exits.
//!
//! A thread's automatic cache holds only blocks of its home module (it would hand them out to anyone who
//! asks), so blocks of other modules go through one explicit cache per module. jemalloc neither destroys
//! these at thread exit nor shrinks them, and has 4,094 of them per process. Hence: one thread key, set with a
//! thread's first cache, whose destructor destroys them; and a thread for which none can be made works
//! without a cache, slower.
//! Bound: (number of threads) × (foreign modules used) × about 94 KiB with the options the macro sets.

use super::ctl::Mib;
use super::local::{DEAD, Local, local};
use super::{ctl, registry, window};
use crate::{AllocError, Module};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use tikv_jemalloc_sys as je;

/// `MALLOCX_TCACHE_NONE` in the encoding of [`Local::caches`].
pub(crate) const NONE: u16 = 1;

/// The thread key, -1 before it exists.
static KEY: AtomicI64 = AtomicI64::new(-1);

static CREATE: Mib<2> = Mib::new(c"tcache.create", usize::MAX);
static DESTROY: Mib<2> = Mib::new(c"tcache.destroy", usize::MAX);
static FLUSH: Mib<2> = Mib::new(c"tcache.flush", usize::MAX);

/// Makes the thread key. Called once, from the set-up.
pub(crate) fn setup() -> Result<(), AllocError> {
    CREATE.resolve()?;
    DESTROY.resolve()?;
    FLUSH.resolve()?;
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is writable; the destructor has the right type and lives for ever.
    let rc = unsafe { libc::pthread_key_create(&raw mut key, Some(on_exit)) };
    if rc != 0 {
        return Err(AllocError::ThreadKey { errno: rc });
    }
    KEY.store(i64::from(key), Relaxed);
    Ok(())
}

/// The cache part of jemalloc's flags for blocks of `module` on this thread.
#[inline(always)]
pub(crate) fn flag(local: &Local, module: usize) -> c_int {
    let mut cache = local.caches[module].get();
    if cache == 0 {
        cache = make(local, module);
    }
    c_int::from(cache) << 8
}

#[cold]
#[inline(never)]
fn make(local: &Local, module: usize) -> u16 {
    // Until the new cache exists this thread works without one for the module: making it may allocate.
    local.caches[module].set(NONE);
    arm(local);
    if let Ok(id) = CREATE.read::<c_uint>(usize::MAX) {
        local.caches[module].set(u16::try_from(id + 2).unwrap_or(NONE));
    }
    local.caches[module].get()
}

/// Makes sure that [`on_exit`] runs for this thread.
pub(crate) fn arm(local: &Local) {
    if local.armed.replace(true) {
        return;
    }
    let key = KEY.load(Relaxed);
    if key >= 0 {
        // SAFETY: the key exists; the value is only compared with null. May allocate, hence `armed` is set first.
        unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, ptr::without_provenance(1)) };
    }
}

/// Gives a cache's blocks back to their arenas, the cache stays.
pub(crate) fn flush(local: &Local, module: usize) {
    let cache = local.caches[module].get();
    if cache > NONE {
        FLUSH.write(usize::MAX, c_uint::from(cache - 2));
    }
}

/// Destroys a cache; the next use makes a new one.
pub(crate) fn destroy(local: &Local, module: usize) {
    let cache = local.caches[module].replace(0);
    if cache > NONE {
        DESTROY.write(usize::MAX, c_uint::from(cache - 2));
    }
}

/// The thread exits. Destructors that run later allocate and free without caches. (jemalloc has cleaned up already
/// then and serves the thread from its default arena, whichever is named: App pays for what such destructors
/// allocate. What they free is credited to its owner.)
unsafe extern "C" fn on_exit(_value: *mut c_void) {
    let local = local();
    local.mode.set(local.mode.get() | DEAD);
    local.start.set(window::NOWHERE);
    for module in 0..Module::COUNT {
        destroy(local, module);
        local.caches[module].set(NONE);
    }
    registry::leave(local);
}

/// Flushes this thread's automatic cache.
pub(crate) fn flush_automatic() -> Result<(), AllocError> {
    ctl::call(c"thread.tcache.flush")
}

/// jemalloc's flag for an arena.
pub(crate) const fn arena_flag(arena: c_uint) -> c_int {
    je::MALLOCX_ARENA(arena as usize)
}
