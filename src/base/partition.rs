//! A partition of a topic, by name: what cold paths pass around (assignments, commits, administration).
use std::fmt;
use std::sync::Arc;

/// A topic's partition. Ordered by topic, then by number; displayed as Kafka does: `words-3`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct TopicPartition {
    /// Name of the topic.
    pub(crate) topic: Arc<str>,
    /// Number of the partition, from 0.
    pub(crate) partition: i32,
}

impl TopicPartition {
    /// A partition of a topic.
    pub(crate) fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_displayed_and_ordered_as_in_kafka() {
        let mut list = [TopicPartition::new("b", 0), TopicPartition::new("a", 10), TopicPartition::new("a", 9)];
        list.sort();
        assert_eq!(list.map(|p| p.to_string()), ["a-9", "a-10", "b-0"]);
    }
}
