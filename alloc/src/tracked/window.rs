//! Reserved address windows, one a module: the owner of a block is read off its address.
//!
//! Invariant: window `i` is `[BASE + (i << SHIFT), BASE + ((i + 1) << SHIFT))`, and everything module `i`'s arena
//! ever got from the operating system lies below `BASE + (i << SHIFT) + NEXT[i]`. Windows never move and are
//! never given back. Bound: a module can hold [`WINDOW`] bytes (128 GiB) of address space.

use crate::{AllocError, Module};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// log2 of a window's size.
pub(crate) const SHIFT: u32 = 37;
/// A window's size.
pub(crate) const WINDOW: usize = 1 << SHIFT;

/// No address of user space lies within `COUNT` windows of this: before the reservation nobody owns anything.
const NOWHERE: usize = 1 << (usize::BITS - 1);

static BASE: AtomicUsize = AtomicUsize::new(NOWHERE);
static NEXT: [AtomicUsize; Module::COUNT] = [const { AtomicUsize::new(0) }; Module::COUNT];

/// Reserves the windows. Called once, from the set-up.
///
/// # Errors
/// [`AllocError::Reserve`] when the kernel refuses (`RLIMIT_AS`, strict overcommit).
pub(crate) fn reserve() -> Result<(), AllocError> {
    // One more, so that the first can start at a multiple of its size: then the owner is a shift away.
    let bytes = (Module::COUNT + 1) << SHIFT;
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
    let base = (at as usize).next_multiple_of(WINDOW);
    let end = base + (Module::COUNT << SHIFT);
    // SAFETY: both ranges are inside the mapping made above, which nothing points into yet.
    unsafe {
        libc::munmap(at, base - at as usize);
        libc::munmap(end as *mut libc::c_void, at as usize + bytes - end);
        // Huge pages would make a module resident that only reserved; kernels without them refuse, which is as good.
        libc::madvise(base as *mut libc::c_void, Module::COUNT << SHIFT, libc::MADV_NOHUGEPAGE);
    }
    BASE.store(base, Relaxed);
    Ok(())
}

/// Takes `size` bytes, aligned to `align`, from the module's window; `None` when the window is used up.
pub(crate) fn take(module: usize, size: usize, align: usize) -> Option<usize> {
    let base = start(module);
    let mut next = NEXT[module].load(Relaxed);
    loop {
        let at = (base + next).checked_next_multiple_of(align.max(1))?;
        let end = at.checked_add(size)?;
        if end > base + WINDOW {
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
    let index = addr.wrapping_sub(BASE.load(Relaxed)) >> SHIFT;
    if index < Module::COUNT { index } else { 0 }
}

/// Whether `addr` lies in a window.
pub(crate) fn contains(addr: usize) -> bool {
    addr.wrapping_sub(BASE.load(Relaxed)) >> SHIFT < Module::COUNT
}

/// The addresses of a module's window, shifted: what the fast path compares with. Zero before the reservation.
pub(crate) fn key(module: usize) -> u32 {
    let base = BASE.load(Relaxed);
    if base == NOWHERE { 0 } else { (base >> SHIFT) as u32 + module as u32 }
}

/// Where a module's window starts.
pub(crate) fn start(module: usize) -> usize {
    BASE.load(Relaxed) + (module << SHIFT)
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
