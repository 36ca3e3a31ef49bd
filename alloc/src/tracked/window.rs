//! Reserved address windows, one a module: the owner of a block is read off its address.
//!
//! Invariant: window `i` is `[BASE + i * SIZE, BASE + (i + 1) * SIZE)`, and everything module `i`'s arena ever got
//! from the operating system lies below `BASE + i * SIZE + NEXT[i]`. Windows never move and are never given back.
//! Bound: a module can hold [`SIZE`] bytes of address space: 128 GiB, or less where so much cannot be reserved
//! (`ulimit -v`, 39-bit address spaces, valgrind), but not less than 4 GiB.

use crate::{AllocError, Module};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// log2 of the window sizes to try.
const SHIFTS: std::ops::RangeInclusive<u32> = 32..=37;

/// No address of user space lies within `COUNT` windows of this: before the reservation nobody owns anything.
pub(crate) const NOWHERE: usize = 1 << (usize::BITS - 1);

/// A window's size; zero before the reservation. The fast path compares with it.
pub(crate) static SIZE: AtomicUsize = AtomicUsize::new(0);
static SHIFT: AtomicU32 = AtomicU32::new(0);
static BASE: AtomicUsize = AtomicUsize::new(NOWHERE);
static NEXT: [AtomicUsize; Module::COUNT] = [const { AtomicUsize::new(0) }; Module::COUNT];

/// Reserves the windows, as large as can be had. Called once, from the set-up.
///
/// # Errors
/// [`AllocError::Reserve`] when the kernel refuses even the smallest (`RLIMIT_AS`, strict overcommit).
pub(crate) fn reserve() -> Result<(), AllocError> {
    let mut refused = Ok(());
    for shift in SHIFTS.rev() {
        refused = reserve_windows(shift);
        if refused.is_ok() {
            break;
        }
    }
    refused
}

fn reserve_windows(shift: u32) -> Result<(), AllocError> {
    let size = 1 << shift;
    // One more, so that the first can start at a multiple of its size.
    let bytes = (Module::COUNT + 1) * size;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no existing memory.
    let at = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(AllocError::Reserve { bytes, errno: errno() });
    }
    let base = (at as usize).next_multiple_of(size);
    let end = base + Module::COUNT * size;
    // SAFETY: all ranges are inside the mapping made above, which nothing points into yet. None is empty but the
    // first, which is not unmapped then.
    unsafe {
        if base > at as usize {
            libc::munmap(at, base - at as usize);
        }
        libc::munmap(end as *mut libc::c_void, at as usize + bytes - end);
        // Huge pages would make resident what is only reserved; kernels without them refuse, which is as good.
        libc::madvise(base as *mut libc::c_void, Module::COUNT * size, libc::MADV_NOHUGEPAGE);
    }
    SHIFT.store(shift, Relaxed);
    BASE.store(base, Relaxed);
    SIZE.store(size, Relaxed);
    Ok(())
}

/// Takes `size` bytes, aligned to `align`, from the module's window; `None` when the window is used up.
pub(crate) fn take(module: usize, size: usize, align: usize) -> Option<usize> {
    let base = start(module);
    let mut next = NEXT[module].load(Relaxed);
    loop {
        let at = (base + next).checked_next_multiple_of(align.max(1))?;
        let end = at.checked_add(size)?;
        if end > base + SIZE.load(Relaxed) {
            return None;
        }
        match NEXT[module].compare_exchange_weak(next, end - base, Relaxed, Relaxed) {
            Ok(_) => return Some(at),
            Err(now) => next = now,
        }
    }
}

/// The index of the module that owns `addr`; App's for everything outside the windows.
#[inline(always)]
pub(crate) fn owner(addr: usize) -> usize {
    let index = index(addr);
    if index < Module::COUNT { index } else { 0 }
}

/// Whether `addr` lies in a window.
pub(crate) fn contains(addr: usize) -> bool {
    index(addr) < Module::COUNT
}

/// How many windows `addr` lies above the first one's start.
#[inline(always)]
fn index(addr: usize) -> usize {
    addr.wrapping_sub(BASE.load(Relaxed)) >> (SHIFT.load(Relaxed) % usize::BITS)
}

/// Where a module's window starts; [`NOWHERE`] or above before the reservation.
pub(crate) fn start(module: usize) -> usize {
    BASE.load(Relaxed) + module * SIZE.load(Relaxed)
}

/// The part of a module's window that was ever handed out: start and end; empty before the reservation.
pub(crate) fn used(module: usize) -> (usize, usize) {
    if BASE.load(Relaxed) == NOWHERE {
        return (0, 0);
    }
    (start(module), start(module) + NEXT[module].load(Relaxed))
}

/// The calling thread's error number.
pub(crate) fn errno() -> i32 {
    // SAFETY: the C library's error number of this thread always exists.
    unsafe { *libc::__errno_location() }
}
