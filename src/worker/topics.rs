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
    refuse_reused(topology)?;
    copartitioned(topology, application_id, &mut partitions, &mut internal)?;
    let tasks: Vec<u32> = topology
        .subtopologies()
        .iter()
        .map(|s| most(topology, s, application_id, &partitions, Inputs::All).unwrap_or(0))
        .collect();
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
        let find = |how| {
            let count = |spec: &&RepartitionSpec| count_of(topology, spec, application_id, partitions, how);
            open.iter().enumerate().find_map(|(at, spec)| Some((at, count(spec)?)))
        };
        let Some((at, count)) = find(Inputs::All).or_else(|| find(Inputs::Known)) else {
            let stuck = open.first().map_or_else(String::new, |spec| spec.topic.full(application_id));
            return Err(RunError::UnknownPartitionCount { topic: stuck });
        };
        let name = open.remove(at).topic.full(application_id);
        partitions.insert(name.clone(), count);
        wanted.push(InternalTopic::repartition(name, count, user));
    }
    Ok(wanted)
}

/// Which inputs of a subtopology decide about the topics it writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inputs {
    /// All, once their counts are known.
    All,
    /// Those whose counts are known: two subtopologies may write to each other, as those of a foreign-key join do.
    Known,
}

/// The count of a repartition topic: what the user gave, else the largest of the subtopologies that write it; `None`
/// while one of those is not known.
fn count_of(
    topology: &Topology,
    spec: &RepartitionSpec,
    application_id: &str,
    partitions: &BTreeMap<String, u32>,
    inputs: Inputs,
) -> Option<u32> {
    if spec.partitions.is_some() {
        return spec.partitions;
    }
    let writers = topology.subtopologies().iter().filter(|s| s.sinks.iter().any(|sink| spec.sinks.contains(sink)));
    let counts = writers.map(|s| most(topology, s, application_id, partitions, inputs));
    if inputs == Inputs::Known { counts.flatten().max() } else { counts.collect::<Option<Vec<_>>>()?.into_iter().max() }
}

/// The largest count among a subtopology's inputs, once all are known.
fn most(
    topology: &Topology,
    subtopology: &Subtopology,
    application_id: &str,
    partitions: &BTreeMap<String, u32>,
    inputs: Inputs,
) -> Option<u32> {
    let specs = subtopology.sources.iter().filter_map(|id| topology.source(*id));
    let counts = specs.map(|s| partitions.get(&s.topic.full(application_id)).copied());
    if inputs == Inputs::Known { counts.flatten().max() } else { counts.collect::<Option<Vec<_>>>()?.into_iter().max() }
}

/// Topics that are joined have equally many partitions. Repartition topics whose number nobody gave take the others':
/// that of the user's topics, else a number that was given for one of them, else the largest.
fn copartitioned(
    topology: &Topology,
    application_id: &str,
    partitions: &mut BTreeMap<String, u32>,
    internal: &mut [InternalTopic],
) -> Result<(), RunError> {
    for group in topology.subtopologies().iter().flat_map(|s| &s.copartitioned) {
        let topics: Vec<&TopicName> =
            group.iter().filter_map(|id| topology.source(*id)).map(|spec| &spec.topic).collect();
        let free = |topic: &TopicName| {
            topology.repartitions().iter().any(|spec| spec.topic == *topic && spec.partitions.is_none())
        };
        let count = |topic: &TopicName| partitions.get(&topic.full(application_id)).copied().unwrap_or(0);
        let given = topics.iter().find(|topic| !free(topic)).map(|topic| count(topic));
        let wanted = given.or_else(|| topics.iter().map(|topic| count(topic)).max()).unwrap_or(0);
        if topics.iter().any(|topic| !free(topic) && count(topic) != wanted) {
            let found = topics.iter().map(|topic| format!("{} ({})", topic.full(application_id), count(topic)));
            return Err(RunError::NotCopartitioned { found: found.collect::<Vec<_>>().join(", ") });
        }
        for name in topics.iter().filter(|topic| free(topic)).map(|topic| topic.full(application_id)) {
            if let Some(topic) = internal.iter_mut().find(|topic| topic.name == name) {
                topic.partitions = wanted;
            }
            partitions.insert(name, wanted);
        }
    }
    Ok(())
}

