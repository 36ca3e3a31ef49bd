//! Counters of the stream threads.
//!
//! Owns one [`ThreadStats`] a thread. Invariant: one thread writes a set of counters, everyone may read it; nothing
//! here allocates after the start. Bound: 128 bytes of counters a thread. Written by `worker`, read by `app`.
mod counters;

pub(crate) use counters::{Counters, Totals};

use std::sync::Arc;

/// What one stream thread reports; shared with readers.
#[derive(Debug, Default)]
pub(crate) struct ThreadStats {
    pub(crate) counters: Counters,
}

/// All threads of the process.
#[derive(Clone, Debug)]
pub(crate) struct Observed(Arc<[ThreadStats]>);

impl Observed {
    /// Statistics for this many threads.
    pub(crate) fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| ThreadStats::default()).collect())
    }

    /// One thread's statistics, or `None` if there are fewer threads.
    pub(crate) fn thread(&self, index: usize) -> Option<&ThreadStats> {
        self.0.get(index)
    }

    /// Sum of all threads' counters.
    pub(crate) fn totals(&self) -> Totals {
        self.0.iter().fold(Totals::default(), |sum, thread| sum + thread.counters.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_the_sum_over_threads() {
        let observed = Observed::new(2);
        for (index, records) in [(0, 10), (1, 32)] {
            observed.thread(index).unwrap().counters.records_in.add(records);
        }
        assert_eq!(observed.totals().records_in, 42);
        assert!(observed.thread(2).is_none());
    }
}
