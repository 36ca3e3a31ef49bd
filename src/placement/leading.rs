//! Tasks out of range's offer: the leading-topic rule.
//!
//! Range deals each topic by itself. With equal partition counts partition *i* of all topics lands on one member; with
//! unequal counts (merged streams allow them) it does not, and two members would each hold a part of a task's inputs.
//! So one topic decides: the subtopology's **leading topic**, the one with most partitions, of equals the first by
//! name. A task belongs to whoever is offered its partition of the leading topic, and that member reads all the
//! task's partitions. Range offers every partition to exactly one member, and every task has a partition of its
//! leading topic, so every task has exactly one owner, whatever else is offered.
//!
//! Invariant: a pure function of topics and offer, the same for every member. Called by the control thread.
use std::sync::Arc;

use crate::base::id::TaskId;
use crate::base::partition::TopicPartition;

/// The input topics of one subtopology, repartition topics included, with their partition counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SubtopologyInputs {
    pub(crate) id: u32,
    pub(crate) topics: Vec<(Arc<str>, u32)>,
}

impl SubtopologyInputs {
    /// The topic that decides, with its partition count, which is the number of tasks.
    pub(crate) fn leading(&self) -> Option<(&Arc<str>, u32)> {
        let rank = |(name, count): &&(Arc<str>, u32)| (*count, std::cmp::Reverse(Arc::clone(name)));
        self.topics.iter().max_by_key(rank).map(|(name, count)| (name, *count))
    }
}

/// The tasks that a member owns by what it is offered, sorted.
pub(crate) fn owned(subtopologies: &[SubtopologyInputs], offered: &[TopicPartition]) -> Vec<TaskId> {
    let mut tasks = Vec::new();
    for subtopology in subtopologies {
        let Some((leading, count)) = subtopology.leading() else { continue };
        for offer in offered.iter().filter(|offer| offer.topic == *leading) {
            if let Some(partition) = u32::try_from(offer.partition).ok().filter(|partition| *partition < count) {
                tasks.push(TaskId { subtopology: subtopology.id, partition });
            }
        }
    }
    tasks.sort_unstable();
    tasks.dedup();
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(id: u32, topics: &[(&str, u32)]) -> SubtopologyInputs {
        SubtopologyInputs { id, topics: topics.iter().map(|(name, count)| (Arc::from(*name), *count)).collect() }
    }

    /// Kafka's range assignor: the first members get one more.
    fn range(topics: &[(&str, u32)], members: u32, member: u32) -> Vec<TopicPartition> {
        let mut list = Vec::new();
        for (topic, count) in topics {
            let (each, more) = (count / members, count % members);
            let start = each * member + more.min(member);
            let end = start + each + u32::from(member < more);
            list.extend((start..end).map(|p| TopicPartition::new(*topic, i32::try_from(p).unwrap())));
        }
        list
    }

    fn names(tasks: &[TaskId]) -> Vec<String> {
        tasks.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_leading_topic_has_most_partitions_and_of_equals_the_first_name() {
        assert_eq!(inputs(0, &[("b", 4), ("a", 4), ("c", 2)]).leading(), Some((&Arc::from("a"), 4)));
        assert_eq!(inputs(0, &[("a", 2), ("b", 6)]).leading(), Some((&Arc::from("b"), 6)));
        assert_eq!(inputs(0, &[]).leading(), None);
    }

    #[test]
    fn topics_of_unequal_counts_stay_together() {
        let topics = [("a", 4), ("b", 6)];
        let subtopology = [inputs(0, &topics)];
        // Range alone would give a-2 to the second member and b-2 to the first.
        assert_eq!(names(&owned(&subtopology, &range(&topics, 2, 0))), ["0_0", "0_1", "0_2"]);
        assert_eq!(names(&owned(&subtopology, &range(&topics, 2, 1))), ["0_3", "0_4", "0_5"]);
    }

    #[test]
    fn every_task_has_exactly_one_owner() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let counts: Vec<u32> = (0..4).map(|_| random.u32(1..12)).collect();
            let topics = [("in", counts[0]), ("other", counts[1]), ("app-x-repartition", counts[2]), ("z", counts[3])];
            let subtopologies = [inputs(0, &topics[..2]), inputs(1, &topics[2..])];
            let members = random.u32(1..6);
            let mut all: Vec<TaskId> =
                (0..members).flat_map(|member| owned(&subtopologies, &range(&topics, members, member))).collect();
            all.sort_unstable();
            let expected: Vec<TaskId> = subtopologies
                .iter()
                .flat_map(|s| {
                    (0..s.leading().map_or(0, |(_, count)| count))
                        .map(|partition| TaskId { subtopology: s.id, partition })
                })
                .collect();
            assert_eq!(all, expected, "{topics:?} over {members}");
        }
    }

    #[test]
    fn what_is_not_of_the_topology_is_passed_over() {
        let offered = [TopicPartition::new("x", 0), TopicPartition::new("in", 9), TopicPartition::new("in", -1)];
        assert_eq!(owned(&[inputs(0, &[("in", 2)])], &offered), []);
    }
}
