//! Visits of users: clicks that are less than half an hour apart belong together, also if they come that late.
//!
//! `clicks` (user → page) → `visits` (user and session → clicks; null for a session that became part of another).
//!
//! ```text
//! cargo run --example sessions
//! KAFKA=localhost:9092 cargo run --example sessions
//! ```
mod common;

use plimsoll::prelude::*;
use plimsoll::testing::{Driver, DriverError};
use std::error::Error;
use std::time::Duration;

#[cfg(not(test))]
plimsoll::install_allocator!();

const MINUTE: i64 = 60_000;

pub(crate) fn topology() -> Result<Topology, BuildError> {
    let half_an_hour = Duration::from_secs(30 * 60);
    let builder = StreamsBuilder::new();
    builder
        .stream("clicks", Consumed::with(Utf8, Utf8))
        .group_by_key()
        .windowed_by(SessionWindows::of_inactivity_gap_and_grace(half_an_hour, half_an_hour))
        .count(Materialized::named("visits"))
        .to_stream()
        .to("visits");
    builder.build()
}

/// The last click comes late and joins two visits.
pub(crate) fn local(driver: &Driver) -> Result<Vec<String>, DriverError> {
    let clicks = driver.input("clicks", Utf8, Utf8);
    for (page, minute) in [("/", 0), ("/prices", 10), ("/", 50), ("/order", 30)] {
        clicks.pipe_at("ann", page, minute * MINUTE)?;
    }
    let visits = driver.output("visits", Windowed::session(Utf8), Opt(I64)).read_pairs()?;
    let shown = |clicks: Option<i64>| clicks.map_or("gone".to_owned(), |clicks| format!("{clicks} clicks"));
    let line = |(visit, clicks): &(plimsoll::OwnedWindowKey<String>, Option<i64>)| {
        format!("{} {}-{}: {}", visit.key, visit.start / MINUTE, visit.end / MINUTE, shown(*clicks))
    };
    Ok(visits.iter().map(line).collect())
}

#[allow(dead_code)] // tests call `local` themselves
fn main() -> Result<(), Box<dyn Error>> {
    common::run("sessions", topology()?, local)
}
