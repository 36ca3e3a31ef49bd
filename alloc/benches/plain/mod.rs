//! What tracking is compared with: plain prefixed jemalloc. Shared by the bench of times and the count of instructions.
use std::alloc::{GlobalAlloc, Layout};
use tikv_jemalloc_sys as je;

/// The global allocator over plain jemalloc, as the crates for it write it.
pub(crate) struct Plain;

// SAFETY: memory comes from jemalloc with size and alignment as asked, and goes back with the same layout.
unsafe impl GlobalAlloc for Plain {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise: a size above zero.
        unsafe {
            match flags(layout) {
                0 => je::malloc(layout.size()).cast(),
                flags => je::mallocx(layout.size(), flags).cast(),
            }
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise: a live block with this layout.
        unsafe { je::sdallocx(at.cast(), layout.size(), flags(layout)) };
    }
}

fn flags(layout: Layout) -> i32 {
    if layout.align() <= 16 && layout.align() <= layout.size() { 0 } else { layout.align().trailing_zeros() as i32 }
}

/// Takes a block. Not inlined, as the compiler's shims around a global allocator are not.
///
/// # Safety
/// As [`GlobalAlloc::alloc`].
#[inline(never)]
pub(crate) unsafe fn get<A: GlobalAlloc>(allocator: &A, layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { allocator.alloc(layout) }
}

/// Gives a block back.
///
/// # Safety
/// As [`GlobalAlloc::dealloc`].
#[inline(never)]
pub(crate) unsafe fn put<A: GlobalAlloc>(allocator: &A, at: *mut u8, layout: Layout) {
    // SAFETY: the caller's promise.
    unsafe { allocator.dealloc(at, layout) };
}
