//! How a process measures itself, from its first record on.
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What one run took. Programs print it as one line of JSON.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Records processed.
    pub records: u64,
    /// Records a second, from the first seen to the last processed.
    pub rate: f64,
    /// CPU seconds of the whole process for a million records, from the first record until all output was acknowledged
    /// and committed.
    pub cpu_s_per_m: f64,
    /// Highest resident set of the process since its start.
    pub peak_rss_mib: f64,
    /// Bytes of the record cache; 0 if there is none.
    pub cache_bytes: u64,
    /// Most bytes of a batch of the producer.
    pub batch_bytes: u64,
}

/// Watches a counter of records.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    began: Instant,
    cpu: f64,
    /// Records that were processed before the first look.
    before: u64,
    last: Option<Instant>,
}

impl Meter {
    /// At the first look that finds records, so many.
    pub fn start(before: u64) -> Self {
        Self { began: Instant::now(), cpu: cpu_seconds(), before, last: None }
    }

    /// The last record was processed.
    pub fn last_record(&mut self) {
        self.last = Some(Instant::now());
    }

    /// Everything is acknowledged and committed.
    pub fn finish(&self, records: u64, cache_bytes: u64, batch_bytes: u64) -> Figures {
        let cpu = cpu_seconds() - self.cpu;
        let seconds = (self.last.unwrap_or_else(Instant::now) - self.began).as_secs_f64();
        let counted = records.saturating_sub(self.before).max(1) as f64;
        Figures {
            records,
            rate: (counted / seconds).round(),
            cpu_s_per_m: round(cpu / counted * 1e6, 4),
            peak_rss_mib: round(peak_rss_mib(), 1),
            cache_bytes,
            batch_bytes,
        }
    }
}

fn round(value: f64, digits: i32) -> f64 {
    let unit = 10f64.powi(digits);
    (value * unit).round() / unit
}

/// CPU time of this process so far, user and system, all threads.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Highest resident set of this process; 0 where it is not told.
pub fn peak_rss_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
