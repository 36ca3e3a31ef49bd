//! The part of an overlay that knows no types: index, keys, states, order, room.
//!
//! Owns for each entry a slot: the key's bytes (4-byte partition, then the user's key), the context of its last change,
//! its state and its place in the one list it is in. Invariant: a slot is in exactly the list of its state. Bound:
//! `limit` bytes, all chunks, pages and the index included, but for the growth of one entry; the typed overlay evicts
//! until it holds again. Order is that of writes, never that of hashes, so runs are repeatable; the hash is not secret:
//! keys made to collide slow a store down, as they do in the broker's own partitioner.
use super::ordered::Ordered;
use crate::arena::prefetch;
use crate::store::chunks::{CHUNK, Chunks};
use crate::store::offset::PREFIX_BYTES;
use crate::store::order::{Linked, Links, List};
use crate::store::slab::{ByteSlab, Piece};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Where an entry is between its change and the backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// No entry.
    Free,
    /// Just made; not yet given a value to keep.
    Fresh,
    /// As in the backend.
    Clean,
    /// Changed and not yet forwarded.
    Dirty,
    /// Forwarded and in the changelog, not in the backend.
    Pending,
    /// Pending and in the batch that is being written.
    Collected,
}

/// The context of a change, kept for the forward.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp<'a> {
    pub(crate) topic: &'a str,
    pub(crate) offset: i64,
    /// Of the record that made the change, in milliseconds.
    pub(crate) timestamp: i64,
    pub(crate) headers: &'a [u8],
}

/// An entry. In this order, so that finding it reads a cache line or two and nothing elsewhere.
#[repr(C, align(16))]
pub(crate) struct Slot {
    hash: u32,
    lane: u16,
    topic: u16,
    state: State,
    /// Whether the key had a value when the entry became dirty.
    existed: bool,
    key: Key,
    links: Links,
    headers: Piece,
    /// Bytes on the heap that the values own.
    heap: u32,
    /// Of the value, milliseconds.
    timestamp: i64,
    record_timestamp: i64,
    offset: i64,
}

/// What `Slot` is made for: 64 of them are a size class of the allocator.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Slot>() == 80);

/// Bytes of a key, partition included, that a slot holds itself.
const SHORT: usize = 22;

/// A key's bytes: in the slot, or in the slab if they are too many.
#[derive(Clone, Copy)]
enum Key {
    Short(u8, [u8; SHORT]),
    Long(Piece),
}

impl Key {
    fn new(bytes: &[u8], slab: &mut ByteSlab) -> Self {
        let mut short = [0; SHORT];
        match short.get_mut(..bytes.len()) {
            Some(start) => {
                start.copy_from_slice(bytes);
                Self::Short(bytes.len() as u8, short)
            }
            None => Self::Long(slab.insert(bytes)),
        }
    }

    #[inline]
    fn bytes<'a>(&'a self, slab: &'a ByteSlab) -> &'a [u8] {
        match self {
            Self::Short(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(piece) => slab.get(*piece),
        }
    }

    /// Bytes by which the slab grows for a key of this length.
    fn growth(len: usize, slab: &ByteSlab) -> usize {
        if len <= SHORT { 0 } else { slab.growth(len) }
    }
}

impl Slot {
    const FREE: Self = Self {
        hash: 0,
        lane: 0,
        topic: 0,
        state: State::Free,
        existed: false,
        key: Key::Long(Piece::EMPTY),
        links: Links::ALONE,
        headers: Piece::EMPTY,
        timestamp: 0,
        record_timestamp: 0,
        offset: -1,
        heap: 0,
    };
}

impl Linked for Slot {
    #[inline]
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// The entries of one partition that wait for the backend.
struct Lane {
    partition: u32,
    pending: List,
    collected: List,
}

/// Index, keys, states, order and room of one store's entries on one thread.
pub(crate) struct Core {
    index: HashTable<u32>,
    /// By key, once a range was asked for.
    pub(super) ordered: Option<Ordered>,
    slots: Chunks<Slot>,
    bytes: ByteSlab,
    lanes: Vec<Lane>,
    /// Numbers of the lanes by partition.
    lane_order: Vec<u16>,
    topics: Vec<Box<str>>,
    free: List,
    /// Least recently used first.
    clean: List,
    /// In the order of the last change, as in Kafka Streams' cache.
    dirty: List,
    /// Bytes of the typed columns per slot.
    column_bytes: usize,
    heap: usize,
    limit: usize,
}

/// The hash of a key. One for all stores and runs.
#[inline]
fn hash(key: &[u8]) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    let wide = hasher.finish();
    (wide ^ (wide >> 32)) as u32
}

/// The table wants good bits at both ends.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x0000_0001_0000_0001)
}

