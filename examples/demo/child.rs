//! The child process: librdkafka's mock cluster and a generator of lines. It ends when its standard input does.
//!
//! The mock cluster keeps at most 5 MiB a partition, so the generator never runs 4 MiB a partition ahead of what was
//! counted: it learns from its standard input how many records the counting process has taken.
use crate::words::{APPLICATION, COUNTS, LINES, PARTITIONS, TOPICS, now_us};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::{ClientConfig, Message, TopicPartitionList};
use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Most bytes that the generator is ahead in one partition.
const AHEAD_BYTES: u64 = 4 << 20;
/// Different words.
const WORDS: usize = 10_000;
/// Words in a line.
const WORDS_PER_LINE: usize = 8;

/// The child as its parent sees it.
pub(crate) struct Child {
    process: std::process::Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    bootstrap: String,
}

impl Child {
    /// Starts this program again as the child and waits until its cluster is up.
    pub(crate) fn start(rate: u64) -> Result<Self, Box<dyn Error>> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--child", "--rate", &rate.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = process.stdin.take().ok_or("the child has no standard input")?;
        let mut stdout = BufReader::new(process.stdout.take().ok_or("the child has no standard output")?);
        let mut bootstrap = String::new();
        stdout.read_line(&mut bootstrap)?;
        Ok(Self { process, stdin, stdout, bootstrap: bootstrap.trim().to_owned() })
    }

    /// `bootstrap.servers` of the mock cluster.
    pub(crate) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Tells the generator how many records were taken.
    pub(crate) fn progress(&mut self, records: u64) -> Result<(), Box<dyn Error>> {
        writeln!(self.stdin, "{records}")?;
        Ok(())
    }

    /// What the output topic says of each word.
    pub(crate) fn counts(&mut self) -> Result<Vec<(String, i64)>, Box<dyn Error>> {
        writeln!(self.stdin, "counts")?;
        let mut counts = Vec::new();
        let mut line = String::new();
        loop {
            line.clear();
            if self.stdout.read_line(&mut line)? == 0 || line.trim().is_empty() {
                return Ok(counts);
            }
            if let Some((word, count)) = line.trim().split_once('\t') {
                counts.push((word.to_owned(), count.parse()?));
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The child's work.
pub(crate) fn run(rate: u64) -> Result<(), Box<dyn Error>> {
    // Ctrl-C reaches the whole foreground group; the parent ends the child.
    ctrlc::set_handler(|| {})?;
    let cluster = MockCluster::new(1)?;
    for topic in TOPICS {
        cluster.create_topic(topic, PARTITIONS, 1)?;
    }
    let bootstrap = cluster.bootstrap_servers();
    let taken = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let generator = {
        let (bootstrap, taken, stop) = (bootstrap.clone(), Arc::clone(&taken), Arc::clone(&stop));
        std::thread::spawn(move || generate(&bootstrap, rate, &taken, &stop))
    };
    println!("{bootstrap}");
    for line in std::io::stdin().lock().lines() {
        match line?.as_str() {
            "counts" => {
                stop.store(true, Ordering::Release);
                print_counts(&bootstrap)?;
            }
            number => taken.store(number.parse()?, Ordering::Release),
        }
    }
    stop.store(true, Ordering::Release);
    let _ = generator.join();
    Ok(())
}

/// The mock cluster walks the list of a partition's batches at each fetch, so batches must not be tiny.
const LINGER_MS: &str = "20";

/// Writes lines at a steady rate; each carries the moment it was due, also when it is late.
fn generate(bootstrap: &str, rate: u64, taken: &AtomicU64, stop: &AtomicBool) {
    let producer: Result<ThreadedProducer<DefaultProducerContext>, _> =
        ClientConfig::new().set("bootstrap.servers", bootstrap).set("linger.ms", LINGER_MS).create();
    let Ok(producer) = producer else { return };
    let words: Vec<String> = (0..WORDS).map(|n| format!("word{n:05}")).collect();
    let mut random = fastrand::Rng::with_seed(42);
    let mut line = String::new();
    let (started, started_us) = (Instant::now(), now_us());
    let mut sent = 0u64;
    while !stop.load(Ordering::Acquire) {
        let due = (started.elapsed().as_micros() as u64).saturating_mul(rate) / 1_000_000;
        let line_bytes = (WORDS_PER_LINE * 10 + 40) as u64;
        // The repartition topic holds every word as a record of its own: it is what fills first.
        let most = taken.load(Ordering::Acquire) / (1 + WORDS_PER_LINE as u64)
            + AHEAD_BYTES * PARTITIONS as u64 / (line_bytes * 4);
        while sent < due.min(most) {
            line.clear();
            for _ in 0..WORDS_PER_LINE {
                // Squared: some words are much more frequent than others.
                let r = random.f64();
                line.push_str(&words[((r * r) * WORDS as f64) as usize % WORDS]);
                line.push(' ');
            }
            let due_us = started_us + (sent.saturating_mul(1_000_000) / rate.max(1)) as i64;
            let key = due_us.to_be_bytes();
            let record = BaseRecord::to(LINES).key(&key[..]).payload(line.trim_end());
            if producer.send(record).is_err() {
                break;
            }
            sent += 1;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let _ = producer.flush(Duration::from_secs(5));
}

/// Reads the whole output topic and prints the last count of each word, then an empty line.
fn print_counts(bootstrap: &str) -> Result<(), Box<dyn Error>> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", format!("{APPLICATION}-reader"))
        .set("enable.partition.eof", "true")
        .create()?;
    let mut all = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        all.add_partition_offset(COUNTS, partition, rdkafka::Offset::Beginning)?;
    }
    consumer.assign(&all)?;
    let mut counts: HashMap<String, i64> = HashMap::new();
    let mut ends = 0;
    let give_up = Instant::now() + Duration::from_secs(10);
    while ends < PARTITIONS && Instant::now() < give_up {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                if let (Some(key), Some(Ok(count))) = (message.key(), message.payload().map(<[u8; 8]>::try_from)) {
                    counts.insert(String::from_utf8_lossy(key).into_owned(), i64::from_be_bytes(count));
                }
            }
            Some(Err(_)) => ends += 1,
            None => {}
        }
    }
    let mut out = std::io::stdout().lock();
    for (word, count) in &counts {
        writeln!(out, "{word}\t{count}")?;
    }
    writeln!(out)?;
    out.flush()?;
    Ok(())
}
