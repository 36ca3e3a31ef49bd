//! Deleting versions that are no part of the history any more.
//!
//! After a commit, by the committed stream time: a part of the partition's rows is looked through, in proportion to
//! what the commit wrote, and the next time it goes on from there.
use super::KeyValue;
use crate::codec::Codec;
use crate::store::backend::Order;
use crate::store::error::StoreError;
use crate::store::kind::{NONE, version_parts};
use crate::store::offset::{PREFIX_BYTES, partition_end, partition_prefix};
use crate::store::overlay::core::State;

/// Rows that are looked through with each commit, beside two for each that was written.
const ROWS: usize = 64;

/// Where the next sweep of a partition begins.
pub(super) struct Sweep {
    pub(super) partition: u32,
    from: Vec<u8>,
    /// Rows written since the last one.
    pub(super) written: usize,
}

impl Sweep {
    pub(super) fn new(partition: u32) -> Self {
        Self { partition, from: Vec::new(), written: 0 }
    }
}

/// What a sweep has seen.
struct Seen {
    rows: usize,
    last: Vec<u8>,
    /// Whether the row before was the first of its key that is left, and is nothing but an old mark.
    mark: bool,
    is_first_key: bool,
}

impl<V: Codec> KeyValue<V> {
    /// Rows of a versioned store that were put into a batch.
    pub(super) fn count_written(&self, partition: u32, rows: usize) {
        if self.kind.history().is_some() {
            let mut sweeps = self.sweeps.borrow_mut();
            match sweeps.iter_mut().find(|sweep| sweep.partition == partition) {
                Some(sweep) => sweep.written += rows,
                None => sweeps.push(Sweep { written: rows, ..Sweep::new(partition) }),
            }
        }
    }

    pub(super) fn sweep(&self, partition: u32) -> Result<(), StoreError> {
        let Some(history_ms) = self.kind.history() else { return Ok(()) };
        let mut sweeps = self.sweeps.borrow_mut();
        let Some(sweep) = sweeps.iter_mut().find(|sweep| sweep.partition == partition && sweep.written > 0) else {
            return Ok(());
        };
        let horizon = self.committed_time(partition)?.saturating_sub(history_ms);
        let most = ROWS + 2 * std::mem::take(&mut sweep.written);
        let begin = partition_prefix(partition);
        let from = if sweep.from.is_empty() { begin.to_vec() } else { std::mem::take(&mut sweep.from) };
        let mut old = Vec::new();
        let mut seen = Seen { rows: 0, last: Vec::new(), mark: false, is_first_key: true };
        self.backend.scan(self.id, &from, &partition_end(partition), Order::Forward, &mut |key, row| {
            seen.row(key, row, horizon, &mut old);
            seen.rows < most
        })?;
        if seen.rows >= most {
            // The last row is looked at again: what comes behind it is not known.
            sweep.from = seen.last;
        } else if seen.mark {
            old.push(seen.last);
        }
        self.delete_all(&old)
    }

    fn delete_all(&self, keys: &[Vec<u8>]) -> Result<(), StoreError> {
        let mut batch = self.spill.borrow_mut();
        batch.clear();
        let mut overlay = self.overlay.borrow_mut();
        for key in keys {
            let slot = overlay.core().find(key);
            if slot.is_some_and(|slot| overlay.core().state(slot) != State::Clean) {
                continue;
            }
            if batch.delete(self.id, key).is_err() {
                break;
            }
            if let Some(slot) = slot {
                overlay.release(slot);
            }
        }
        self.backend.write(&batch)?;
        batch.clear();
        Ok(())
    }
}

impl Seen {
    fn row(&mut self, key: &[u8], row: &[u8], horizon: i64, old: &mut Vec<Vec<u8>>) {
        self.rows += 1;
        let (user, time) = version_parts(key.get(PREFIX_BYTES..).unwrap_or_default());
        let (before, _) = version_parts(self.last.get(PREFIX_BYTES..).unwrap_or_default());
        let is_same = !self.last.is_empty() && before == user;
        if is_same && time <= horizon {
            // The version before ended before the history.
            old.push(self.last.clone());
        } else if self.mark && !is_same {
            old.push(self.last.clone());
        }
        self.is_first_key &= self.last.is_empty() || is_same;
        // A mark may go when nothing older of its key is left: it was seen from the key's beginning.
        let is_old_mark = row.first() == Some(&NONE) && time <= horizon;
        self.mark = is_old_mark && !self.is_first_key;
        self.last.clear();
        self.last.extend_from_slice(key);
    }
}
