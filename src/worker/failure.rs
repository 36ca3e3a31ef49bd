//! Why an application fails while it runs, and what the user may answer.
use crate::base::id::TaskId;
use crate::budget::PlanError;
use crate::store::error::StoreError;
use std::fmt;
use std::sync::Arc;

/// Why a running application, or one of its tasks, failed. Each message says what to change.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An input topic does not exist.
    #[error("the input topic \"{topic}\" does not exist; create it before the application starts")]
    SourceTopicMissing {
        /// Its name.
        topic: String,
    },
    /// Topics that one task reads together have different partition counts.
    #[error("{found} are read together and must have the same number of partitions; repartition one of them")]
    NotCopartitioned {
        /// The topics with their counts, as text: `a (4), b (3)`.
        found: String,
    },
    /// A table was built to use its source topic as changelog, which it cannot be restored from yet.
    #[error(
        "the table \"{store}\" was built with reuse.ktable.source.topics, which only the test driver knows yet; build \
         with the other optimisations"
    )]
    ReusedSourceTopic {
        /// Its store.
        store: String,
    },
    /// The number of partitions of a repartition topic cannot be derived.
    #[error(
        "the number of partitions of the repartition topic \"{topic}\" cannot be derived; give it with Repartitioned"
    )]
    UnknownPartitionCount {
        /// Its name.
        topic: String,
    },
    /// An internal topic could not be created or is not as it must be.
    #[error("internal topic: {reason}")]
    InternalTopic {
        /// What is wrong and with which topic.
        reason: String,
    },
    /// The plan does not fit once the numbers of partitions are known.
    #[error(transparent)]
    Plan(Arc<PlanError>),
    /// A topic may hold records larger than a frame.
    #[error(
        "the topic \"{topic}\" allows records of {max_message_bytes} bytes, but a frame holds {frame_bytes}; \
         raise the total or lower the topic's max.message.bytes"
    )]
    TopicExceedsFrame {
        /// Topic name.
        topic: String,
        /// Its `max.message.bytes`.
        max_message_bytes: u64,
        /// The plan's frame.
        frame_bytes: u64,
    },
    /// A record could not be decoded and the handler said to fail.
    #[error("{0}; a deserialization handler may skip such records")]
    Undecodable(UndecodableRecord),
    /// The bytes of a batch are damaged or of a kind that is not read.
    #[error("{topic}-{partition} at offset {offset}: {reason}")]
    Unreadable {
        /// Topic name.
        topic: String,
        /// Partition number.
        partition: u32,
        /// First offset of the batch.
        offset: i64,
        /// What the reader said.
        reason: String,
    },
    /// The offset to read is not in the log and the source has no reset policy.
    #[error("{topic}-{partition}: offset {offset} is out of range and no reset policy is set; set auto.offset.reset")]
    OffsetOutOfRange {
        /// Topic name.
        topic: String,
        /// Partition number.
        partition: u32,
        /// The offset asked for.
        offset: i64,
    },
    /// The user's code answered an error.
    #[error("processing failed in task {task} at {at}: {reason}")]
    Processing {
        /// The task.
        task: TaskId,
        /// Topic, partition and offset of the record.
        at: String,
        /// The user's error as text.
        reason: String,
    },
    /// The user's code panicked; its uncommitted work was discarded.
    #[error("user code panicked in task {task}: {reason}")]
    Panicked {
        /// The task.
        task: TaskId,
        /// The panic's message.
        reason: String,
    },
    /// Records could not be written; nothing was committed over them.
    #[error("writing failed in task {task}: {reason}")]
    Production {
        /// The task.
        task: TaskId,
        /// What the producer said, with the topic.
        reason: String,
    },
    /// A state store failed.
    #[error("state store: {reason}")]
    Store {
        /// What RocksDB or the file system said.
        reason: String,
    },
    /// RocksDB stopped after an error of its background threads. It is opened again and restored by itself; this is
    /// seen when that happens a third time within ten minutes, or does not succeed.
    #[error("the state database stopped: {reason}; check the disk of the state directory")]
    StoreStopped {
        /// What RocksDB or the file system said.
        reason: String,
    },
    /// The brokers, or librdkafka on their behalf, answered with an error that does not pass.
    #[error("kafka: {reason}")]
    Client {
        /// What was said.
        reason: String,
    },
    /// The brokers did not answer a question that tasks need to start.
    #[error("{what}: no answer within task.timeout.ms ({task_timeout_ms} ms): {reason}; check the brokers or raise it")]
    TaskTimeout {
        /// What was asked for.
        what: String,
        /// The setting.
        task_timeout_ms: i64,
        /// How the last attempt failed.
        reason: String,
    },
    /// Another member with the same `group.instance.id` took over.
    #[error("another member uses the same group.instance.id; this instance stops")]
    Fenced,
    /// A record, or what it caused, took longer than a turn may.
    #[error(
        "a stream thread made no turn for more than max.poll.interval.ms ({max_poll_interval_ms} ms); raise it or make \
         the processing of one record shorter"
    )]
    TurnTooLong {
        /// The setting.
        max_poll_interval_ms: i64,
    },
    /// A thread of the library ended in an unexpected way.
    #[error("internal: {reason}")]
    Internal {
        /// What happened.
        reason: String,
    },
}

