//! The producer against scripted brokers, and against librdkafka's mock cluster read by librdkafka's consumer.
mod bytes;
mod coordinator;
mod delivery;
mod errors;
mod fake;
mod flow;
mod log;
mod mock;
mod sim;
mod transactions;
mod txn_kafka;
mod txn_table;

use super::{AckSlot, AppendError, OutRecord, OutTopic, Producer, ProducerSettings};
use crate::client::SharedMetadata;
use crate::net::PollSet;
use crate::wire::RawHeaders;
use std::time::{Duration, Instant};

/// A producer with its poll set and clock.
pub(super) struct Bench {
    pub(super) producer: Producer,
    polls: PollSet,
    start: Instant,
}

impl Bench {
    pub(super) fn new(settings: ProducerSettings, metadata: &SharedMetadata) -> Self {
        Self::of(Producer::new(settings, metadata.clone(), 0).unwrap())
    }

    pub(super) fn of(producer: Producer) -> Self {
        Self { producer, polls: PollSet::new().unwrap(), start: Instant::now() }
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.start.elapsed().as_millis() as i64
    }

    /// One turn; waits at most `limit_ms`.
    pub(super) fn turn(&mut self, limit_ms: i64) {
        self.polls.clear();
        let now = self.now_ms();
        let due = self.producer.prepare(&mut self.polls, now);
        let wait = due.saturating_sub(now).clamp(0, limit_ms);
        self.polls.wait(Some(Duration::from_millis(wait as u64))).unwrap();
        let now = self.now_ms();
        self.producer.process(&self.polls, now);
    }

    /// Turns until `done`; fails the test after ten seconds.
    pub(super) fn until(&mut self, mut done: impl FnMut(&mut Producer) -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !done(&mut self.producer) {
            assert!(Instant::now() < end, "stuck: {:#?}", self.producer);
            self.turn(50);
        }
    }

    pub(super) fn flush(&mut self) {
        self.producer.begin_flush();
        self.until(|p| p.is_flushed());
    }

    /// Appends, serving the sockets while there is no room.
    pub(super) fn append(&mut self, topic: OutTopic, partition: u32, value: &str, slot: AckSlot) {
        self.try_append(topic, partition, value, slot).unwrap();
    }

    pub(super) fn try_append(
        &mut self,
        topic: OutTopic,
        partition: u32,
        value: &str,
        slot: AckSlot,
    ) -> Result<(), AppendError> {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            match self.producer.append(topic, partition, &text(value), slot) {
                Err(AppendError::Full | AppendError::NotReady) => {
                    assert!(Instant::now() < end, "stuck: {:#?}", self.producer);
                    self.turn(50);
                }
                other => return other,
            }
        }
    }
}

/// A record without key and headers.
pub(super) fn text(value: &str) -> OutRecord<'_> {
    OutRecord { timestamp: 1_000, key: None, value: Some(value.as_bytes()), headers: RawHeaders::EMPTY }
}

/// Small and impatient.
pub(super) fn settings(batch_bytes: usize, batches: usize) -> ProducerSettings {
    ProducerSettings { retry_backoff_ms: 5, retry_backoff_max_ms: 20, ..ProducerSettings::new(batch_bytes, batches) }
}

pub(super) fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}
