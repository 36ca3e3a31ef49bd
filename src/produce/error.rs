//! What can go wrong with a record, and how each of Kafka's error codes is met.
use super::topics::OutTopic;
use super::txn::TxnError;
use crate::wire::{ErrorCode, WireError};

/// Why a record could not be appended. Nothing of the record was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AppendError {
    /// No buffer is free: serve the producer's sockets until acknowledgements free one, then append again.
    #[error("every batch buffer is waiting for its acknowledgement; serve the producer and append again")]
    Full,
    /// The cluster has not told yet how many partitions the topic has: serve the producer and append again.
    #[error("the topic's partitions are not known yet; serve the producer and append again")]
    NotReady,
    /// The cluster does not know the topic.
    #[error("the cluster does not know the topic after {waited_ms} ms; create it, or correct its name")]
    UnknownTopic {
        /// How long it was asked for, in milliseconds.
        waited_ms: i64,
    },
    /// The topic has no such partition.
    #[error("partition {partition} does not exist: the topic has {partitions}")]
    NoSuchPartition {
        /// The partition asked for.
        partition: u32,
        /// How many partitions the topic has.
        partitions: u32,
    },
    /// The record fits no buffer.
    #[error("a record needs a batch of {needed} bytes, a buffer has {limit}; enlarge the row `{row}` of the plan")]
    TooLarge {
        /// Bytes of a batch that holds only this record.
        needed: usize,
        /// Bytes of the largest buffer.
        limit: usize,
        /// The plan's row that pays for the buffers.
        row: &'static str,
    },
    /// An earlier record of the same slot was not delivered, or the producer cannot go on at all.
    #[error("an earlier record was not delivered: {0}")]
    Failed(ProduceError),
    /// No transaction takes the record: none is open, or it must be aborted.
    #[error("no transaction takes the record: {0}")]
    Transaction(TxnError),
}

/// Why records were not delivered. The first one of a slot stays in it until the slot is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("partition {partition}: {cause}")]
pub(crate) struct ProduceError {
    /// The topic; [`Producer::topic_name`](super::Producer::topic_name) spells it.
    pub(crate) topic: OutTopic,
    /// The partition.
    pub(crate) partition: u32,
    /// What happened.
    pub(crate) cause: Cause,
}

/// What made a delivery fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Cause {
    /// The delivery time-out passed; the broker may or may not have the records.
    #[error(
        "not acknowledged within delivery.timeout.ms ({timeout_ms} ms), last answer {last}; \
         check the brokers or raise it"
    )]
    TimedOut {
        /// The time-out, in milliseconds.
        timeout_ms: i64,
        /// The last answer of the broker, `None` when there never was one.
        last: ErrorCode,
    },
    /// The broker refused the records for good.
    #[error("the broker answered {code}")]
    Refused {
        /// Kafka's error code.
        code: ErrorCode,
    },
    /// A single record is larger than the topic or the broker takes.
    #[error(
        "a record in a batch of {bytes} bytes exceeds the topic's max.message.bytes; raise it or shrink the record"
    )]
    TooLarge {
        /// Bytes of the batch that holds only this record.
        bytes: usize,
    },
    /// The broker has lost records it acknowledged, or cannot tell whether it has them: going on would hide it.
    #[error("the broker answered {code}: acknowledged records may be lost or doubled; replay from the last commit")]
    SequenceLost {
        /// Kafka's error code.
        code: ErrorCode,
    },
    /// The producer is not allowed to write, or was fenced: it can never go on.
    #[error("the producer cannot go on: {code}")]
    Fatal {
        /// Kafka's error code.
        code: ErrorCode,
    },
    /// A broker is too old for this library.
    #[error(transparent)]
    Unsupported(WireError),
    /// The broker's answer exceeds the receive buffer (an answer with an error for each of very many records).
    #[error("the broker's answer of {bytes} bytes exceeds the receive buffer; it refused many records one by one")]
    AnswerTooLarge {
        /// Bytes of the answer.
        bytes: usize,
    },
    /// The batch could not be compressed or rewritten.
    #[error("the batch cannot be encoded")]
    Encoding,
    /// The transaction was aborted before the records had left.
    #[error("the transaction was aborted before the records had left")]
    #[allow(dead_code)] // for tests and the plan
    Aborted,
    /// The producer was closed first.
    #[error("the producer was closed before the records were acknowledged")]
    Closed,
}

