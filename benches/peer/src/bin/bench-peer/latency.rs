//! Latency of pass-through: records are sent at a steady rate whatever becomes of them (open loop), each carries the
//! moment it was due, and the reader of the output takes the time since then. So a stall delays every record that was
//! due in it (no coordinated omission). The floor is the same with nothing between: the reader reads the input.
use crate::median;
use crate::support::broker::Cluster;
use crate::support::oracle::{create_topic, delete_topic};
use crate::systems::{Programs, System};
use hdrhistogram::Histogram;
use plimsoll_peer::{Outcome, Task};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Settings of the latency bench; each may be set by the environment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Records a second.
    #[arg(long, env = "RATE", default_value_t = 10_000)]
    rate: u64,
    /// Seconds that are measured.
    #[arg(long, env = "MEASURED_SECONDS", default_value_t = 12)]
    seconds: u64,
    /// Seconds before that.
    #[arg(long, env = "WARM_UP_SECONDS", default_value_t = 8)]
    warm_up: u64,
    /// Bytes of a value.
    #[arg(long, env = "RECORD_BYTES", default_value_t = 100)]
    record_bytes: usize,
    /// Partitions of both topics.
    #[arg(long, env = "PARTITIONS", default_value_t = 4)]
    partitions: u32,
    /// Runs of each system.
    #[arg(long, env = "ROUNDS", default_value_t = 3)]
    rounds: u32,
    /// Systems to run.
    #[arg(long, env = "SYSTEMS", value_delimiter = ',', default_value = "floor,plimsoll,kafka-streams")]
    systems: Vec<String>,
    /// The memory line of Plimsoll.
    #[arg(long, env = "LINE", default_value = "256MiB")]
    line: String,
    /// `commit.interval.ms`; 30 seconds is Kafka Streams' default.
    #[arg(long, env = "COMMIT_MS", default_value_t = 30_000)]
    commit_ms: u64,
}

/// One line of the output; times in milliseconds.
#[derive(Serialize)]
struct Line<'a> {
    case: &'a str,
    system: &'a str,
    records: u64,
    rate: u64,
    p50_ms: f64,
    p99_ms: f64,
    #[serde(rename = "p99.9_ms")]
    p99_9_ms: f64,
    #[serde(rename = "p99.99_ms")]
    p99_99_ms: f64,
    max_ms: f64,
    round: u32,
    acks: &'a str,
    idempotence: bool,
    compression: &'a str,
    linger_ms: u64,
    commit_interval_ms: u64,
    partitions: u32,
    record_bytes: usize,
}

/// The last lines: medians over the rounds.
#[derive(Serialize)]
struct Median<'a> {
    case: &'a str,
    system: &'a str,
    median_of: usize,
    p50_ms: f64,
    p99_ms: f64,
    #[serde(rename = "p99.9_ms")]
    p99_9_ms: f64,
    #[serde(rename = "p99.99_ms")]
    p99_99_ms: f64,
    max_ms: f64,
    /// How much the p99.9 is above the floor's.
    #[serde(rename = "p99.9_over_floor_ms", skip_serializing_if = "Option::is_none")]
    over_floor_ms: Option<f64>,
}

/// What is between input and output.
const SYSTEMS: [(&str, Option<System>); 3] =
    [("floor", None), ("plimsoll", Some(System::Plimsoll)), ("kafka-streams", Some(System::KafkaStreams))];
/// A producer's batch of Kafka's default size.
const BATCH_BYTES: u64 = 16_384;
/// The key of every record; the generator chooses the partition.
const KEY: &str = "user-00000042";
/// Time for the last records to arrive.
const DRAIN: Duration = Duration::from_secs(1);

pub(crate) fn run(cluster: &Cluster, options: &Options) -> Outcome<()> {
    let programs = Programs::prepare()?;
    let mut done: Vec<(&str, Histogram<u64>)> = Vec::new();
    for round in 1..=options.rounds {
        for (name, system) in SYSTEMS {
            if options.systems.iter().any(|wanted| wanted == name) {
                let histogram = run_one(cluster, options, &programs, system)?;
                print(options, name, round, &histogram)?;
                done.push((name, histogram));
            }
        }
    }
    for (name, _) in SYSTEMS {
        print_median(&done, name)?;
    }
    Ok(())
}

fn run_one(
    cluster: &Cluster,
    options: &Options,
    programs: &Programs,
    system: Option<System>,
) -> Outcome<Histogram<u64>> {
    let bootstrap = cluster.bootstrap();
    let id = cluster.unique("latency");
    let (input, output) = (format!("{id}-input"), format!("{id}-output"));
    for topic in [&input, &output] {
        create_topic(bootstrap, topic, i32::try_from(options.partitions)?, &[]);
    }
    let state = tempfile::tempdir()?;
    let running = match system {
        None => None,
        Some(system) => {
            let task = Task {
                case: "pass".to_owned(),
                serve: true,
                bootstrap: bootstrap.to_owned(),
                id,
                input: input.clone(),
                output: output.clone(),
                partitions: options.partitions,
                commit_ms: options.commit_ms,
                batch_bytes: BATCH_BYTES,
                line: options.line.clone(),
                state: state.path().display().to_string(),
                ..Task::default()
            };
            let mut running = programs.start(system, &task)?;
            running.line("RUNNING")?;
            Some(running)
        }
    };
    let read = if running.is_some() { &output } else { &input };
    let histogram = measure(bootstrap, &input, read, options)?;
    drop(running);
    for topic in [&input, &output] {
        delete_topic(bootstrap, topic);
    }
    Ok(histogram)
}

