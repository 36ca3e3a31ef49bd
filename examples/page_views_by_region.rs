//! Views of pages are counted by the region of who looked: a stream joined with a table.
//!
//! `page-views` (user → page) and `user-regions` (user → region) → `views-by-region` (region → count).
//!
//! ```text
//! cargo run --example page_views_by_region
//! KAFKA=localhost:9092 cargo run --example page_views_by_region
//! ```
mod common;

use plimsoll::prelude::*;
use plimsoll::testing::{Driver, DriverError};
use std::error::Error;

#[cfg(not(test))]
plimsoll::install_allocator!();

/// A user without a region counts as from "unknown".
pub(crate) fn topology() -> Result<Topology, BuildError> {
    let builder = StreamsBuilder::new();
    let regions = builder.table("user-regions", Consumed::with(Utf8, Utf8));
    builder
        .stream("page-views", Consumed::with(Utf8, Utf8))
        .left_join_table(&regions, Utf8, |_page, region| region.unwrap_or("unknown"))
        .group_by(Utf8, |_user, region| region)
        .count(Materialized::named("views-by-region"))
        .to_stream()
        .to("views-by-region");
    builder.build()
}

pub(crate) fn local(driver: &Driver) -> Result<Vec<String>, DriverError> {
    let (regions, views) = (driver.input("user-regions", Utf8, Utf8), driver.input("page-views", Utf8, Utf8));
    regions.pipe("ann", "europe")?;
    regions.pipe("bob", "asia")?;
    for (user, page) in [("ann", "/"), ("bob", "/"), ("cleo", "/"), ("ann", "/prices")] {
        views.pipe(user, page)?;
    }
    regions.pipe("ann", "asia")?; // what comes from now on counts there
    views.pipe("ann", "/order")?;
    let counts = driver.output("views-by-region", Utf8, I64).read_pairs()?;
    Ok(counts.iter().map(|(region, count)| format!("{region}: {count}")).collect())
}

#[allow(dead_code)] // tests call `local` themselves
fn main() -> Result<(), Box<dyn Error>> {
    common::run("page-views-by-region", topology()?, local)
}