/// A table whose changelog is its topic cannot be restored yet, and without that it would be lost with its disk.
fn refuse_reused(topology: &Topology) -> Result<(), RunError> {
    let store = topology.reused().first().and_then(|(store, _)| topology.store(*store));
    store.map_or(Ok(()), |store| Err(RunError::ReusedSourceTopic { store: store.name.clone() }))
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

    fn joined(repartitioned: Repartitioned) -> Topology {
        let builder = StreamsBuilder::new();
        let left = builder.stream("left", Consumed::with(Utf8, Utf8)).select_key(Utf8, |_, value| value);
        let left = left.repartition(repartitioned.named("again"));
        let right = builder.stream("right", Consumed::with(Utf8, Utf8));
        let within = JoinWindows::of_time_difference_with_no_grace(std::time::Duration::from_secs(1));
        left.join_stream(&right, within, Utf8, |left, _| left).to("out");
        builder.build().unwrap()
    }

    fn counts_of_joined(topology: &Topology) -> Result<Vec<u32>, RunError> {
        let external = |topic: &str| Some(if topic == "left" { 6 } else { 4 });
        let plan = resolve(topology, "app", &[], external)?;
        Ok(plan.internal.into_iter().map(|topic| topic.partitions).collect())
    }

    #[test]
    fn a_repartition_topic_is_as_wide_as_what_it_is_joined_with() {
        assert_eq!(counts_of_joined(&joined(Repartitioned::new())).unwrap(), [4, 4, 4]);
        let error = counts_of_joined(&joined(Repartitioned::with_partitions(3))).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("app-again-repartition (3)") && text.contains("right (4)"), "{text}");
    }

    /// The two subtopologies of a foreign-key join write to each other. `left` has 6 partitions, all others have 4.
    fn foreign_key(right: impl FnOnce(&StreamsBuilder) -> KTable<Utf8, Utf8>) -> [Vec<u32>; 3] {
        let builder = StreamsBuilder::new();
        let left = builder.table("left", Consumed::with(Utf8, Utf8));
        let right = right(&builder);
        left.join_on(&right, |_, user| user, Utf8, Materialized::new(), |_, user| user).to_stream().to("out");
        let external = |topic: &str| Some(if topic == "left" { 6 } else { 4 });
        let plan = resolve(&builder.build().unwrap(), "app", &[], external).unwrap();
        ["right-repartition", "SUBSCRIPTION-REGISTRATION", "SUBSCRIPTION-RESPONSE"].map(|part| {
            let of = plan.internal.iter().filter(|topic| topic.name.contains(part) && !topic.name.contains("STATE"));
            of.map(|topic| topic.partitions).collect()
        })
    }

    #[test]
    fn topics_of_a_foreign_key_join_are_as_wide_as_the_tables_that_read_them() {
        let plain = |builder: &StreamsBuilder| builder.table("users", Consumed::with(Utf8, Utf8));
        assert_eq!(foreign_key(plain), [vec![], vec![4], vec![6]]);
        // Where nothing is given the widest decides.
        let grouped = |builder: &StreamsBuilder| {
            let again = plain(builder).group_by(Utf8, Utf8, |key, value| (value, key));
            again.reduce(Materialized::named("right"), |all, one| all.push_str(one), |all, _| all.clear())
        };
        assert_eq!(foreign_key(grouped), [vec![6], vec![6], vec![6]]);
    }

    #[test]
    fn a_table_that_could_not_be_restored_is_refused() {
        let builder = StreamsBuilder::new();
        builder.table_with("t", Consumed::with(Utf8, Utf8), Materialized::named("kept"));
        let topology = builder.build_with(Optimization::ALL).unwrap();
        let error = resolve(&topology, "app", &[], |_| Some(1)).unwrap_err();
        assert!(matches!(error, RunError::ReusedSourceTopic { store } if store == "kept"));
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
