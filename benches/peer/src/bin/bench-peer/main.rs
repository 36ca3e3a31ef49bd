//! Starts a broker, runs every system on it in turn and prints one line of JSON a run, medians last.
//!
//! ```text
//! bench-peer throughput    # make bench-peer
//! bench-peer latency       # make bench-latency
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)]
mod latency;
mod outputs;
mod places;
mod records;
mod systems;
mod throughput;

/// Apache Kafka on loopback and librdkafka's admin, as the tests use them.
#[path = "../../../../../tests/support/mod.rs"]
mod support;

use clap::{Parser, Subcommand};
use plimsoll_peer::Outcome;
use support::broker::{Cluster, Options as BrokerOptions};

/// Measures Plimsoll beside its peers.
#[derive(Parser, Debug)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// CPU seconds for a million records, records a second, peak RSS.
    Throughput(throughput::Options),
    /// Latency of pass-through, open loop.
    Latency(latency::Options),
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let broker = BrokerOptions { heap_mib: 1_024, full_jit: true, ..BrokerOptions::default() };
    let cluster = Cluster::start(&broker).ok_or("a broker cannot be started; native/kafka.sh says why")?;
    match options.what {
        What::Throughput(options) => throughput::run(&cluster, &options),
        What::Latency(options) => latency::run(&cluster, &options),
    }
}

/// The median; the lower one of two. `None` of nothing.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}
