//! The queue of one input partition: one batch with a cursor, and the head record's time.
//!
//! Records are not copied and not described one by one: the cursor reads them in place when their turn comes, so the
//! queue costs the same for a batch of one record and of ten thousand.
use super::intake::Intake;
use crate::base::id::SourceId;
use crate::client::{FetchedBatch, Slot};
use crate::topology::{Stamped, TimestampPolicy};
use crate::wire::{RecordCursor, RecordPlace, RecordView, WireError};
use std::sync::Arc;

/// Why a batch could not be read on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unreadable {
    /// First offset of the batch.
    pub(crate) base_offset: i64,
    /// What the reader said.
    pub(crate) error: WireError,
}

/// The record that is next in its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its offset.
    pub(crate) offset: i64,
    /// Its timestamp in milliseconds since the epoch.
    pub(crate) timestamp: i64,
}

struct Current {
    batch: FetchedBatch,
    /// Stands behind the head.
    behind: RecordCursor,
    head: Head,
    /// Where the head lies.
    place: RecordPlace,
}

/// One input partition of a task.
pub(crate) struct PartitionQueue {
    /// The source node that its records enter.
    pub(crate) source: SourceId,
    /// Topic name.
    pub(crate) topic: Arc<str>,
    /// Partition number.
    pub(crate) partition: u32,
    slot: Slot,
    current: Option<Current>,
    /// Offset behind the last record processed.
    consumed: i64,
    /// Highest timestamp processed; -1 before the first.
    partition_time: i64,
    timestamps: TimestampPolicy,
    /// Wall time of this turn, milliseconds: what the wall-clock policy answers.
    wall_ms: i64,
    /// Records skipped for their timestamp since the last call of [`PartitionQueue::take_skipped`].
    skipped: u64,
}

/// Where a queue begins and what it belongs to.
pub(crate) struct QueueStart {
    /// The source node that its records enter.
    pub(crate) source: SourceId,
    /// Topic name.
    pub(crate) topic: Arc<str>,
    /// Partition number.
    pub(crate) partition: u32,
    /// The fetcher's handle.
    pub(crate) slot: Slot,
    /// First offset to process.
    pub(crate) offset: i64,
    /// Partition time that was committed beside it, -1 when unknown.
    pub(crate) partition_time: i64,
    /// Which timestamp a record has.
    pub(crate) timestamps: TimestampPolicy,
}

/// What tells the timestamps of a queue's records.
struct Stamping<'q> {
    policy: TimestampPolicy,
    wall_ms: i64,
    topic: &'q str,
    partition: u32,
}

/// The timestamp of a record, `None` when it is to be skipped. A negative one is answered as it is where it must fail.
#[inline]
fn resolve(of: &Stamping<'_>, partition_time: i64, record: &RecordView<'_>) -> Option<i64> {
    let own = record.timestamp;
    match of.policy {
        TimestampPolicy::Wallclock => Some(of.wall_ms),
        TimestampPolicy::By(_) => match of.policy.stamp(record, of.topic, of.partition, [partition_time, of.wall_ms]) {
            Stamped::At(timestamp) => Some(timestamp),
            Stamped::Skip | Stamped::Invalid => None,
        },
        _ if own >= 0 => Some(own),
        TimestampPolicy::UsePartitionTimeOnInvalid => Some(partition_time),
        TimestampPolicy::LogAndSkipOnInvalid => None,
        _ => Some(own),
    }
}

impl PartitionQueue {
    /// Begins where it was left.
    pub(crate) fn new(start: QueueStart) -> Self {
        Self {
            source: start.source,
            topic: start.topic,
            partition: start.partition,
            slot: start.slot,
            current: None,
            consumed: start.offset,
            partition_time: start.partition_time,
            timestamps: start.timestamps,
            wall_ms: 0,
            skipped: 0,
        }
    }

    /// A new turn begins at this wall time.
    pub(crate) fn set_wall_ms(&mut self, wall_ms: i64) {
        self.wall_ms = wall_ms;
    }

