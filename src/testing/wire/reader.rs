//! A fetcher with its poll set and clock.
//!
//! Invariant: frames are given back in the turn in which their records were lent. Bound: the frame pool.
use super::{Client, Outcome, since, text, wait};
use crate::arena::{FramePool, Oversize};
use crate::client::fetcher::{Fetched, FetchedBatch, Fetcher, FetcherSettings, Slot};
use crate::net::PollSet;
use crate::wire::RecordCursor;
use std::time::Instant;

/// What a [`Reader`] is made with; times in milliseconds.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// `isolation.level=read_committed`.
    pub read_committed: bool,
    /// Bytes of a frame.
    pub frame_bytes: usize,
    /// Number of them.
    pub frames: usize,
    /// Bytes of the buffer for larger frames and batches.
    pub oversize_bytes: usize,
    /// `fetch.max.wait.ms`.
    pub max_wait_ms: i32,
    /// `request.timeout.ms`.
    pub request_timeout_ms: i64,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self {
            read_committed: false,
            frame_bytes: 64 << 10,
            frames: 8,
            oversize_bytes: 2 << 20,
            max_wait_ms: 100,
            request_timeout_ms: 30_000,
        }
    }
}

/// A record in its frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    /// Its offset.
    pub offset: i64,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// Names and values of the headers.
    pub headers: Vec<(&'a [u8], Option<&'a [u8]>)>,
}

/// A fetcher of some partitions.
#[derive(Debug)]
pub struct Reader {
    fetcher: Fetcher,
    polls: PollSet,
    start: Instant,
    slots: Vec<Slot>,
}

impl Reader {
    /// A fetcher without partitions.
    ///
    /// # Errors
    /// The options make no sense.
    pub fn new(client: &Client, options: &ReaderOptions) -> Outcome<Self> {
        let settings = FetcherSettings {
            read_committed: options.read_committed,
            max_wait_ms: options.max_wait_ms,
            request_timeout_ms: options.request_timeout_ms,
            ..FetcherSettings::default()
        };
        let pool = FramePool::new(options.frames, options.frame_bytes, 1, Oversize::new(options.oversize_bytes));
        let fetcher = Fetcher::new(settings, pool, client.0.metadata.clone()).map_err(text)?;
        let polls = PollSet::new().map_err(text)?;
        Ok(Self { fetcher, polls, start: Instant::now(), slots: Vec::new() })
    }

    /// Adds a partition; answers its number, from 0.
    ///
    /// # Errors
    /// Too many.
    pub fn add(&mut self, topic: &str, partition: i32, offset: i64) -> Outcome<usize> {
        self.slots.push(self.fetcher.add(topic, partition, offset).map_err(text)?);
        Ok(self.slots.len() - 1)
    }

    /// One turn of at most so many milliseconds; lends each record that has come, with the number of its partition.
    ///
    /// # Errors
    /// A partition stands still, or its records cannot be read.
    pub fn turn(&mut self, most_ms: i64, each: &mut dyn FnMut(usize, &Seen<'_>)) -> Outcome<()> {
        self.polls.clear();
        let due = self.fetcher.prepare(&mut self.polls, since(self.start));
        self.polls.wait(Some(wait(due, self.start, most_ms))).map_err(text)?;
        self.fetcher.process(&self.polls, since(self.start));
        while let Some(next) = self.fetcher.next() {
            match next {
                Fetched::Batch(batch) => {
                    let outcome = self.lend(&batch, each);
                    self.fetcher.release(batch.frame);
                    outcome?;
                }
                Fetched::Fault { slot, fault } => return Err(format!("partition {}: {fault}", self.number(slot))),
            }
        }
        Ok(())
    }

    fn lend(&self, batch: &FetchedBatch, each: &mut dyn FnMut(usize, &Seen<'_>)) -> Outcome<()> {
        let (number, section) = (self.number(batch.slot), self.fetcher.records_of(batch));
        let mut cursor = RecordCursor::new(&batch.header);
        while let Some(record) = cursor.next(section).map_err(text)? {
            if record.offset >= batch.skip_below {
                let headers = record.headers.iter().map(|header| (header.key, header.value)).collect();
                let (key, value) = (record.key, record.value);
                each(number, &Seen { offset: record.offset, timestamp: record.timestamp, key, value, headers });
            }
        }
        Ok(())
    }

    fn number(&self, slot: Slot) -> usize {
        self.slots.iter().position(|known| *known == slot).unwrap_or(usize::MAX)
    }

    /// Where it stands, in words.
    pub fn describe(&self) -> String {
        self.fetcher.describe(since(self.start))
    }

    /// Offset behind what was lent of a partition, or skipped.
    pub fn position(&self, number: usize) -> i64 {
        self.slots.get(number).map_or(-1, |slot| self.fetcher.position(*slot))
    }
}
