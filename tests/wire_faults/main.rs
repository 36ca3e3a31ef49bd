//! The data path under faults: three real brokers behind a proxy each, and every record exactly once, in the order of
//! its partition.
//!
//! Without arguments the short form that `make test` runs, with 100,000 records: disturbed connections, a
//! moved leader, a
//! killed broker. `--records N` runs every fault with so many, `--only NAME` one case. The last line is
//! `N passed, N failed`.
#![allow(missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]
mod admin;
mod run;
#[path = "../support/mod.rs"]
mod support;

use admin::Admin;
use plimsoll::Compression;
use run::Run;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::broker::{Cluster, Options};
use support::oracle;
use support::proxy::{Fault, Proxy};

plimsoll::install_allocator!();

const BROKERS: usize = 3;
const SHORT: u64 = 100_000;
/// So long a broker is silent: longer than a request may stay unanswered.
const PAUSE: Duration = Duration::from_secs(40);
/// How long the cluster may take to be whole again.
const PATIENCE: Duration = Duration::from_secs(90);

/// The cluster and what disturbs it.
pub struct Bench {
    pub cluster: Cluster,
    proxies: Vec<Proxy>,
    admin: Admin,
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
    act: |_, _| Ok(()),
};

/// On two brokers.
const ON_TWO: Case = Case { replicas: &[1, 2], partitions: 4, ..CASE };

const PAUSED: &[Case] = &[Case { name: "paused for 40 s", act: paused, ..CASE }];
const DISTURBED: &[Case] = &[
    Case { name: "leader moved", act: leader_moved, ..ON_TWO },
    Case { name: "delayed by 200 ms", act: delayed, ..ON_TWO },
    Case { name: "reset at a random byte", act: reset, ..ON_TWO },
    Case { name: "one byte at a time", act: trickled, codec: Compression::Lz4, value_bytes: 8, ..ON_TWO },
    Case { name: "throttled", act: throttled, value_bytes: 24, ..ON_TWO },
];
const ENDED: &[Case] = &[
    Case { name: "killed", act: killed, ..CASE },
    Case {
        name: "unclean election",
        act: unclean,
        configs: &[("min.insync.replicas", "2"), ("unclean.leader.election.enable", "true")],
        ..ON_TWO
    },
    Case { name: "rolling restart", act: rolling, ..CASE },
];

fn main() -> ExitCode {
    let short = argument("--records").is_none();
    let records = argument("--records").map_or(SHORT, |given| given.parse().unwrap());
    let Some(bench) = Bench::new(records) else {
        println!("test result: ok. 0 passed; 0 failed");
        return ExitCode::SUCCESS;
    };
    let (passed, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let only = argument("--only").unwrap_or_default();
    let all = |cases: &[Case]| {
        for case in cases.iter().filter(|case| case.name.contains(&only)) {
            if failed.load(Ordering::Relaxed) > 0 {
                // What failed may have left the brokers in any state.
                println!("{}: not run", case.name);
                failed.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let start = Instant::now();
            let outcome = run::run(&bench, case);
            let seconds = start.elapsed().as_secs_f32();
            let (count, told) = match outcome {
                Ok(told) => (&passed, format!("ok: {told}")),
                Err(why) => (&failed, format!("FAILED: {why}")),
            };
            count.fetch_add(1, Ordering::Relaxed);
            println!("{}: {records} records in {seconds:.1} s, {told}", case.name);
        }
    };
    all(DISTURBED);
    all(&ENDED[..if short { 1 } else { ENDED.len() }]);
    if !short {
        all(PAUSED);
    }
    let (passed, failed) = (passed.into_inner(), failed.into_inner());
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

    /// All connections as they are.
    pub fn calm(&self) {
        self.disturb(Fault::None);
    }

    fn disturb(&self, fault: Fault) {
        self.proxies.iter().for_each(|proxy| proxy.set(fault));
    }

    /// Waits until the fewest replicas in sync of the topic's partitions are as many as wanted.
    fn in_sync(&self, topic: &str, wanted: fn(usize) -> bool) -> Result<(), String> {
        self.until(topic, |all| all.iter().map(|(_, count)| *count).min().is_some_and(wanted))
    }

    /// Waits until this broker leads all partitions of the topic.
    fn led_by(&self, topic: &str, broker: i32) -> Result<(), String> {
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

fn paused(bench: &Bench, run: &Run) -> Result<(), String> {
    run.allow(30);
    run.written(25)?;
    bench.cluster.pause(2);
    run.allow(80);
    std::thread::sleep(PAUSE);
    bench.cluster.resume(2);
    run.allow(100);
    run.read_all()
}

fn killed(bench: &Bench, run: &Run) -> Result<(), String> {
    run.allow(30);
    run.written(25)?;
    bench.cluster.kill(0);
    run.allow(80);
    run.written(80)?;
    bench.cluster.restart(0);
    run.allow(100);
    run.read_all()?;
    bench.in_sync(&run.topic, |count| count == 3)
}

fn rolling(bench: &Bench, run: &Run) -> Result<(), String> {
    for (node, upto) in [(0, 30), (1, 60), (2, 90)] {
        run.allow(upto);
        run.written(upto - 10)?;
        bench.cluster.stop(node);
        run.allow(upto + 5);
        bench.cluster.restart(node);
        bench.in_sync(&run.topic, |count| count == 3)?;
    }
    run.allow(100);
    run.read_all()
}

fn leader_moved(bench: &Bench, run: &Run) -> Result<(), String> {
    for step in 0..6 {
        run.allow(15 * (step + 1));
        run.written(15 * step + 5)?;
        bench.admin.lead(&run.topic, if step % 2 == 0 { 2 } else { 1 })?;
    }
    run.allow(100);
    run.read_all()
}

/// The follower is gone, and the leader after it has taken more; then the follower alone comes back and leads.
fn unclean(bench: &Bench, run: &Run) -> Result<(), String> {
    run.allow(30);
    run.written(25)?;
    bench.cluster.kill(1);
    // Appended on the leader alone, and not acknowledged: these are lost and written again.
    run.allow(60);
    bench.in_sync(&run.topic, |count| count == 1)?;
    bench.cluster.kill(0);
    bench.cluster.restart(1);
    bench.led_by(&run.topic, 2)?;
    bench.cluster.restart(0);
    bench.in_sync(&run.topic, |count| count == 2)?;
    run.allow(100);
    run.read_all()
}

fn disturbed(bench: &Bench, run: &Run, fault: Fault) -> Result<(), String> {
    run.allow(10);
    run.written(5)?;
    bench.disturb(fault);
    run.allow(100);
    let outcome = run.read_all();
    bench.calm();
    outcome
}

fn delayed(bench: &Bench, run: &Run) -> Result<(), String> {
    disturbed(bench, run, Fault::Delay(Duration::from_millis(200)))
}

fn trickled(bench: &Bench, run: &Run) -> Result<(), String> {
    disturbed(bench, run, Fault::Trickle)
}

fn throttled(bench: &Bench, run: &Run) -> Result<(), String> {
    disturbed(bench, run, Fault::Throttle(1_000_000))
}

fn reset(bench: &Bench, run: &Run) -> Result<(), String> {
    let resets = || bench.proxies.iter().map(Proxy::resets).sum::<u64>();
    let before = resets();
    disturbed(bench, run, Fault::Reset(bench.records * 3))?;
    let resets = resets() - before;
    if resets >= 10 { Ok(()) } else { Err(format!("only {resets} resets")) }
}
