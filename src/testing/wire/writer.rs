//! A producer with its poll set and clock.
//!
//! Invariant: a call returns when what it asked for is so, or with the reason why it never will be. Bound: patience.
use super::{Client, Outcome, Record, since, text, wait};
use crate::net::PollSet;
use crate::produce::{AckSlot, AppendError, OutRecord, OutTopic, Producer, ProducerSettings, TxnSettings};
use crate::wire::{Compression, Header, RawHeaders};
use std::time::{Duration, Instant};

/// Longest wait of a turn, in milliseconds.
pub(super) const TURN_MS: i64 = 50;

/// So long a silence is told of.
pub const SILENCE: Duration = Duration::from_secs(20);

/// What a [`Writer`] is made with; times in milliseconds.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Codec of its batches.
    pub codec: Compression,
    /// Bytes of a batch buffer.
    pub batch_bytes: usize,
    /// Number of them.
    pub batches: usize,
    /// Bytes of the buffer for larger records.
    pub oversize_bytes: usize,
    /// `linger.ms`.
    pub linger_ms: i64,
    /// `request.timeout.ms`.
    pub request_timeout_ms: i64,
    /// `delivery.timeout.ms`.
    pub delivery_timeout_ms: i64,
    /// `transactional.id`; `None`: without transactions.
    pub transactional_id: Option<String>,
    /// Told where the writer stands, once whenever nothing was acknowledged for [`SILENCE`].
    pub silent: fn(&str),
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            codec: Compression::None,
            batch_bytes: 16 << 10,
            batches: 64,
            oversize_bytes: 1 << 20,
            linger_ms: 0,
            request_timeout_ms: 30_000,
            delivery_timeout_ms: 120_000,
            transactional_id: None,
            silent: |_| (),
        }
    }
}

/// A topic of a [`Writer`].
#[derive(Clone, Copy, Debug)]
pub struct Out(OutTopic);

/// An idempotent producer, transactional if it was made so: see `transaction` for its further calls.
#[derive(Debug)]
pub struct Writer {
    pub(super) producer: Producer,
    polls: PollSet,
    start: Instant,
    pub(super) slot: AckSlot,
    headers: Vec<u8>,
    pub(super) patience: Duration,
    /// Records acknowledged when that was last looked at, since when, and whether the silence was told of.
    heard: (u64, Instant, bool),
    longest: Duration,
    silent: fn(&str),
}

impl Writer {
    /// A producer that writes to the client's cluster.
    ///
    /// # Errors
    /// The options make no sense.
    pub fn new(client: &Client, options: &WriterOptions) -> Outcome<Self> {
        let settings = ProducerSettings {
            compression: options.codec,
            oversize_bytes: options.oversize_bytes,
            linger_ms: options.linger_ms,
            request_timeout_ms: options.request_timeout_ms,
            delivery_timeout_ms: options.delivery_timeout_ms,
            ..ProducerSettings::new(options.batch_bytes, options.batches)
        };
        let metadata = client.0.metadata.clone();
        let mut producer = match &options.transactional_id {
            None => Producer::new(settings, metadata, 0),
            Some(id) => Producer::transactional(settings, TxnSettings::new(id), metadata, 0),
        }
        .map_err(text)?;
        let slot = producer.ack_slot();
        let polls = PollSet::new().map_err(text)?;
        let patience = Duration::from_millis(u64::try_from(options.delivery_timeout_ms).unwrap_or(0) + 30_000);
        let (start, silent) = (Instant::now(), options.silent);
        let (heard, longest) = ((0, start, false), Duration::ZERO);
        Ok(Self { producer, polls, start, slot, headers: Vec::new(), patience, heard, longest, silent })
    }

    /// Names a topic.
    pub fn topic(&mut self, name: &str) -> Out {
        Out(self.producer.topic(name))
    }

    /// Appends a record; serves the sockets while there is no room.
    ///
    /// # Errors
    /// The record is refused for good.
    pub fn write(&mut self, topic: Out, partition: u32, record: &Record) -> Outcome<()> {
        let mut headers = std::mem::take(&mut self.headers);
        headers.clear();
        let pairs = record.headers.iter().map(|(name, value)| (name.as_bytes(), value.as_deref()));
        let pairs: Vec<_> = pairs.map(|(key, value)| Header { key, value }).collect();
        let raw = RawHeaders::write(&pairs, &mut headers).map_err(text)?;
        let out = OutRecord {
            timestamp: record.timestamp,
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: raw,
        };
        let outcome = self.append(topic, partition, &out);
        self.headers = headers;
        outcome
    }

    /// As [`Self::write`], of a record without key and headers.
    ///
    /// # Errors
    /// The record is refused for good.
    pub fn write_value(&mut self, topic: Out, partition: u32, timestamp: i64, value: &[u8]) -> Outcome<()> {
        let record = OutRecord { timestamp, key: None, value: Some(value), headers: RawHeaders::EMPTY };
        self.append(topic, partition, &record)
    }

    fn append(&mut self, topic: Out, partition: u32, record: &OutRecord<'_>) -> Outcome<()> {
        let mut end = None;
        loop {
            match self.producer.append(topic.0, partition, record, self.slot) {
                Ok(()) => return Ok(()),
                Err(AppendError::Full | AppendError::NotReady) => self.turn(TURN_MS)?,
                Err(other) => return Err(other.to_string()),
            }
            if Instant::now() > *end.get_or_insert_with(|| Instant::now() + self.patience) {
                return Err(format!("stuck: {}", self.describe()));
            }
        }
    }

    /// One turn; waits at most so many milliseconds.
    ///
    /// # Errors
    /// The poll set fails.
    pub fn turn(&mut self, most_ms: i64) -> Outcome<()> {
        self.polls.clear();
        let due = self.producer.prepare(&mut self.polls, since(self.start));
        self.polls.wait(Some(wait(due, self.start, most_ms))).map_err(text)?;
        self.producer.process(&self.polls, since(self.start));
        self.listen();
        Ok(())
    }

    /// Measures how long nothing is acknowledged while something is awaited.
    fn listen(&mut self) {
        let (acked, now) = (self.acked(), Instant::now());
        let (before, since, told) = self.heard;
        if acked != before || self.producer.is_flushed() {
            self.heard = (acked, now, false);
        }
        let silence = now - since;
        self.longest = self.longest.max(silence);
        if silence > SILENCE && !told && self.heard.1 == since {
            self.heard.2 = true;
            (self.silent)(&self.describe());
        }
    }

    /// The longest time in which nothing was acknowledged although something was awaited.
    pub fn longest_silence(&self) -> Duration {
        self.longest
    }

    /// Turns until everything is acknowledged.
    ///
    /// # Errors
    /// Something is not, and never will be.
    pub fn flush(&mut self) -> Outcome<()> {
        let end = Instant::now() + self.patience;
        self.producer.begin_flush();
        while !self.producer.is_flushed() {
            self.turn(TURN_MS)?;
            if Instant::now() > end {
                return Err(format!("not flushed: {}", self.describe()));
            }
        }
        self.producer.ack(self.slot).error.map_or(Ok(()), |error| Err(error.to_string()))
    }

    /// Records acknowledged.
    pub fn acked(&self) -> u64 {
        self.producer.stats().acked
    }

    /// Where it stands, in words.
    pub fn describe(&self) -> String {
        self.producer.describe()
    }

    /// Batches that had to be sent again, and connections lost with requests on their way.
    pub fn troubles(&self) -> (u64, u64) {
        let stats = self.producer.stats();
        (stats.retried, stats.lost)
    }
}
