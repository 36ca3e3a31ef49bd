//! Slots in the order of their keys, for stores whose ranges are asked for.
//!
//! Owns slot numbers in leaves of [`LEAF`], and the leaves' order. Invariant: within a leaf and from leaf to leaf, keys
//! grow; no leaf in the order is empty. Bound: at most one leaf more than slots ÷ (LEAF ÷ 2) would need, but for
//! removals: a leaf goes when it is empty. Inserting allocates only when there are more leaves than ever before. Called
//! by the overlay's core, which keeps the keys.
use crate::store::chunks::{CHUNK, Chunks};

/// Slots of a leaf.
const LEAF: usize = 32;

#[derive(Clone, Copy)]
struct Leaf {
    len: u32,
    slots: [u32; LEAF],
}

impl Leaf {
    const EMPTY: Self = Self { len: 0, slots: [0; LEAF] };

    fn slots(&self) -> &[u32] {
        self.slots.get(..self.len as usize).unwrap_or_default()
    }

    fn insert(&mut self, at: usize, slot: u32) {
        let len = self.len as usize;
        self.slots.copy_within(at..len, at + 1);
        self.slots[at] = slot;
        self.len += 1;
    }

    fn remove(&mut self, at: usize) {
        self.slots.copy_within(at + 1..self.len as usize, at);
        self.len -= 1;
    }
}

/// A place between slots: behind the ones below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    leaf: usize,
    at: usize,
}

/// Slots by key.
pub(crate) struct Ordered {
    leaves: Chunks<Leaf>,
    /// Numbers of the leaves in use, by key.
    order: Vec<u32>,
    free: Vec<u32>,
}

impl Ordered {
    pub(crate) fn new() -> Self {
        Self { leaves: Chunks::new(), order: Vec::new(), free: Vec::new() }
    }

    /// Bytes of everything.
    pub(crate) fn bytes(&self) -> usize {
        self.leaves.bytes() + (self.order.capacity() + self.free.capacity()) * size_of::<u32>()
    }

    /// Bytes by which one more slot may make it grow.
    pub(crate) fn growth(&self) -> usize {
        if self.free.is_empty() { Chunks::<Leaf>::chunk_bytes() + 2 * CHUNK * size_of::<u32>() } else { 0 }
    }

    fn leaf(&self, index: usize) -> &Leaf {
        self.leaves.at(self.order[index])
    }

