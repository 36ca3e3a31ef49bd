//! The overlay of a store: its cached and uncommitted entries on one thread, values deserialized.
//!
//! Owns the typed columns beside an untyped [`Core`]. Invariant: a slot's weight is what the allocator's counters say
//! its value took, or the codec's estimate where the allocator is not installed. Bound: the core's limit; who changes
//! an entry evicts until the core is within it again. Called by `node` only, on the thread that owns the store.
pub(crate) mod core;
pub(crate) mod ordered;
pub(crate) mod range;

use self::core::{Core, State};
use super::chunks::Chunks;
use crate::arena::prefetch;
use plimsoll_alloc::Module;

/// A store's entries: key bytes → slot → value.
pub(crate) struct Overlay<T> {
    core: Core,
    /// `None` in a slot in use: the key has no value.
    values: Chunks<Option<T>>,
    /// What went downstream last, where something there needs it.
    old: Option<Chunks<Option<T>>>,
    weigh: fn(&T) -> usize,
}

impl<T> Overlay<T> {
    /// An empty overlay of at most so many bytes. `weigh` estimates the heap bytes of a value.
    pub(crate) fn new(limit: usize, keeps_old: bool, weigh: fn(&T) -> usize) -> Self {
        let columns = if keeps_old { 2 } else { 1 };
        Self {
            core: Core::new(limit, columns * size_of::<Option<T>>()),
            values: Chunks::new(),
            old: keeps_old.then(Chunks::new),
            weigh,
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    pub(crate) fn core_mut(&mut self) -> &mut Core {
        &mut self.core
    }

    pub(crate) fn keeps_old(&self) -> bool {
        self.old.is_some()
    }

    /// Makes a fresh entry without a value.
    pub(crate) fn insert(&mut self, key: &[u8]) -> u32 {
        let _scope = plimsoll_alloc::scope(Module::Cache);
        let slot = self.core.insert(key);
        if self.values.len() < self.core.slots() {
            self.values.grow(|| None);
            if let Some(old) = &mut self.old {
                old.grow(|| None);
            }
        }
        slot
    }

    /// Has the entry of a key fetched into the processor's cache, if there is one: the memory of many entries is not.
    #[inline]
    pub(crate) fn warm(&self, key: &[u8]) {
        self.core.candidates(key, |slot| prefetch(self.values.at(slot)));
    }

    /// The value of a slot.
    #[inline]
    pub(crate) fn value(&self, slot: u32) -> Option<&T> {
        self.values.at(slot).as_ref()
    }

    /// What went downstream last.
    #[inline]
    pub(crate) fn old(&self, slot: u32) -> Option<&T> {
        self.old.as_ref()?.at(slot).as_ref()
    }

    /// The only way to change a value: in place, and weighed.
    #[inline]
    pub(crate) fn update<R>(&mut self, slot: u32, change: impl FnOnce(&mut Option<T>) -> R) -> R {
        if !std::mem::needs_drop::<T>() {
            return change(self.values.at_mut(slot));
        }
        let _scope = plimsoll_alloc::scope(Module::Cache);
        let before = Balance::now();
        let result = change(self.values.at_mut(slot));
        self.weigh(slot, before);
        result
    }

    /// Changes the old value, by the current one, and weighs.
    pub(crate) fn update_old(&mut self, slot: u32, change: impl FnOnce(Option<&T>, &mut Option<T>)) {
        let Some(old) = &mut self.old else { return };
        let _scope = plimsoll_alloc::scope(Module::Cache);
        let before = Balance::now();
        change(self.values.at(slot).as_ref(), old.at_mut(slot));
        self.weigh(slot, before);
    }

    fn weigh(&mut self, slot: u32, before: Balance) {
        let heap = if plimsoll_alloc::is_installed() {
            before.heap_after(self.core.heap(slot))
        } else {
            let old = self.old.as_ref().and_then(|old| old.at(slot).as_ref());
            self.values.at(slot).as_ref().into_iter().chain(old).map(self.weigh).sum()
        };
        self.core.set_heap(slot, heap);
    }

    /// Drops an entry.
    pub(crate) fn release(&mut self, slot: u32) {
        *self.values.at_mut(slot) = None;
        if let Some(old) = &mut self.old {
            *old.at_mut(slot) = None;
        }
        self.core.release(slot);
    }

    /// Drops the clean entry that was used longest ago; false when none is clean.
    pub(crate) fn evict_clean(&mut self) -> bool {
        let oldest = self.core.oldest_clean();
        if let Some(slot) = oldest {
            self.release(slot);
        }
        oldest.is_some()
    }

    /// Drops the last chunk with all its entries if they are clean; false when it has others, or is the only one.
    /// Entries whose keys lie in their slots give bytes back in no other way.
    pub(crate) fn evict_chunk(&mut self) -> bool {
        let Some(slots) = self.core.last_chunk() else { return false };
        for slot in slots.clone() {
            if self.core.state(slot) == State::Clean {
                self.release(slot);
            }
        }
        self.core.drop_chunk(slots);
        self.values.pop();
        if let Some(old) = &mut self.old {
            old.pop();
        }
        true
    }

    /// What was collected for the partition is in the backend: entries are clean, deleted keys need none.
    pub(crate) fn written(&mut self, partition: u32) {
        while let Some(slot) = self.core.oldest_collected(partition) {
            if self.value(slot).is_some() {
                self.core.set_state(slot, State::Clean);
            } else {
                self.release(slot);
            }
        }
    }

    /// Drops all entries of a partition.
    pub(crate) fn discard(&mut self, partition: u32) {
        let mut from = 0;
        while let Some(slot) = self.core.entry_of(partition, from) {
            self.release(slot);
            from = slot + 1;
        }
    }
}

/// Bytes that the thread has allocated more than freed, as the allocator counts them.
#[derive(Clone, Copy)]
struct Balance(u64);

impl Balance {
    #[inline]
    fn now() -> Self {
        let (taken, freed) = (plimsoll_alloc::thread_allocated_bytes(), plimsoll_alloc::thread_deallocated_bytes());
        Self(taken.wrapping_sub(freed))
    }

    /// The heap bytes of a value that had `before` of them when the balance was taken.
    #[inline]
    fn heap_after(self, before: usize) -> usize {
        let change = Self::now().0.wrapping_sub(self.0) as i64;
        usize::try_from((before as i64).saturating_add(change)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
