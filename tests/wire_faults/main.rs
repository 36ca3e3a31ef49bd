//! The data path under faults: three real brokers behind a proxy each, and every record exactly once, in the order of
//! its partition.
//!
//! Without arguments the short form that `make test` runs, with 100,000 records and shorter pauses. `--records N` runs
//! every case with so many, `--only NAME` those whose names contain that. The last line is `N passed, N failed`.
#![allow(missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]
mod admin;
mod faults;
mod read;
mod run;
#[path = "../support/mod.rs"]
mod support;
mod write;

use admin::Admin;
use plimsoll::Compression;
use plimsoll::testing::wire::{Client, Writer, WriterOptions};
use run::Run;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use support::broker::{Cluster, Options};
use support::oracle;
use support::proxy::{Fault, Proxy};

plimsoll::install_allocator!();

const BROKERS: usize = 3;
const SHORT: u64 = 100_000;
/// Where coordinators keep transactions.
pub const COORDINATORS: &str = "__transaction_state";
/// How long the cluster may take to be whole again.
const PATIENCE: Duration = Duration::from_secs(90);

/// The cluster and what disturbs it.
pub struct Bench {
    pub cluster: Cluster,
    pub proxies: Vec<Proxy>,
    pub admin: Admin,
    /// Records of a case.
    pub records: u64,
}

/// A fault, and what is written meanwhile.
pub struct Case {
    pub name: &'static str,
    pub partitions: i32,
    /// Brokers that have all replicas, the leader first; empty: spread over all.
    replicas: &'static [i32],
    configs: &'static [(&'static str, &'static str)],
    pub codec: Compression,
    pub value_bytes: usize,
    pub batch_bytes: usize,
    pub frame_bytes: usize,
    pub request_timeout_ms: i64,
    /// Written in transactions, and read when committed.
    pub transactional: bool,
    /// Lets the fault strike, and ends it.
    pub act: fn(&Bench, &Run) -> Result<(), String>,
}

const CASE: Case = Case {
    name: "",
    partitions: 6,
    replicas: &[],
    configs: &[("min.insync.replicas", "2")],
    codec: Compression::None,
    value_bytes: 92,
    batch_bytes: 16 << 10,
    frame_bytes: 64 << 10,
    request_timeout_ms: 30_000,
    transactional: false,
    act: |_, _| Ok(()),
};

/// On two brokers.
const ON_TWO: Case = Case { replicas: &[1, 2], partitions: 4, ..CASE };
/// What is on its way while an answer takes long is a batch of each partition in each of five requests, or a frame.
const FAR: Case = Case { batch_bytes: 64 << 10, frame_bytes: 1 << 20, ..ON_TWO };

const CASES: &[Case] = &[
    Case { name: "leader moved", act: faults::leader_moved, ..ON_TWO },
    Case { name: "leader moved, transactions", act: faults::leaders_moved, transactional: true, ..ON_TWO },
    Case { name: "delayed by 200 ms", act: faults::delayed, ..FAR },
    Case { name: "reset at a random byte", act: faults::reset, ..ON_TWO },
    Case { name: "reset at a random byte, transactions", act: faults::reset, transactional: true, ..ON_TWO },
    Case { name: "one byte at a time", act: faults::trickled, codec: Compression::Lz4, value_bytes: 8, ..ON_TWO },
    Case { name: "throttled", act: faults::throttled, value_bytes: 24, ..ON_TWO },
    Case { name: "killed", act: faults::killed, ..CASE },
    Case { name: "killed, transactions", act: faults::killed, transactional: true, ..CASE },
    Case {
        name: "unclean election",
        act: faults::unclean,
        configs: &[("min.insync.replicas", "2"), ("unclean.leader.election.enable", "true")],
        ..ON_TWO
    },
    Case { name: "rolling restart", act: faults::rolling, ..CASE },
    Case { name: "paused", act: faults::paused, ..CASE },
];

