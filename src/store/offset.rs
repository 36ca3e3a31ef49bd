//! Keys of a store on disk, and the changelog offset that lies beside its data.
//!
//! A row's key is the 4-byte big-endian partition followed by the user's key. Offsets lie in the same family and in the
//! same write batch, under a prefix that is no partition (partitions are below 2³¹), so that no deletion of a
//! partition's range or files covers them. A partition with rows but without an offset is a half-dropped or
//! half-restored one: it is deleted at open and before a restore. So every partition that has rows has an offset, also
//! that of a store without changelog (0).
use super::error::StoreError;

/// Bytes of the partition in front of every key.
pub(crate) const PREFIX_BYTES: usize = 4;
/// First bytes of the keys of offsets; above every partition.
const OFFSET_PREFIX: [u8; 4] = [0xff; 4];
/// Bytes of an offset's key.
pub(crate) const OFFSET_KEY_BYTES: usize = 8;
/// Bytes of a stored offset: version, offset, topic id, wall clock, stream time.
pub(crate) const OFFSET_VALUE_BYTES: usize = 41;
const VERSION: u8 = 1;

/// The four bytes in front of every key of a partition.
#[inline]
pub(crate) fn partition_prefix(partition: u32) -> [u8; PREFIX_BYTES] {
    partition.to_be_bytes()
}

/// The first key behind a partition's rows.
#[inline]
pub(crate) fn partition_end(partition: u32) -> [u8; PREFIX_BYTES] {
    partition.saturating_add(1).to_be_bytes()
}

/// Where a partition's offset lies in its store's family.
#[inline]
pub(crate) fn offset_key(partition: u32) -> [u8; OFFSET_KEY_BYTES] {
    let mut key = [0; OFFSET_KEY_BYTES];
    key[..4].copy_from_slice(&OFFSET_PREFIX);
    key[4..].copy_from_slice(&partition.to_be_bytes());
    key
}

/// What is stored with each partition of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StoredOffset {
    /// The next offset of the changelog to apply: everything below is in the store. 0 if there is no changelog.
    pub(crate) offset: i64,
    /// Id of the changelog topic the offset belongs to; zeros when the broker gives none.
    pub(crate) topic_id: [u8; 16],
    /// Wall clock of the write, in milliseconds since the Unix epoch.
    pub(crate) wall_ms: i64,
    /// The store's stream time: the highest timestamp committed to it, −1 if none.
    pub(crate) stream_time: i64,
}

/// A partition of a changelog as the brokers have it now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Changelog {
    /// Id of the topic; zeros when the broker gives none.
    pub(crate) topic_id: [u8; 16],
    /// First offset that is still there.
    pub(crate) start: i64,
    /// Offset that the next record will get.
    pub(crate) end: i64,
    /// How long tombstones stay, milliseconds.
    pub(crate) delete_retention_ms: i64,
}

impl StoredOffset {
    pub(crate) fn encode(&self) -> [u8; OFFSET_VALUE_BYTES] {
        let mut bytes = [0; OFFSET_VALUE_BYTES];
        bytes[0] = VERSION;
        bytes[1..9].copy_from_slice(&self.offset.to_be_bytes());
        bytes[9..25].copy_from_slice(&self.topic_id);
        bytes[25..33].copy_from_slice(&self.wall_ms.to_be_bytes());
        bytes[33..41].copy_from_slice(&self.stream_time.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let corrupt = || StoreError::Corrupt {
            message: format!("a stored offset of {} bytes and version {:?}", bytes.len(), bytes.first()),
        };
        if bytes.first() != Some(&VERSION) || bytes.len() != OFFSET_VALUE_BYTES {
            return Err(corrupt());
        }
        let i64_at = |at: usize| -> Result<i64, StoreError> {
            let part = bytes.get(at..at + 8).and_then(|part| <[u8; 8]>::try_from(part).ok());
            part.map(i64::from_be_bytes).ok_or_else(corrupt)
        };
        let topic_id = bytes.get(9..25).and_then(|part| <[u8; 16]>::try_from(part).ok()).ok_or_else(corrupt)?;
        Ok(Self { offset: i64_at(1)?, topic_id, wall_ms: i64_at(25)?, stream_time: i64_at(33)? })
    }

    /// Whether the state under this offset may be continued: the changelog is the same topic (brokers that give no ids
    /// are believed), still has the offset, and the state was written recently enough (half of the changelog's
    /// `delete.retention.ms`) that no tombstone it misses can have been compacted away. Otherwise the partition is
    /// dropped and restored from the beginning.
    pub(crate) fn is_usable(&self, log: &Changelog, now_ms: i64) -> bool {
        let unknown = [0; 16];
        let same = self.topic_id == log.topic_id || self.topic_id == unknown || log.topic_id == unknown;
        let age = now_ms.saturating_sub(self.wall_ms);
        same && (log.start..=log.end).contains(&self.offset) && age <= log.delete_retention_ms / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: StoredOffset = StoredOffset { offset: 258, topic_id: [7; 16], wall_ms: 1_000, stream_time: 999 };

    #[test]
    fn keys_of_offsets_are_above_every_partition() {
        assert_eq!(offset_key(3), [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 3]);
        assert_eq!(partition_end(3), [0, 0, 0, 4]);
        assert!(partition_end(i32::MAX.unsigned_abs()).as_slice() < offset_key(0).as_slice());
    }

    #[test]
    fn an_offset_is_stored_in_41_bytes_and_read_back() {
        let bytes = SAMPLE.encode();
        assert_eq!(bytes[..9], [1, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(StoredOffset::decode(&bytes).unwrap(), SAMPLE);
        assert!(matches!(StoredOffset::decode(&bytes[..40]), Err(StoreError::Corrupt { .. })));
        assert!(matches!(StoredOffset::decode(&[2; 41]), Err(StoreError::Corrupt { .. })));
        assert!(matches!(StoredOffset::decode(&[]), Err(StoreError::Corrupt { .. })));
    }

    #[test]
    fn state_of_another_topic_or_older_than_half_the_retention_is_not_continued() {
        let log = Changelog { topic_id: [7; 16], start: 200, end: 300, delete_retention_ms: 1_000 };
        assert!(SAMPLE.is_usable(&log, 1_500));
        assert!(!SAMPLE.is_usable(&log, 1_501));
        assert!(!SAMPLE.is_usable(&Changelog { topic_id: [8; 16], ..log }, 1_500));
        assert!(SAMPLE.is_usable(&Changelog { topic_id: [0; 16], ..log }, 1_500));
    }

    #[test]
    fn an_offset_that_the_changelog_does_not_have_is_not_continued() {
        let log = Changelog { topic_id: [7; 16], start: 258, end: 258, delete_retention_ms: 1_000 };
        assert!(SAMPLE.is_usable(&log, 1_000));
        assert!(!SAMPLE.is_usable(&Changelog { start: 259, end: 300, ..log }, 1_000));
        assert!(!SAMPLE.is_usable(&Changelog { start: 0, end: 257, ..log }, 1_000));
    }
}
