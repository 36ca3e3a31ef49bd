//! The differential proof: what the library writes, librdkafka and Apache Kafka's own clients read, and the other way
//! round, on a real broker: equal bytes, offsets, timestamps, headers, and visibility for both isolation levels.
//!
//! Each seed is a partition into which all three write what the seed says, one after the other, and from which all
//! three read. `--seeds FIRST:COUNT` says which (without it the short form of `make test`); `--record DIR` keeps what
//! the broker answered the library as seeds of the fuzz target `wire`. The last line is `N passed, N failed`.
#![allow(missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]
mod compare;
mod java;
mod librdkafka;
mod ours;
mod script;
#[path = "../support/mod.rs"]
mod support;

use java::Java;
use plimsoll::testing::wire::Client;
use rdkafka::consumer::BaseConsumer;
use script::{Kind, Place, Read, Script, Who};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};
use support::broker::{Cluster, Options};
use support::oracle::{self, Rec};
use support::proxy::{Proxy, Recorder, Tap};

plimsoll::install_allocator!();

/// Seeds of the short form.
const SHORT: (u64, usize) = (1, 40);
/// Seeds that are written and read together.
const ROUND: usize = 40;
/// Seeds that are written at once.
const WRITERS: usize = 3;
/// So much later than all others is the record that closes the segments of a compacted topic: more than `segment.ms`.
const LATER_MS: i64 = 20 * 3_600_000;

/// The broker and the clients.
struct Bench {
    kafka: Cluster,
    client: Client,
    java: Java,
    now_ms: i64,
    /// In front of the broker while its answers are kept.
    _proxy: Option<Proxy>,
}

/// A seed with its partition and what went wrong so far.
struct Case {
    script: Script,
    place: Place,
    failed: Option<String>,
}

fn main() -> ExitCode {
    let (first, count) = seeds();
    let Some(bench) = Bench::new() else {
        println!("test result: ok. 0 passed; 0 failed");
        return ExitCode::SUCCESS;
    };
    let start = Instant::now();
    let all: Vec<u64> = (first..).take(count).collect();
    let mut failed = 0;
    for (number, seeds) in all.chunks(ROUND).enumerate() {
        for case in bench.round(number, seeds) {
            if let Some(why) = case.failed {
                failed += 1;
                println!("seed {} ({:?}): {why}", case.script.seed, case.script.kind);
            }
        }
        println!("{} of {count} seeds, {failed} failed, {} s", number * ROUND + seeds.len(), start.elapsed().as_secs());
    }
    let passed = count - failed;
    println!("test result: {}. {passed} passed; {failed} failed", if failed == 0 { "ok" } else { "FAILED" });
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// First seed and number of seeds.
fn seeds() -> (u64, usize) {
    let Some(given) = argument("--seeds") else { return SHORT };
    let (first, count) = given.split_once(':').expect("--seeds FIRST:COUNT");
    (first.parse().unwrap(), count.parse().unwrap())
}

/// What stands behind an argument.
fn argument(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|arg| arg != name);
    args.nth(1)
}

impl Bench {
    fn new() -> Option<Self> {
        let mut options = Options::default().set("log.cleaner.backoff.ms", "50");
        let record = argument("--record").map(|folder| Arc::new(Recorder::new("plimsoll", &folder)) as Arc<dyn Tap>);
        let proxy = record.map(|recorder| Proxy::start(Some(recorder)));
        options.advertised = proxy.iter().map(Proxy::port).collect();
        let kafka = Cluster::start(&options)?;
        proxy.iter().for_each(|proxy| proxy.lead_to(kafka.port(0)));
        let port = proxy.as_ref().map_or(kafka.port(0), Proxy::port);
        let client = Client::new(&format!("127.0.0.1:{port}")).unwrap();
        let java = Java::start(kafka.bootstrap());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Some(Self { kafka, client, java, now_ms: i64::try_from(now.as_millis()).unwrap(), _proxy: proxy })
    }

