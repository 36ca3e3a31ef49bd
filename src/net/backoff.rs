//! Growing pauses between attempts, with jitter so that many clients do not come back at the same moment.

use super::NetError;
use std::hash::{BuildHasher, RandomState};

/// Shortest and longest pause after a refusal, in milliseconds.
const LEAST_REFUSED_MS: i64 = 1_000;
const MOST_REFUSED_MS: i64 = 30_000;

/// Pauses of `base_ms`, doubled with each failure up to `max_ms`, each shortened or stretched by up to 20 %.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    base_ms: u32,
    max_ms: u32,
    failures: u32,
    /// State of a xorshift generator; never 0.
    seed: u32,
}

impl Backoff {
    /// Starts with no failure. `seed` tells apart the clients of one cluster; any number will do.
    pub(crate) fn new(base_ms: u32, max_ms: u32, seed: u32) -> Self {
        Self { base_ms, max_ms, failures: 0, seed: seed.wrapping_mul(0x9e37_79b9) | 1 }
    }

    /// The pause after one more failure, in milliseconds.
    pub(crate) fn failed(&mut self) -> i64 {
        let exact = u64::from(self.base_ms).saturating_mul(1 << self.failures.min(20)).min(u64::from(self.max_ms));
        self.failures = self.failures.saturating_add(1);
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 17;
        self.seed ^= self.seed << 5;
        // 80 to 120 hundredths.
        let hundredths = 80 + u64::from(self.seed % 41);
        i64::try_from(exact.saturating_mul(hundredths) / 100).unwrap_or(i64::MAX)
    }

    /// The same after a refusal: nothing will change before somebody changes settings or certificates, and brokers lock
    /// accounts out that try again and again. Ten times as long, between [`LEAST_REFUSED_MS`] and [`MOST_REFUSED_MS`].
    pub(crate) fn refused(&mut self) -> i64 {
        self.failed().saturating_mul(10).clamp(LEAST_REFUSED_MS, MOST_REFUSED_MS)
    }

    /// The pause after a failure of this kind.
    pub(crate) fn failed_by(&mut self, error: &NetError) -> i64 {
        if error.is_refusal() { self.refused() } else { self.failed() }
    }

    /// The attempt succeeded: the next failure pauses for `base_ms` again.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Failures since the last success.
    #[allow(dead_code)] // for tests
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

/// Tells apart the clients of one cluster, whatever their processes' numbers are in their containers.
pub(crate) fn jitter_seed() -> u32 {
    #[cfg(test)]
    if let Some(seed) = super::sim::client_seed() {
        return seed;
    }
    RandomState::new().hash_one(std::process::id()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit_within_a_fifth_and_start_again_after_success() {
        let mut backoff = Backoff::new(50, 1_000, 7);
        for exact in [50, 100, 200, 400, 800, 1_000, 1_000] {
            let pause = backoff.failed();
            assert!((exact * 80 / 100..=exact * 120 / 100).contains(&pause), "{pause} for {exact}");
        }
        for _ in 0..100 {
            assert!(backoff.failed() <= 1_200);
        }
        backoff.succeeded();
        assert!(backoff.failed() <= 60);
    }

    #[test]
    fn after_a_refusal_pauses_are_ten_times_as_long_and_never_short() {
        let mut backoff = Backoff::new(50, 1_000, 7);
        let refusal = NetError::SpeaksTls;
        let pauses: Vec<i64> = (0..8).map(|_| backoff.failed_by(&refusal)).collect();
        assert!(pauses.iter().all(|pause| (1_000..=12_000).contains(pause)), "{pauses:?}");
        assert!(pauses[7] >= 8_000, "{pauses:?}");
        assert!(backoff.failed_by(&NetError::Closed) <= 1_200);
    }

    #[test]
    fn different_seeds_pause_differently() {
        let pauses = |seed| {
            let mut backoff = Backoff::new(1_000, 1_000, seed);
            [backoff.failed(), backoff.failed(), backoff.failed()]
        };
        assert_ne!(pauses(1), pauses(2));
    }
}
