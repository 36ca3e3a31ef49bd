//! What the topology says of its nodes, topics and stores.
use super::timestamp::TimestampExtractor;
use crate::base::id::{NodeId, SinkId, SourceId, StoreId};
use crate::node::TopicName;
use std::time::Duration;

/// Where to begin reading a partition that has no committed offset, or whose offset is not in the log any more. The
/// names are those of Kafka Streams' `AutoOffsetReset`.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder.stream("lines", Consumed::with(Utf8, Utf8).reset(OffsetReset::Latest)).to("copy");
/// # builder.build().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OffsetReset {
    /// At the oldest record.
    Earliest,
    /// At the end.
    Latest,
    /// Nowhere: the task fails.
    None,
    /// At the first record that is at most so old.
    ByDuration(Duration),
}

/// What to do with a record whose timestamp is negative, or where to take the timestamp from. The names are those of
/// Kafka Streams' extractors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TimestampPolicy {
    /// The record's own; a negative one fails the task.
    #[default]
    FailOnInvalid,
    /// The record's own; a record with a negative one is skipped.
    LogAndSkipOnInvalid,
    /// The record's own, or the highest of its partition so far when it is negative.
    UsePartitionTimeOnInvalid,
    /// The wall clock.
    Wallclock,
    /// What a function says; a record of which it says something negative is skipped.
    By(TimestampExtractor),
}

/// How a node is described.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NodeKind {
    Source(Vec<SourceId>),
    Processor,
    Sink(SinkId),
}

/// A node of the logical graph.
#[derive(Clone, Debug)]
pub(crate) struct NodeSpec {
    pub(crate) name: String,
    pub(crate) kind: NodeKind,
    /// In the order in which they were connected.
    pub(crate) parents: Vec<NodeId>,
    /// Stores that it reads or writes.
    pub(crate) stores: Vec<StoreId>,
    pub(crate) subtopology: u32,
}

/// A source topic as one source node reads it.
#[derive(Clone, Debug)]
pub(crate) struct SourceSpec {
    pub(crate) node: NodeId,
    pub(crate) topic: TopicName,
    /// `None`: the application's default. Repartition topics are read from the earliest.
    pub(crate) reset: Option<OffsetReset>,
    pub(crate) timestamps: TimestampPolicy,
}

/// An output topic as one sink node writes it.
#[derive(Clone, Debug)]
pub(crate) struct SinkSpec {
    /// Of an empty name where each record names its topic.
    pub(crate) topic: TopicName,
    /// The type of what names it.
    pub(crate) extractor: Option<&'static str>,
}

/// A state store.
#[derive(Clone, Debug)]
pub(crate) struct StoreSpec {
    pub(crate) name: String,
    /// Whether it has a changelog, named [`TopicName::Changelog`] of its name.
    pub(crate) logged: bool,
    pub(crate) cached: bool,
    /// Settings of its changelog topic that the user gave.
    pub(crate) topic_configs: Vec<(String, String)>,
    /// Nodes that read or write it; all of one subtopology.
    pub(crate) nodes: Vec<NodeId>,
}

impl StoreSpec {
    /// The changelog topic, if there is one.
    pub(crate) fn changelog(&self) -> Option<TopicName> {
        self.logged.then(|| TopicName::Changelog(self.name.clone()))
    }
}

/// A repartition topic.
#[derive(Clone, Debug)]
pub(crate) struct RepartitionSpec {
    pub(crate) topic: TopicName,
    /// `None`: as many as the most partitioned source of the subtopologies that write it.
    pub(crate) partitions: Option<u32>,
    pub(crate) sinks: Vec<SinkId>,
}

/// A part of the topology that is joined by nothing but topics: what a task runs on one partition.
#[derive(Clone, Debug)]
pub(crate) struct Subtopology {
    pub(crate) id: u32,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) sources: Vec<SourceId>,
    pub(crate) sinks: Vec<SinkId>,
    pub(crate) stores: Vec<StoreId>,
    /// Sources that must have equal numbers of partitions.
    pub(crate) copartitioned: Vec<Vec<SourceId>>,
    /// The source of a global store. Such a part has no tasks and no other sources: every thread sees all of it.
    pub(crate) global: Vec<SourceId>,
}

impl Subtopology {
    pub(super) fn empty(id: u32) -> Self {
        Self {
            id,
            nodes: Vec::new(),
            sources: Vec::new(),
            sinks: Vec::new(),
            stores: Vec::new(),
            copartitioned: Vec::new(),
            global: Vec::new(),
        }
    }
}
