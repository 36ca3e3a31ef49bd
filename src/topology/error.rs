//! Why a topology is refused.

/// Why [`StreamsBuilder::build`](crate::StreamsBuilder::build) refused a topology.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder.stream("lines", Consumed::with(Utf8, Utf8)).to("a");
/// builder.stream("lines", Consumed::with(Utf8, Bytes)).to("b");
/// assert_eq!(builder.build().unwrap_err(), BuildError::TopicTwice { topic: "lines".into() });
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No stream or table was read.
    #[error("the topology reads no topic; begin with stream()")]
    Empty,
    /// Two nodes or two stores have the same name.
    #[error("the name \"{name}\" is used twice; give one of them another name")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// A topic is read by two source nodes that cannot be one: as records of two types, as a stream and as a table, or
    /// together with other topics.
    #[error("the topic \"{topic}\" is read twice; read it once and use the stream's handle twice")]
    TopicTwice {
        /// Its name.
        topic: String,
    },
    /// A topic is read twice, from different offsets.
    #[error("the topic \"{topic}\" is read twice with different offset resets; give both the same")]
    ResetDiffers {
        /// Its name.
        topic: String,
    },
    /// Repartition topics that are joined were given different numbers of partitions.
    #[error("topics that are joined have different numbers of partitions: {found}; give them the same")]
    NotCopartitioned {
        /// The topics with their numbers.
        found: String,
    },
    /// Two repartitions below one change of the key lie behind one operator, and the optimiser was asked to merge them.
    /// Kafka Streams refuses that too.
    #[error(
        "the repartitions below \"{name}\" share an operator and cannot be merged; build without \
             merge.repartition.topics, or give each its own filter or peek"
    )]
    NotMergeable {
        /// The node that changes the key.
        name: String,
    },
    /// A source without topics.
    #[error("a stream reads no topic; name at least one")]
    NoTopics,
    /// A name that Kafka does not accept for a topic.
    #[error("the name \"{name}\" cannot be used: {why}")]
    InvalidName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A repartition topic with no partition.
    #[error("the repartition topic \"{name}\" is to have 0 partitions; ask for at least one, or for no number")]
    NoPartitions {
        /// The name that was given to it.
        name: String,
    },
    /// Streams of two builders are combined.
    #[error("two streams of different builders are combined; make both from one StreamsBuilder")]
    OtherBuilder,
    /// `.named` on what has no name of its own.
    #[error("\"{name}\" cannot name this: {instead}")]
    NotNameable {
        /// The name that was given.
        name: String,
        /// What to use instead.
        instead: &'static str,
    },
    /// Windows of a size that makes no sense.
    #[error("the windows cannot be used: {why}")]
    Windows {
        /// What is wrong with them.
        why: &'static str,
    },
    /// Final results are asked of a table that is not made of windows.
    #[error("\"{name}\" waits for windows to close, but its table is not made by a windowed aggregation")]
    NotWindowed {
        /// The node's name.
        name: String,
    },
    /// A join is to wait for a table that does not know its past.
    #[error(
        "the join \"{name}\" has a grace period, but its table is not versioned; make it with Materialized::versioned"
    )]
    GraceNotVersioned {
        /// The name of the join's node.
        name: String,
    },
    /// Something that cannot be versioned.
    #[error("{what} cannot be versioned; keep it in another store")]
    Versioned {
        /// What was to be.
        what: &'static str,
    },
    /// A windowed store that would forget windows which records may still change.
    #[error("the store \"{store}\" keeps windows for {retention_ms} ms; it needs at least {needed_ms} ms")]
    Retention {
        /// The store's name.
        store: String,
        /// What was asked for, milliseconds.
        retention_ms: i64,
        /// What the windows need, milliseconds.
        needed_ms: i64,
    },
    /// More than 65,535 nodes, topics or stores.
    #[error("the topology has more than 65535 {what}; split the application")]
    TooMany {
        /// Of what there are too many.
        what: &'static str,
    },
}