    /// Writes and reads some seeds; a topic for each kind, a partition for each seed.
    fn round(&self, number: usize, seeds: &[u64]) -> Vec<Case> {
        let mut used = BTreeMap::new();
        let mut cases: Vec<Case> = seeds.iter().map(|seed| self.case(number, *seed, &mut used)).collect();
        for (kind, partitions) in &used {
            oracle::create_topic(self.kafka.bootstrap(), &topic(*kind, number), *partitions, configs(*kind));
        }
        let next = AtomicUsize::new(0);
        let cells: Vec<_> = cases.iter_mut().map(std::sync::Mutex::new).collect();
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| {
                    let consumer = oracle::consumer(self.kafka.bootstrap(), "wire-diff", &[]);
                    while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let mut case = cell.lock().unwrap();
                        case.failed = self.write(&case, &consumer).err();
                        if let Some(why) = &case.failed {
                            println!("{why}");
                        }
                    }
                });
            }
        });
        drop(cells);
        for (kind, partitions) in &used {
            let topic = topic(*kind, number);
            let read = |case: &&mut Case| case.place.topic == topic && case.failed.is_none();
            let mut these: Vec<_> = cases.iter_mut().filter(read).collect();
            if *kind == Kind::Compacted {
                self.compact(&topic, *partitions);
            }
            for committed in [false, true] {
                self.read(committed, &mut these);
            }
            oracle::delete_topic(self.kafka.bootstrap(), &topic);
        }
        cases
    }

    fn case(&self, number: usize, seed: u64, used: &mut BTreeMap<Kind, i32>) -> Case {
        let script = Script::of(seed, self.now_ms);
        let partition = used.entry(script.kind).or_default();
        let place = Place { topic: topic(script.kind, number), partition: *partition };
        *partition += 1;
        Case { script, place, failed: None }
    }

    fn write(&self, case: &Case, consumer: &BaseConsumer) -> Result<(), String> {
        let mut end = 0;
        for (number, part) in case.script.parts.iter().enumerate() {
            let id = format!("{}-{}-{number}", case.place.topic, case.place.partition);
            let written = match part.who {
                Who::Ours => ours::write(&self.client, &case.place, part, &id),
                Who::Librdkafka => librdkafka::write(self.kafka.bootstrap(), &case.place, part, &id),
                Who::Java => self.java.write(&case.place, part, if part.transactional { &id } else { "" }),
            };
            end += part.offsets();
            let ended = written.and_then(|()| librdkafka::wait_for_end(consumer, &case.place, end));
            ended.map_err(|why| format!("written by {:?}: {why}", part.who))?;
        }
        Ok(())
    }

    /// Closes the segments, and waits until the cleaner has been there.
    fn compact(&self, topic: &str, partitions: i32) {
        let last = |partition| Rec::new(partition, self.now_ms + LATER_MS, "last", "");
        oracle::produce(self.kafka.bootstrap(), topic, &(0..partitions).map(last).collect::<Vec<_>>(), &[]);
        let checkpoint = self.kafka.log_dir(0).join("cleaner-offset-checkpoint");
        oracle::wait("the cleaner", || {
            let text = std::fs::read_to_string(&checkpoint).ok()?;
            let of = |line: &&str| line.split(' ').next() == Some(topic);
            (i32::try_from(text.lines().filter(of).count()) == Ok(partitions)).then_some(())
        });
        std::thread::sleep(Duration::from_millis(50));
    }

    /// Lets all three read, and compares.
    fn read(&self, committed: bool, cases: &mut [&mut Case]) {
        let compacted = cases.first().is_some_and(|case| case.script.kind == Kind::Compacted);
        let wanted: Vec<Read> = cases.iter().map(|case| case.script.expected(committed)).collect();
        let ends = wanted.iter().map(|wanted| wanted.position + i64::from(compacted));
        let places: Vec<_> = cases.iter().zip(ends).map(|(case, end)| (case.place.clone(), end)).collect();
        let reads = [
            ("ours", ours::read(&self.client, committed, &places)),
            ("librdkafka", librdkafka::read(self.kafka.bootstrap(), committed, &places)),
            ("java", self.java.read(committed, &places)),
        ];
        for (who, read) in &reads {
            if let Err(why) = read {
                println!("{who}: {why}");
            }
        }
        for (at, case) in cases.iter_mut().enumerate().filter(|(_, case)| case.failed.is_none()) {
            let one = |(who, read): &(&'static str, Result<Vec<Read>, String>)| match read {
                Ok(reads) => Ok((*who, reads[at].clone())),
                Err(why) => Err(format!("read by {who}: {why}")),
            };
            let same = reads.iter().map(one).collect::<Result<Vec<_>, _>>();
            let same = same.and_then(|reads| compare::all(&case.script, committed, &reads));
            let level = if committed { "read_committed" } else { "read_uncommitted" };
            case.failed = same.err().map(|why| format!("{level}: {why}"));
        }
    }
}

fn topic(kind: Kind, round: usize) -> String {
    format!("{kind:?}-{round}").to_lowercase()
}

fn configs(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::Plain => &[("retention.ms", "-1")],
        Kind::Appended => &[("retention.ms", "-1"), ("message.timestamp.type", "LogAppendTime")],
        Kind::Compacted => &[
            ("cleanup.policy", "compact"),
            ("segment.ms", "43200000"),
            ("min.cleanable.dirty.ratio", "0"),
            ("message.timestamp.after.max.ms", "9223372036854775807"),
        ],
    }
}
