//! A backend in memory, for the driver and the simulation: same contract as RocksDB's, no bound (the test is the
//! bound).
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use super::backend::{Backend, Order};
use super::batch::StoreBatch;
use super::error::StoreError;
use super::offset::{StoredOffset, offset_key, partition_end, partition_prefix};
use crate::base::id::StoreId;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Rows of all stores, in ordered maps.
#[derive(Debug, Default)]
pub(crate) struct MemoryBackend {
    stores: RwLock<Vec<Rows>>,
}

impl MemoryBackend {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn read<T>(&self, store: StoreId, f: impl FnOnce(&Rows) -> T) -> Option<T> {
        self.stores.read().unwrap_or_else(PoisonError::into_inner).get(store.index()).map(f)
    }
}

/// The rows of a store, made on its first write.
fn rows_of(stores: &mut Vec<Rows>, store: StoreId) -> Option<&mut Rows> {
    if stores.len() <= store.index() {
        stores.resize_with(store.index() + 1, Rows::new);
    }
    stores.get_mut(store.index())
}

impl Backend for MemoryBackend {
    fn get(&self, store: StoreId, key: &[u8], into: &mut Vec<u8>) -> Result<bool, StoreError> {
        into.clear();
        let found = self.read(store, |rows| rows.get(key).map(|value| into.extend_from_slice(value)).is_some());
        Ok(found.unwrap_or(false))
    }

    fn write(&self, batch: &StoreBatch) -> Result<(), StoreError> {
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        for op in batch.iter() {
            let Some(rows) = rows_of(&mut stores, op.store) else { continue };
            match op.value {
                Some(value) => rows.insert(op.key.to_vec(), value.to_vec()),
                None => rows.remove(op.key),
            };
        }
        Ok(())
    }

    fn offset(&self, store: StoreId, partition: u32) -> Result<Option<StoredOffset>, StoreError> {
        let key = offset_key(partition);
        let stored = self.read(store, |rows| rows.get(key.as_slice()).map(|value| StoredOffset::decode(value)));
        stored.flatten().transpose()
    }

    fn drop_partition(&self, store: StoreId, partition: u32) -> Result<(), StoreError> {
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = stores.get_mut(store.index()) {
            let (from, to) = (partition_prefix(partition), partition_end(partition));
            rows.remove(offset_key(partition).as_slice());
            rows.retain(|key, _| key.as_slice() < from.as_slice() || key.as_slice() >= to.as_slice());
        }
        Ok(())
    }

    fn delete_range(&self, store: StoreId, from: &[u8], to: &[u8]) -> Result<(), StoreError> {
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = stores.get_mut(store.index()).filter(|_| from < to) {
            let mut behind = rows.split_off(from);
            rows.append(&mut behind.split_off(to));
        }
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
        if from >= to {
            return Ok(());
        }
        // Copied first: the visitor sees a snapshot and may write meanwhile.
        let range = |rows: &Rows| -> Vec<(Vec<u8>, Vec<u8>)> {
            rows.range::<[u8], _>((std::ops::Bound::Included(from), std::ops::Bound::Excluded(to)))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        let mut seen = self.read(store, range).unwrap_or_default();
        if order == Order::Reverse {
            seen.reverse();
        }
        for (key, value) in seen {
            if !visit(&key, &value) {
                break;
            }
        }
        Ok(())
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
    fn a_store_that_was_never_written_is_empty() {
        let backend = MemoryBackend::new();
        let mut into = vec![1];
        assert!(!backend.get(StoreId(9), b"\0\0\0\0k", &mut into).unwrap());
        assert!(into.is_empty());
        assert_eq!(backend.offset(StoreId(9), 0).unwrap(), None);
    }
}
