//! The seam between stores and where their committed rows lie: RocksDB in an application, memory in the driver.
//!
//! Rows are bytes under `partition ‖ key` (see [`super::offset`]); what they mean is the overlay's business. All
//! methods may be called from any thread; writes are atomic.
use super::batch::StoreBatch;
use super::error::StoreError;
use super::offset::{StoredOffset, partition_end, partition_prefix};
use crate::base::id::StoreId;

/// In which order rows are visited: by the bytes of their keys, or the other way round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Forward,
    Reverse,
}

/// Committed rows of all persistent stores of the process.
pub(crate) trait Backend: Send + Sync {
    /// Replaces `into` by the value of a key (partition prefix, then the user's key); false and an empty `into` when
    /// there is none. Once `into` is large enough and the row is in memory, nothing is allocated but 32 bytes that
    /// RocksDB frees before it returns.
    fn get(&self, store: StoreId, key: &[u8], into: &mut Vec<u8>) -> Result<bool, StoreError>;

    /// Applies all operations of the batch, or none. May wait for room in the memtables, at most until a deadline.
    fn write(&self, batch: &StoreBatch) -> Result<(), StoreError>;

    /// The changelog offset stored with a partition of a store.
    fn offset(&self, store: StoreId, partition: u32) -> Result<Option<StoredOffset>, StoreError>;

    /// Deletes all rows of a partition and its offset. Killed at any step, what is left has no offset.
    fn drop_partition(&self, store: StoreId, partition: u32) -> Result<(), StoreError>;

    /// Deletes the rows from `from` (included) to `to` (excluded), for good: rows that nobody wants any more.
    fn delete_range(&self, store: StoreId, from: &[u8], to: &[u8]) -> Result<(), StoreError>;

    /// Visits rows from `from` (included) to `to` (excluded) in this order of their keys, as they were when the scan
    /// began if nobody changes the range meanwhile, until `visit` returns false. The visitor may call the backend.
    fn scan(
        &self,
        store: StoreId,
        from: &[u8],
        to: &[u8],
        order: Order,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError>;

    /// To be called before a partition is restored: where to go on, or `None` after wiping rows that no offset vouches
    /// for.
    fn begin_restore(&self, store: StoreId, partition: u32) -> Result<Option<StoredOffset>, StoreError> {
        let stored = self.offset(store, partition)?;
        if stored.is_none() {
            let mut rows = false;
            let (from, to) = (partition_prefix(partition), partition_end(partition));
            self.scan(store, &from, &to, Order::Forward, &mut |_, _| {
                rows = true;
                false
            })?;
            if rows {
                self.drop_partition(store, partition)?;
            }
        }
        Ok(stored)
    }
}
