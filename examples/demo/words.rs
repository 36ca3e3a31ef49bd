//! What the demo computes: words and how often each came. The key of a line is the moment it was due, so that the time
//! until its words are counted can be measured.
use hdrhistogram::Histogram;
use plimsoll::prelude::*;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// `application.id` of the demo.
pub(crate) const APPLICATION: &str = "demo";
/// Lines; the key is the due time in microseconds since the epoch, 8 bytes, big-endian.
pub(crate) const LINES: &str = "lines";
/// Words with their counts.
pub(crate) const COUNTS: &str = "word-counts";
/// Partitions of every topic.
pub(crate) const PARTITIONS: i32 = 4;
/// Every topic that the demo needs: the mock cluster cannot create them when asked by an application.
pub(crate) const TOPICS: [&str; 4] = [LINES, COUNTS, "demo-counts-repartition", "demo-counts-changelog"];

/// Microseconds since the epoch.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Time from a line's due moment until its words were handed on, in microseconds: 1 µs to 1 minute, 3 digits.
#[derive(Clone)]
pub(crate) struct Latencies(Arc<Mutex<Histogram<u64>>>);

impl Latencies {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self(Arc::new(Mutex::new(Histogram::new_with_bounds(1, 60_000_000, 3)?))))
    }

    fn record(&self, us: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(us);
    }

    /// The value below which this part of all lines lies; `1.0` is the maximum.
    pub(crate) fn quantile(&self, part: f64) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).value_at_quantile(part)
    }

    /// Forgets everything: after the warm-up.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).reset();
    }
}

/// The topology of the demo.
pub(crate) fn topology(latencies: &Latencies) -> Result<Topology, BuildError> {
    let latencies = latencies.clone();
    let builder = StreamsBuilder::new();
    builder
        .stream(LINES, Consumed::with(I64, Utf8))
        .peek(move |due, _| latencies.record(u64::try_from(now_us() - due).unwrap_or(0)))
        .flat_map_values(Utf8, |line, out| {
            for word in line.split_whitespace() {
                out.push(word);
            }
        })
        .group_by(Utf8, |_, word| word)
        .count(Materialized::named("counts"))
        .to_stream()
        .to(COUNTS);
    builder.build()
}

/// The words that came most often, one a line.
pub(crate) fn top(counts: &[(String, i64)], most: usize) -> String {
    let mut sorted: Vec<&(String, i64)> = counts.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let lines = sorted.iter().take(most).map(|(word, count)| format!("{count:>10}  {word}"));
    format!("top words\n{}", lines.collect::<Vec<_>>().join("\n"))
}
