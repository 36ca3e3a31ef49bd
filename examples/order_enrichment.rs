//! Orders with the names of their customers: two tables joined by a foreign key, which lies in the order.
//!
//! `orders` (number → "customer amount") and `customers` (customer → name) → `enriched` (number → text). The result
//! follows changes of both.
//!
//! ```text
//! cargo run --example order_enrichment
//! KAFKA=localhost:9092 cargo run --example order_enrichment
//! ```
mod common;

use plimsoll::prelude::*;
use plimsoll::testing::{Driver, DriverError};
use std::error::Error;

#[cfg(not(test))]
plimsoll::install_allocator!();

/// Customer and amount of an order.
fn parts(order: &str) -> (&str, &str) {
    order.split_once(' ').unwrap_or((order, ""))
}

pub(crate) fn topology() -> Result<Topology, BuildError> {
    let builder = StreamsBuilder::new();
    let orders = builder.table("orders", Consumed::with(Utf8, Utf8));
    let customers = builder.table("customers", Consumed::with(Utf8, Utf8));
    orders
        .join_on(
            &customers,
            |_number, order| parts(order).0,
            Text,
            Materialized::named("enriched"),
            |order, name| format!("{} for {name}", parts(order).1),
        )
        .to_stream()
        .to("enriched");
    builder.build()
}

pub(crate) fn local(driver: &Driver) -> Result<Vec<String>, DriverError> {
    let (orders, customers) = (driver.input("orders", Utf8, Utf8), driver.input("customers", Utf8, Opt(Utf8)));
    customers.pipe("c1", Some("Ann"))?;
    orders.pipe("17", "c1 30")?;
    orders.pipe("18", "c2 5")?; // waits for its customer
    customers.pipe("c2", Some("Bob"))?;
    customers.pipe("c1", Some("Ann Lee"))?; // her orders follow
    customers.pipe("c2", None)?;
    let enriched = driver.output("enriched", Utf8, Opt(Text)).read_pairs()?;
    let line = |(number, text): &(String, Option<String>)| format!("{number}: {}", text.as_deref().unwrap_or("gone"));
    Ok(enriched.iter().map(line).collect())
}

#[allow(dead_code)] // tests call `local` themselves
fn main() -> Result<(), Box<dyn Error>> {
    common::run("order-enrichment", topology()?, local)
}
