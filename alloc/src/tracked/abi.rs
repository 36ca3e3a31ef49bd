//! The malloc family: what the macro's C symbols and the Rust allocator call.
//!
//! Fast path: a thread outside scopes asks jemalloc for memory as if nothing were tracked (its arena is its
//! home's), after one comparison; a block of the home window is freed as if nothing were tracked, after one
//! more. Everything else names arena and cache explicitly.
//! A block's owner never changes: `realloc` stays in the block's arena.
//!
//! The slow functions are `extern "C"`, which cannot unwind, so that the fast path needs no frame of its own.

use super::local::{COUNTING, DEAD, Local, SCOPED, is_home, is_plain, local};
use super::{install, tcache, window};
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, c_void};
use std::ptr;
use tikv_jemalloc_sys as je;

/// What every block is aligned to at least, if it is that large.
const MIN_ALIGN: usize = 16;
/// jemalloc's flag for zeroed memory.
const ZERO: c_int = 0x40;

/// The Rust allocator that [`install!`](crate::install) installs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plimsoll;

// SAFETY: all memory comes from jemalloc, with size and alignment as asked; `flags` asks for an alignment
// whenever the size class alone does not give it; freeing and reallocating pass the same layout on.
unsafe impl GlobalAlloc for Plimsoll {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let flags = flags(layout);
        // SAFETY: the caller's promise: the size is not zero.
        unsafe { if flags == 0 { malloc(layout.size()) } else { allocate(layout.size(), flags) }.cast() }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let flags = flags(layout);
        // SAFETY: as above.
        unsafe { if flags == 0 { calloc(1, layout.size()) } else { allocate(layout.size(), flags | ZERO) }.cast() }
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise: a live block of this allocator with this layout.
        unsafe {
            if is_home(at as usize) {
                je::sdallocx(at.cast(), layout.size(), flags(layout));
            } else {
                free_sized_slow(at.cast(), layout.size(), flags(layout));
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the layout is valid for the new size by the caller's promise.
        let flags = flags(unsafe { Layout::from_size_align_unchecked(size, layout.align()) });
        // SAFETY: the caller's promise: a live block of this allocator, and a size above zero.
        unsafe { if flags == 0 { realloc(at.cast(), size) } else { reallocate(at.cast(), size, flags) }.cast() }
    }
}

/// jemalloc's flags for a layout: none if the size class alone gives the alignment.
#[inline(always)]
fn flags(layout: Layout) -> c_int {
    if layout.align() <= MIN_ALIGN && layout.align() <= layout.size() {
        0
    } else {
        layout.align().trailing_zeros() as c_int
    }
}

/// C's `malloc`.
///
/// # Safety
/// As for the C function.
#[inline(always)]
pub unsafe fn malloc(size: usize) -> *mut c_void {
    // SAFETY: jemalloc's function takes any size.
    unsafe { if is_plain() { je::malloc(size) } else { malloc_slow(size) } }
}

/// C's `calloc`.
///
/// # Safety
/// As for the C function.
#[inline(always)]
pub unsafe fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: jemalloc's function takes any sizes. (Its `mallocx` would leave the fast path for zeroed memory.)
    unsafe { if is_plain() { je::calloc(count, size) } else { calloc_slow(count, size) } }
}

/// C's `free`.
///
/// # Safety
/// As for the C function: null, or a live block of this allocator.
#[inline(always)]
pub unsafe fn free(at: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { if is_home(at as usize) { je::free(at) } else { free_slow(at) } }
}

