//! A wired store as the thread sees it: without types.
use super::fault::{Fault, FaultCell, Flow};
use crate::base::id::StoreId;
use crate::codec::Scratch;
use crate::store::batch::StoreBatch;
use crate::store::error::StoreError;
use crate::store::kind::StoreKind;

/// What one [`StateStore::collect`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Collected {
    /// Operations put into the batch.
    pub(crate) entries: usize,
    /// Whether the batch is full and entries remain: write it, call [`StateStore::written`], clear it and collect
    /// again.
    pub(crate) more: bool,
}

/// The non-generic face of a store that a thread has wired. Entries of all its partitions lie in one overlay.
///
/// The thread's commit: drain every store in topological order until nothing is dirty, flush the producer, check the
/// acknowledgements, commit offsets; then for each partition `collect` → `Backend::write` → `written`, until `more` is
/// false. The changelog offset goes into the last slice.
pub(crate) trait StateStore {
    fn id(&self) -> StoreId;

    /// What kind of store it is.
    fn kind(&self) -> StoreKind;

    /// Appends the pending entries of a partition (forwarded and in the changelog, not in the backend) to the batch,
    /// oldest first.
    fn collect(&self, partition: u32, into: &mut StoreBatch) -> Result<Collected, StoreError>;

    /// What `collect` appended for this partition was written: those entries are clean now.
    fn written(&self, partition: u32);

    /// Drops all entries of the partition, whatever their state: an abort, or the task left.
    fn discard(&self, partition: u32);

    /// Bytes that the store's entries take of the overlay row.
    fn weight(&self) -> usize;

    /// Evicts clean entries until so many bytes are free or none is left; answers the bytes freed.
    fn shed(&self, bytes: usize) -> usize;

    /// The store's own stream time, where rows expire: it is kept with the changelog's offset.
    fn stream_time(&self, partition: u32) -> Option<i64>;

    /// Deletes rows that the committed stream time has left behind. After a commit; bounded work.
    fn expire(&self, partition: u32) -> Result<(), StoreError>;

    /// Replaces `into` by the value's bytes and answers its timestamp; `None` when there is none. For views.
    fn read(&self, fault: &FaultCell, key: &[u8], into: &mut Scratch) -> Result<Option<i64>, Fault>;

    /// Visits all rows of a partition in the store's order: key without the partition, value's bytes, timestamp. For
    /// views.
    #[allow(clippy::type_complexity)] // one closure over a row's three parts
    fn rows(&self, fault: &FaultCell, partition: u32, visit: &mut dyn FnMut(&[u8], &[u8], i64) -> bool) -> Flow;

    /// Whether the store is beyond its room although everything was forwarded and written to the backend that may be
    /// before a commit.
    fn needs_commit(&self) -> bool;
}
