//! Partition counts: those of input topics are given, those of repartition and changelog topics follow. A pure
//! function.
//!
//! A repartition topic takes the count the user gave, else the largest count among the inputs of the subtopologies that
//! write it; a changelog has as many partitions as its subtopology has tasks (Kafka Streams' `RepartitionTopics`,
//! `ChangelogTopics`).
use super::failure::RunError;
use crate::client::internal_topics::InternalTopic;
use crate::store::kind::Rows;
use crate::topology::{RepartitionSpec, Subtopology, TopicName, Topology};
use std::collections::BTreeMap;

/// What is known once the input topics are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicPlan {
    /// Partitions of every topic that is read, by full name.
    pub(crate) partitions: BTreeMap<String, u32>,
    /// Tasks of each subtopology, by its number.
    pub(crate) tasks: Vec<u32>,
    /// Repartition and changelog topics.
    pub(crate) internal: Vec<InternalTopic>,
}

/// Derives every count.
///
/// # Errors
/// [`RunError::SourceTopicMissing`], [`RunError::UnknownPartitionCount`], [`RunError::NotCopartitioned`].
pub(crate) fn resolve(
    topology: &Topology,
    application_id: &str,
    user: &[(String, String)],
    external: impl Fn(&str) -> Option<u32>,
) -> Result<TopicPlan, RunError> {
    let mut partitions = BTreeMap::new();
    for subtopology in topology.subtopologies() {
        for source in &subtopology.sources {
            if let Some(TopicName::External(name)) = topology.source(*source).map(|spec| &spec.topic) {
                let count = external(name).ok_or_else(|| RunError::SourceTopicMissing { topic: name.clone() })?;
                partitions.insert(name.clone(), count);
            }
        }
    }
    let mut internal = repartition(topology, application_id, user, &mut partitions)?;
    copartitioned(topology, application_id, &partitions)?;
    let tasks: Vec<u32> =
        topology.subtopologies().iter().map(|s| most(topology, s, application_id, &partitions).unwrap_or(0)).collect();
    for (subtopology, count) in topology.subtopologies().iter().zip(&tasks) {
        for (id, spec) in subtopology.stores.iter().filter_map(|store| Some((store, topology.store(*store)?))) {
            if let Some(changelog) = spec.changelog() {
                // The user's settings for all internal topics, then those of this store; the later wins.
                let user: Vec<(String, String)> = user.iter().chain(&spec.topic_configs).cloned().collect();
                let (name, kind) = (changelog.full(application_id), topology.store_kind(*id).map(|kind| kind.rows));
                internal.push(match kind {
                    Some(Rows::Window(retention) | Rows::Session(retention)) => {
                        InternalTopic::windowed_changelog(name, *count, retention.ms, &user)
                    }
                    Some(Rows::Versioned { history_ms }) => {
                        InternalTopic::versioned_changelog(name, *count, history_ms, &user)
                    }
                    Some(Rows::KeyValue) | None => InternalTopic::changelog(name, *count, &user),
                });
            }
        }
    }
    Ok(TopicPlan { partitions, tasks, internal })
}

fn repartition(
    topology: &Topology,
    application_id: &str,
    user: &[(String, String)],
    partitions: &mut BTreeMap<String, u32>,
) -> Result<Vec<InternalTopic>, RunError> {
    let mut wanted = Vec::new();
    let mut open: Vec<&RepartitionSpec> = topology.repartitions().iter().collect();
    while !open.is_empty() {
        let before = open.len();
        open.retain(|spec| {
            let Some(count) = count_of(topology, spec, application_id, partitions) else { return true };
            let name = spec.topic.full(application_id);
            partitions.insert(name.clone(), count);
            wanted.push(InternalTopic::repartition(name, count, user));
            false
        });
        if let Some(stuck) = open.first().filter(|_| open.len() == before) {
            return Err(RunError::UnknownPartitionCount { topic: stuck.topic.full(application_id) });
        }
    }
    Ok(wanted)
}

