//! What a fetcher hands out: batches, and faults that only its caller can decide about.
use super::Slot;
use crate::arena::FrameId;
use crate::wire::{BatchHeader, ErrorCode, WireError};
use std::ops::Range;

/// The next thing for a partition.
#[derive(Debug)]
#[allow(dead_code)] // for tests and proofs
pub(crate) enum Fetched {
    /// A batch with at least one record to read.
    Batch(FetchedBatch),
    /// The partition stands still until it is sought or removed.
    Fault {
        /// The partition.
        slot: Slot,
        /// What happened.
        fault: FetchFault,
    },
}

/// A batch whose records can be read until its frame is released, once, by the taker.
#[must_use = "the frame must be released"]
#[derive(Debug, Clone)]
pub(crate) struct FetchedBatch {
    /// The partition.
    #[allow(dead_code)] // for tests and proofs
    pub(crate) slot: Slot,
    /// The frame that holds the records. One of its references belongs to the taker.
    pub(crate) frame: FrameId,
    /// Where the records, decompressed, lie in the frame.
    pub(crate) section: Range<u32>,
    /// The batch's header; its size and codec are those on the wire.
    pub(crate) header: BatchHeader,
    /// Records with lower offsets were not asked for: a batch comes whole.
    pub(crate) skip_below: i64,
}

/// Why a partition stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FetchFault {
    /// The log does not have the offset (any more, or yet): the reset policy decides.
    #[error("offset {offset} is out of range: the log starts at {log_start}")]
    OffsetOutOfRange {
        /// The offset asked for.
        offset: i64,
        /// First offset of the log; -1 when the broker did not tell.
        log_start: i64,
    },
    /// The log was cut behind our back, by an unclean election: what was read from here on no longer exists.
    #[error("the log was truncated to offset {end_offset} of leader epoch {epoch}, position {offset} no longer exists")]
    Truncated {
        /// The position.
        offset: i64,
        /// Last epoch that the log and what was read have in common.
        epoch: i32,
        /// End of that epoch in the log.
        end_offset: i64,
    },
    /// A batch that cannot be read: corrupt, or of a format that is not supported.
    #[error("the batch at offset {offset} cannot be read: {error}")]
    Undecodable {
        /// Offset of the batch, or the position when that is not known.
        offset: i64,
        /// What is wrong with it.
        error: WireError,
    },
    /// A batch that no buffer can hold.
    #[error(
        "the batch at offset {offset} needs at least {needed} bytes but the frame row allows {row}: raise the memory \
         line, or lower the topic's max.message.bytes and the producers' batch.size"
    )]
    TooLarge {
        /// The position.
        offset: i64,
        /// Bytes needed, as far as known.
        needed: usize,
        /// Bytes of the largest buffer.
        row: usize,
    },
    /// The topic does not exist.
    #[error("the topic does not exist, or is not visible to this client")]
    UnknownTopic,
    /// The topic was deleted and made anew: its offsets mean something else now.
    #[error("the topic was deleted and created again: offsets of the old one do not apply")]
    TopicRecreated,
    /// The cluster has too many brokers.
    #[error("a process can be connected to at most {limit} brokers")]
    TooManyBrokers {
        /// The limit.
        limit: usize,
    },
    /// The client may not read the topic.
    #[error("not authorized to read the topic")]
    Unauthorized,
    /// The broker is too old.
    #[error(transparent)]
    Unsupported(WireError),
    /// The broker refuses for another reason that does not go away.
    #[error("the broker answered {code}")]
    Broker {
        /// Its answer.
        code: ErrorCode,
    },
}
