//! A backlog is processed: `pass` and `count`, every system on the same topic in turn.
use crate::places::Place;
use crate::records::Shape;
use crate::support::broker::Cluster;
use crate::support::oracle::{create_topic, delete_topic};
use crate::systems::{Programs, System};
use crate::{median, outputs};
use plimsoll_peer::{Figures, Outcome, Task};
use serde::Serialize;

/// Settings of the throughput bench; each may be set by the environment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    shape: Shape,
    /// Runs of each system; medians are taken over them.
    #[arg(long, env = "ROUNDS", default_value_t = 3)]
    rounds: u32,
    /// Cases to run: `pass`, `count`; and `pass` as `lz4`, over `tls` (feature `ssl`), with `partitions200` on three
    /// brokers.
    #[arg(long, env = "CASES", value_delimiter = ',', default_value = "pass,count")]
    cases: Vec<String>,
    /// Systems to run.
    #[arg(long, env = "SYSTEMS", value_delimiter = ',', default_value = "plimsoll,kafka-streams,raw-librdkafka")]
    systems: Vec<String>,
    /// The memory line of Plimsoll. Its plan decides the cache and the batches of all systems.
    #[arg(long, env = "LINE", default_value = "256MiB")]
    line: String,
    /// `linger.ms` of all producers.
    #[arg(long, env = "LINGER_MS", default_value_t = 20)]
    linger_ms: u64,
    /// `commit.interval.ms`.
    #[arg(long, env = "COMMIT_MS", default_value_t = 1_000)]
    commit_ms: u64,
}

/// One line of the output.
#[derive(Serialize)]
struct Line<'a> {
    case: &'a str,
    system: &'a str,
    records: u64,
    rate: f64,
    cpu_s_per_m: f64,
    peak_rss_mib: f64,
    round: u32,
    acks: &'a str,
    idempotence: bool,
    compression: &'a str,
    tls: bool,
    linger_ms: u64,
    commit_interval_ms: u64,
    cache_bytes: u64,
    batch_bytes: u64,
    threads: u32,
    partitions: u32,
    record_bytes: usize,
    keys: u64,
}

/// The last lines.
#[derive(Serialize)]
struct Median<'a> {
    case: &'a str,
    system: &'a str,
    median_of: usize,
    rate: f64,
    cpu_s_per_m: f64,
    /// Least of the runs: what the other processes of the machine disturbed least.
    cpu_s_per_m_min: f64,
    peak_rss_mib: f64,
    /// CPU of this system by that of another, medians.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_by_kafka_streams: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_by_raw_librdkafka: Option<f64>,
}

struct Done {
    case: String,
    system: System,
    figures: Figures,
}

pub(crate) fn run(cluster: &Cluster, options: &Options) -> Outcome<()> {
    let programs = Programs::prepare()?;
    let mut done: Vec<Done> = Vec::new();
    for case in &options.cases {
        let place = Place::of(case, cluster, &options.shape)?;
        for round in 1..=options.rounds {
            for system in System::ALL {
                if system.does(case) && options.systems.iter().any(|name| name == system.name()) {
                    let id = cluster.unique(&format!("{case}-{}", system.name()));
                    let figures = run_one(&place, options, &programs, id, (case, system), &done)?;
                    print(options, &place, case, system, round, &figures)?;
                    done.push(Done { case: case.clone(), system, figures });
                }
            }
        }
    }
    for case in &options.cases {
        for system in System::ALL {
            print_median(&done, case, system)?;
        }
    }
    Ok(())
}

/// What Plimsoll's plan gave, for the others to have the same.
fn planned(done: &[Done], case: &str) -> (u64, u64) {
    let ours = |one: &&Done| one.system == System::Plimsoll;
    let same = done.iter().find(|one| ours(one) && one.case == case).or_else(|| done.iter().find(ours));
    same.map_or((64 << 20, 64 << 10), |one| (one.figures.cache_bytes, one.figures.batch_bytes))
}

fn run_one(
    place: &Place,
    options: &Options,
    programs: &Programs,
    id: String,
    (case, system): (&str, System),
    done: &[Done],
) -> Outcome<Figures> {
    let (bootstrap, partitions) = (place.bootstrap.as_str(), place.partitions);
    let output = format!("{id}-output");
    create_topic(bootstrap, &output, i32::try_from(partitions)?, &[]);
    let state = tempfile::tempdir()?;
    let (cache_bytes, batch_bytes) = planned(done, case);
    let task = Task {
        case: case.to_owned(),
        serve: false,
        bootstrap: place.measured.clone(),
        id,
        input: place.input.clone(),
        output: output.clone(),
        partitions,
        records: options.shape.records,
        linger_ms: options.linger_ms,
        commit_ms: options.commit_ms,
        cache_bytes,
        batch_bytes,
        compression: place.compression.to_owned(),
        authority: place.authority.clone(),
        line: options.line.clone(),
        state: state.path().display().to_string(),
    };
    let mut running = programs.start(system, &task)?;
    let line = running.line("{")?;
    drop(running);
    let figures = serde_json::from_str(&line)?;
    outputs::check(bootstrap, case, &output, partitions, options.shape.records)?;
    delete_topic(bootstrap, &output);
    Ok(figures)
}

fn print(options: &Options, place: &Place, case: &str, system: System, round: u32, figures: &Figures) -> Outcome<()> {
    let line = Line {
        case,
        system: system.name(),
        records: figures.records,
        rate: figures.rate,
        cpu_s_per_m: figures.cpu_s_per_m,
        peak_rss_mib: figures.peak_rss_mib,
        round,
        acks: "all",
        idempotence: true,
        compression: place.compression,
        tls: !place.authority.is_empty(),
        linger_ms: options.linger_ms,
        commit_interval_ms: options.commit_ms,
        cache_bytes: figures.cache_bytes,
        batch_bytes: figures.batch_bytes,
        threads: 1,
        partitions: place.partitions,
        record_bytes: options.shape.record_bytes,
        keys: options.shape.keys,
    };
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}

fn of<'a>(done: &'a [Done], case: &'a str, system: System) -> impl Iterator<Item = &'a Figures> {
    done.iter().filter(move |one| one.case == case && one.system == system).map(|one| &one.figures)
}

fn print_median(done: &[Done], case: &str, system: System) -> Outcome<()> {
    let middle = |system, what: fn(&Figures) -> f64| median(of(done, case, system).map(what).collect());
    let cpu = |system| middle(system, |figures| figures.cpu_s_per_m);
    let Some(own) = cpu(system) else { return Ok(()) };
    let by = |other: System| {
        (system == System::Plimsoll).then(|| cpu(other)).flatten().map(|cpu| (own / cpu * 1e4).round() / 1e4)
    };
    let line = Median {
        case,
        system: system.name(),
        median_of: of(done, case, system).count(),
        rate: middle(system, |figures| figures.rate).unwrap_or(0.0),
        cpu_s_per_m: own,
        cpu_s_per_m_min: of(done, case, system).map(|figures| figures.cpu_s_per_m).fold(f64::INFINITY, f64::min),
        peak_rss_mib: middle(system, |figures| figures.peak_rss_mib).unwrap_or(0.0),
        cpu_by_kafka_streams: by(System::KafkaStreams),
        cpu_by_raw_librdkafka: by(System::RawLibrdkafka),
    };
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}
