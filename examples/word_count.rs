//! Words of lines are counted: `lines` → `word-counts`.
//!
//! ```text
//! cargo run --example word_count
//! KAFKA=localhost:9092 cargo run --example word_count
//! ```
mod common;

use plimsoll::prelude::*;
use plimsoll::testing::{Driver, DriverError};
use std::error::Error;

#[cfg(not(test))]
plimsoll::install_allocator!();

/// Every word is a record of its own, grouped by itself; the table of the counts becomes a stream of updates.
pub(crate) fn topology() -> Result<Topology, BuildError> {
    let builder = StreamsBuilder::new();
    builder
        .stream("lines", Consumed::values(Utf8))
        .flat_map_values(Utf8, |line, out| line.split_whitespace().for_each(|word| out.push(word)))
        .group_by(Utf8, |_, word| word)
        .count(Materialized::named("counts"))
        .to_stream()
        .to("word-counts");
    builder.build()
}

pub(crate) fn local(driver: &Driver) -> Result<Vec<String>, DriverError> {
    driver.input("lines", Utf8, Utf8).pipe_value("to be or not to be")?;
    let counts = driver.output("word-counts", Utf8, I64).read_pairs()?;
    Ok(counts.iter().map(|(word, count)| format!("{word}: {count}")).collect())
}

#[allow(dead_code)] // tests call `local` themselves
fn main() -> Result<(), Box<dyn Error>> {
    common::run("word-count", topology()?, local)
}
