//! The context of one step and the port through which records leave.
use super::fault::{Fault, FaultCell, Flow};
use super::record::{LogBytes, OutBytes, RecordContext};
use crate::arena::Arena;
use crate::base::id::{NodeId, SinkId, StoreId, TaskId};
use crate::wire::RawHeaders;

/// What the thread offers its nodes: the stream thread implements it over its producer, the driver records.
pub(crate) trait Port {
    /// Takes a record of `task` for a sink; the acknowledgement is counted for that task. `partition: None` asks for
    /// the default partitioner: murmur2 of the key; a null key goes anywhere.
    fn produce(&self, task: TaskId, sink: SinkId, partition: Option<u32>, record: &OutBytes<'_>) -> Flow;

    /// As [`produce`](Self::produce), for a topic that the record names.
    fn produce_named(&self, task: TaskId, sink: SinkId, _topic: &str, record: &OutBytes<'_>) -> Flow {
        self.produce(task, sink, None, record)
    }

    /// Number of partitions of a sink's topic; waits until it is known.
    fn partitions(&self, _sink: SinkId) -> Result<u32, Fault> {
        Ok(1)
    }

    /// Takes a changelog record: `key` is the store's key without the partition prefix, `value: None` a tombstone.
    fn changelog(&self, store: StoreId, partition: u32, record: &LogBytes<'_>) -> Flow;

    /// A record was skipped as Kafka Streams skips it: a null key or value at an aggregation, say.
    fn dropped(&self, node: NodeId);
}

/// The context of one step. Covariant in `'a`, so a node may call its children with a shorter life.
#[derive(Clone, Copy)]
pub(crate) struct Cx<'a> {
    /// For what a node builds and its children look at; reset by the thread when nothing of the turn is left.
    pub(crate) arena: &'a Arena,
    /// Whose turn it is.
    pub(crate) task: TaskId,
    /// Where the record came from.
    pub(crate) source: RecordContext<'a>,
    /// What leaves.
    pub(crate) port: &'a dyn Port,
    /// Where details of a fault go.
    pub(crate) fault: &'a FaultCell,
    /// Highest timestamp that the task has taken up, milliseconds; -1 before the first.
    pub(crate) stream_time: i64,
    /// Wall time of this turn, milliseconds since the epoch.
    pub(crate) now_ms: i64,
    /// Whether the table update on its way is the latest of its key: false only below a versioned table.
    pub(crate) latest: bool,
}

impl<'a> Cx<'a> {
    /// A context for work that no record caused: draining, punctuation.
    pub(crate) fn idle(arena: &'a Arena, task: TaskId, port: &'a dyn Port, fault: &'a FaultCell, now_ms: i64) -> Self {
        let source = RecordContext {
            topic: "",
            partition: task.partition,
            offset: -1,
            timestamp: -1,
            headers: RawHeaders::EMPTY,
        };
        Self { arena, task, source, port, fault, stream_time: -1, now_ms, latest: true }
    }

    /// The same step for a record whose timestamp is this one.
    #[inline]
    pub(crate) fn stamped(&self, timestamp: i64) -> Self {
        Cx { source: RecordContext { timestamp, ..self.source }, ..*self }
    }

    /// The same step in the context of another record and task of the subtopology.
    pub(crate) fn at<'s>(&self, task: TaskId, source: RecordContext<'s>) -> Cx<'s>
    where
        'a: 's,
    {
        Cx {
            arena: self.arena,
            task,
            source,
            port: self.port,
            fault: self.fault,
            stream_time: self.stream_time,
            now_ms: self.now_ms,
            latest: true,
        }
    }
}
