//! Time as a port, so that the driver and the simulation can move it.
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Two clocks: wall time for records and punctuation, monotonic time for deadlines.
pub(crate) trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn wall_ms(&self) -> i64;
    /// Nanoseconds since some fixed moment; never goes back.
    fn mono_ns(&self) -> i64;
    /// Milliseconds of the monotonic clock.
    fn mono_ms(&self) -> i64 {
        self.mono_ns() / 1_000_000
    }
}

/// The machine's clocks.
#[derive(Debug)]
pub(crate) struct SystemClock {
    start: Instant,
}

impl SystemClock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn wall_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
    }

    fn mono_ns(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
}

/// A clock that moves only when told.
#[derive(Debug, Default)]
pub(crate) struct ManualClock {
    wall_ms: AtomicI64,
    mono_ns: AtomicI64,
}

impl ManualClock {
    /// Starts at this wall time, in milliseconds since the Unix epoch.
    pub(crate) fn at(wall_ms: i64) -> Self {
        Self { wall_ms: AtomicI64::new(wall_ms), mono_ns: AtomicI64::new(0) }
    }

    /// Moves both clocks on.
    pub(crate) fn advance_ms(&self, by: i64) {
        self.wall_ms.fetch_add(by, Ordering::Relaxed);
        self.mono_ns.fetch_add(by.saturating_mul(1_000_000), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> i64 {
        self.wall_ms.load(Ordering::Relaxed)
    }

    fn mono_ns(&self) -> i64 {
        self.mono_ns.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = ManualClock::at(1_000);
        assert_eq!((clock.wall_ms(), clock.mono_ms()), (1_000, 0));
        clock.advance_ms(250);
        assert_eq!((clock.wall_ms(), clock.mono_ms()), (1_250, 250));
    }

    #[test]
    fn the_system_clock_never_goes_back() {
        let clock = SystemClock::new();
        let first = clock.mono_ns();
        assert!(clock.mono_ns() >= first);
        assert!(clock.wall_ms() > 1_600_000_000_000);
    }
}