impl Core {
    pub(crate) fn new(limit: usize, column_bytes: usize) -> Self {
        Self {
            index: HashTable::new(),
            ordered: None,
            slots: Chunks::new(),
            bytes: ByteSlab::new(),
            lanes: Vec::new(),
            lane_order: Vec::new(),
            topics: Vec::new(),
            free: List::EMPTY,
            clean: List::EMPTY,
            dirty: List::EMPTY,
            column_bytes,
            heap: 0,
            limit,
        }
    }

    /// Bytes of everything.
    pub(crate) fn footprint(&self) -> usize {
        let columns = self.slots.len() as usize * self.column_bytes;
        let ordered = self.ordered.as_ref().map_or(0, Ordered::bytes);
        self.slots.bytes() + columns + self.bytes.bytes() + self.index.allocation_size() + ordered + self.heap
    }

    /// Whether an entry more, or what there is, goes beyond the limit.
    #[inline]
    pub(crate) fn is_over(&self, growth: usize) -> bool {
        self.footprint() + growth > self.limit
    }

    /// Bytes by which a new entry with a key of this length makes everything grow.
    pub(crate) fn growth(&self, key_len: usize) -> usize {
        let chunk = Chunks::<Slot>::chunk_bytes() + CHUNK * self.column_bytes;
        let slot = if self.free.len == 0 { chunk } else { 0 };
        let index = if self.index.len() == self.index.capacity() { self.index.allocation_size().max(64) } else { 0 };
        let ordered = self.ordered.as_ref().map_or(0, Ordered::growth);
        slot + index + ordered + Key::growth(key_len, &self.bytes)
    }

