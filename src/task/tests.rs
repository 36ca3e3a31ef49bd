//! Queues and the choice of the next record, over lists instead of a fetcher.
use super::group::{Choice, PartitionGroup};
use super::intake::Intake;
use super::queue::{PartitionQueue, QueueStart};
use crate::arena::{FrameId, FramePool, Oversize};
use crate::base::id::SourceId;
use crate::client::{FetchedBatch, Slot};
use crate::topology::TimestampPolicy;
use crate::wire::{BatchBuilder, BatchHeader, Compression, Compressor, RawHeaders, Stamp};
use std::collections::VecDeque;
use std::sync::Arc;

const FRAME_BYTES: usize = 4_096;

/// Partitions as lists of batches in frames.
struct Lists {
    pool: FramePool,
    batches: Vec<VecDeque<FetchedBatch>>,
    positions: Vec<i64>,
    ends: Vec<Option<i64>>,
}

impl Lists {
    fn new(partitions: usize) -> Self {
        Self {
            pool: FramePool::new(16, FRAME_BYTES, 1, Oversize::none()),
            batches: (0..partitions).map(|_| VecDeque::new()).collect(),
            positions: vec![0; partitions],
            ends: vec![Some(0); partitions],
        }
    }

    /// A batch of records (offset, timestamp), as a broker would hold it.
    fn push(&mut self, partition: usize, base_offset: i64, timestamps: &[i64]) {
        let mut frame = self.pool.take().expect("a free frame");
        let mut builder = BatchBuilder::default();
        for timestamp in timestamps {
            builder.append(frame.bytes_mut(), *timestamp, Some(b"k"), Some(b"v"), RawHeaders::EMPTY).unwrap();
        }
        let stamp = Stamp { producer_id: -1, producer_epoch: -1, base_sequence: -1, transactional: false };
        let mut plain = Compressor::new(Compression::None, FRAME_BYTES).unwrap();
        let len = builder.seal(frame.bytes_mut(), &stamp, &mut plain).unwrap();
        frame.bytes_mut()[..8].copy_from_slice(&base_offset.to_be_bytes());
        let header = BatchHeader::peek(&frame.bytes()[..len]).unwrap().unwrap();
        let records = header.section(&frame.bytes()[..len]).unwrap().len();
        let section = (len - records) as u32..len as u32;
        let frame = self.pool.seal(frame, len);
        let slot = Slot::from_index(partition);
        self.batches[partition].push_back(FetchedBatch { slot, frame, section, header, skip_below: base_offset });
        self.ends[partition] = Some(base_offset + timestamps.len() as i64);
    }
}

impl Intake for Lists {
    fn next_batch(&mut self, slot: Slot) -> Option<FetchedBatch> {
        let batch = self.batches[slot.index()].pop_front()?;
        self.positions[slot.index()] = batch.header.next_offset();
        Some(batch)
    }

    fn section(&self, batch: &FetchedBatch) -> &[u8] {
        &self.pool.bytes(batch.frame)[batch.section.start as usize..batch.section.end as usize]
    }

    fn release(&mut self, frame: FrameId) {
        self.pool.release(frame);
    }

    fn position(&self, slot: Slot) -> i64 {
        self.positions[slot.index()]
    }

    fn lag(&self, slot: Slot) -> Option<i64> {
        self.ends[slot.index()].map(|end| end - self.positions[slot.index()])
    }
}

fn queue(partition: usize, timestamps: TimestampPolicy) -> PartitionQueue {
    PartitionQueue::new(QueueStart {
        source: SourceId(0),
        topic: Arc::from("t"),
        partition: partition as u32,
        slot: Slot::from_index(partition),
        offset: 0,
        partition_time: -1,
        timestamps,
    })
}

fn group(partitions: usize, max_idle_ms: i64) -> PartitionGroup {
    PartitionGroup::new((0..partitions).map(|p| queue(p, TimestampPolicy::FailOnInvalid)).collect(), max_idle_ms)
}

/// Processes everything that may be processed at `now`: (partition, timestamp) in order.
fn drain(group: &mut PartitionGroup, lists: &mut Lists, now: i64) -> Vec<(u32, i64)> {
    let mut order = Vec::new();
    while let Choice::Ready(index) = group.choose(lists, now).unwrap() {
        let head = group.queues()[index].head_info().unwrap();
        order.push((group.queues()[index].partition, head.timestamp));
        group.observe(head.timestamp);
        group.queue_mut(index).unwrap().advance(lists).unwrap();
    }
    order
}

