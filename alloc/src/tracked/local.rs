//! What each thread knows: its home, its tag, its caches. 128 bytes of thread-local storage.
//!
//! The allocator's fast path is a comparison against this block, so the block must be reachable with one
//! instruction, without a call, in every state a thread can be in: inside the loader before `main`, in
//! thread-exit destructors, after `fork`. `thread_local!` gives no such promise across crates (its access
//! is a call that the linker only sometimes relaxes), so the block is a thread-local symbol of its own,
//! addressed by the initial-exec model: an offset from the thread pointer, fixed when the program is loaded.
//!
//! All zero is the valid initial state: home and tag App, no caches, nothing armed.

use crate::Module;
use std::cell::Cell;

/// The thread works in a scope of another module than its home.
pub(crate) const SCOPED: u32 = 1;
/// The thread is exiting: its caches are gone and must not be made again.
pub(crate) const DEAD: u32 = 2;
/// The thread counts its allocations.
pub(crate) const COUNTING: u32 = 4;

/// One thread's block. Only its own thread touches it.
#[repr(C, align(64))]
pub(crate) struct Local {
    /// Zero: allocate with plain jemalloc. First, at offset 0: the fast path reads it.
    pub(crate) mode: Cell<u32>,
    _gap: u32,
    /// Where the home window starts, zero if not yet known; `NOWHERE` sends every block to the slow path: the thread is
    /// exiting or counting. At offset 8: the fast path reads it.
    pub(crate) start: Cell<usize>,
    /// Index of the home module.
    pub(crate) home: Cell<u8>,
    /// Index of the scope's module plus one; zero outside scopes.
    pub(crate) tag: Cell<u8>,
    /// The thread-exit destructor will run.
    pub(crate) armed: Cell<bool>,
    /// The thread's place in the table of bound threads, plus one; zero: none.
    pub(crate) place: Cell<u16>,
    /// Explicit caches by module, encoded for `MALLOCX_TCACHE`: zero not made, one "no cache", else id + 2.
    pub(crate) caches: [Cell<u16>; Module::COUNT],
    /// jemalloc's count of bytes this thread has allocated; null: not yet asked for.
    pub(crate) allocated: Cell<*const u64>,
    /// jemalloc's count of bytes this thread has deallocated.
    pub(crate) deallocated: Cell<*const u64>,
    /// Allocations counted while [`COUNTING`].
    pub(crate) calls: [Cell<u64>; Module::COUNT],
}

const SIZE: usize = 192;
const _: () = assert!(size_of::<Local>() <= SIZE);
const _: () = assert!(std::mem::offset_of!(Local, mode) == 0 && std::mem::offset_of!(Local, start) == 8);

impl Local {
    /// The module allocations go to now.
    #[inline(always)]
    pub(crate) fn current(&self) -> usize {
        match self.tag.get() {
            0 => self.home.get() as usize,
            tag => tag as usize - 1,
        }
    }

    /// Brings the `SCOPED` bit in line with home and tag.
    #[inline(always)]
    pub(crate) fn settle(&self) {
        let tag = self.tag.get();
        let scoped = u32::from(tag != 0 && tag - 1 != self.home.get());
        self.mode.set((self.mode.get() & !SCOPED) | scoped);
    }
}

std::arch::global_asm!(
    ".pushsection .tbss.plimsoll_alloc_local_v0,\"awT\",@nobits",
    ".globl plimsoll_alloc_local_v0",
    ".hidden plimsoll_alloc_local_v0",
    ".type plimsoll_alloc_local_v0, @object",
    ".p2align 6",
    "plimsoll_alloc_local_v0:",
    ".zero {size}",
    ".size plimsoll_alloc_local_v0, {size}",
    ".popsection",
    size = const SIZE,
);

/// This thread's block.
#[inline(always)]
pub(crate) fn local() -> &'static Local {
    let block: *const Local;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the thread pointer and the symbol's constant offset from it; no memory that Rust knows
    // of, no flags, no stack. The loader has set both up before any code of this object can run, for every
    // thread, since the symbol lives in the static TLS block.
    unsafe {
        std::arch::asm!(
            "mov {block}, qword ptr [rip + plimsoll_alloc_local_v0@gottpoff]",
            "add {block}, qword ptr fs:[0]",
            block = out(reg) block,
            options(pure, nomem, nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "adrp {block}, :gottprel:plimsoll_alloc_local_v0",
            "ldr {block}, [{block}, :gottprel_lo12:plimsoll_alloc_local_v0]",
            "mrs {base}, tpidr_el0",
            "add {block}, {block}, {base}",
            block = out(reg) block,
            base = out(reg) _,
            options(pure, nomem, nostack),
        );
    }
    // SAFETY: the block is 64-byte aligned, at least `size_of::<Local>()` long and zero at thread start, which
    // is a valid `Local`. It lives as long as its thread; the reference never leaves the thread, because
    // `Local` is not `Sync` and no caller stores it. All fields are cells, so shared references suffice.
    unsafe { &*block }
}

/// Whether the thread is outside scopes of other modules, alive and not counting: the fast path's condition.
///
/// One load and one comparison, without ever forming the block's address: on x86-64 four instructions of
/// `malloc` are ours, this function's three and the jump to jemalloc.
#[inline(always)]
pub(crate) fn is_plain() -> bool {
    // SAFETY: reads the block's first field, as `local` would; changes a register and the flags, as declared.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "mov r11, qword ptr [rip + plimsoll_alloc_local_v0@gottpoff]",
            "cmp dword ptr fs:[r11], 0",
            "jne {other}",
            out("r11") _,
            other = label { return false },
            options(readonly, nostack),
        );
    }
    #[cfg(target_arch = "x86_64")]
    return true;
    #[cfg(not(target_arch = "x86_64"))]
    return local().mode.get() == 0;
}

/// Whether `at` lies in the home window of this thread: the condition for freeing without naming a cache.
///
/// On x86-64 six instructions of `free` are ours, this function's five and the jump to jemalloc.
#[inline(always)]
pub(crate) fn is_home(at: usize) -> bool {
    // SAFETY: reads the block's second field, as `local` would, and a static; changes two registers and the flags, as
    // declared.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "mov r11, qword ptr [rip + plimsoll_alloc_local_v0@gottpoff]",
            "mov rax, {at}",
            "sub rax, qword ptr fs:[r11 + 8]",
            "cmp rax, qword ptr [rip + {size}]",
            "jae {other}",
            at = in(reg) at,
            size = sym super::window::SIZE,
            out("r11") _,
            out("rax") _,
            other = label { return false },
            options(readonly, nostack),
        );
    }
    #[cfg(target_arch = "x86_64")]
    return true;
    #[cfg(not(target_arch = "x86_64"))]
    return at.wrapping_sub(local().start.get()) < super::window::SIZE.load(std::sync::atomic::Ordering::Relaxed);
}