fn main() -> ExitCode {
    let records = argument("--records").map_or(SHORT, |given| given.parse().unwrap());
    let Some(bench) = Bench::new(records) else {
        println!("test result: ok. 0 passed; 0 failed");
        return ExitCode::SUCCESS;
    };
    let (mut passed, mut failed) = (0, 0);
    let only = argument("--only").unwrap_or_default();
    for case in CASES.iter().filter(|case| case.name.contains(&only)) {
        if failed > 0 {
            // What failed may have left the brokers in any state.
            println!("{}: not run", case.name);
            failed += 1;
            continue;
        }
        let start = Instant::now();
        let outcome = run::run(&bench, case);
        let seconds = start.elapsed().as_secs_f32();
        let (count, told) = match outcome {
            Ok(told) => (&mut passed, format!("ok: {told}")),
            Err(why) => (&mut failed, format!("FAILED: {why}")),
        };
        *count += 1;
        println!("{}: {records} records in {seconds:.1} s, {told}", case.name);
    }
    println!("test result: {}. {passed} passed; {failed} failed", if failed == 0 { "ok" } else { "FAILED" });
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What stands behind an argument.
fn argument(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|arg| arg != name);
    args.nth(1)
}

impl Bench {
    fn new(records: u64) -> Option<Self> {
        let proxies: Vec<_> = (0..BROKERS).map(|_| Proxy::start(None)).collect();
        let options = Options {
            heap_mib: if records > SHORT { 512 } else { 256 },
            full_jit: records > SHORT,
            advertised: proxies.iter().map(Proxy::port).collect(),
            ..Options::brokers(BROKERS)
        };
        // A broker that is away is missed soon.
        let options = options.set("broker.session.timeout.ms", "4000").set("broker.heartbeat.interval.ms", "500");
        let cluster = Cluster::start(&options.set("controlled.shutdown.retry.backoff.ms", "500"))?;
        for (node, proxy) in proxies.iter().enumerate() {
            proxy.lead_to(cluster.port(node));
        }
        let admin = Admin::start(cluster.bootstrap());
        Some(Self { cluster, proxies, admin, records })
    }

    /// `bootstrap.servers`, by way of the proxies.
    pub fn bootstrap(&self) -> String {
        self.proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.port())).collect::<Vec<_>>().join(",")
    }

    pub fn create(&self, topic: &str, case: &Case) {
        let bootstrap = self.bootstrap();
        match case.replicas {
            [] => oracle::create_topic_replicated(&bootstrap, topic, case.partitions, 3, case.configs),
            replicas => oracle::create_topic_on(&bootstrap, topic, case.partitions, replicas, case.configs),
        }
    }

    /// Whether this is the short form.
    pub fn is_short(&self) -> bool {
        self.records <= SHORT
    }

    /// Makes the first broker the coordinator of all transactions.
    pub fn coordinate(&self) -> Result<(), String> {
        if oracle::partitions(&self.bootstrap(), COORDINATORS).is_none() {
            // The first transaction makes the topic.
            let client = Client::new(&self.bootstrap())?;
            let transactional_id = Some("first".to_owned());
            Writer::new(&client, &WriterOptions { transactional_id, ..WriterOptions::default() })?.begin()?;
        }
        self.admin.lead(COORDINATORS, 1)
    }

    /// All connections as they are.
    pub fn calm(&self) {
        self.disturb(Fault::None);
    }

    pub fn disturb(&self, fault: Fault) {
        self.proxies.iter().for_each(|proxy| proxy.set(fault));
    }

    /// Waits until the fewest replicas in sync of the topic's partitions are as many as wanted.
    pub fn in_sync(&self, topic: &str, wanted: fn(usize) -> bool) -> Result<(), String> {
        self.until(topic, |all| all.iter().map(|(_, count)| *count).min().is_some_and(wanted))
    }

    /// Waits until this broker leads all partitions of the topic.
    pub fn led_by(&self, topic: &str, broker: i32) -> Result<(), String> {
        self.until(topic, |all| all.iter().all(|(leader, _)| *leader == broker))
    }

    fn until(&self, topic: &str, wanted: impl Fn(Vec<(i32, usize)>) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now = oracle::leaders(&self.bootstrap(), topic);
            if now.clone().is_some_and(&wanted) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("leaders and replicas in sync of {topic} stay {now:?}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
