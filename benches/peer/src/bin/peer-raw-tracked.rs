//! The plain loop of `peer-raw` on the tracking allocator: what tracking costs a program full of librdkafka, beside the
//! system's malloc. Each handle's threads belong to its module, for threads inherit the scope they are born in.
#![allow(clippy::print_stdout)]
use plimsoll_alloc::{Module, bind_home, probe, scope};
use plimsoll_peer::Outcome;
use rdkafka_sys::rd_kafka_type_t;

#[allow(dead_code)] // its own `main`
#[path = "peer-raw.rs"]
mod raw;

plimsoll_alloc::install!();

fn main() -> Outcome<()> {
    probe()?;
    bind_home(Module::Engine)?;
    raw::run(|kind| match kind {
        rd_kafka_type_t::RD_KAFKA_CONSUMER => scope(Module::Consumer),
        rd_kafka_type_t::RD_KAFKA_PRODUCER => scope(Module::Producer),
    })
}
