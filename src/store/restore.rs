//! Applying a changelog to its store: what the broker kept becomes what the store would have written.
//!
//! A record's key goes behind the partition, its value behind the record's timestamp (8 bytes, big-endian) where the
//! store's layout has one, and a record without value deletes the key, as Kafka Streams keeps them. Each slice that is
//! written carries the offset behind its last record, so a restore that is killed goes on where it was. Called by the
//! restore thread; its bound is the batch it was given.
use super::backend::Backend;
use super::batch::{BatchFull, StoreBatch};
use super::error::StoreError;
use super::kind::{Layout, NONE, SEGMENT_BYTES, SOME, StoreKind, TIMESTAMP_BYTES, version_lead};
use super::offset::{PREFIX_BYTES, StoredOffset, partition_prefix};
use crate::base::id::StoreId;

/// How far a partition of a store is restored. Moves only when a slice was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RestorePosition {
    pub(crate) store: StoreId,
    pub(crate) partition: u32,
    pub(crate) topic_id: [u8; 16],
    /// The next offset of the changelog to apply.
    pub(crate) next: i64,
    /// The highest timestamp applied, −1 if none.
    pub(crate) stream_time: i64,
}

impl RestorePosition {
    /// Begins behind what is stored, or at an offset of the changelog (its log start) when nothing is.
    pub(crate) fn new(
        store: StoreId,
        partition: u32,
        topic_id: [u8; 16],
        stored: Option<StoredOffset>,
        start: i64,
    ) -> Self {
        let (next, stream_time) = stored.map_or((start, -1), |stored| (stored.offset, stored.stream_time));
        Self { store, partition, topic_id, next, stream_time }
    }

    /// As it is kept beside the rows.
    pub(crate) fn stored(&self, wall_ms: i64) -> StoredOffset {
        StoredOffset { offset: self.next, topic_id: self.topic_id, wall_ms, stream_time: self.stream_time }
    }
}

/// The key of a row: what is in front of the user's key, the key, and what is behind it.
struct RowKey<'k> {
    front: [u8; PREFIX_BYTES + SEGMENT_BYTES],
    front_len: usize,
    user: &'k [u8],
    end: [u8; TIMESTAMP_BYTES],
    end_len: usize,
}

impl<'k> RowKey<'k> {
    fn new(partition: [u8; PREFIX_BYTES], user: &'k [u8]) -> Self {
        let (front, end) = ([0; PREFIX_BYTES + SEGMENT_BYTES], [0; TIMESTAMP_BYTES]);
        Self { front, front_len: 0, user, end, end_len: 0 }.with_lead(&partition)
    }

    fn with_lead(mut self, lead: &[u8]) -> Self {
        if let Some(to) = self.front.get_mut(self.front_len..self.front_len + lead.len()) {
            to.copy_from_slice(lead);
            self.front_len += lead.len();
        }
        self
    }

    fn with_end(mut self, end: [u8; TIMESTAMP_BYTES]) -> Self {
        (self.end, self.end_len) = (end, end.len());
        self
    }

    fn len(&self) -> usize {
        self.front_len + self.user.len() + self.end_len
    }

    fn parts(&self) -> [&[u8]; 3] {
        let front = self.front.get(..self.front_len).unwrap_or_default();
        [front, self.user, self.end.get(..self.end_len).unwrap_or_default()]
    }
}

/// Applies records of one partition to its store, in slices of a batch.
pub(crate) struct Restore<'a> {
    backend: &'a dyn Backend,
    batch: &'a mut StoreBatch,
    written: &'a mut RestorePosition,
    applied: RestorePosition,
    kind: StoreKind,
    wall_ms: i64,
}

impl<'a> Restore<'a> {
    /// Begins with an empty batch. What is applied but neither sliced nor finished when this is dropped is not written.
    pub(crate) fn begin(
        backend: &'a dyn Backend,
        batch: &'a mut StoreBatch,
        at: &'a mut RestorePosition,
        kind: StoreKind,
        wall_ms: i64,
    ) -> Self {
        batch.clear();
        let applied = *at;
        Self { backend, batch, written: at, applied, kind, wall_ms }
    }

    /// Applies a record of the changelog. Records below the position were applied before; a record without a key
    /// belongs to no store and is passed over, as Kafka Streams does.
    pub(crate) fn apply(
        &mut self,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp: i64,
        offset: i64,
    ) -> Result<(), StoreError> {
        if offset < self.applied.next {
            return Ok(());
        }
        if let Some(key) = key {
            if self.put(key, value, timestamp).is_err() {
                self.write_slice()?;
                self.put(key, value, timestamp)?;
            }
            let time = if self.kind.retention().is_some() { self.kind.time_of(key) } else { timestamp };
            self.applied.stream_time = self.applied.stream_time.max(time);
        }
        self.applied.next = offset.saturating_add(1);
        Ok(())
    }

    /// Writes what is left, with the offset to fetch from next: markers and aborted records take offsets too.
    pub(crate) fn finish(mut self, next_offset: i64) -> Result<(), StoreError> {
        self.applied.next = self.applied.next.max(next_offset);
        if self.applied == *self.written {
            return Ok(());
        }
        self.write_slice()
    }