    /// Entries whose room only a commit can free: changed ones and those that wait for the backend.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        (self.index.len() as u32 - self.clean.len) as usize
    }

    #[cfg(any(test, feature = "bench"))]
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        let hash = hash(key);
        let same = |slot: &u32| {
            let slot = self.slots.at(*slot);
            slot.hash == hash && slot.key.bytes(&self.bytes) == key
        };
        self.index.find(spread(hash), same).copied()
    }

    /// Slots that the index has for a key, nearly always the key's own or none. They are asked for, not read.
    #[inline]
    pub(crate) fn candidates(&self, key: &[u8], mut and: impl FnMut(u32)) {
        self.index.find(spread(hash(key)), |slot| {
            prefetch(self.slots.at(*slot));
            and(*slot);
            false
        });
    }

    /// Makes a fresh entry for a key that has none. The typed columns grow with [`slots`](Self::slots).
    pub(crate) fn insert(&mut self, key: &[u8]) -> u32 {
        if self.free.len == 0 {
            let first = self.slots.len();
            self.slots.grow(|| Slot::FREE);
            for slot in first..self.slots.len() {
                self.free.push(&mut self.slots, slot);
            }
        }
        let slot = self.free.first;
        self.free.remove(&mut self.slots, slot);
        let hash = hash(key);
        let lane = self.lane_of(key);
        let key = Key::new(key, &mut self.bytes);
        *self.slots.at_mut(slot) = Slot { hash, lane, key, state: State::Fresh, ..Slot::FREE };
        let slots = &self.slots;
        self.index.insert_unique(spread(hash), slot, |other| spread(slots.at(*other).hash));
        if let Some(ordered) = &mut self.ordered {
            ordered.insert(slot, |slot| slots.at(slot).key.bytes(&self.bytes));
        }
        slot
    }

    /// Gives back the last chunk, whose slots are all free.
    pub(super) fn drop_chunk(&mut self, slots: std::ops::Range<u32>) {
        for slot in slots {
            self.free.remove(&mut self.slots, slot);
        }
        self.slots.pop();
    }

    /// Whether a slot has an entry.
    pub(super) fn is_used(&self, slot: u32) -> bool {
        self.slots.at(slot).state != State::Free
    }

    /// Number of slots, free ones included.
    pub(crate) fn slots(&self) -> u32 {
        self.slots.len()
    }

    fn lane_of(&mut self, key: &[u8]) -> u16 {
        let partition = key.first_chunk::<PREFIX_BYTES>().map_or(0, |prefix| u32::from_be_bytes(*prefix));
        let lane = self.lane(partition).unwrap_or_else(|| {
            let at = self.lane_order.partition_point(|lane| self.partition_of(*lane) < partition);
            self.lane_order.insert(at, self.lanes.len() as u16);
            self.lanes.push(Lane { partition, pending: List::EMPTY, collected: List::EMPTY });
            self.lanes.len() - 1
        });
        lane as u16
    }

    fn lane(&self, partition: u32) -> Option<usize> {
        let at = self.lane_order.binary_search_by_key(&partition, |lane| self.partition_of(*lane)).ok()?;
        self.lane_order.get(at).map(|lane| usize::from(*lane))
    }

    fn partition_of(&self, lane: u16) -> u32 {
        self.lanes.get(usize::from(lane)).map_or(0, |lane| lane.partition)
    }

    /// Takes an entry out; its value has been dropped.
    pub(crate) fn release(&mut self, slot: u32) {
        self.unlink(slot);
        let Slot { hash, key, headers, heap, .. } = *self.slots.at(slot);
        if let Ok(entry) = self.index.find_entry(spread(hash), |other| *other == slot) {
            entry.remove();
        }
        if let Some(ordered) = &mut self.ordered {
            ordered.remove(slot, |slot| self.slots.at(slot).key.bytes(&self.bytes));
        }
        if let Key::Long(key) = key {
            self.bytes.remove(key);
        }
        self.bytes.remove(headers);
        self.heap -= heap as usize;
        *self.slots.at_mut(slot) = Slot::FREE;
        self.free.push(&mut self.slots, slot);
    }

    fn list_of(&mut self, state: State, lane: u16) -> Option<&mut List> {
        match state {
            State::Free => Some(&mut self.free),
            State::Fresh => None,
            State::Clean => Some(&mut self.clean),
            State::Dirty => Some(&mut self.dirty),
            State::Pending => self.lanes.get_mut(usize::from(lane)).map(|lane| &mut lane.pending),
            State::Collected => self.lanes.get_mut(usize::from(lane)).map(|lane| &mut lane.collected),
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { state, lane, .. } = *self.slots.at(slot);
        if let Some(list) = self.list_of(state, lane) {
            let mut at = *list;
            at.remove(&mut self.slots, slot);
            if let Some(list) = self.list_of(state, lane) {
                *list = at;
            }
        }
        self.slots.at_mut(slot).state = State::Fresh;
    }

    /// Moves an entry to the end of the list of another state, or of its own.
    pub(crate) fn set_state(&mut self, slot: u32, state: State) {
        self.unlink(slot);
        let lane = self.slots.at(slot).lane;
        self.slots.at_mut(slot).state = state;
        if let Some(list) = self.list_of(state, lane) {
            let mut at = *list;
            at.push(&mut self.slots, slot);
            if let Some(list) = self.list_of(state, lane) {
                *list = at;
            }
        }
    }

    /// A clean entry was read: it is the last to be evicted now.
    #[inline]
    pub(crate) fn touch(&mut self, slot: u32) {
        if self.slots.at(slot).state == State::Clean {
            self.clean.remove(&mut self.slots, slot);
            self.clean.push(&mut self.slots, slot);
        }
    }

    /// Keeps the context of a change and puts the entry at the end of the dirty ones.
    pub(crate) fn set_dirty(&mut self, slot: u32, stamp: &Stamp<'_>, existed: bool) {
        if self.slots.at(slot).state != State::Dirty {
            self.set_state(slot, State::Dirty);
            self.slots.at_mut(slot).existed = existed;
        } else if self.dirty.newest() != Some(slot) {
            self.set_state(slot, State::Dirty);
        }
        self.stamp(slot, stamp);
    }

    /// Keeps the context of a change.
    pub(crate) fn stamp(&mut self, slot: u32, stamp: &Stamp<'_>) {
        let topic = self.topic(stamp.topic);
        let old = self.slots.at(slot).headers;
        // [0] is "no headers": not kept.
        let new = if stamp.headers.len() > 1 { stamp.headers } else { &[] };
        let headers = if old == Piece::EMPTY && new.is_empty() {
            old
        } else {
            self.bytes.remove(old);
            self.bytes.insert(new)
        };
        let to = self.slots.at_mut(slot);
        (to.topic, to.headers) = (topic, headers);
        (to.offset, to.record_timestamp) = (stamp.offset, stamp.timestamp);
    }

    /// Names of topics by number; an application has few.
    fn topic(&mut self, name: &str) -> u16 {
        let known = self.topics.iter().position(|topic| **topic == *name);
        let at = known.unwrap_or_else(|| {
            self.topics.push(name.into());
            self.topics.len() - 1
        });
        at as u16
    }

    /// The context of the entry's last change. No headers are empty bytes.
    pub(crate) fn stamp_of(&self, slot: u32) -> Stamp<'_> {
        let slot = self.slots.at(slot);
        Stamp {
            topic: self.topics.get(usize::from(slot.topic)).map_or("", |topic| topic),
            offset: slot.offset,
            timestamp: slot.record_timestamp,
            headers: self.bytes.get(slot.headers),
        }
    }

    #[inline]
    pub(crate) fn state(&self, slot: u32) -> State {
        self.slots.at(slot).state
    }

    /// Whether the key had a value before the entry became dirty.
    pub(crate) fn existed(&self, slot: u32) -> bool {
        self.slots.at(slot).existed
    }

    /// The key, partition included.
    #[inline]
    pub(crate) fn key(&self, slot: u32) -> &[u8] {
        self.slots.at(slot).key.bytes(&self.bytes)
    }

    pub(crate) fn partition(&self, slot: u32) -> u32 {
        self.partition_of(self.slots.at(slot).lane)
    }

    /// The value's timestamp, milliseconds.
    #[inline]
    pub(crate) fn timestamp(&self, slot: u32) -> i64 {
        self.slots.at(slot).timestamp
    }

    #[inline]
    pub(crate) fn set_timestamp(&mut self, slot: u32, timestamp: i64) {
        self.slots.at_mut(slot).timestamp = timestamp;
    }

    /// The entry's values own so many bytes of heap now.
    #[inline]
    pub(crate) fn set_heap(&mut self, slot: u32, heap: usize) {
        let slot = self.slots.at_mut(slot);
        // No record is that large: the row of the producer's batches bounds key and value.
        let heap = u32::try_from(heap).unwrap_or(u32::MAX);
        self.heap = self.heap - slot.heap as usize + heap as usize;
        slot.heap = heap;
    }

    pub(crate) fn heap(&self, slot: u32) -> usize {
        self.slots.at(slot).heap as usize
    }

    pub(crate) fn oldest_clean(&self) -> Option<u32> {
        self.clean.oldest()
    }

    pub(crate) fn oldest_dirty(&self) -> Option<u32> {
        self.dirty.oldest()
    }

    pub(crate) fn oldest_pending(&self, partition: u32) -> Option<u32> {
        self.lanes.get(self.lane(partition)?)?.pending.oldest()
    }

    pub(crate) fn oldest_collected(&self, partition: u32) -> Option<u32> {
        self.lanes.get(self.lane(partition)?)?.collected.oldest()
    }

    /// A partition that has pending entries.
    pub(crate) fn some_pending_partition(&self) -> Option<u32> {
        self.lanes.iter().find(|lane| lane.pending.len > 0).map(|lane| lane.partition)
    }

    /// The first entry of the partition at or behind this slot number, whatever its state.
    pub(crate) fn entry_of(&self, partition: u32, from: u32) -> Option<u32> {
        let lane = self.lane(partition)?;
        (from..self.slots.len()).find(|slot| {
            let slot = self.slots.at(*slot);
            slot.state != State::Free && usize::from(slot.lane) == lane
        })
    }
}
