//! The data path without the engine above it, for this repository's own proofs, behind the feature `bench`: not a part
//! of the library's interface, and it may change at any time.
//!
//! Owns a [`Client`] (the metadata of one cluster, kept by a thread), [`Writer`]s and [`Reader`]s over it. Invariant:
//! nothing is done here but turns of the producer and the fetcher. Bound: their pools. Called by `tests/wire_*` only.
mod reader;
mod transaction;
mod writer;

pub use reader::{Reader, ReaderOptions, Seen};
pub use transaction::End;
pub use writer::{Out, SILENCE, Writer, WriterOptions};

use crate::client::metadata_thread::MetadataThread;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// A result whose error is the text of what the library answered.
pub type Outcome<T> = Result<T, String>;

/// A record with its own bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value.
    pub value: Option<Vec<u8>>,
    /// Names and values of the headers.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// A cluster's metadata, kept up to date by a thread of its own until dropped.
#[derive(Debug)]
pub struct Client(MetadataThread);

impl Client {
    /// Starts the thread; `bootstrap` is a list of `host:port`.
    ///
    /// # Errors
    /// No poll set.
    pub fn new(bootstrap: &str) -> Outcome<Self> {
        MetadataThread::start(bootstrap).map(Self).map_err(text)
    }
}

/// Milliseconds since then.
fn since(start: Instant) -> i64 {
    i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX)
}

/// How long until `due`, at most `most_ms`.
fn wait(due: i64, start: Instant, most_ms: i64) -> Duration {
    let ms = due.saturating_sub(since(start)).clamp(0, most_ms);
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

fn text(error: impl Display) -> String {
    error.to_string()
}
