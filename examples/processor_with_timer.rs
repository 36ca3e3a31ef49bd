//! A processor with a store and a timer: sums by key, told every ten seconds of stream time and then forgotten.
//!
//! `amounts` (key → amount) → `sums` (key → sum).
//!
//! ```text
//! cargo run --example processor_with_timer
//! KAFKA=localhost:9092 cargo run --example processor_with_timer
//! ```
mod common;

use plimsoll::prelude::*;
use plimsoll::testing::{Driver, DriverError};
use std::error::Error;
use std::time::Duration;

#[cfg(not(test))]
plimsoll::install_allocator!();

struct Sums {
    sums: KeyValueStore<Utf8, I64>,
}

impl Processor for Sums {
    type KIn = Utf8;
    type VIn = I64;
    type KOut = Utf8;
    type VOut = I64;

    fn init(&mut self, cx: &mut Init<'_, '_, Self>) -> Processed {
        cx.schedule(Duration::from_secs(10), PunctuationType::StreamTime, |me, cx, now| {
            // The iterator sees the store as it is now, whatever is deleted meanwhile.
            let mut rows = cx.store(&me.sums)?.all();
            while let Some((key, sum)) = rows.next(cx)? {
                cx.forward(Record::new(key, sum, now))?;
                cx.store(&me.sums)?.delete(key)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, I64>) -> Processed {
        let sums = cx.store(&self.sums)?;
        let sum = sums.get(record.key)?.unwrap_or(0) + record.value;
        sums.put(record.key, sum)
    }
}

pub(crate) fn topology() -> Result<Topology, BuildError> {
    let builder = StreamsBuilder::new();
    let sums = builder.add_state_store(Stores::key_value("sums", Utf8, I64));
    let how = Processing::named("summing").stores(&[&sums]);
    builder
        .stream("amounts", Consumed::with(Utf8, I64))
        .process_with(Utf8, I64, move || Sums { sums: sums.clone() }, how)
        .to("sums");
    builder.build()
}

pub(crate) fn local(driver: &Driver) -> Result<Vec<String>, DriverError> {
    let amounts = driver.input("amounts", Utf8, I64);
    for (key, amount, second) in [("a", 1, 1), ("b", 5, 2), ("a", 2, 9), ("b", 7, 10), ("b", 1, 25)] {
        amounts.pipe_at(key, amount, second * 1_000)?;
    }
    let sums = driver.output("sums", Utf8, I64);
    let mut told = Vec::new();
    while let Some(sum) = sums.read()? {
        told.push(format!("at {}s {}: {}", sum.timestamp / 1_000, sum.key, sum.value));
    }
    Ok(told)
}

#[allow(dead_code)] // tests call `local` themselves
fn main() -> Result<(), Box<dyn Error>> {
    common::run("processor-with-timer", topology()?, local)
}
