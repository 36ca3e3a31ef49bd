//! Latencies as histograms of fixed size.
//!
//! The writer counts into a histogram of its own, without an atomic, and copies it out now and then under a lock that
//! only a reader shares; so a reading is as old as the last [`LatencyRecorder::publish`].
use super::Observed;
use hdrhistogram::{CreationError, Histogram};
use std::sync::{Mutex, PoisonError};

/// Longest latency told apart: a minute. Longer ones count as this.
const LONGEST_US: u64 = 60_000_000;
/// Two significant digits: a value is off by at most one per cent, and a histogram takes about 20 KiB.
const DIGITS: u8 = 2;

/// A histogram of microseconds with fixed size: the buffer that a reader brings.
#[derive(Clone, Debug)]
pub(crate) struct Latency(Histogram<u64>);

impl Latency {
    /// An empty histogram with all of its memory.
    pub(crate) fn new() -> Result<Self, CreationError> {
        Histogram::new_with_bounds(1, LONGEST_US, DIGITS).map(Self)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }

    /// Number of latencies.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency that this part (0 to 1) of all does not exceed, in microseconds; 0 when there is none.
    pub(crate) fn quantile_us(&self, part: f64) -> u64 {
        self.0.value_at_quantile(part)
    }

    /// The longest latency in microseconds.
    pub(crate) fn max_us(&self) -> u64 {
        self.0.max()
    }

    /// The histogram itself, for its own encodings.
    pub(crate) fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// What a thread published, under a lock held for one copy.
#[derive(Debug)]
pub(super) struct Published(Mutex<Latency>);

impl Published {
    pub(super) fn new() -> Result<Self, CreationError> {
        Latency::new().map(|empty| Self(Mutex::new(empty)))
    }

    pub(super) fn add_to(&self, into: &mut Latency) {
        let published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Equal bounds: nothing can be out of range.
        let _ = into.0.add(&published.0);
    }

    fn replace(&self, by: &Latency) -> bool {
        let Ok(mut published) = self.0.try_lock() else { return false };
        published.0.set_to(&by.0).is_ok()
    }
}

/// The writing end of one thread.
#[derive(Debug)]
pub(crate) struct LatencyRecorder {
    own: Latency,
    observed: Observed,
    thread: usize,
}

impl LatencyRecorder {
    pub(super) fn new(observed: Observed, thread: usize) -> Result<Self, CreationError> {
        Ok(Self { own: Latency::new()?, observed, thread })
    }

    /// Counts one latency in microseconds; longer than a minute counts as a minute.
    #[inline]
    pub(crate) fn record_us(&mut self, micros: u64) {
        self.own.0.saturating_record(micros);
    }

    /// Counts `count` equal latencies, as of a batch whose records were written together.
    #[inline]
    pub(crate) fn record_many_us(&mut self, micros: u64, count: u64) {
        self.own.0.saturating_record_n(micros, count);
    }

    /// Makes everything counted so far readable; false if a reader was in the way (try again at the next turn).
    pub(crate) fn publish(&mut self) -> bool {
        self.observed.thread(self.thread).is_some_and(|stats| stats.latency.replace(&self.own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_small_and_never_grows() {
        let mut latency = Latency::new().unwrap();
        let length = latency.0.distinct_values();
        assert!(length * 8 < 32 << 10, "{length}");
        latency.0.saturating_record(u64::MAX);
        latency.0.saturating_record(0);
        assert_eq!((latency.0.distinct_values(), latency.count()), (length, 2));
        assert!(latency.max_us() <= 61_000_000, "{}", latency.max_us());
    }
}
