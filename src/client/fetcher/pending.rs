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
    /// Where in the frame the entry began.
    pub(super) first: usize,
    /// Offset asked for.
    pub(super) skip_below: i64,
    /// Whether the frame is out of the reserve.
    pub(super) reserved: bool,
    /// Aborted transactions, by their number since the start.
    pub(super) aborted: Range<u64>,
}

/// Received batches in order, with the aborted transactions that concern them.
///
/// Bound: three times as many entries as partitions, a third of them for urgent ones, by [`Inbox::has_room`]; the
/// aborted transactions of the responses that have an entry in the queue.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) queue: VecDeque<Pending>,
    pub(super) aborted: VecDeque<AbortedTransaction>,
    /// Number of the first of them.
    first: u64,
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

    /// Forgets the aborted transactions that no entry needs any more; once a response.
    pub(super) fn forget_aborted(&mut self) {
        let end = self.none_aborted().end;
        let needed = self.queue.iter().map(|pending| pending.aborted.start).min().unwrap_or(end);
        let gone = usize::try_from(needed.saturating_sub(self.first)).unwrap_or(0).min(self.aborted.len());
        self.aborted.drain(..gone);
        self.first += gone as u64;
    }

    /// Notes the aborted transactions of the entry about to be pushed.
    pub(super) fn note_aborted(&mut self, aborted: impl Iterator<Item = AbortedTransaction>) -> Range<u64> {
        let start = self.none_aborted().end;
        self.aborted.extend(aborted);
        start..self.none_aborted().end
    }

    /// The numbers of an entry without aborted transactions.
    pub(super) fn none_aborted(&self) -> Range<u64> {
        let end = self.first + self.aborted.len() as u64;
        end..end
    }

    /// Whether a transaction of this producer that reaches down to `last_offset` was aborted and its end not passed.
    pub(super) fn is_aborted(&self, among: &Range<u64>, producer_id: i64, last_offset: i64) -> bool {
        let places = self.places(among);
        self.aborted.range(places).any(|a| a.producer_id == producer_id && a.first_offset <= last_offset)
    }

    /// Passes the abort marker of this producer at `offset`.
    pub(super) fn end_aborted(&mut self, among: &Range<u64>, producer_id: i64, offset: i64) {
        let places = self.places(among);
        let own = |a: &&mut AbortedTransaction| a.producer_id == producer_id && a.first_offset <= offset;
        for aborted in self.aborted.range_mut(places).filter(own) {
            aborted.first_offset = i64::MAX;
        }
    }

    fn places(&self, among: &Range<u64>) -> Range<usize> {
        let place = |number: u64| usize::try_from(number.saturating_sub(self.first)).unwrap_or(0);
        let end = place(among.end).min(self.aborted.len());
        place(among.start).min(end)..end
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

    #[test]
    fn aborted_transactions_are_kept_only_as_long_as_an_entry_needs_them() {
        let mut inbox = Inbox::default();
        let mut pool = crate::arena::FramePool::new(3, 1_024, 1, crate::arena::Oversize::none());
        let frame = pool.take().unwrap();
        let frame = pool.seal(frame, 0);
        for round in 0..1_000 {
            let one = AbortedTransaction { producer_id: 7, first_offset: round };
            inbox.forget_aborted();
            let aborted = inbox.note_aborted([one; 3].into_iter());
            assert!(inbox.is_aborted(&aborted, 7, round));
            assert!(!inbox.is_aborted(&aborted, 7, round - 1), "those of other entries do not count");
            let (slot, bytes) = (Slot::from_index(0), 0..0);
            inbox.queue.push_back(Pending {
                slot,
                life: 0,
                frame,
                bytes,
                first: 0,
                skip_below: 0,
                reserved: false,
                aborted,
            });
            // The queue is never empty.
            if round > 0 {
                inbox.queue.pop_front();
            }
            assert!(inbox.aborted.len() <= 6, "{}", inbox.aborted.len());
        }
    }
}
