//! Setting up: the macro that puts the allocator into a program, and what happens before `main`.
//!
//! The macro expands to the C symbols themselves, because a library that merely contains them would be linked in
//! part: some calls would end here and some in the C library. It also places the set-up in `.init_array`, so that
//! it runs once, on one thread, with the C library ready and before anything of the program. What was allocated
//! earlier lies outside the windows, in jemalloc's default arena, and counts as App's.

use super::{ctl, hooks, purge, stats, tcache, thread, window};
use crate::{AllocError, Module};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, Ordering};
use tikv_jemalloc_sys as je;

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const READY: u8 = 2;
const FAILED: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(IDLE);
static FAILURE: OnceLock<AllocError> = OnceLock::new();
static SYMBOLS: AtomicPtr<Symbols> = AtomicPtr::new(std::ptr::null_mut());

static ARENAS: [AtomicU32; Module::COUNT] = [const { AtomicU32::new(0) }; Module::COUNT];
static FLAGS: [AtomicI32; Module::COUNT] = [const { AtomicI32::new(0) }; Module::COUNT];

/// jemalloc's options, read at its first allocation: before any code of ours.
///
/// `cache_oblivious:false`: it would put an untouched page at the end of every block from 16 KiB on.
pub(crate) const CONF: &CStr = c"narenas:1,oversize_threshold:0,percpu_arena:disabled,thp:never,\
dirty_decay_ms:500,muzzy_decay_ms:0,max_background_threads:1,\
cache_oblivious:false,tcache_max:4096,lg_tcache_nslots_mul:-1,tcache_nslots_small_max:64";

/// The type of the symbol under which jemalloc looks for its options.
#[repr(transparent)]
#[derive(Debug)]
pub struct Conf(*const c_char);

// SAFETY: points to a constant string and is never written.
unsafe impl Sync for Conf {}

impl Conf {
    /// The options the tracking needs.
    pub const NEEDED: Self = Self(CONF.as_ptr());
}

/// The C symbols a program's macro defined, with their addresses.
pub type Symbols = [(&'static CStr, Address); 11];

/// The address of a function; kept for comparison only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub *const ());

// SAFETY: never dereferenced.
unsafe impl Sync for Address {}

/// Whether the windows, hooks and arenas are in place.
#[inline(always)]
pub(crate) fn ready() -> bool {
    STATE.load(Ordering::Relaxed) == READY
}

/// Why setting up failed, if it did.
pub(crate) fn failure() -> Option<AllocError> {
    FAILURE.get().copied()
}

/// What the macro defined; `None` without it.
pub(crate) fn symbols() -> Option<&'static Symbols> {
    let symbols = SYMBOLS.load(Ordering::Acquire);
    // SAFETY: null, or the address of the macro's static.
    unsafe { symbols.as_ref() }
}

/// jemalloc's index of a module's arena.
pub(crate) fn arena(module: usize) -> c_uint {
    ARENAS[module].load(Ordering::Relaxed)
}

/// jemalloc's flag for a module's arena.
#[inline(always)]
pub(crate) fn arena_flag(module: usize) -> c_int {
    FLAGS[module].load(Ordering::Relaxed)
}

/// Sets up windows, hooks and arenas. Called by the macro before `main`; later calls do nothing.
///
/// On failure the program runs on with plain jemalloc and [`probe`](crate::probe) says why.
#[doc(hidden)]
pub fn start(symbols: &'static Symbols, disable_huge_pages: bool) {
    if STATE.compare_exchange(IDLE, RUNNING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    SYMBOLS.store(std::ptr::from_ref(symbols).cast_mut(), Ordering::Release);
    match set_up(disable_huge_pages) {
        Ok(()) => STATE.store(READY, Ordering::Release),
        Err(error) => {
            let _ = FAILURE.set(error);
            STATE.store(FAILED, Ordering::Release);
            return;
        }
    }
    // Without it nothing is given back while a module is idle. Not by the option string: a thread must not be
    // started inside the first allocation. A process that may not start threads goes without.
    let _ = ctl::write(c"background_thread", true);
}

fn set_up(disable_huge_pages: bool) -> Result<(), AllocError> {
    // SAFETY: a block is made and freed; jemalloc is initialised afterwards.
    unsafe { je::free(je::malloc(1)) };
    window::reserve()?;
    if disable_huge_pages {
        // SAFETY: takes numbers only. Refusal (old kernels) leaves the system's setting in force.
        unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    }
    tcache::setup()?;
    thread::setup()?;
    stats::setup()?;
    purge::setup()?;
    adopt_default_arena()?;
    for module in 1..Module::COUNT {
        create_arena(module)?;
    }
    Ok(())
}

/// The default arena, where threads start, becomes App's: from now on it grows in App's window.
fn adopt_default_arena() -> Result<(), AllocError> {
    hooks::set_outside(stats::default_arena_bytes()?);
    note(0, 0);
    ctl::write(c"arena.0.extent_hooks", hooks::of(0))
}

/// jemalloc's description of a new arena.
#[repr(C)]
#[derive(Clone, Copy)]
struct ArenaConfig {
    hooks: *mut je::extent_hooks_t,
    /// False: its metadata stays outside the windows and does not blur the module's counter.
    metadata_use_hooks: bool,
}

fn create_arena(module: usize) -> Result<(), AllocError> {
    let name = c"experimental.arenas_create_ext";
    let mut config = ArenaConfig { hooks: hooks::of(module), metadata_use_hooks: false };
    let mut index: c_uint = 0;
    let mut len = size_of::<c_uint>();
    // SAFETY: both values are live and of the lengths given; the hooks live for ever.
    let rc = unsafe {
        je::mallctl(
            name.as_ptr(),
            (&raw mut index).cast::<c_void>(),
            &raw mut len,
            (&raw mut config).cast::<c_void>(),
            size_of::<ArenaConfig>(),
        )
    };
    if rc != 0 {
        return Err(AllocError::Control { name: "experimental.arenas_create_ext", errno: rc });
    }
    note(module, index);
    Ok(())
}

fn note(module: usize, arena: c_uint) {
    ARENAS[module].store(arena, Ordering::Relaxed);
    FLAGS[module].store(tcache::arena_flag(arena), Ordering::Relaxed);
}
