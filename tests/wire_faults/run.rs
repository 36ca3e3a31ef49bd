//! One case: records are written and read by the library while a fault strikes, then read by librdkafka.
//!
//! Record `n` goes to partition `n % partitions` and is the `n / partitions`th there: its value begins with
//! that number,
//! and so its offset must be that number, too: nothing lost, nothing twice, all in order.
use crate::support::oracle;
use crate::{Bench, Case};
use plimsoll::testing::wire::{Client, Reader, ReaderOptions, Writer, WriterOptions};
use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// How long nothing may come or go.
const PATIENCE: Duration = Duration::from_secs(180);

/// What the threads of a case tell each other.
pub struct Run {
    pub topic: String,
    records: u64,
    /// Records that may be written so far.
    allowed: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
    failed: AtomicBool,
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
        let deadline = Instant::now() + PATIENCE;
        while count.load(Ordering::Acquire) < least {
            if self.failed.load(Ordering::Acquire) {
                return Err("given up".to_owned());
            }
            if Instant::now() > deadline {
                return Err(format!("{} of {least} records {what}", count.load(Ordering::Acquire)));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    fn note<T>(&self, outcome: Result<T, String>) -> Result<T, String> {
        self.failed.fetch_or(outcome.is_err(), Ordering::AcqRel);
        outcome
    }
}

/// Runs a case; answers what the producer had to do again.
pub fn run(bench: &Bench, case: &Case) -> Result<String, String> {
    let (records, bootstrap) = (bench.records, bench.bootstrap());
    let topic = bench.cluster.unique(&case.name.replace(' ', "-"));
    bench.create(&topic, case);
    let zero = AtomicU64::default;
    let run = Run { topic, records, allowed: zero(), written: zero(), read: zero(), failed: AtomicBool::new(false) };
    let outcome = std::thread::scope(|scope| {
        let writer = scope.spawn(|| run.note(write(&bootstrap, case, &run).map_err(|why| format!("writer: {why}"))));
        let reader = scope.spawn(|| run.note(read(&bootstrap, case, &run).map_err(|why| format!("reader: {why}"))));
        let act = run.note((case.act)(bench, &run).map_err(|why| format!("fault: {why}")));
        run.allow(100);
        let (written, read) = (writer.join().unwrap(), reader.join().unwrap());
        match (written, read) {
            (Ok(troubles), Ok(())) => act.map(|()| troubles),
            (written, read) => {
                Err([written.err(), read.err(), act.err()].into_iter().flatten().collect::<Vec<_>>().join("; "))
            }
        }
    });
    bench.calm();
    let outcome = outcome.and_then(|troubles| oracle_reads(bench, case, &run).map(|()| troubles));
    oracle::delete_topic(&bootstrap, &run.topic);
    outcome
}

fn write(bootstrap: &str, case: &Case, run: &Run) -> Result<String, String> {
    let client = Client::new(bootstrap)?;
    let options = WriterOptions { codec: case.codec, ..WriterOptions::default() };
    let mut writer = Writer::new(&client, &options)?;
    let topic = writer.topic(&run.topic);
    let partitions = u64::from(case.partitions.unsigned_abs());
    let mut value = vec![b'.'; case.value_bytes];
    for n in 0..run.records {
        while n >= run.allowed.load(Ordering::Acquire) {
            writer.turn(10)?;
            if run.failed.load(Ordering::Acquire) {
                return Err("given up".to_owned());
            }
        }
        value[..8].copy_from_slice(&(n / partitions).to_be_bytes());
        writer.write_value(topic, u32::try_from(n % partitions).unwrap(), now_ms(), &value)?;
        run.written.store(n + 1, Ordering::Release);
    }
    writer.flush()?;
    let (retried, lost) = writer.troubles();
    Ok(format!("{retried} batches again, {lost} connections lost"))
}

fn read(bootstrap: &str, case: &Case, run: &Run) -> Result<(), String> {
    let client = Client::new(bootstrap)?;
    let mut reader = Reader::new(&client, &ReaderOptions::default())?;
    for partition in 0..case.partitions {
        reader.add(&run.topic, partition, 0)?;
    }
    let mut next = vec![0; case.partitions.unsigned_abs() as usize];
    let (mut total, mut wrong) = (0, None);
    let mut deadline = Instant::now() + PATIENCE;
    while total < run.records {
        let before = total;
        reader.turn(20, &mut |partition, seen| {
            let number = number_of(seen.value);
            if (number, seen.offset) != (next[partition], next[partition]) && wrong.is_none() {
                wrong = Some(format!("{number} at offset {} of {partition}, not {}", seen.offset, next[partition]));
            }
            next[partition] += 1;
            total += 1;
        })?;
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        run.read.store(total, Ordering::Release);
        if total > before {
            deadline = Instant::now() + PATIENCE;
        }
        if run.failed.load(Ordering::Acquire) || Instant::now() > deadline {
            return Err(format!("{total} of {} records read", run.records));
        }
    }
    Ok(())
}

/// What the log really holds.
fn oracle_reads(bench: &Bench, case: &Case, run: &Run) -> Result<(), String> {
    let consumer = oracle::consumer(&bench.bootstrap(), "wire-faults", &[("fetch.wait.max.ms", "20")]);
    let mut list = TopicPartitionList::new();
    for partition in 0..case.partitions {
        list.add_partition_offset(&run.topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&list).map_err(|e| e.to_string())?;
    let mut next = vec![0; case.partitions.unsigned_abs() as usize];
    let mut left = case.partitions;
    let mut deadline = Instant::now() + PATIENCE;
    while left > 0 {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                let (number, partition) = (number_of(message.payload()), message.partition() as usize);
                if (number, message.offset()) != (next[partition], next[partition]) {
                    return Err(format!(
                        "librdkafka reads {number} at offset {} of {partition}, not {}",
                        message.offset(),
                        next[partition]
                    ));
                }
                next[partition] += 1;
                deadline = Instant::now() + PATIENCE;
            }
            Some(Err(KafkaError::PartitionEOF(_))) => left -= 1,
            Some(Err(error)) => eprintln!("librdkafka: {error}"),
            None if Instant::now() > deadline => return Err("librdkafka comes to no end".to_owned()),
            None => {}
        }
    }
    let total = next.iter().sum::<i64>();
    if total == run.records.cast_signed() { Ok(()) } else { Err(format!("librdkafka reads {total} records")) }
}

fn number_of(value: Option<&[u8]>) -> i64 {
    value.and_then(|value| value.first_chunk()).map_or(-1, |bytes| i64::from_be_bytes(*bytes))
}

/// Of today: a broker forgets a producer by the time of its records.
fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}
