//! Stores on disk and stores in memory behind one face.
//!
//! Owns which store lies where. Invariant: a batch is for stores of one kind only, as every commit, spill and restore
//! writes one store. Made once, when the database is opened.
use super::backend::{Backend, Order};
use super::batch::StoreBatch;
use super::error::StoreError;
use super::memory::MemoryBackend;
use super::offset::StoredOffset;
use crate::base::id::StoreId;
use std::sync::Arc;

/// Two backends.
pub(crate) struct SplitBackend {
    disk: Arc<dyn Backend>,
    memory: MemoryBackend,
    /// By store.
    in_memory: Vec<bool>,
}

impl SplitBackend {
    pub(crate) fn new(disk: Arc<dyn Backend>, memory: MemoryBackend, in_memory: Vec<bool>) -> Self {
        Self { disk, memory, in_memory }
    }

    fn of(&self, store: StoreId) -> &dyn Backend {
        if self.in_memory.get(store.index()) == Some(&true) { &self.memory } else { &*self.disk }
    }
}

impl Backend for SplitBackend {
    fn get(&self, store: StoreId, key: &[u8], into: &mut Vec<u8>) -> Result<bool, StoreError> {
        self.of(store).get(store, key, into)
    }

    fn write(&self, batch: &StoreBatch) -> Result<(), StoreError> {
        match batch.iter().next() {
            Some(first) => self.of(first.store).write(batch),
            None => Ok(()),
        }
    }

    fn offset(&self, store: StoreId, partition: u32) -> Result<Option<StoredOffset>, StoreError> {
        self.of(store).offset(store, partition)
    }

    fn drop_partition(&self, store: StoreId, partition: u32) -> Result<(), StoreError> {
        self.of(store).drop_partition(store, partition)
    }

    fn delete_range(&self, store: StoreId, from: &[u8], to: &[u8]) -> Result<(), StoreError> {
        self.of(store).delete_range(store, from, to)
    }

    fn scan(
        &self,
        store: StoreId,
        from: &[u8],
        to: &[u8],
        order: Order,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.of(store).scan(store, from, to, order, visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_store_lies_where_it_should() {
        let disk = Arc::new(MemoryBackend::new());
        let split = SplitBackend::new(Arc::clone(&disk) as Arc<dyn Backend>, MemoryBackend::new(), vec![false, true]);
        let mut batch = StoreBatch::with_capacity(100);
        for store in [StoreId(0), StoreId(1)] {
            batch.clear();
            batch.put(store, b"\0\0\0\0k", b"v").unwrap();
            split.write(&batch).unwrap();
        }
        let mut into = Vec::new();
        let mut found = |backend: &dyn Backend, store| backend.get(StoreId(store), b"\0\0\0\0k", &mut into).unwrap();
        assert_eq!([found(&split, 0), found(&split, 1)], [true, true]);
        assert_eq!([found(&*disk, 0), found(&*disk, 1)], [true, false]);
    }
}
