//! What the demo shows: a table every second, the plan beside the peaks, and one line of JSON at the end.
use crate::words::Latencies;
use plimsoll::{App, MemoryReport, Module, Plan};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::time::Duration;

const MIB: f64 = 1024.0 * 1024.0;

/// What was seen in one look.
pub(crate) struct Seen {
    pub(crate) state: String,
    pub(crate) waiting: Option<String>,
    pub(crate) elapsed: Duration,
    pub(crate) records: u64,
    /// Records a second since the last look.
    pub(crate) rate: f64,
    pub(crate) memory: MemoryReport,
    /// p50, p99, p99.9 and maximum, microseconds.
    pub(crate) latency: [u64; 4],
    /// Heap allocations of the stream threads for each record, over the whole run.
    pub(crate) allocations: f64,
}

/// Looks at an application now and then and remembers what the rate needs.
pub(crate) struct Window {
    memory: MemoryReport,
    records: u64,
    at: Duration,
    /// Records and allocations when the warm-up was over.
    warm: Option<(u64, u64)>,
}

/// Time after which latencies and allocations are counted.
const WARM_UP: Duration = Duration::from_secs(5);

impl Window {
    pub(crate) fn new() -> Self {
        Self { memory: MemoryReport::default(), records: 0, at: Duration::ZERO, warm: None }
    }

    pub(crate) fn look(&mut self, app: &App, latencies: &Latencies, elapsed: Duration) -> Seen {
        app.memory(&mut self.memory);
        let stats = app.stats();
        if self.warm.is_none() && elapsed >= WARM_UP && stats.records_in > 0 {
            latencies.clear();
            self.warm = Some((stats.records_in, stats.allocations));
        }
        let seconds = (elapsed - self.at).as_secs_f64();
        let rate = if seconds > 0.0 { (stats.records_in - self.records) as f64 / seconds } else { 0.0 };
        (self.records, self.at) = (stats.records_in, elapsed);
        let (records, allocations) = self.warm.unwrap_or((0, 0));
        let counted = stats.records_in.saturating_sub(records);
        Seen {
            state: app.state().to_string(),
            waiting: app.waiting_for(),
            elapsed,
            records: stats.records_in,
            rate,
            memory: self.memory.clone(),
            latency: [0.5, 0.99, 0.999, 1.0].map(|part| latencies.quantile(part)),
            allocations: (stats.allocations - allocations) as f64 / counted.max(1) as f64,
        }
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB
}

/// The table of one moment.
pub(crate) fn table(seen: &Seen) -> String {
    let mut out = String::new();
    let memory = &seen.memory;
    let _ = writeln!(
        out,
        "{:>5.1} s  {}  {:>9} records  {:>9.0} records/s",
        seen.elapsed.as_secs_f64(),
        seen.state,
        seen.records,
        seen.rate
    );
    if let Some(waiting) = &seen.waiting {
        let _ = writeln!(out, "waiting for {waiting}");
    }
    let _ = writeln!(out, "{:<12} {:>10} {:>10} {:>10} {:>10}  MiB", "module", "live", "resident", "peak", "row");
    for module in &memory.modules {
        let _ = writeln!(
            out,
            "{:<12} {:>10.2} {:>10.2} {:>10.2} {:>10.2}",
            module.module.name(),
            mib(module.live),
            mib(module.resident),
            mib(module.resident_peak),
            mib(module.row)
        );
    }
    let _ = writeln!(
        out,
        "{:<12} {:>10} {:>10.2} {:>10.2} {:>10.2}  unexplained {:.2}",
        "process",
        "",
        mib(memory.rss),
        mib(memory.rss_peak),
        mib(memory.line),
        memory.unexplained as f64 / MIB
    );
    let [p50, p99, p999, max] = seen.latency;
    let _ = write!(
        out,
        "latency µs   p50 {p50}  p99 {p99}  p99.9 {p999}  max {max}   allocations a record {:.4}",
        seen.allocations
    );
    out
}

/// Every row of the plan, and under each module what it had at most.
pub(crate) fn plan_beside_peaks(plan: &Plan, seen: &Seen) -> String {
    let mut out = format!("{plan}\n");
    let _ = writeln!(out, "{:<12} {:>12} {:>12}  MiB", "module", "sum of rows", "peak");
    for module in &seen.memory.modules {
        let _ = writeln!(
            out,
            "{:<12} {:>12.2} {:>12.2}",
            module.module.name(),
            mib(plan.module_bytes(module.module)),
            mib(module.resident_peak)
        );
    }
    out
}

/// The last line, for programs.
pub(crate) fn json(seen: &Seen) -> Value {
    let memory = &seen.memory;
    let modules: Map<String, Value> = Module::ALL
        .iter()
        .map(|module| {
            let of = memory.module(*module);
            let figures = json!({"resident": of.resident, "peak": of.resident_peak, "row": of.row});
            (module.name().to_owned(), figures)
        })
        .collect();
    let [p50, p99, p999, max] = seen.latency;
    json!({
        "records": seen.records,
        "seconds": seen.elapsed.as_secs_f64(),
        "line_bytes": memory.line,
        "peak_rss_bytes": memory.rss_peak,
        "unexplained_bytes": memory.unexplained,
        "modules": modules,
        "latency_us": {"p50": p50, "p99": p99, "p999": p999, "max": max},
        "allocs_per_record": seen.allocations,
    })
}
