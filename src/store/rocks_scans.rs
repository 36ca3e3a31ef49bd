//! How many scans may be open at once: each pins blocks and memtables, and the plan has a row for so many.
//!
//! A thread that opens a scan while it has one open never waits: the outer one would wait for itself. Bound: the number
//! of slots, plus what threads nest. Called by `rocks` for each scan.
use std::cell::Cell;
use std::sync::{Condvar, Mutex, PoisonError};

thread_local! {
    /// Scans that this thread has open.
    static OPEN: Cell<usize> = const { Cell::new(0) };
}

/// Slots for scans.
#[derive(Debug)]
pub(crate) struct ScanSlots {
    free: Mutex<usize>,
    freed: Condvar,
}

impl ScanSlots {
    pub(crate) fn new(slots: usize) -> Self {
        Self { free: Mutex::new(slots.max(1)), freed: Condvar::new() }
    }

    /// Takes a slot, after waiting for one unless this thread already has a scan open.
    pub(crate) fn take(&self) -> ScanSlot<'_> {
        let is_nested = OPEN.get() > 0;
        if !is_nested {
            let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let mut free = self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
            *free -= 1;
        }
        OPEN.set(OPEN.get() + 1);
        ScanSlot { slots: self, is_nested }
    }
}

/// A taken slot; given back when dropped, on the thread that took it.
#[derive(Debug)]
pub(crate) struct ScanSlot<'a> {
    slots: &'a ScanSlots,
    is_nested: bool,
}

impl Drop for ScanSlot<'_> {
    fn drop(&mut self) {
        OPEN.set(OPEN.get().saturating_sub(1));
        if !self.is_nested {
            *self.slots.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            self.slots.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_more_scans_than_slots_are_open_at_once() {
        let slots = ScanSlots::new(2);
        let (open, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _slot = slots.take();
                        most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        open.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 2);
        assert_eq!(*slots.free.lock().unwrap(), 2);
    }

    #[test]
    fn a_scan_inside_a_scan_does_not_wait_for_itself() {
        let slots = ScanSlots::new(1);
        let outer = slots.take();
        let inner = slots.take();
        assert_eq!(*slots.free.lock().unwrap(), 0);
        drop(inner);
        assert_eq!(*slots.free.lock().unwrap(), 0);
        drop(outer);
        assert_eq!(*slots.free.lock().unwrap(), 1);
    }
}