impl RunError {
    /// What the brokers, or librdkafka for them, said.
    pub(crate) fn client(reason: impl fmt::Display) -> Self {
        Self::Client { reason: reason.to_string() }
    }

    /// What the database or the file system said.
    pub(crate) fn store(error: &StoreError) -> Self {
        let reason = error.to_string();
        if error.is_stop() { Self::StoreStopped { reason } } else { Self::Store { reason } }
    }

    /// What the system, or this library itself, said.
    pub(crate) fn internal(reason: impl fmt::Display) -> Self {
        Self::Internal { reason: reason.to_string() }
    }
}

/// A record whose bytes a codec refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndecodableRecord {
    /// Topic name.
    pub topic: String,
    /// Partition number.
    pub partition: u32,
    /// Offset of the record.
    pub offset: i64,
    /// What the codec said, with `key` or `value`.
    pub reason: String,
}

impl fmt::Display for UndecodableRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} at offset {}: {}", self.topic, self.partition, self.offset, self.reason)
    }
}

/// What to do with a record that cannot be decoded; Kafka Streams' `LogAndFail` and `LogAndContinue`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DeserializationResponse {
    /// The task fails.
    #[default]
    Fail,
    /// The record is counted as dropped and skipped.
    Continue,
}

/// A failure as the uncaught-failure handler sees it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Failure {
    /// The task that failed, if one did.
    pub task: Option<TaskId>,
    /// Why.
    pub error: RunError,
}

/// What to do after a failure; the names are those of Kafka Streams' uncaught exception handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FailureResponse {
    /// The task is closed without committing and started again from its last commit.
    ReplaceThread,
    /// This process closes; its state is then `ERROR`.
    #[default]
    ShutdownClient,
}

/// Asked on the thread where it happened.
pub(crate) type DeserializationHandler = dyn Fn(&UndecodableRecord) -> DeserializationResponse + Send + Sync;
/// Asked on the control thread.
pub(crate) type FailureHandler = dyn Fn(&Failure) -> FailureResponse + Send + Sync;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_to_change() {
        let missing = RunError::SourceTopicMissing { topic: "lines".into() };
        assert_eq!(
            missing.to_string(),
            "the input topic \"lines\" does not exist; create it before the application starts"
        );
        let record = UndecodableRecord { topic: "t".into(), partition: 2, offset: 7, reason: "value: no utf-8".into() };
        assert_eq!(
            RunError::Undecodable(record).to_string(),
            "t-2 at offset 7: value: no utf-8; a deserialization handler may skip such records"
        );
    }
}