    /// Records skipped for their timestamp since the last call.
    pub(crate) fn take_skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }

    /// The fetcher's handle of this partition.
    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    /// Whether no head is ready.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_none()
    }

    /// Highest timestamp processed so far, -1 before the first record.
    pub(crate) fn partition_time(&self) -> i64 {
        self.partition_time
    }

    /// What to commit: the offset of the next record to process. With nothing buffered that is the fetcher's position,
    /// so that control records and compacted gaps at the end do not look like lag.
    pub(crate) fn commit_offset(&self, intake: &impl Intake) -> i64 {
        match &self.current {
            Some(current) => current.head.offset,
            None => self.consumed.max(intake.position(self.slot)),
        }
    }

    /// Makes the head ready if there is one; answers whether there is.
    pub(crate) fn fill(&mut self, intake: &mut impl Intake) -> Result<Option<Head>, Unreadable> {
        loop {
            if let Some(current) = &self.current {
                return Ok(Some(current.head));
            }
            let Some(batch) = intake.next_batch(self.slot) else { return Ok(None) };
            let cursor = RecordCursor::new(&batch.header);
            self.stand(intake, batch, cursor)?;
        }
    }

    /// Finds the first wanted record at or behind the cursor; gives the frame back when there is none.
    fn stand(
        &mut self,
        intake: &mut impl Intake,
        batch: FetchedBatch,
        mut cursor: RecordCursor,
    ) -> Result<(), Unreadable> {
        loop {
            let mut behind = cursor;
            match behind.next(intake.section(&batch)) {
                Ok(Some(record)) if record.offset < batch.skip_below => cursor = behind,
                Ok(Some(record)) => {
                    let (policy, wall_ms) = (self.timestamps, self.wall_ms);
                    let of = Stamping { policy, wall_ms, topic: &self.topic, partition: self.partition };
                    let Some(timestamp) = resolve(&of, self.partition_time, &record) else {
                        self.skipped += 1;
                        self.consumed = record.offset + 1;
                        cursor = behind;
                        continue;
                    };
                    let head = Head { offset: record.offset, timestamp };
                    let place = RecordPlace::new(&record, intake.section(&batch));
                    self.current = Some(Current { batch, behind, head, place });
                    return Ok(());
                }
                Ok(None) => {
                    intake.release(batch.frame);
                    return Ok(());
                }
                Err(error) => {
                    intake.release(batch.frame);
                    return Err(Unreadable { base_offset: batch.header.base_offset, error });
                }
            }
        }
    }

    /// The head's offset and time.
    pub(crate) fn head_info(&self) -> Option<Head> {
        self.current.as_ref().map(|current| current.head)
    }

    /// The head record, in place, with its own timestamp. `None` when [`PartitionQueue::fill`] did not find one.
    #[inline]
    pub(crate) fn head<'a, I: Intake>(&self, intake: &'a I) -> Option<RecordView<'a>> {
        let current = self.current.as_ref()?;
        Some(current.place.view(intake.section(&current.batch)))
    }

    /// The key of the record behind the head, where that is easily told: who keeps state by key may prepare for it.
    #[inline]
    pub(crate) fn key_behind_head<'a, I: Intake>(&self, intake: &'a I) -> Option<&'a [u8]> {
        let current = self.current.as_ref()?;
        let mut behind = current.behind;
        if behind.left() == 0 { None } else { behind.next(intake.section(&current.batch)).ok()??.key }
    }

    /// The head was processed: steps over it.
    #[inline]
    pub(crate) fn advance(&mut self, intake: &mut impl Intake) -> Result<(), Unreadable> {
        let (policy, wall_ms) = (self.timestamps, self.wall_ms);
        let of = Stamping { policy, wall_ms, topic: &self.topic, partition: self.partition };
        let Some(current) = &mut self.current else { return Ok(()) };
        self.consumed = current.head.offset + 1;
        self.partition_time = self.partition_time.max(current.head.timestamp);
        // Nearly always the next record is the head, and nothing else moves.
        let section = intake.section(&current.batch);
        let mut behind = current.behind;
        if let Ok(Some(record)) = behind.next(section)
            && let Some(timestamp) = resolve(&of, self.partition_time, &record)
            && record.offset >= current.batch.skip_below
        {
            current.head = Head { offset: record.offset, timestamp };
            current.place = RecordPlace::new(&record, section);
            current.behind = behind;
            return Ok(());
        }
        match self.current.take() {
            Some(Current { batch, behind, .. }) => self.stand(intake, batch, behind),
            None => Ok(()),
        }
    }

    /// Steps over the head without counting its time: an undecodable record that the handler said to skip.
    pub(crate) fn skip(&mut self, intake: &mut impl Intake) -> Result<(), Unreadable> {
        let time = self.partition_time;
        let done = self.advance(intake);
        self.partition_time = time;
        done
    }

    /// Drops what is buffered and gives its frame back.
    pub(crate) fn clear(&mut self, intake: &mut impl Intake) {
        if let Some(current) = self.current.take() {
            intake.release(current.batch.frame);
        }
    }

    /// Starts again at another offset: what was buffered is dropped.
    pub(crate) fn restart_at(&mut self, offset: i64, intake: &mut impl Intake) {
        self.clear(intake);
        self.consumed = offset;
    }
}
