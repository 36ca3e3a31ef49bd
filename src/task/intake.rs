//! Where a task's batches come from: the fetcher, or lists in a test.
use crate::arena::FrameId;
use crate::client::{FetchedBatch, Fetcher, Slot};

/// What a queue asks of the thread's fetcher.
pub(crate) trait Intake {
    /// The next batch of a partition; its frame is held until [`Intake::release`].
    fn next_batch(&mut self, slot: Slot) -> Option<FetchedBatch>;
    /// The records section of a batch, decompressed.
    fn section(&self, batch: &FetchedBatch) -> &[u8];
    /// Gives a batch's frame back.
    fn release(&mut self, frame: FrameId);
    /// Offset that the next batch of this partition will begin at or after.
    fn position(&self, slot: Slot) -> i64;
    /// Records of this partition that the broker has and that were not handed out; `None` before the first answer.
    fn lag(&self, slot: Slot) -> Option<i64>;
}

impl Intake for Fetcher {
    fn next_batch(&mut self, slot: Slot) -> Option<FetchedBatch> {
        Fetcher::next_batch(self, slot)
    }

    fn section(&self, batch: &FetchedBatch) -> &[u8] {
        Fetcher::records_of(self, batch)
    }

    fn release(&mut self, frame: FrameId) {
        Fetcher::release(self, frame);
    }

    fn position(&self, slot: Slot) -> i64 {
        Fetcher::position(self, slot)
    }

    fn lag(&self, slot: Slot) -> Option<i64> {
        Fetcher::high_watermark(self, slot).map(|high| (high - Fetcher::position(self, slot)).max(0))
    }
}
