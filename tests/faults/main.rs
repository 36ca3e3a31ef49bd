//! What happens when something goes wrong: processes that are killed, brokers that fall silent, user code that panics,
//! settings that cannot be. Every application runs in a process of its own (this test program, started again), against
//! a real Apache Kafka.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod app;
mod database;
mod group;
mod killed;
mod process;
mod records;
mod reset;
mod start;
mod tasks;

plimsoll::install_allocator!();

/// Not a test: the application that the others start in a process of its own. Without their variable it does nothing.
#[test]
fn child() {
    if let Ok(spec) = std::env::var(process::SPEC) {
        app::run(&serde_json::from_str(&spec).unwrap());
    }
}
