//! The topics a producer writes to, with their partitions.
//!
//! Owns every [`Partition`]. Invariant: a topic's partitions never become fewer, so a batch's place stays valid.
//! Bound: the topics that sinks and changelogs name, the partitions that the cluster tells. Called by the producer.
use super::partition::{NO_LEADER, Partition, PartitionId};
use super::producer::Producer;
use super::sticky::Sticky;
use crate::client::{MetadataSnapshot, TopicState};
use crate::net::Backoff;
use crate::wire::ErrorCode;

/// A topic of one producer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct OutTopic(pub(super) u32);

/// A topic and its partitions.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) partitions: Vec<Partition>,
    /// Since when the cluster is asked for it.
    pub(super) asked_ms: i64,
    /// Why the cluster tells nothing about it, for good.
    pub(super) refused: Option<ErrorCode>,
    pub(super) sticky: Sticky,
}

impl Topic {
    /// Takes leaders and new partitions from the cluster's metadata.
    fn learn(&mut self, snapshot: &MetadataSnapshot, backoff: &Backoff) {
        let Some(info) = snapshot.topic(&self.name) else { return };
        self.refused = match info.state {
            TopicState::Failed(code) if !code.is_retriable() => Some(code),
            _ => None,
        };
        if info.state != TopicState::Known {
            self.partitions.iter_mut().for_each(|p| p.leader = NO_LEADER);
            return;
        }
        for (index, told) in info.partitions.iter().enumerate() {
            match self.partitions.get_mut(index) {
                None => self.partitions.push(Partition::new(told.leader, told.leader_epoch, backoff.clone())),
                // A snapshot may be older than what a broker told.
                Some(known) if told.leader_epoch < known.leader_epoch && told.leader_epoch >= 0 => {}
                Some(known) => {
                    known.leader = told.leader;
                    known.leader_epoch = told.leader_epoch;
                }
            }
        }
    }
}

impl Producer {
    /// Names a topic to write to; the same name answers the same topic. The cluster is asked for its partitions.
    pub(crate) fn topic(&mut self, name: &str) -> OutTopic {
        if let Some(known) = self.topics.iter().position(|t| t.name == name) {
            return OutTopic(known as u32);
        }
        let id = OutTopic(self.topics.len() as u32);
        let sticky = Sticky::new(self.seed.wrapping_add(id.0));
        let mut topic =
            Topic { name: name.to_owned(), partitions: Vec::new(), asked_ms: self.now_ms, refused: None, sticky };
        // Refused only beyond the process's bound of topics; then the topic stays unknown, and appending says so.
        let _ = self.metadata.want_topic(name);
        topic.learn(&self.metadata.latest(), &self.pause);
        self.topics.push(topic);
        id
    }

    /// The name of a topic.
    pub(crate) fn topic_name(&self, topic: OutTopic) -> &str {
        self.topics.get(topic.0 as usize).map_or("", |t| &t.name)
    }

    /// How many partitions the topic has, once the cluster has told.
    pub(crate) fn partitions(&self, topic: OutTopic) -> Option<u32> {
        let count = self.topics.get(topic.0 as usize)?.partitions.len() as u32;
        (count > 0).then_some(count)
    }

    /// The partition for a record without a key, of about `bytes`: Kafka's uniform sticky choice. `None` while the
    /// topic's partitions are not known.
    pub(crate) fn sticky_partition(&mut self, topic: OutTopic, bytes: usize) -> Option<u32> {
        let share = self.settings.batch_bytes;
        let Topic { partitions, sticky, .. } = self.topics.get_mut(topic.0 as usize)?;
        let count = partitions.len() as u32;
        let has_leader = |p: u32| partitions.get(p as usize).is_some_and(|p| p.leader != NO_LEADER);
        (count > 0).then(|| sticky.next(count, bytes, share, has_leader))
    }

    #[inline]
    pub(super) fn partition(&self, at: PartitionId) -> Option<&Partition> {
        self.topics.get(at.topic.0 as usize)?.partitions.get(at.partition as usize)
    }

    #[inline]
    pub(super) fn partition_mut(&mut self, at: PartitionId) -> Option<&mut Partition> {
        self.topics.get_mut(at.topic.0 as usize)?.partitions.get_mut(at.partition as usize)
    }

    /// Takes over newer metadata, if there is any.
    pub(super) fn learn(&mut self) {
        let version = self.metadata.version();
        if version == self.seen_version {
            return;
        }
        self.seen_version = version;
        let snapshot = self.metadata.latest();
        for topic in &mut self.topics {
            topic.learn(&snapshot, &self.pause);
        }
    }

    /// Connections that are there or being made.
    #[cfg(test)]
    pub(super) fn connections(&self) -> usize {
        self.brokers.iter().filter(|broker| broker.phase != super::broker::Phase::Idle).count()
    }

    /// Goes on with this sequence.
    #[cfg(test)]
    pub(super) fn start_sequence_for_test(&mut self, topic: OutTopic, partition: u32, sequence: i32) {
        if let Some(partition) = self.partition_mut(PartitionId { topic, partition }) {
            partition.rewind_sequence(sequence);
        }
    }
}
