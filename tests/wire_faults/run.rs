//! One case: records are written and read by the library while a fault strikes, then read by librdkafka.
//!
//! Record `n` goes to partition `n % partitions` and is the `n / partitions`th there: its value begins with that
//! number. Nothing lost, nothing twice, all in order.
use crate::read::{oracle_reads, read};
use crate::support::oracle;
use crate::write::write;
use crate::{Bench, Case};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long nothing may come or go.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// What the threads of a case tell each other.
pub struct Run {
    pub topic: String,
    /// Of a case with transactions: the transactional id, and the group whose offsets they commit.
    pub group: Option<String>,
    pub records: u64,
    /// Records that may be written so far.
    pub allowed: AtomicU64,
    /// Records handed to the producer; committed, if there are transactions.
    pub written: AtomicU64,
    pub read: AtomicU64,
    pub failed: AtomicBool,
}

impl Run {
    /// Lets the writer go on to so many hundredths of the records.
    pub fn allow(&self, hundredths: u64) {
        self.allowed.store(self.records * hundredths / 100, Ordering::Release);
    }

    /// Waits until so many hundredths are handed to the producer.
    pub fn written(&self, hundredths: u64) -> Result<(), String> {
        self.wait("written", &self.written, self.records * hundredths / 100)
    }

    /// Waits until everything has been read.
    pub fn read_all(&self) -> Result<(), String> {
        self.wait("read", &self.read, self.records)
    }

    fn wait(&self, what: &str, count: &AtomicU64, least: u64) -> Result<(), String> {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            let now = count.load(Ordering::Acquire);
            if now >= least {
                return Ok(());
            }
            if self.failed.load(Ordering::Acquire) {
                return Err("given up".to_owned());
            }
            if now > last {
                (last, since) = (now, Instant::now());
            }
            if since.elapsed() > PATIENCE {
                return Err(format!("{now} of {least} records {what}"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn note<T>(&self, outcome: Result<T, String>) -> Result<T, String> {
        self.failed.fetch_or(outcome.is_err(), Ordering::AcqRel);
        outcome
    }
}

/// Runs a case; answers what the producer had to do again.
pub fn run(bench: &Bench, case: &Case) -> Result<String, String> {
    let (records, bootstrap) = (bench.records, bench.bootstrap());
    let topic = bench.cluster.unique(&case.name.replace([' ', ','], "-"));
    bench.create(&topic, case);
    if case.transactional {
        bench.coordinate()?;
    }
    let group = case.transactional.then(|| topic.clone());
    let zero = AtomicU64::default;
    let failed = AtomicBool::new(false);
    let run = Run { topic, group, records, allowed: zero(), written: zero(), read: zero(), failed };
    let outcome = std::thread::scope(|scope| {
        let writer = scope.spawn(|| run.note(write(&bootstrap, case, &run).map_err(|why| format!("writer: {why}"))));
        let reader = scope.spawn(|| run.note(read(&bootstrap, case, &run).map_err(|why| format!("reader: {why}"))));
        let act = run.note((case.act)(bench, &run).map_err(|why| format!("fault: {why}")));
        run.allow(100);
        let (written, read) = (writer.join().unwrap(), reader.join().unwrap());
        match (written, read) {
            (Ok(told), Ok(silence)) => act.map(|()| format!("{told}; nothing read for {:.1} s", silence.as_secs_f32())),
            (written, read) => {
                Err([written.err(), read.err(), act.err()].into_iter().flatten().collect::<Vec<_>>().join("; "))
            }
        }
    });
    bench.calm();
    let start = Instant::now();
    let outcome = outcome.and_then(|told| oracle_reads(bench, case, &run).map(|()| told));
    oracle::delete_topic(&bootstrap, &run.topic);
    outcome.map(|told| format!("{told}, checked in {:.1} s", start.elapsed().as_secs_f32()))
}
