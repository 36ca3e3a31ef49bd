//! What has been received and not been handed out yet.
use super::Slot;
use crate::arena::FrameId;
use crate::wire::message::AbortedTransaction;
use std::collections::VecDeque;
use std::ops::Range;

/// Whole batches of one partition in one frame. Each holds one reference of the frame.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) slot: Slot,
    /// [`super::slot::SlotState::life`] at that time.
    pub(super) life: u32,
    pub(super) frame: FrameId,
    /// Where the batches not handed out yet lie.
    pub(super) bytes: Range<usize>,
    /// Offset asked for.
    pub(super) skip_below: i64,
    /// Whether the frame is out of the reserve.
    pub(super) reserved: bool,
    /// Aborted transactions among [`Inbox::aborted`].
    pub(super) aborted: Range<usize>,
}

/// Received batches in order, with the aborted transactions that concern them.
///
/// Bound: three times as many entries as partitions, a third of them for urgent ones, by [`Inbox::has_room`]; the
/// aborted transactions of as many responses as there are frames.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) queue: VecDeque<Pending>,
    pub(super) aborted: Vec<AbortedTransaction>,
    partitions: usize,
}

impl Inbox {
    /// Makes room for so many partitions.
    pub(super) fn reserve(&mut self, partitions: usize) {
        self.partitions = self.partitions.max(partitions);
        self.queue.reserve((3 * self.partitions).saturating_sub(self.queue.len()));
    }

    /// Whether another response, for so many partitions, may be taken in.
    pub(super) fn has_room(&self, partitions: usize, urgent: bool) -> bool {
        let limit = if urgent { 3 } else { 2 } * self.partitions;
        self.queue.len() + partitions <= limit
    }

    /// Notes the aborted transactions of the entry about to be pushed.
    pub(super) fn note_aborted(&mut self, aborted: impl Iterator<Item = AbortedTransaction>) -> Range<usize> {
        if self.queue.is_empty() {
            self.aborted.clear();
        }
        let start = self.aborted.len();
        self.aborted.extend(aborted);
        start..self.aborted.len()
    }

    /// Whether a transaction of this producer that reaches down to `last_offset` was aborted and its end not passed.
    pub(super) fn is_aborted(&self, among: &Range<usize>, producer_id: i64, last_offset: i64) -> bool {
        let among = self.aborted.get(among.clone()).unwrap_or_default();
        among.iter().any(|a| a.producer_id == producer_id && a.first_offset <= last_offset)
    }

    /// Passes the abort marker of this producer at `offset`.
    pub(super) fn end_aborted(&mut self, among: &Range<usize>, producer_id: i64, offset: i64) {
        let among = self.aborted.get_mut(among.clone()).unwrap_or_default();
        for a in among.iter_mut().filter(|a| a.producer_id == producer_id && a.first_offset <= offset) {
            a.first_offset = i64::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_void_from_its_first_offset_to_its_marker() {
        let mut inbox = Inbox::default();
        let aborted = [(7, 10), (8, 12), (7, 30)];
        let among = inbox.note_aborted(
            aborted.into_iter().map(|(producer_id, first_offset)| AbortedTransaction { producer_id, first_offset }),
        );
        assert!(!inbox.is_aborted(&among, 7, 9));
        assert!(inbox.is_aborted(&among, 7, 10));
        assert!(!inbox.is_aborted(&among, 9, 10));
        inbox.end_aborted(&among, 7, 15);
        assert!(!inbox.is_aborted(&among, 7, 20), "the next transaction of the same producer was committed");
        assert!(inbox.is_aborted(&among, 8, 20));
        assert!(inbox.is_aborted(&among, 7, 30), "and the one after it aborted");
    }
}
