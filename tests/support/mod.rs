//! What tests share: a real Apache Kafka on loopback ([`broker`]) and librdkafka as the oracle that writes, reads and
//! administers topics independently of the engine ([`oracle`]), many records ([`load`]), a proxy that disturbs
//! connections ([`proxy`]), a Java program over Kafka's jars ([`java`]), a broker behind TLS and SASL ([`secured`])
//! with its certificates ([`certs`]).
//!
//! ```ignore
//! mod support;
//!
//! #[test]
//! fn something_against_kafka() {
//!     let Some(kafka) = support::kafka() else { return }; // one broker a test binary; tests differ by topic names
//!     let topic = kafka.unique("words");
//!     support::oracle::create_topic(kafka.bootstrap(), &topic, 4, &[]);
//! }
//! ```
//!
//! A test that kills, pauses or restarts brokers starts its own:
//! `support::broker::Cluster::start(&Options::brokers(3))`.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod broker;
#[cfg(feature = "ssl")]
pub mod certs;
pub mod java;
pub mod load;
pub mod oracle;
pub mod proxy;
#[cfg(feature = "ssl")]
pub mod secured;

use std::io::Write as _;
use std::sync::OnceLock;

use broker::{Cluster, Options};

/// The broker that all tests of this binary share; `None` (after a loud line) when Kafka's jars cannot be had.
pub fn kafka() -> Option<&'static Cluster> {
    static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
    SHARED.get_or_init(|| Cluster::start(&Options::default())).as_ref()
}

/// Reports a test that cannot run here: on stderr past the test harness' capture, and as a line in the file that
/// `PLIMSOLL_SKIPPED` names, so that a run can count them. Under `CI=true` it fails instead.
pub fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{test} must not be skipped under CI: {why}");
    let line = format!("SKIPPED {test}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Ok(path) = std::env::var("PLIMSOLL_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut f| f.write_all(line.as_bytes()));
    }
}