#[test]
fn records_of_two_partitions_come_in_the_order_of_their_timestamps() {
    let mut lists = Lists::new(2);
    lists.push(0, 0, &[10, 30, 50]);
    lists.push(1, 0, &[20, 30, 60]);
    let mut group = group(2, -1);
    assert_eq!(drain(&mut group, &mut lists, 0), [(0, 10), (1, 20), (0, 30), (1, 30), (0, 50), (1, 60)]);
    assert_eq!(group.stream_time(), 60);
    assert_eq!(lists.pool.free(), 15, "every frame is back");
}

#[test]
fn a_partition_with_known_lag_is_waited_for_and_one_without_is_not() {
    let mut lists = Lists::new(2);
    lists.push(0, 0, &[10]);
    lists.ends[1] = Some(1);
    let mut waiting = group(2, 0);
    assert!(matches!(waiting.choose(&mut lists, 5).unwrap(), Choice::Waiting(_)), "the broker has a record");
    lists.ends[1] = None;
    assert!(matches!(waiting.choose(&mut lists, 5).unwrap(), Choice::Waiting(_)), "nothing is known yet");
    lists.ends[1] = Some(0);
    assert_eq!(waiting.choose(&mut lists, 5).unwrap(), Choice::Ready(0));
}

#[test]
fn idling_ends_after_max_task_idle_ms() {
    let mut lists = Lists::new(2);
    lists.push(0, 0, &[10]);
    let mut group = group(2, 250);
    assert_eq!(group.choose(&mut lists, 1_000).unwrap(), Choice::Waiting(1_250));
    assert_eq!(group.choose(&mut lists, 1_249).unwrap(), Choice::Waiting(1_250));
    assert_eq!(group.choose(&mut lists, 1_250).unwrap(), Choice::Ready(0));
}

#[test]
fn a_record_that_was_waited_for_goes_first_at_once() {
    let mut lists = Lists::new(2);
    lists.push(0, 0, &[100, 101, 102]);
    lists.ends[1] = Some(1);
    let mut group = group(2, 0);
    assert!(matches!(group.choose(&mut lists, 0).unwrap(), Choice::Waiting(_)));
    lists.push(1, 0, &[7]);
    assert_eq!(drain(&mut group, &mut lists, 0), [(1, 7), (0, 100), (0, 101), (0, 102)]);
}

#[test]
fn what_is_committed_is_the_next_record_or_the_position_behind_control_records() {
    let mut lists = Lists::new(1);
    lists.push(0, 40, &[1, 2]);
    let mut only = queue(0, TimestampPolicy::FailOnInvalid);
    only.fill(&mut lists).unwrap();
    assert_eq!(only.commit_offset(&lists), 40);
    only.advance(&mut lists).unwrap();
    assert_eq!(only.commit_offset(&lists), 41);
    only.advance(&mut lists).unwrap();
    lists.positions[0] = 43; // a transaction marker behind the last record
    assert_eq!(only.commit_offset(&lists), 43);
    assert_eq!(only.partition_time(), 2);
}

#[test]
fn invalid_timestamps_follow_the_policy_of_their_source() {
    for (policy, expected, skipped) in [
        (TimestampPolicy::FailOnInvalid, vec![5, -1, 9], 0),
        (TimestampPolicy::LogAndSkipOnInvalid, vec![5, 9], 1),
        (TimestampPolicy::UsePartitionTimeOnInvalid, vec![5, 5, 9], 0),
        (TimestampPolicy::Wallclock, vec![77, 77, 77], 0),
    ] {
        let mut lists = Lists::new(1);
        lists.push(0, 0, &[5, -1, 9]);
        let mut only = queue(0, policy);
        only.set_wall_ms(77);
        let mut seen = Vec::new();
        while let Some(head) = only.fill(&mut lists).unwrap() {
            seen.push(head.timestamp);
            only.advance(&mut lists).unwrap();
        }
        assert_eq!((seen, only.take_skipped()), (expected, skipped), "{policy:?}");
        assert_eq!(only.commit_offset(&lists), 3);
    }
}

#[test]
fn dropping_a_task_gives_its_frames_back() {
    let mut lists = Lists::new(2);
    lists.push(0, 0, &[1, 2, 3]);
    lists.push(1, 0, &[1, 2, 3]);
    let mut group = group(2, -1);
    group.choose(&mut lists, 0).unwrap();
    assert_eq!(lists.pool.free(), 13);
    group.clear(&mut lists);
    assert_eq!(lists.pool.free(), 15);
}
