//! Which thread was bound to which module: a fixed table, for reports and tests.
//!
//! Bound: [`PLACES`] bound threads; further ones are bound all the same but reported as App.

use super::local::Local;
use crate::Module;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const PLACES: usize = 1024;

/// Thread id in the upper bits, module index plus one in the lowest byte; zero: free.
static BOUND: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// Notes that the calling thread is bound to `module`.
pub(crate) fn enter(local: &Local, module: usize) {
    // SAFETY: takes nothing, gives the thread's id.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u64;
    let entry = tid << 8 | (module as u64 + 1);
    let place = local.place.get();
    if place != 0 {
        BOUND[place as usize - 1].store(entry, Relaxed);
        return;
    }
    for (i, slot) in BOUND.iter().enumerate() {
        if slot.load(Relaxed) == 0 && slot.compare_exchange(0, entry, Relaxed, Relaxed).is_ok() {
            local.place.set(i as u16 + 1);
            return;
        }
    }
}

/// The calling thread exits.
pub(crate) fn leave(local: &Local) {
    let place = local.place.replace(0);
    if place != 0 {
        BOUND[place as usize - 1].store(0, Relaxed);
    }
}

/// The home module of the thread with this id; App unless it was bound.
pub(crate) fn home_of(tid: u32) -> Module {
    let bound = BOUND.iter().map(|slot| slot.load(Relaxed)).find(|entry| entry >> 8 == u64::from(tid));
    bound.and_then(|entry| Module::from_index((entry & 0xff) as usize - 1)).unwrap_or(Module::App)
}
