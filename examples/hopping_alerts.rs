//! An alert for every minute, looked at each half minute, in which somebody failed to log in three times.
//!
//! `failed-logins` (user → address) → `alerts` (user → text). A window is told once, when it has closed.
//!
//! ```text
//! cargo run --example hopping_alerts
//! KAFKA=localhost:9092 cargo run --example hopping_alerts
//! ```
mod common;

use plimsoll::prelude::*;
use plimsoll::testing::{Driver, DriverError};
use std::error::Error;
use std::time::Duration;

#[cfg(not(test))]
plimsoll::install_allocator!();

const SECOND: i64 = 1_000;

pub(crate) fn topology() -> Result<Topology, BuildError> {
    let seconds = Duration::from_secs;
    let builder = StreamsBuilder::new();
    builder
        .stream("failed-logins", Consumed::with(Utf8, Utf8))
        .group_by_key()
        .windowed_by(TimeWindows::of_size_and_grace(seconds(60), seconds(10)).advance_by(seconds(30)))
        .emit_strategy(EmitStrategy::on_window_close())
        .count(Materialized::named("failures"))
        .to_stream()
        .filter(|_, failures| failures.is_some_and(|failures| failures >= 3))
        .map(Utf8, Text, |window, failures| {
            let (from, to) = (window.start / SECOND, window.end / SECOND);
            (window.key, format!("{} failures from {from}s to {to}s", failures.unwrap_or(0)))
        })
        .to("alerts");
    builder.build()
}

pub(crate) fn local(driver: &Driver) -> Result<Vec<String>, DriverError> {
    let logins = driver.input("failed-logins", Utf8, Utf8);
    for (user, second) in [("ann", 5), ("ann", 20), ("ann", 35), ("bob", 40), ("ann", 50), ("ann", 61), ("bob", 140)] {
        logins.pipe_at(user, "10.0.0.1", second * SECOND)?;
    }
    let alerts = driver.output("alerts", Utf8, Text).read_pairs()?;
    Ok(alerts.iter().map(|(user, text)| format!("{user}: {text}")).collect())
}

#[allow(dead_code)] // tests call `local` themselves
fn main() -> Result<(), Box<dyn Error>> {
    common::run("hopping-alerts", topology()?, local)
}
