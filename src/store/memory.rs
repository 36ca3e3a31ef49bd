//! A backend in memory: for stores whose rows are kept there, for the driver and the simulation. Same contract as
//! RocksDB's.
//!
//! Owns rows in ordered maps. Invariant: `used` is what all rows weigh. Bound: the limit that it was made with; a batch
//! that would go beyond it is refused as a whole. Rows of a task that has left the process stay, with their offset,
//! until it comes back: its restore goes on from there.
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use super::backend::{Backend, Order};
use super::batch::StoreBatch;
use super::error::StoreError;
use super::offset::{StoredOffset, offset_key, partition_end, partition_prefix};
use crate::base::id::StoreId;
use plimsoll_alloc::{Module, scope};
use std::ops::Bound;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Bytes of a row beside its key and value: two vectors, their blocks' rounding and its share of the map's nodes.
pub(crate) const ROW_BYTES: usize = 112;
/// Rows that a scan copies at a time.
const COPIED_ROWS: usize = 64;

/// Rows of all stores.
#[derive(Debug)]
pub(crate) struct MemoryBackend {
    all: RwLock<All>,
    limit: usize,
}

#[derive(Debug, Default)]
struct All {
    stores: Vec<Rows>,
    used: usize,
}

impl All {
    /// The rows of a store, made on its first write.
    fn rows(&mut self, store: StoreId) -> Option<&mut Rows> {
        if self.stores.len() <= store.index() {
            self.stores.resize_with(store.index() + 1, Rows::new);
        }
        self.stores.get_mut(store.index())
    }

    fn put(&mut self, store: StoreId, key: &[u8], value: &[u8]) {
        let Some(rows) = self.rows(store) else { return };
        let weight = weight(key, value);
        let old = match rows.get_mut(key) {
            Some(old) => {
                let gone = key.len() + old.len() + ROW_BYTES;
                old.clear();
                old.extend_from_slice(value);
                old.shrink_to_fit();
                gone
            }
            None => {
                rows.insert(key.to_vec(), value.to_vec());
                0
            }
        };
        self.used = self.used + weight - old;
    }

    fn delete(&mut self, store: StoreId, key: &[u8]) {
        let gone = self.rows(store).and_then(|rows| rows.remove(key));
        self.used -= gone.map_or(0, |value| weight(key, &value));
    }

    fn delete_range(&mut self, store: StoreId, from: &[u8], to: &[u8]) {
        let Some(rows) = self.rows(store).filter(|_| from < to) else { return };
        let mut gone = rows.split_off(from);
        rows.append(&mut gone.split_off(to));
        self.used -= gone.iter().map(|(key, value)| weight(key, value)).sum::<usize>();
    }

    /// Bytes by which the batch makes everything grow.
    fn growth(&self, batch: &StoreBatch) -> usize {
        let old = |store: StoreId, key: &[u8]| self.stores.get(store.index())?.get(key).map(|value| weight(key, value));
        batch.iter().fold(0usize, |sum, op| {
            let new = op.value.map_or(0, |value| weight(op.key, value));
            sum.saturating_add(new.saturating_sub(old(op.store, op.key).unwrap_or(0)))
        })
    }
}

fn weight(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len() + ROW_BYTES
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::with_limit(usize::MAX)
    }
}

impl MemoryBackend {
    /// Without a limit: the test is the bound.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Rows of at most so many bytes.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self { all: RwLock::default(), limit }
    }

    fn read<T>(&self, store: StoreId, f: impl FnOnce(&Rows) -> T) -> Option<T> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).stores.get(store.index()).map(f)
    }
}

impl Backend for MemoryBackend {
    fn get(&self, store: StoreId, key: &[u8], into: &mut Vec<u8>) -> Result<bool, StoreError> {
        into.clear();
        let found = self.read(store, |rows| rows.get(key).map(|value| into.extend_from_slice(value)).is_some());
        Ok(found.unwrap_or(false))
    }

    fn write(&self, batch: &StoreBatch) -> Result<(), StoreError> {
        let _scope = scope(Module::Cache);
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        if self.limit < usize::MAX {
            let needed = all.used.saturating_add(all.growth(batch));
            if needed > self.limit && needed > all.used {
                return Err(StoreError::MemoryFull { needed, limit: self.limit });
            }
        }
        for op in batch.iter() {
            match op.value {
                Some(value) => all.put(op.store, op.key, value),
                None => all.delete(op.store, op.key),
            }
        }
        Ok(())
    }

    fn offset(&self, store: StoreId, partition: u32) -> Result<Option<StoredOffset>, StoreError> {
        let key = offset_key(partition);
        let stored = self.read(store, |rows| rows.get(key.as_slice()).map(|value| StoredOffset::decode(value)));
        stored.flatten().transpose()
    }

