//! A codec of one's own: an order lies in eight bytes of its number and the name of its region, and is read in place.
//!
//! `orders` (→ order) → `regions` (region → number).
//!
//! ```text
//! cargo run --example own_codec
//! KAFKA=localhost:9092 cargo run --example own_codec
//! ```
mod common;

use plimsoll::prelude::*;
use plimsoll::testing::{Driver, DriverError};
use std::error::Error;

#[cfg(not(test))]
plimsoll::install_allocator!();

/// What closures see: it borrows from the record.
#[derive(Clone, Copy)]
pub(crate) struct OrderView<'a> {
    id: i64,
    region: &'a str,
}

// The codec begins.
#[derive(Clone, Copy)]
pub(crate) struct Order;
plimsoll::schema!(Order, 'a, OrderView<'a>);
impl Codec for Order {
    type Owned = (i64, String);
    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<OrderView<'a>, DecodeError> {
        let (id, region) = bytes.split_at_checked(8).ok_or(DecodeError::Invalid("no order"))?;
        Ok(OrderView { id: I64.decode(id)?, region: Utf8.decode(region)? })
    }
    fn encode(&self, order: OrderView<'_>, out: &mut Scratch) {
        I64.encode(order.id, out);
        Utf8.encode(order.region, out);
    }
    fn view((id, region): &(i64, String)) -> OrderView<'_> {
        OrderView { id: *id, region }
    }
    fn own(order: OrderView<'_>) -> (i64, String) {
        (order.id, order.region.to_owned())
    }
}
// The codec ends.

pub(crate) fn topology() -> Result<Topology, BuildError> {
    let builder = StreamsBuilder::new();
    builder
        .stream("orders", Consumed::values(Order))
        .map(Utf8, I64, |(), order| (order.region, order.id))
        .to("regions");
    builder.build()
}

pub(crate) fn local(driver: &Driver) -> Result<Vec<String>, DriverError> {
    let orders = driver.input("orders", Bytes, Order);
    orders.pipe_value(OrderView { id: 7, region: "europe" })?;
    orders.pipe_value(OrderView { id: 8, region: "asia" })?;
    let regions = driver.output("regions", Utf8, I64).read_pairs()?;
    Ok(regions.iter().map(|(region, id)| format!("{region}: {id}")).collect())
}

#[allow(dead_code)] // tests call `local` themselves
fn main() -> Result<(), Box<dyn Error>> {
    common::run("own-codec", topology()?, local)
}