/// Sends into one topic and reads from the other.
fn measure(bootstrap: &str, input: &str, read: &str, options: &Options) -> Outcome<Histogram<u64>> {
    let consumer = reader(bootstrap, read, options.partitions)?;
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        // As Kafka's own producer: what waits for one of five requests forms a batch.
        .set("linger.ms", "0")
        .set("max.in.flight.requests.per.connection", "5")
        .set("acks", "1")
        .create()?;
    let origin = Instant::now();
    let measured_from = Duration::from_secs(options.warm_up);
    let stop = AtomicBool::new(false);
    let (sent, histogram) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| take(&consumer, origin, measured_from, &stop));
        let sent = send(&producer, input, origin, options);
        std::thread::sleep(DRAIN);
        stop.store(true, Ordering::Release);
        (sent, reading.join())
    });
    sent?;
    let histogram = histogram.map_err(|_| "the reader panicked")??;
    let expected = options.rate * options.seconds;
    if histogram.len() < expected - expected / 1_000 {
        return Err(format!("{} of {expected} records arrived", histogram.len()).into());
    }
    Ok(histogram)
}

/// A consumer at the end of every partition.
fn reader(bootstrap: &str, topic: &str, partitions: u32) -> Outcome<BaseConsumer> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", format!("{topic}-reader"))
        .set("enable.auto.commit", "false")
        .set("fetch.min.bytes", "1")
        .create()?;
    let mut all = TopicPartitionList::new();
    for partition in 0..i32::try_from(partitions)? {
        // The topic is new: its beginning is its end.
        all.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&all)?;
    Ok(consumer)
}

/// Sends every record when it is due, or as soon after as this thread runs; it carries when it was due.
fn send(producer: &BaseProducer, topic: &str, origin: Instant, options: &Options) -> Result<(), String> {
    let mut value = vec![b'.'; options.record_bytes.max(8)];
    for number in 0..options.rate * (options.warm_up + options.seconds) {
        let due = Duration::from_nanos(number * 1_000_000_000 / options.rate);
        while origin.elapsed() < due {
            producer.poll(Duration::ZERO);
            std::thread::sleep(Duration::from_micros(100));
        }
        value[..8].copy_from_slice(&u64::try_from(due.as_nanos()).unwrap_or(u64::MAX).to_be_bytes());
        let partition = i32::try_from(number % u64::from(options.partitions)).unwrap_or(0);
        let mut record = BaseRecord::to(topic).partition(partition).key(KEY).payload(value.as_slice());
        while let Err((error, refused)) = producer.send(record) {
            if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
                return Err(error.to_string());
            }
            producer.poll(Duration::from_millis(1));
            record = refused;
        }
    }
    producer.flush(Duration::from_secs(10)).map_err(|error| error.to_string())
}

/// Takes the time of every record that was due after the warm-up.
fn take(
    consumer: &BaseConsumer,
    origin: Instant,
    measured_from: Duration,
    stop: &AtomicBool,
) -> Result<Histogram<u64>, String> {
    // 1 µs to a minute, in nanoseconds, three digits.
    let mut histogram = Histogram::new_with_bounds(1_000, 60_000_000_000, 3).map_err(|error| error.to_string())?;
    while !stop.load(Ordering::Acquire) {
        let Some(message) = consumer.poll(Duration::from_millis(100)) else { continue };
        let message = message.map_err(|error| error.to_string())?;
        let due = message.payload().and_then(|value| value.first_chunk::<8>()).map(|due| u64::from_be_bytes(*due));
        let due = Duration::from_nanos(due.ok_or("a record without the moment it was due")?);
        if due >= measured_from {
            let taken = origin.elapsed().saturating_sub(due);
            histogram.saturating_record(u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX));
        }
    }
    Ok(histogram)
}

/// p50, p99, p99.9, p99.99 and maximum, milliseconds.
fn percentiles(histogram: &Histogram<u64>) -> [f64; 5] {
    [0.5, 0.99, 0.999, 0.9999, 1.0].map(|part| (histogram.value_at_quantile(part) as f64 / 1e3).round() / 1e3)
}

fn print(options: &Options, system: &str, round: u32, histogram: &Histogram<u64>) -> Outcome<()> {
    let [p50_ms, p99_ms, p99_9_ms, p99_99_ms, max_ms] = percentiles(histogram);
    let line = Line {
        case: "latency",
        system,
        records: histogram.len(),
        rate: options.rate,
        p50_ms,
        p99_ms,
        p99_9_ms,
        p99_99_ms,
        max_ms,
        round,
        acks: "all",
        idempotence: true,
        compression: "none",
        linger_ms: 0,
        commit_interval_ms: options.commit_ms,
        partitions: options.partitions,
        record_bytes: options.record_bytes,
    };
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}

fn print_median(done: &[(&str, Histogram<u64>)], system: &str) -> Outcome<()> {
    let of = |system: &str| -> Vec<[f64; 5]> {
        done.iter().filter(|(name, _)| *name == system).map(|(_, histogram)| percentiles(histogram)).collect()
    };
    let (runs, floor) = (of(system), of("floor"));
    let middle = |runs: &[[f64; 5]], at: usize| median(runs.iter().map(|run| run[at]).collect());
    let Some(p99_9_ms) = middle(&runs, 2) else { return Ok(()) };
    let over = middle(&floor, 2).filter(|_| system != "floor").map(|floor| ((p99_9_ms - floor) * 1e3).round() / 1e3);
    let line = Median {
        case: "latency",
        system,
        median_of: runs.len(),
        p50_ms: middle(&runs, 0).unwrap_or(0.0),
        p99_ms: middle(&runs, 1).unwrap_or(0.0),
        p99_9_ms,
        p99_99_ms: middle(&runs, 3).unwrap_or(0.0),
        max_ms: middle(&runs, 4).unwrap_or(0.0),
        over_floor_ms: over,
    };
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}
