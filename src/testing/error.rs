//! What a driver can answer instead.

/// Why the driver could not do what was asked, or how the task failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// No source reads the topic.
    #[error("the topology reads no topic \"{topic}\"")]
    UnknownTopic {
        /// The name.
        topic: String,
    },
    /// There is no such store.
    #[error("the topology has no store \"{name}\"")]
    UnknownStore {
        /// The name.
        name: String,
    },
    /// The store is of another kind.
    #[error("store \"{name}\" is {kind}")]
    WrongStore {
        /// The name.
        name: String,
        /// What it is, in words.
        kind: &'static str,
    },
    /// A record that a source refused.
    #[error("{topic}-{partition} at offset {offset}: {reason}")]
    Undecodable {
        /// The topic.
        topic: String,
        /// The partition; 0 in a driver.
        partition: u32,
        /// The record's offset: its number among those of the topic.
        offset: i64,
        /// What the codec said, with `key` or `value`.
        reason: String,
    },
    /// A record whose timestamp the source does not accept.
    #[error("{topic}: the timestamp {timestamp} is negative; choose another TimestampPolicy to accept it")]
    InvalidTimestamp {
        /// The topic.
        topic: String,
        /// The record's timestamp.
        timestamp: i64,
    },
    /// The task failed.
    #[error("processing failed: {reason}")]
    Failed {
        /// The details.
        reason: String,
    },
    /// The test's own key or value could not be encoded, or what was written could not be decoded.
    #[error("{what}: {reason}")]
    Codec {
        /// What it was.
        what: String,
        /// What the codec said.
        reason: String,
    },
    /// The backend in memory failed, or the topology contradicts itself.
    #[error("internal: {reason}")]
    Internal {
        /// The details.
        reason: String,
    },
}
