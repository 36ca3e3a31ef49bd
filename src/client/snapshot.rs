//! What is known about the cluster at one moment: brokers, topics, leaders. Immutable once published.
use crate::wire::{ErrorCode, TopicId};
use std::net::SocketAddr;
use std::sync::Arc;

/// A broker of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broker {
    /// Its id in the cluster.
    pub(crate) id: i32,
    /// The host it advertises.
    pub(crate) host: String,
    /// The port it advertises.
    pub(crate) port: u16,
    /// What the host resolved to, to be tried in turn; empty when it did not resolve.
    pub(crate) addrs: Vec<SocketAddr>,
}

/// What the cluster said about a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopicState {
    /// It exists.
    Known,
    /// It does not exist, or this client may not know that it does.
    Missing,
    /// The cluster could not or would not say.
    Failed(ErrorCode),
}

/// A partition and its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartitionInfo {
    /// Id of the leader; -1 while there is none.
    pub(crate) leader: i32,
    /// Epoch of that leader; -1 when the broker does not tell.
    pub(crate) leader_epoch: i32,
}

impl PartitionInfo {
    /// A partition whose leader is not known.
    pub(crate) const UNKNOWN: Self = Self { leader: -1, leader_epoch: -1 };
}

/// A topic somebody wanted to know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicInfo {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its identity; all zero when the brokers are older than that.
    pub(crate) id: TopicId,
    /// Whether it exists.
    pub(crate) state: TopicState,
    /// Its partitions, by number; empty unless it is known.
    pub(crate) partitions: Vec<PartitionInfo>,
}

/// The cluster as last heard of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MetadataSnapshot {
    /// Grows with each snapshot; 0: nothing has been heard yet.
    pub(crate) version: u64,
    /// Id of the cluster, once known.
    pub(crate) cluster_id: Option<String>,
    /// Brokers, by id.
    pub(crate) brokers: Vec<Broker>,
    /// Topics, by name.
    pub(crate) topics: Vec<TopicInfo>,
}

impl MetadataSnapshot {
    /// The broker with this id.
    pub(crate) fn broker(&self, id: i32) -> Option<&Broker> {
        let at = self.brokers.binary_search_by_key(&id, |broker| broker.id).ok()?;
        self.brokers.get(at)
    }

    /// The topic of this name, if it was asked about.
    pub(crate) fn topic(&self, name: &str) -> Option<&TopicInfo> {
        let at = self.topics.binary_search_by(|topic| (*topic.name).cmp(name)).ok()?;
        self.topics.get(at)
    }

    /// A partition of a topic.
    pub(crate) fn partition(&self, topic: &str, partition: i32) -> Option<PartitionInfo> {
        let at = usize::try_from(partition).ok()?;
        self.topic(topic)?.partitions.get(at).copied()
    }

    /// Number of partitions of a topic that is known to exist.
    pub(crate) fn partitions(&self, topic: &str) -> Option<u32> {
        let topic = self.topic(topic).filter(|topic| topic.state == TopicState::Known)?;
        u32::try_from(topic.partitions.len()).ok()
    }

    /// Puts brokers and topics into the order that look-ups rely on.
    pub(crate) fn sort(&mut self) {
        self.brokers.sort_by_key(|broker| broker.id);
        self.topics.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// The same with another leader of one partition, if that is news from a later epoch.
    pub(crate) fn with_leader(&self, topic: &str, partition: i32, leader: i32, leader_epoch: i32) -> Option<Self> {
        let known = self.partition(topic, partition)?;
        if leader_epoch <= known.leader_epoch || self.broker(leader).is_none() {
            return None;
        }
        let mut next = self.clone();
        let at = next.topics.binary_search_by(|t| (*t.name).cmp(topic)).ok()?;
        let place = next.topics.get_mut(at)?.partitions.get_mut(usize::try_from(partition).ok()?)?;
        *place = PartitionInfo { leader, leader_epoch };
        Some(next)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A snapshot with brokers at these addresses, ids from 1, and topics with the leaders of their partitions.
    pub(crate) fn snapshot(version: u64, brokers: &[SocketAddr], topics: &[(&str, &[i32])]) -> MetadataSnapshot {
        let broker = |(i, addr): (usize, &SocketAddr)| Broker {
            id: i as i32 + 1,
            host: addr.ip().to_string(),
            port: addr.port(),
            addrs: vec![*addr],
        };
        let topic = |(name, leaders): &(&str, &[i32])| TopicInfo {
            name: (*name).into(),
            id: [0; 16],
            state: TopicState::Known,
            partitions: leaders.iter().map(|leader| PartitionInfo { leader: *leader, leader_epoch: 3 }).collect(),
        };
        let brokers = brokers.iter().enumerate().map(broker).collect();
        let mut snapshot =
            MetadataSnapshot { version, cluster_id: None, brokers, topics: topics.iter().map(topic).collect() };
        snapshot.sort();
        snapshot
    }

    #[test]
    fn topics_and_leaders_are_found_by_name_and_number() {
        let addr = "127.0.0.1:9092".parse().unwrap();
        let snapshot = snapshot(1, &[addr, addr], &[("words", &[1, 2]), ("counts", &[2])]);
        assert_eq!(snapshot.partitions("words"), Some(2));
        assert_eq!(snapshot.partition("counts", 0), Some(PartitionInfo { leader: 2, leader_epoch: 3 }));
        assert_eq!(snapshot.partition("counts", 1), None);
        assert_eq!(snapshot.partitions("other"), None);
    }

    #[test]
    fn only_a_later_epoch_and_a_known_broker_move_a_leader() {
        let addr = "127.0.0.1:9092".parse().unwrap();
        let snapshot = snapshot(1, &[addr, addr], &[("words", &[1, 2])]);
        assert_eq!(snapshot.with_leader("words", 0, 2, 3), None);
        assert_eq!(snapshot.with_leader("words", 0, 9, 4), None);
        let moved = snapshot.with_leader("words", 0, 2, 4).unwrap();
        assert_eq!(moved.partition("words", 0), Some(PartitionInfo { leader: 2, leader_epoch: 4 }));
    }
}
