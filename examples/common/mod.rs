//! What the examples share: the topology runs against the test driver, or against a broker with `KAFKA=host:port`.
#![allow(clippy::print_stdout)] // what it prints is what it is for
use plimsoll::prelude::*;
use plimsoll::testing::{Driver, DriverError};
use std::error::Error;

/// Without `KAFKA`, prints what `local` answers; with it, runs the topology until the program is ended.
#[allow(dead_code)] // tests call `local` themselves
pub(crate) fn run(
    name: &str,
    topology: Topology,
    local: fn(&Driver) -> Result<Vec<String>, DriverError>,
) -> Result<(), Box<dyn Error>> {
    let Ok(broker) = std::env::var("KAFKA") else {
        local(&Driver::new(&topology)?)?.iter().for_each(|line| println!("{line}"));
        return Ok(());
    };
    println!("{name} reads from {broker}:\n{}", topology.describe());
    let app = App::builder(name, &broker).memory(Memory::total(256 * MIB)).start(topology)?;
    std::thread::park();
    drop(app);
    Ok(())
}