    fn drop_partition(&self, store: StoreId, partition: u32) -> Result<(), StoreError> {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.delete(store, &offset_key(partition));
        all.delete_range(store, &partition_prefix(partition), &partition_end(partition));
        Ok(())
    }

    fn delete_range(&self, store: StoreId, from: &[u8], to: &[u8]) -> Result<(), StoreError> {
        self.all.write().unwrap_or_else(PoisonError::into_inner).delete_range(store, from, to);
        Ok(())
    }

    fn scan(
        &self,
        store: StoreId,
        from: &[u8],
        to: &[u8],
        order: Order,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        // Copied some at a time, so that the visitor may come here again.
        let mut bounds = (Bound::Included(from.to_vec()), Bound::Excluded(to.to_vec()));
        let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        while is_range(&bounds) {
            let copied: Option<Vec<_>> = self.read(store, |rows| {
                let range = rows.range(bounds.clone());
                match order {
                    Order::Forward => range.take(COPIED_ROWS).map(owned).collect(),
                    Order::Reverse => range.rev().take(COPIED_ROWS).map(owned).collect(),
                }
            });
            let copied = copied.unwrap_or_default();
            if !copied.iter().all(|(key, value)| visit(key, value)) || copied.len() < COPIED_ROWS {
                break;
            }
            let Some((last, _)) = copied.into_iter().next_back() else { break };
            match order {
                Order::Forward => bounds.0 = Bound::Excluded(last),
                Order::Reverse => bounds.1 = Bound::Excluded(last),
            }
        }
        Ok(())
    }
}

/// Whether a map may be asked for it.
fn is_range(bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> bool {
    match bounds {
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to)) => from < to,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract;
    use super::*;

    #[test]
    fn it_keeps_the_contract_of_a_backend() {
        contract::rows_and_offsets_are_written_together(&MemoryBackend::new());
        contract::a_scan_is_bounded_ordered_and_a_snapshot(&MemoryBackend::new());
        contract::a_dropped_partition_leaves_its_neighbours(&MemoryBackend::new());
        contract::rows_without_an_offset_are_wiped_before_a_restore(&MemoryBackend::new());
    }

    #[test]
    fn a_batch_beyond_the_limit_is_refused_as_a_whole_and_what_goes_makes_room() {
        let backend = MemoryBackend::with_limit(3 * (ROW_BYTES + 10));
        let mut batch = StoreBatch::with_capacity(4096);
        for n in 0..3u8 {
            batch.put(StoreId(0), &[0, 0, 0, 0, n], b"value").unwrap();
        }
        backend.write(&batch).unwrap();
        batch.clear();
        batch.put(StoreId(0), &[0, 0, 0, 0, 1], b"again").unwrap();
        batch.put(StoreId(0), &[0, 0, 0, 0, 3], b"value").unwrap();
        let error = backend.write(&batch).unwrap_err();
        assert!(matches!(error, StoreError::MemoryFull { needed: 488, limit: 366 }), "{error:?}");
        let mut into = Vec::new();
        backend.get(StoreId(0), &[0, 0, 0, 0, 1], &mut into).unwrap();
        assert_eq!(into, b"value");
        backend.delete_range(StoreId(0), &[0, 0, 0, 0, 0], &[0, 0, 0, 0, 1]).unwrap();
        backend.write(&batch).unwrap();
        backend.drop_partition(StoreId(0), 0).unwrap();
        assert_eq!(backend.all.read().unwrap().used, 0);
    }

    #[test]
    fn a_scan_of_many_rows_copies_some_at_a_time() {
        let backend = MemoryBackend::new();
        let mut batch = StoreBatch::with_capacity(1 << 16);
        for n in 0..300u32 {
            batch.put(StoreId(0), &[[0; 4], n.to_be_bytes()].concat(), b"v").unwrap();
        }
        backend.write(&batch).unwrap();
        for order in [Order::Forward, Order::Reverse] {
            let mut seen = Vec::new();
            let mut visit = |key: &[u8], _: &[u8]| {
                seen.push(u32::from_be_bytes(key[4..].try_into().unwrap()));
                true
            };
            backend.scan(StoreId(0), &[0; 4], &[0, 0, 0, 1], order, &mut visit).unwrap();
            let mut all: Vec<u32> = (0..300).collect();
            if order == Order::Reverse {
                all.reverse();
            }
            assert_eq!(seen, all);
        }
    }

    #[test]
    fn a_store_that_was_never_written_is_empty() {
        let backend = MemoryBackend::new();
        let mut into = vec![1];
        assert!(!backend.get(StoreId(9), b"\0\0\0\0k", &mut into).unwrap());
        assert!(into.is_empty());
        assert_eq!(backend.offset(StoreId(9), 0).unwrap(), None);
    }
}
