//! Identities of the parts of a topology. Dense numbers, so that the hot path indexes instead of hashing.
use std::fmt;

/// One task: a subtopology on one partition number. Displayed as Kafka Streams does: `0_1`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId {
    /// Number of the subtopology, in topological order from 0.
    pub subtopology: u32,
    /// Partition number that all inputs of the task share.
    pub partition: u32,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.subtopology, self.partition)
    }
}

macro_rules! dense {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) struct $name(pub(crate) u16);

        impl $name {
            /// Position in the topology's list of its kind.
            #[inline]
            pub(crate) fn index(self) -> usize {
                usize::from(self.0)
            }
        }
    )+ };
}

dense! {
    /// A node of the logical graph; numbers grow downstream.
    NodeId,
    /// A state store of the topology.
    StoreId,
    /// A sink (an output topic as one node writes it).
    SinkId,
    /// A source topic as one source node reads it.
    SourceId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_displayed_as_kafka_streams_does() {
        assert_eq!(TaskId { subtopology: 0, partition: 12 }.to_string(), "0_12");
    }
}