/// The count of a repartition topic: what the user gave, else the largest of the subtopologies that write it; `None`
/// while one of those is not known.
fn count_of(
    topology: &Topology,
    spec: &RepartitionSpec,
    application_id: &str,
    partitions: &BTreeMap<String, u32>,
) -> Option<u32> {
    if spec.partitions.is_some() {
        return spec.partitions;
    }
    let writers = topology.subtopologies().iter().filter(|s| s.sinks.iter().any(|sink| spec.sinks.contains(sink)));
    let counts: Option<Vec<u32>> = writers.map(|s| most(topology, s, application_id, partitions)).collect();
    counts?.into_iter().max()
}

/// The largest count among a subtopology's inputs, once all are known.
fn most(
    topology: &Topology,
    subtopology: &Subtopology,
    application_id: &str,
    partitions: &BTreeMap<String, u32>,
) -> Option<u32> {
    let specs = subtopology.sources.iter().filter_map(|id| topology.source(*id));
    let counts: Option<Vec<u32>> = specs.map(|s| partitions.get(&s.topic.full(application_id)).copied()).collect();
    counts?.into_iter().max()
}

fn copartitioned(
    topology: &Topology,
    application_id: &str,
    partitions: &BTreeMap<String, u32>,
) -> Result<(), RunError> {
    for group in topology.subtopologies().iter().flat_map(|s| &s.copartitioned) {
        let specs = group.iter().filter_map(|id| topology.source(*id));
        let names: Vec<String> = specs.map(|spec| spec.topic.full(application_id)).collect();
        let counts: Vec<Option<&u32>> = names.iter().map(|name| partitions.get(name)).collect();
        if counts.iter().any(|count| Some(count) != counts.first()) {
            let found = names.iter().zip(&counts).map(|(n, c)| format!("{n} ({})", c.copied().unwrap_or(0)));
            return Err(RunError::NotCopartitioned { found: found.collect::<Vec<_>>().join(", ") });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    fn two_steps(partitions: Option<u32>) -> Topology {
        let builder = StreamsBuilder::new();
        let words = builder.stream("lines", Consumed::with(Utf8, Utf8)).select_key(Utf8, |_, line| line);
        let again = match partitions {
            Some(count) => Repartitioned::with_partitions(count),
            None => Repartitioned::new(),
        };
        words.repartition(again.named("first")).group_by(Utf8, |_, line| line).count(Materialized::named("counts"));
        builder.build().unwrap()
    }

    fn counts(topology: &Topology) -> Vec<(String, u32)> {
        let plan = resolve(topology, "app", &[], |topic| (topic == "lines").then_some(6)).unwrap();
        plan.internal.into_iter().map(|topic| (topic.name, topic.partitions)).collect()
    }

    #[test]
    fn a_repartition_topic_is_as_wide_as_what_feeds_it_and_a_changelog_as_its_tasks() {
        let expected = [("app-first-repartition", 6), ("app-counts-repartition", 6), ("app-counts-changelog", 6)];
        assert_eq!(counts(&two_steps(None)), expected.map(|(name, count)| (name.to_owned(), count)));
    }

    #[test]
    fn a_given_count_wins_and_carries_on_downstream() {
        let expected = [("app-first-repartition", 3), ("app-counts-repartition", 3), ("app-counts-changelog", 3)];
        assert_eq!(counts(&two_steps(Some(3))), expected.map(|(name, count)| (name.to_owned(), count)));
    }

    #[test]
    fn a_missing_input_topic_is_named() {
        let error = resolve(&two_steps(None), "app", &[], |_| None).unwrap_err();
        assert!(matches!(error, RunError::SourceTopicMissing { topic } if topic == "lines"));
    }

    #[test]
    fn user_settings_win_over_the_librarys() {
        let user = [("retention.ms".to_owned(), "1000".to_owned())];
        let plan = resolve(&two_steps(None), "app", &user, |_| Some(1)).unwrap();
        let first = plan.internal.iter().find(|topic| topic.name == "app-first-repartition").unwrap();
        let of = |key: &str| first.configs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        assert_eq!(
            (of("retention.ms"), of("cleanup.policy"), of("segment.bytes")),
            (Some("1000"), Some("delete"), Some("52428800"))
        );
    }
}
