//! The stream time of a window or session store: what is older than its retention is not there any more.
//!
//! It is the highest time of a row that went into the store, by partition, as Kafka Streams' segmented stores have it;
//! after a restart it is what was kept with the changelog's offset.
use super::KeyValue;
use crate::codec::Codec;
use crate::node::fault::{Fault, FaultCell};
use crate::store::error::StoreError;
use crate::store::kind::SEGMENT_BYTES;
use crate::store::offset::{PREFIX_BYTES, partition_prefix};

/// Times of a partition, milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Highest time that went into the store; −1 if none, `None` if nobody asked the backend yet.
    observed: Option<i64>,
    /// Highest time of an entry, those that are still in the cache included.
    highest: i64,
    /// Segments below are deleted.
    deleted: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self { observed: None, highest: -1, deleted: 0 }
    }
}

impl<V: Codec> KeyValue<V> {
    fn times(&self, partition: u32) -> Result<Times, StoreError> {
        let Some(all) = &self.times else { return Ok(Times::default()) };
        let mut times = all.get(partition);
        if times.observed.is_none() {
            let stored = self.backend.offset(self.id, partition)?;
            let observed = stored.map_or(-1, |stored| stored.stream_time);
            times.observed = Some(observed);
            times.highest = times.highest.max(observed);
            all.set(partition, times);
        }
        Ok(times)
    }

    /// The store's stream time; −1 before the first row.
    pub(crate) fn observed(&self, fault: &FaultCell, partition: u32) -> Result<i64, Fault> {
        let times = self.times(partition).map_err(|error| self.park(fault, error))?;
        Ok(times.observed.unwrap_or(-1))
    }

    /// As of the last commit, when nothing was changed since.
    pub(super) fn committed_time(&self, partition: u32) -> Result<i64, StoreError> {
        Ok(self.times(partition)?.observed.unwrap_or(-1))
    }

    /// The highest time of a row, those included that wait for a commit.
    pub(super) fn highest(&self, fault: &FaultCell, partition: u32) -> Result<i64, Fault> {
        Ok(self.times(partition).map_err(|error| self.park(fault, error))?.highest)
    }

    /// The stream time if it is known: what is kept with the changelog's offset.
    pub(super) fn known_time(&self, partition: u32) -> Option<i64> {
        self.times.as_ref()?.get(partition).observed
    }

    /// The lowest time of a row that a reader of the store sees.
    pub(super) fn oldest(&self, fault: &FaultCell, partition: u32) -> Result<i64, Fault> {
        if self.kind.retention().is_none() {
            return Ok(i64::MIN);
        }
        Ok(self.kind.oldest(self.observed(fault, partition)?))
    }

    /// Whether the row of this key is older than the retention.
    #[inline]
    pub(super) fn is_expired(&self, fault: &FaultCell, key: &[u8]) -> Result<bool, Fault> {
        if self.kind.retention().is_none() {
            return Ok(false);
        }
        let partition = key.first_chunk::<PREFIX_BYTES>().map_or(0, |prefix| u32::from_be_bytes(*prefix));
        Ok(self.kind.time_of(key) < self.oldest(fault, partition)?)
    }

    /// An entry of this time was changed.
    pub(super) fn note(&self, partition: u32, time: i64) {
        if let Some(all) = &self.times {
            let times = all.get(partition);
            if time > times.highest {
                all.set(partition, Times { highest: time, ..times });
            }
        }
    }

    /// An entry of this time went into the store.
    pub(super) fn observe(&self, partition: u32, time: i64) {
        // An error here comes again where the store is read.
        let (Some(all), Ok(times)) = (&self.times, self.times(partition)) else { return };
        if times.observed < Some(time) {
            all.set(partition, Times { observed: Some(time), ..times });
        }
    }

    /// Deletes segments that the committed stream time has left behind. One deletion of a range, whenever a segment's
    /// time has passed.
    pub(super) fn delete_expired(&self, partition: u32) -> Result<(), StoreError> {
        let (Some(retention), Some(all)) = (self.kind.retention(), &self.times) else { return Ok(()) };
        let times = self.times(partition)?;
        let first = retention.first_kept(times.observed.unwrap_or(-1));
        if first <= times.deleted {
            return Ok(());
        }
        let bound = |segment: u64| {
            let mut key = [0; PREFIX_BYTES + SEGMENT_BYTES];
            let (prefix, rest) = key.split_at_mut(PREFIX_BYTES);
            prefix.copy_from_slice(&partition_prefix(partition));
            rest.copy_from_slice(&segment.to_be_bytes());
            key
        };
        self.backend.delete_range(self.id, &bound(times.deleted), &bound(first))?;
        all.set(partition, Times { deleted: first, ..times });
        Ok(())
    }
}