    /// Puts a record into the batch if it fits together with an offset.
    fn put(&mut self, key: &[u8], value: Option<&[u8]>, timestamp: i64) -> Result<(), BatchFull> {
        let store = self.applied.store;
        let mut row = RowKey::new(partition_prefix(self.applied.partition), key);
        let time = timestamp.to_be_bytes();
        let mut front: &[u8] = if self.kind.layout == Layout::Timestamped { &time } else { &[] };
        let mut value = value;
        if let Some(history_ms) = self.kind.history() {
            if timestamp < self.applied.stream_time.saturating_sub(history_ms) {
                return Ok(());
            }
            row = row.with_lead(&version_lead(key)).with_end(time);
            (front, value) = if value.is_some() { (&[SOME][..], value) } else { (&[NONE][..], Some(&[][..])) };
        } else if let Some(segment) = self.kind.segment_of(key) {
            row = row.with_lead(&segment);
        }
        let value_bytes = value.map_or(0, |value| value.len() + front.len());
        let room = self.batch.capacity().saturating_sub(self.batch.len_bytes());
        let needed = StoreBatch::op_bytes(row.len(), value_bytes) + StoreBatch::OFFSET_OP_BYTES;
        if needed > room {
            return Err(BatchFull { needed: self.batch.len_bytes() + needed, capacity: self.batch.capacity() });
        }
        match value {
            Some(value) => self.batch.put_parts(store, row.parts(), [front, value]),
            None => self.batch.delete_parts(store, row.parts()),
        }
    }

    fn write_slice(&mut self) -> Result<(), StoreError> {
        let at = self.applied.stored(self.wall_ms);
        self.batch.set_offset(self.applied.store, self.applied.partition, &at)?;
        self.backend.write(self.batch)?;
        self.batch.clear();
        *self.written = self.applied;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::MemoryBackend;
    use super::*;

    const STORE: StoreId = StoreId(3);
    const TOPIC: [u8; 16] = [5; 16];

    fn value(backend: &MemoryBackend, key: &[u8]) -> Option<Vec<u8>> {
        let mut into = Vec::new();
        backend.get(STORE, key, &mut into).unwrap().then_some(into)
    }

    fn start() -> RestorePosition {
        RestorePosition::new(STORE, 2, TOPIC, None, 0)
    }

    #[test]
    fn records_become_rows_with_their_timestamps_and_tombstones_delete() {
        let backend = MemoryBackend::new();
        let mut batch = StoreBatch::with_capacity(1024);
        let mut at = start();
        let mut restore = Restore::begin(&backend, &mut batch, &mut at, Layout::Timestamped.into(), 1_000);
        restore.apply(Some(b"a"), Some(b"one"), 258, 0).unwrap();
        restore.apply(Some(b"b"), Some(b"two"), 90, 1).unwrap();
        restore.apply(Some(b"b"), None, 91, 2).unwrap();
        restore.apply(None, Some(b"nobody's"), 999, 3).unwrap();
        restore.finish(6).unwrap();
        assert_eq!(value(&backend, b"\0\0\0\x02a").unwrap(), b"\0\0\0\0\0\0\x01\x02one");
        assert_eq!(value(&backend, b"\0\0\0\x02b"), None);
        let stored = StoredOffset { offset: 6, topic_id: TOPIC, wall_ms: 1_000, stream_time: 258 };
        assert_eq!(backend.offset(STORE, 2).unwrap(), Some(stored));
        assert_eq!(at, RestorePosition { store: STORE, partition: 2, topic_id: TOPIC, next: 6, stream_time: 258 });
    }

    #[test]
    fn each_slice_carries_its_offset_and_a_restore_goes_on_there() {
        let backend = MemoryBackend::new();
        // Room for two such records and an offset: 2 × (11 + 5 + 13) + 60.
        let mut batch = StoreBatch::with_capacity(118);
        let mut at = start();
        let mut killed = Restore::begin(&backend, &mut batch, &mut at, Layout::Timestamped.into(), 1_000);
        for (offset, key) in [b"a", b"b", b"c"].into_iter().enumerate() {
            killed.apply(Some(key), Some(b"value"), 7, offset.try_into().unwrap()).unwrap();
        }
        // It ends here: the third record is never written.
        assert_eq!(at.next, 2);
        assert_eq!(backend.offset(STORE, 2).unwrap().unwrap().offset, 2);
        assert_eq!(value(&backend, b"\0\0\0\x02c"), None);

        let stored = backend.begin_restore(STORE, 2).unwrap();
        let mut at = RestorePosition::new(STORE, 2, TOPIC, stored, 0);
        let mut restore = Restore::begin(&backend, &mut batch, &mut at, Layout::Timestamped.into(), 1_000);
        restore.apply(Some(b"a"), Some(b"again"), 7, 0).unwrap(); // below the position
        restore.apply(Some(b"c"), Some(b"value"), 7, 2).unwrap();
        restore.finish(3).unwrap();
        assert_eq!(value(&backend, b"\0\0\0\x02a").unwrap(), b"\0\0\0\0\0\0\0\x07value");
        assert_eq!(value(&backend, b"\0\0\0\x02c").unwrap(), b"\0\0\0\0\0\0\0\x07value");
    }

    #[test]
    fn a_record_larger_than_the_batch_is_a_typed_error() {
        let backend = MemoryBackend::new();
        let mut batch = StoreBatch::with_capacity(118);
        let mut at = start();
        let mut restore = Restore::begin(&backend, &mut batch, &mut at, Layout::Timestamped.into(), 1_000);
        let error = restore.apply(Some(b"a"), Some(&[0; 100]), 7, 0).unwrap_err();
        assert!(matches!(error, StoreError::TooLarge { needed: 184, capacity: 118 }), "{error:?}");
    }
}
