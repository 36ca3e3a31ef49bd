//! Where the governor's numbers come from: the allocator, or nothing where it is not installed.
//!
//! Owns nothing. Every function is zero without the allocator. Called by the governor alone.
use plimsoll_alloc::{Module, RssIdentity};

/// Committed bytes of each module.
pub(super) fn committed_all() -> [u64; Module::COUNT] {
    plimsoll_alloc::committed_all()
}

/// Bytes of each module's objects that are allocated.
pub(super) fn live_all() -> [u64; Module::COUNT] {
    plimsoll_alloc::live_all()
}

/// Returns a module's free pages to the system; what the committed bytes fell by.
pub(super) fn purge(module: Module) -> u64 {
    let before = plimsoll_alloc::committed(module);
    plimsoll_alloc::purge(module);
    before.saturating_sub(plimsoll_alloc::committed(module))
}

/// The parts of the process's anonymous memory: a scan, some milliseconds; `None` without the allocator.
pub(super) fn identity() -> Option<RssIdentity> {
    plimsoll_alloc::rss_identity().ok()
}