/// C's `realloc`. The block stays with its owner.
///
/// # Safety
/// As for the C function.
#[inline(always)]
pub unsafe fn realloc(at: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise; a block of the home window is reallocated through the home's arena and cache.
    unsafe { if is_home(at as usize) && !at.is_null() { je::realloc(at, size) } else { realloc_slow(at, size) } }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn malloc_slow(size: usize) -> *mut c_void {
    // SAFETY: a size above zero, flags without an alignment.
    unsafe { allocate(size.max(1), 0) }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn calloc_slow(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: a size above zero.
        Some(bytes) => unsafe { allocate(bytes.max(1), ZERO) },
        None => fail(),
    }
}

/// Allocates with flags, for the module this thread works for.
///
/// # Safety
/// The size is above zero; the flags hold at most an alignment and [`ZERO`].
#[inline]
pub(crate) unsafe extern "C" fn allocate(size: usize, flags: c_int) -> *mut c_void {
    let local = local();
    let mode = local.mode.get();
    let module = local.current();
    if mode & COUNTING != 0 {
        local.calls[module].set(local.calls[module].get() + 1);
    }
    let place = if mode & (SCOPED | DEAD) == 0 { 0 } else { place(local, module) };
    // SAFETY: the caller's promise; arena and cache in `place` are live ones.
    let at = unsafe { je::mallocx(size, flags | place) };
    if at.is_null() { fail() } else { at }
}

/// Arena and cache for a foreign module's blocks on this thread.
#[inline(always)]
fn place(local: &Local, module: usize) -> c_int {
    install::arena_flag(module) | tcache::flag(local, module)
}

/// Out of memory as C states it.
#[cold]
fn fail() -> *mut c_void {
    // SAFETY: this thread's error number is always writable.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    ptr::null_mut()
}

/// Whether blocks of `module` go through the automatic cache; notes the home's addresses on a thread's first call.
#[inline]
fn is_automatic(local: &Local, module: usize) -> bool {
    let mode = local.mode.get();
    if mode & DEAD != 0 {
        return false;
    }
    let home = local.home.get() as usize;
    if local.start.get() == 0 && mode & COUNTING == 0 && install::ready() {
        local.start.set(window::start(home));
    }
    module == home
}

#[inline(never)]
unsafe extern "C" fn free_slow(at: *mut c_void) {
    if at.is_null() {
        return;
    }
    let local = local();
    let module = window::owner(at as usize);
    // SAFETY: a live block by the caller's promise; its owner's cache, or none, is named.
    unsafe {
        if is_automatic(local, module) {
            je::free(at);
        } else {
            je::dallocx(at, tcache::flag(local, module));
        }
    }
}

#[inline(never)]
unsafe extern "C" fn free_sized_slow(at: *mut c_void, size: usize, flags: c_int) {
    let local = local();
    let module = window::owner(at as usize);
    let cache = if is_automatic(local, module) { 0 } else { tcache::flag(local, module) };
    // SAFETY: a live block with this size and alignment by the caller's promise.
    unsafe { je::sdallocx(at, size, flags | cache) };
}

#[inline(never)]
unsafe extern "C" fn realloc_slow(at: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the cases that jemalloc's `rallocx` does not take are sorted out first, as C defines them.
    unsafe {
        if at.is_null() {
            return malloc(size);
        }
        if size == 0 {
            free(at);
            return ptr::null_mut();
        }
        reallocate(at, size, 0)
    }
}

/// Reallocates a live block in its owner's arena.
///
/// # Safety
/// `at` is a live block, the size above zero, the flags at most an alignment.
#[inline(never)]
unsafe extern "C" fn reallocate(at: *mut c_void, size: usize, flags: c_int) -> *mut c_void {
    let local = local();
    let module = window::owner(at as usize);
    if local.mode.get() & COUNTING != 0 {
        local.calls[module].set(local.calls[module].get() + 1);
    }
    let place = if is_automatic(local, module) { 0 } else { place(local, module) };
    // SAFETY: the caller's promise.
    let new = unsafe { je::rallocx(at, size, flags | place) };
    if new.is_null() { fail() } else { new }
}

/// C's `posix_memalign`.
///
/// # Safety
/// As for the C function.
pub unsafe fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise for `out`; a size above zero.
    unsafe {
        let before = *libc::__errno_location();
        let at = allocate(size.max(1), align.trailing_zeros() as c_int);
        if at.is_null() {
            *libc::__errno_location() = before; // the result tells, the error number stays
            return libc::ENOMEM;
        }
        *out = at;
    }
    0
}

/// C's `aligned_alloc` and `memalign`.
///
/// # Safety
/// As for the C functions.
pub unsafe fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        // SAFETY: this thread's error number is always writable.
        unsafe { *libc::__errno_location() = libc::EINVAL };
        return ptr::null_mut();
    }
    // SAFETY: a size above zero, an alignment that is a power of two.
    unsafe { allocate(size.max(1), align.trailing_zeros() as c_int) }
}

/// C's `valloc` and, with the size rounded up to whole pages, `pvalloc`.
///
/// # Safety
/// As for the C functions.
pub unsafe fn valloc(size: usize, whole_pages: bool) -> *mut c_void {
    // SAFETY: asks for a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let size = if whole_pages { size.max(1).checked_next_multiple_of(page) } else { Some(size) };
    match size {
        // SAFETY: the page size is a power of two.
        Some(size) => unsafe { aligned_alloc(page, size) },
        None => fail(),
    }
}

/// C's `malloc_usable_size`.
///
/// # Safety
/// As for the C function: null, or a live block of this allocator.
pub unsafe fn malloc_usable_size(at: *const c_void) -> usize {
    // SAFETY: jemalloc's function takes null and live blocks.
    unsafe { if at.is_null() { 0 } else { je::malloc_usable_size(at) } }
}
