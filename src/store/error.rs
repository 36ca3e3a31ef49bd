//! What can go wrong with state, and what the caller does about it.
use super::batch::BatchFull;
use std::path::PathBuf;

/// How bad an error of RocksDB's background threads is (its own severities, the two lower ones folded away).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Severity {
    /// Writes are refused until the error is gone.
    Hard,
    /// The database is read-only for good.
    Fatal,
    /// Data on disk cannot be trusted.
    Unrecoverable,
}

/// An error of the local state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has the state directory open.
    #[error(
        "state directory {path} is in use by {}; stop it or choose another state directory",
        holder_text(*holder)
    )]
    Locked {
        /// The state directory.
        path: PathBuf,
        /// Process id of the holder, if its lock file names one.
        holder: Option<u32>,
    },
    /// The state directory cannot be created or written.
    #[error("state directory {path} is not writable: {source}; allow writing or choose another state directory")]
    NotWritable {
        /// The state directory.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A flush or compaction failed in the background and the database takes no more writes. What was not flushed is
    /// lost locally; the database must be reopened and its partitions restored from their changelogs.
    #[error("rocksdb stopped after a background error ({severity:?}): {message}; it must be reopened and restored")]
    BackgroundError {
        /// How bad it is.
        severity: Severity,
        /// RocksDB's words.
        message: String,
    },
    /// The memtables' row stayed full until the deadline because flushes are too slow. Nothing was written; try again.
    #[error(
        "memtables stayed full for {waited_ms} ms ({used} of {row} bytes); use a faster disk or raise the memory line"
    )]
    Stalled {
        /// How long the write waited, in milliseconds.
        waited_ms: u64,
        /// Bytes of memtables, those being flushed included.
        used: u64,
        /// Bytes of the row.
        row: u64,
    },
    /// Stored bytes are not what was written.
    #[error("state is corrupt: {message}; delete the state directory, it is restored from the changelogs")]
    Corrupt {
        /// What was found.
        message: String,
    },
    /// The file system or RocksDB failed otherwise.
    #[error("state cannot be read or written: {message}")]
    Io {
        /// What RocksDB or the operating system said.
        message: String,
    },
    /// RocksDB runs with another option than the plan counts on.
    #[error("rocksdb option {option} is {found}, the plan counts on {expected}; raise the memory line")]
    Options {
        /// Name of the option.
        option: String,
        /// Its value.
        found: u64,
        /// The value that was asked for.
        expected: u64,
    },
    /// The store is not one of those that were opened.
    #[error("{message}; every persistent store of the topology must be named at open")]
    UnknownStore {
        /// Its number, in words.
        message: String,
    },
    /// The rows that are kept in memory do not fit into their part of the overlay's row.
    #[error(
        "rows in memory need {needed} bytes of {limit}; raise the memory line, or keep the largest store's rows on disk"
    )]
    MemoryFull {
        /// Bytes that they need.
        needed: usize,
        /// Bytes that they may take.
        limit: usize,
    },
    /// A record is larger than the batch it must be written in.
    #[error("a record needs {needed} bytes of a store batch of {capacity}; raise the memory line")]
    TooLarge {
        /// Bytes that it needs.
        needed: u64,
        /// Bytes of the batch.
        capacity: u64,
    },
}

/// One record, or one offset, that no store batch can hold.
impl From<BatchFull> for StoreError {
    fn from(full: BatchFull) -> Self {
        let bytes = |n| u64::try_from(n).unwrap_or(u64::MAX);
        Self::TooLarge { needed: bytes(full.needed), capacity: bytes(full.capacity) }
    }
}

fn holder_text(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl StoreError {
    /// Whether the database has stopped and must be opened again.
    pub(crate) fn is_stop(&self) -> bool {
        matches!(self, Self::BackgroundError { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_directory_names_its_holder() {
        let known = StoreError::Locked { path: "/var/state".into(), holder: Some(42) };
        assert_eq!(
            known.to_string(),
            "state directory /var/state is in use by process 42; stop it or choose another state directory"
        );
        let unknown = StoreError::Locked { path: "/var/state".into(), holder: None };
        assert!(unknown.to_string().contains("in use by another process"));
    }
}
