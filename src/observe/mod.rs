//! Counters and histograms of the stream threads.
//!
//! Owns one [`ThreadStats`] a thread. Invariant: one thread writes a set of counters, everyone may read it; nothing
//! here allocates after the start. Bound: 128 bytes of counters and two histograms of fixed size a thread. Written by
//! `worker`, read by `app` and the demo.
mod counters;
mod latency;

pub(crate) use counters::{Counters, Totals};
pub(crate) use latency::{Latency, LatencyRecorder};

use hdrhistogram::CreationError;
use latency::Published;
use std::sync::Arc;

/// What one stream thread reports; shared with readers.
#[derive(Debug)]
pub(crate) struct ThreadStats {
    pub(crate) counters: Counters,
    latency: Published,
}

/// All threads of the process.
#[derive(Clone, Debug)]
pub(crate) struct Observed(Arc<[ThreadStats]>);

impl Observed {
    /// Statistics for this many threads.
    pub(crate) fn new(threads: usize) -> Result<Self, CreationError> {
        let thread = |_| Ok(ThreadStats { counters: Counters::default(), latency: Published::new()? });
        (0..threads).map(thread).collect::<Result<Vec<_>, _>>().map(|threads| Self(threads.into()))
    }

    /// One thread's statistics, or `None` if there are fewer threads.
    pub(crate) fn thread(&self, index: usize) -> Option<&ThreadStats> {
        self.0.get(index)
    }

    /// The writing end of one thread's latencies: take it once.
    pub(crate) fn recorder(&self, index: usize) -> Result<LatencyRecorder, CreationError> {
        LatencyRecorder::new(self.clone(), index)
    }

    /// Sum of all threads' counters.
    pub(crate) fn totals(&self) -> Totals {
        self.0.iter().fold(Totals::default(), |sum, thread| sum + thread.counters.read())
    }

    /// Adds every thread's published latencies to the caller's buffer, which is cleared first. Allocates nothing.
    pub(crate) fn fill_latency(&self, into: &mut Latency) {
        into.clear();
        for thread in self.0.iter() {
            thread.latency.add_to(into);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_the_sum_over_threads() {
        let observed = Observed::new(2).unwrap();
        for (index, records) in [(0, 10), (1, 32)] {
            observed.thread(index).unwrap().counters.records_in.add(records);
        }
        assert_eq!(observed.totals().records_in, 42);
        assert!(observed.thread(2).is_none());
    }

    #[test]
    fn latencies_of_all_threads_are_read_after_they_were_published() {
        let observed = Observed::new(2).unwrap();
        let mut recorders = [observed.recorder(0).unwrap(), observed.recorder(1).unwrap()];
        for (recorder, micros) in recorders.iter_mut().zip([1_000, 9_000]) {
            for _ in 0..100 {
                recorder.record_us(micros);
            }
        }
        let mut latency = Latency::new().unwrap();
        observed.fill_latency(&mut latency);
        assert_eq!(latency.count(), 0);
        for recorder in &mut recorders {
            assert!(recorder.publish());
        }
        observed.fill_latency(&mut latency);
        assert_eq!(latency.count(), 200);
        // One per cent is the histogram's resolution.
        assert!((990..=1_010).contains(&latency.quantile_us(0.5)), "{}", latency.quantile_us(0.5));
        assert!((8_910..=9_090).contains(&latency.quantile_us(0.99)), "{}", latency.quantile_us(0.99));
        assert!((8_910..=9_090).contains(&latency.max_us()));
        observed.fill_latency(&mut latency);
        assert_eq!(latency.count(), 200, "a second reading does not add up");
    }
}