/// How a broker's error code for one batch is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Written.
    Success,
    /// Written earlier; the broker no longer knows at which offset.
    Duplicate,
    /// Another broker leads the partition, or the topic changed: refresh metadata, try again. Not written.
    Moved,
    /// Try again. Not written.
    Retry,
    /// Try again. It may be written.
    Unclear,
    /// Halve the batch. Not written.
    Split,
    /// The sequence or epoch is not what the broker expects. This batch is not written.
    Sequence,
    /// No batch of this producer can ever be written.
    Fatal,
    /// This batch can never be written.
    Refused,
}

/// The class of a code in a Produce or InitProducerId answer, as Kafka's own producer treats it.
pub(super) fn class(answer: ErrorCode) -> Class {
    match answer {
        ErrorCode::None => Class::Success,
        ErrorCode::DuplicateSequenceNumber => Class::Duplicate,
        // With all acknowledgements awaited, these may follow an append.
        ErrorCode::RequestTimedOut | ErrorCode::NotEnoughReplicasAfterAppend => Class::Unclear,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge => Class::Split,
        ErrorCode::OutOfOrderSequenceNumber | ErrorCode::InvalidProducerEpoch | ErrorCode::UnknownProducerId => {
            Class::Sequence
        }
        ErrorCode::ClusterAuthorizationFailed
        | ErrorCode::TransactionalIdAuthorizationFailed
        | ErrorCode::ProducerFenced
        | ErrorCode::InvalidProducerIdMapping
        | ErrorCode::UnsupportedVersion => Class::Fatal,
        other if other.needs_metadata() || other == ErrorCode::UnknownLeaderEpoch => Class::Moved,
        other if other.is_retriable() => Class::Retry,
        _ => Class::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes<const N: usize>(codes: [i16; N]) -> [Class; N] {
        codes.map(|code| class(ErrorCode::from_code(code)))
    }

    #[test]
    fn codes_are_classed_as_kafkas_own_producer_does() {
        assert_eq!(classes([0, 46]), [Class::Success, Class::Duplicate]);
        assert_eq!(classes([3, 5, 6, 9, 13, 56, 74, 75, 100, 103]), [Class::Moved; 10]);
        assert_eq!(classes([2, 14, 19, 51, 89]), [Class::Retry; 5]);
        assert_eq!(classes([7, 20]), [Class::Unclear; 2]);
        assert_eq!(classes([10, 18]), [Class::Split; 2]);
        assert_eq!(classes([45, 47, 59]), [Class::Sequence; 3]);
        assert_eq!(classes([31, 35, 49, 53, 90]), [Class::Fatal; 5]);
        assert_eq!(classes([-1, 17, 29, 32, 87, 9_999]), [Class::Refused; 6]);
    }

    #[test]
    fn errors_say_what_to_change() {
        let cause = Cause::TimedOut { timeout_ms: 120_000, last: ErrorCode::NotLeaderOrFollower };
        let late = ProduceError { topic: OutTopic(0), partition: 3, cause };
        assert_eq!(
            late.to_string(),
            "partition 3: not acknowledged within delivery.timeout.ms (120000 ms), \
             last answer NOT_LEADER_OR_FOLLOWER (6); check the brokers or raise it"
        );
        let large = AppendError::TooLarge { needed: 70_000, limit: 65_536, row: "producer batch pool" };
        assert_eq!(
            large.to_string(),
            "a record needs a batch of 70000 bytes, a buffer has 65536; \
             enlarge the row `producer batch pool` of the plan"
        );
    }
}
