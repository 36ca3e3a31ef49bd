//! Repartition topics are emptied by the application: their `retention.ms` is -1, and what its own group has committed
//! is read.
//!
//! Kafka Streams' `repartition.purge.interval.ms`. Bound: one offset for each partition of the repartition topics.
//! Called by the control thread; a purge that fails is tried again with the next one, since only space is lost.
use super::message::OffsetToCommit;
use super::topics::TopicPlan;
use crate::base::partition::TopicPartition;
use crate::client::admin::Admin;
use crate::wire::message::ApiKey;
use std::collections::BTreeMap;

/// Time between two purges, milliseconds (`repartition.purge.interval.ms`).
const INTERVAL_MS: i64 = 30_000;

/// What may be deleted.
pub(super) struct Purge {
    /// Names of the repartition topics.
    topics: Vec<String>,
    /// Committed since the last purge.
    committed: BTreeMap<TopicPartition, i64>,
    next_at: i64,
}

impl Purge {
    pub(super) fn new(plan: &TopicPlan, now_ms: i64) -> Self {
        let read = |name: &String| plan.partitions.contains_key(name);
        let topics = plan.internal.iter().map(|topic| topic.name.clone()).filter(read).collect();
        Self { topics, committed: BTreeMap::new(), next_at: now_ms + INTERVAL_MS }
    }

    /// Notes what the group has committed.
    pub(super) fn committed(&mut self, offsets: &[OffsetToCommit]) {
        for offset in offsets.iter().filter(|offset| self.topics.iter().any(|topic| **topic == *offset.topic)) {
            let partition = i32::try_from(offset.partition).unwrap_or(i32::MAX);
            self.committed.insert(TopicPartition::new(offset.topic.clone(), partition), offset.offset);
        }
    }

    /// What is to be deleted now, if it is time: partitions with the offset before which everything may go.
    fn due(&mut self, now_ms: i64) -> BTreeMap<TopicPartition, i64> {
        if now_ms < self.next_at {
            return BTreeMap::new();
        }
        self.next_at = now_ms + INTERVAL_MS;
        std::mem::take(&mut self.committed)
    }

    /// Deletes what is due, where the brokers can.
    pub(super) fn turn(&mut self, admin: &Admin, now_ms: i64) {
        let due = self.due(now_ms);
        if due.is_empty() || !admin.offered(ApiKey::DeleteRecords) {
            return;
        }
        let before: Vec<(&TopicPartition, i64)> = due.iter().map(|(partition, offset)| (partition, *offset)).collect();
        // Only space is at stake: the next commit names these partitions again.
        let _ = admin.delete_records(&before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn offset(topic: &str, partition: u32, offset: i64) -> OffsetToCommit {
        OffsetToCommit { topic: Arc::from(topic), partition, offset, partition_time: -1 }
    }

    #[test]
    fn only_repartition_topics_are_purged_up_to_their_last_commit_and_once() {
        let mut purge =
            Purge { topics: vec!["app-x-repartition".into()], committed: BTreeMap::new(), next_at: INTERVAL_MS };
        purge.committed(&[offset("lines", 0, 9), offset("app-x-repartition", 1, 5)]);
        purge.committed(&[offset("app-x-repartition", 1, 8), offset("app-x-repartition", 0, 3)]);
        assert!(purge.due(INTERVAL_MS - 1).is_empty(), "not yet");
        let due: Vec<(String, i64)> = purge.due(INTERVAL_MS).into_iter().map(|(p, o)| (p.to_string(), o)).collect();
        assert_eq!(due, [("app-x-repartition-0".to_owned(), 3), ("app-x-repartition-1".to_owned(), 8)]);
        assert!(purge.due(3 * INTERVAL_MS).is_empty(), "nothing was committed since");
    }
}
