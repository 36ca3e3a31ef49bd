//! The fetcher against scripted brokers on loopback, and against librdkafka's mock cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod bounds;
mod data;
mod kafka;
mod life;
mod mock;
mod moves;
mod records;

use super::*;
use crate::arena::Oversize;
use crate::client::fake::FakeBroker;
use crate::client::snapshot::tests::snapshot;
use crate::net::PollSet;
use crate::wire::RecordCursor;
use std::time::{Duration, Instant};

const FRAME: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(20);

/// A record as handed out: partition by slot, offset, value.
type Got = (Slot, i64, Vec<u8>);

struct Bench {
    fetcher: Fetcher,
    polls: PollSet,
    metadata: SharedMetadata,
    start: Instant,
    /// Frames taken and not released.
    held: Vec<FrameId>,
    faults: Vec<(Slot, FetchFault)>,
}

impl Bench {
    fn new(frames: usize, oversize: usize) -> Self {
        Self::with(FetcherSettings { max_wait_ms: 100, ..FetcherSettings::default() }, frames, oversize)
    }

    fn with(settings: FetcherSettings, frames: usize, oversize: usize) -> Self {
        let metadata = SharedMetadata::new();
        let pool = FramePool::new(frames, FRAME, 1, Oversize::new(oversize));
        Self {
            fetcher: Fetcher::new(settings, pool, metadata.clone()).unwrap(),
            polls: PollSet::new().unwrap(),
            metadata,
            start: Instant::now(),
            held: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Publishes these brokers, ids from 1, and who leads the partitions of `t`.
    fn leaders(&self, brokers: &[&FakeBroker], leaders: &[i32]) {
        let addrs: Vec<_> = brokers.iter().map(|broker| broker.addr).collect();
        self.metadata.publish(snapshot(0, &addrs, &[("t", leaders)]));
    }

    fn now(&self) -> i64 {
        self.start.elapsed().as_millis() as i64
    }

    fn turn(&mut self) {
        self.polls.clear();
        let now = self.now();
        let due = self.fetcher.prepare(&mut self.polls, now);
        let wait = (due - now).clamp(0, 20) as u64;
        self.polls.wait(Some(Duration::from_millis(wait))).unwrap();
        let now = self.now();
        self.fetcher.process(&self.polls, now);
    }

    /// Takes what is there; releases the frames at once or keeps them.
    fn take(&mut self, keep: bool) -> Vec<Got> {
        let mut got = Vec::new();
        while let Some(next) = self.fetcher.next() {
            match next {
                Fetched::Batch(batch) => {
                    got.extend(read(&self.fetcher, &batch));
                    if keep { self.held.push(batch.frame) } else { self.fetcher.release(batch.frame) }
                }
                Fetched::Fault { slot, fault } => self.faults.push((slot, fault)),
            }
        }
        got
    }

    /// Turns until `count` records have come.
    fn collect(&mut self, count: usize) -> Vec<Got> {
        let mut got = Vec::new();
        self.turn_until(|bench| {
            got.extend(bench.take(false));
            got.len() >= count
        });
        assert_eq!(got.len(), count);
        got
    }

    fn turn_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done(self) {
            assert!(Instant::now() < end, "nothing more comes; trouble: {:?}", self.fetcher.trouble());
            self.turn();
        }
    }

    fn until_fault(&mut self) -> (Slot, FetchFault) {
        self.turn_until(|bench| {
            bench.take(false);
            !bench.faults.is_empty()
        });
        self.faults.remove(0)
    }

    fn release_all(&mut self) {
        for frame in std::mem::take(&mut self.held) {
            self.fetcher.release(frame);
        }
    }

    /// All frames are back: nothing leaked.
    fn assert_idle(&mut self) {
        self.release_all();
        for broker in 0..self.fetcher.brokers.len() {
            self.fetcher.give_up(broker, crate::net::NetError::Closed.into(), 0);
        }
        let pool = self.fetcher.pool();
        assert_eq!(pool.free() + pool.reserved(), pool.frames(), "every frame is back");
        assert!(self.fetcher.inbox.queue.is_empty());
        assert_eq!(self.fetcher.handed, 0);
    }
}

fn read(fetcher: &Fetcher, batch: &FetchedBatch) -> Vec<Got> {
    let section = &fetcher.pool().bytes(batch.frame)[batch.section.start as usize..batch.section.end as usize];
    let mut cursor = RecordCursor::new(&batch.header);
    let mut got = Vec::new();
    while let Some(record) = cursor.next(section).unwrap() {
        if record.offset >= batch.skip_below {
            got.push((batch.slot, record.offset, record.value.unwrap().to_vec()));
        }
    }
    got
}

/// The values `from..to` of a partition, as appended by [`fill`].
fn expected(slot: Slot, partition: i32, offsets: std::ops::Range<i64>) -> Vec<Got> {
    offsets.map(|offset| (slot, offset, value(partition, offset))).collect()
}

fn value(partition: i32, offset: i64) -> Vec<u8> {
    format!("{partition}/{offset}/{}", "x".repeat(80)).into_bytes()
}

/// Appends batches of ten such values up to `end`.
fn fill(broker: &FakeBroker, partition: i32, end: i64, codec: crate::wire::Compression) {
    broker.log("t", partition, |log| {
        while log.end() < end {
            let values: Vec<_> = (log.end()..end.min(log.end() + 10)).map(|o| value(partition, o)).collect();
            log.append(&values.iter().map(Vec::as_slice).collect::<Vec<_>>(), codec);
        }
    });
}

fn of(got: &[Got], slot: Slot) -> Vec<Got> {
    got.iter().filter(|(s, ..)| *s == slot).cloned().collect()
}