    /// The place before the first slot whose key is not below this one.
    pub(crate) fn seek<'k>(&self, key: &[u8], key_of: impl Fn(u32) -> &'k [u8]) -> Place {
        // The leaf before the first that begins at or behind the key may hold it.
        let first = |leaf: &u32| self.leaves.at(*leaf).slots().first().is_some_and(|slot| key_of(*slot) < key);
        let leaf = self.order.partition_point(first).saturating_sub(1);
        let Some(number) = self.order.get(leaf) else { return Place { leaf: 0, at: 0 } };
        let at = self.leaves.at(*number).slots().partition_point(|slot| key_of(*slot) < key);
        Place { leaf, at }
    }

    /// The slot behind a place, and the place behind that.
    pub(crate) fn next(&self, mut place: Place) -> Option<(u32, Place)> {
        while place.leaf < self.order.len() {
            if let Some(slot) = self.leaf(place.leaf).slots().get(place.at) {
                return Some((*slot, Place { at: place.at + 1, ..place }));
            }
            place = Place { leaf: place.leaf + 1, at: 0 };
        }
        None
    }

    /// The slot before a place, and the place before that.
    pub(crate) fn prev(&self, mut place: Place) -> Option<(u32, Place)> {
        loop {
            if let Some(at) = place.at.checked_sub(1) {
                let slot = *self.leaf(place.leaf).slots().get(at)?;
                return Some((slot, Place { at, ..place }));
            }
            let leaf = place.leaf.checked_sub(1)?;
            place = Place { leaf, at: self.leaf(leaf).len as usize };
        }
    }

    /// Puts in a slot whose key is not there yet.
    pub(crate) fn insert<'k>(&mut self, slot: u32, key_of: impl Fn(u32) -> &'k [u8]) {
        let Place { leaf, at } = self.seek(key_of(slot), &key_of);
        if self.order.is_empty() {
            let first = self.take_leaf();
            self.order.push(first);
        }
        let number = self.order[leaf];
        if (self.leaves.at(number).len as usize) < LEAF {
            return self.leaves.at_mut(number).insert(at, slot);
        }
        // Keys that only grow leave full leaves behind.
        let is_last = leaf + 1 == self.order.len() && at == LEAF;
        let keep = if is_last { LEAF } else { LEAF / 2 };
        let behind = self.take_leaf();
        let full = *self.leaves.at(number);
        let to = self.leaves.at_mut(behind);
        to.slots[..LEAF - keep].copy_from_slice(&full.slots[keep..]);
        to.len = (LEAF - keep) as u32;
        self.leaves.at_mut(number).len = keep as u32;
        self.order.insert(leaf + 1, behind);
        let (number, at) = if at > keep || is_last { (behind, at - keep) } else { (number, at) };
        self.leaves.at_mut(number).insert(at, slot);
    }

    /// Takes out a slot that is there.
    pub(crate) fn remove<'k>(&mut self, slot: u32, key_of: impl Fn(u32) -> &'k [u8]) {
        let place = self.seek(key_of(slot), key_of);
        let Some((_, Place { leaf, at })) = self.next(place).filter(|(found, _)| *found == slot) else { return };
        let number = self.order[leaf];
        self.leaves.at_mut(number).remove(at - 1);
        if self.leaves.at(number).len == 0 {
            self.order.remove(leaf);
            self.free.push(number);
        }
    }

    fn take_leaf(&mut self) -> u32 {
        if self.free.is_empty() {
            let first = self.leaves.len();
            self.leaves.grow(|| Leaf::EMPTY);
            // Room for all of them in both lists: later moves between them allocate nothing.
            let leaves = self.leaves.len() as usize;
            self.free.reserve_exact(leaves);
            self.order.reserve_exact(leaves - self.order.len());
            self.free.extend((first..self.leaves.len()).rev());
        }
        let number = self.free.pop().unwrap_or_default();
        *self.leaves.at_mut(number) = Leaf::EMPTY;
        number
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn slots_are_in_the_order_of_their_keys_whatever_came_and_went() {
        let mut random = fastrand::Rng::with_seed(11);
        let keys: Vec<[u8; 4]> = (0..5_000).map(|_| random.u32(..).to_be_bytes()).collect();
        let key_of = |slot: u32| &keys[slot as usize][..];
        let (mut ordered, mut model) = (Ordered::new(), BTreeMap::new());
        for round in 0..40_000 {
            let slot = random.u32(..5_000);
            if model.remove(key_of(slot)).is_some() {
                ordered.remove(slot, key_of);
            } else if round < 30_000 || random.bool() {
                ordered.insert(slot, key_of);
                model.insert(key_of(slot).to_vec(), slot);
            }
            if round % 97 == 0 {
                let from = random.u32(..).to_be_bytes();
                let place = ordered.seek(&from, key_of);
                let forward = std::iter::successors(ordered.next(place), |(_, place)| ordered.next(*place));
                let expected: Vec<u32> = model.range(from.to_vec()..).map(|(_, slot)| *slot).collect();
                assert_eq!(forward.map(|(slot, _)| slot).collect::<Vec<_>>(), expected);
                let reverse = std::iter::successors(ordered.prev(place), |(_, place)| ordered.prev(*place));
                let expected: Vec<u32> = model.range(..from.to_vec()).rev().map(|(_, slot)| *slot).collect();
                assert_eq!(reverse.map(|(slot, _)| slot).collect::<Vec<_>>(), expected);
            }
        }
        assert!(model.len() > 1_000);
        let before = ordered.bytes();
        for (_, slot) in std::mem::take(&mut model) {
            ordered.remove(slot, key_of);
        }
        assert_eq!((ordered.next(ordered.seek(&[], key_of)), ordered.order.len()), (None, 0));
        (0..500).for_each(|slot| ordered.insert(slot, key_of));
        assert_eq!(ordered.bytes(), before, "leaves are used again");
    }

    #[test]
    fn keys_that_grow_fill_their_leaves() {
        let keys: Vec<[u8; 4]> = (0..3_200u32).map(u32::to_be_bytes).collect();
        let key_of = |slot: u32| &keys[slot as usize][..];
        let mut ordered = Ordered::new();
        (0..3_200).for_each(|slot| ordered.insert(slot, key_of));
        assert_eq!(ordered.order.len(), 100);
    }
}
