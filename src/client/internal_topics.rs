//! Internal topics, changelogs and repartition topics, as Kafka Streams makes them: the same settings when they are
//! created, the same demands when they exist.
//!
//! What is demanded of an existing topic (Kafka Streams' `InternalTopicManager`): the partition count; a changelog must
//! not lose records that a restore needs (no `delete` where the store keeps everything, no shorter retention, no
//! bound in bytes); a repartition topic must not be compacted nor lose records that nobody has read.
//! Called by the starting thread. Bound: one description of all topics, repeated until the deadline.
use std::time::{Duration, Instant};

use super::admin::{Admin, AdminError, Configs};
use crate::ffi::kafka_admin_read::NewTopic;
use crate::ffi::kafka_error::{Code, KafkaError};
use crate::wire::message::ApiKey;

/// What Kafka Streams adds to a windowed store's retention in its changelog, in milliseconds
/// (`windowstore.changelog.additional.retention.ms`).
pub(crate) const ADDITIONAL_RETENTION_MS: i64 = 24 * 60 * 60 * 1000;
const RETRY: Duration = Duration::from_millis(100);

const CLEANUP: &str = "cleanup.policy";
const RETENTION_MS: &str = "retention.ms";
const RETENTION_BYTES: &str = "retention.bytes";
const MIN_LAG_MS: &str = "min.compaction.lag.ms";

/// An internal topic that the topology needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct InternalTopic {
    pub(crate) name: String,
    pub(crate) partitions: u32,
    /// Settings it is created with, by name.
    pub(crate) configs: Vec<(String, String)>,
}

impl InternalTopic {
    /// Changelog of a key-value store. `user`: the user's settings, which win.
    pub(crate) fn changelog(name: String, partitions: u32, user: &[(String, String)]) -> Self {
        Self::new(name, partitions, &[(CLEANUP, "compact".to_owned())], user)
    }

    /// Changelog of a window or session store that keeps records so long, in milliseconds.
    pub(crate) fn windowed_changelog(
        name: String,
        partitions: u32,
        retention_ms: i64,
        user: &[(String, String)],
    ) -> Self {
        let retention = retention_ms.saturating_add(ADDITIONAL_RETENTION_MS).to_string();
        Self::new(name, partitions, &[(CLEANUP, "compact,delete".to_owned()), (RETENTION_MS, retention)], user)
    }

    /// Changelog of a versioned store that keeps a history so long, in milliseconds.
    pub(crate) fn versioned_changelog(
        name: String,
        partitions: u32,
        history_ms: i64,
        user: &[(String, String)],
    ) -> Self {
        let lag = history_ms.saturating_add(ADDITIONAL_RETENTION_MS).to_string();
        Self::new(name, partitions, &[(CLEANUP, "compact".to_owned()), (MIN_LAG_MS, lag)], user)
    }

    /// A repartition topic: nothing is deleted but by the engine, once it was read.
    pub(crate) fn repartition(name: String, partitions: u32, user: &[(String, String)]) -> Self {
        let settings =
            [(CLEANUP, "delete".to_owned()), ("segment.bytes", "52428800".to_owned()), (RETENTION_MS, "-1".to_owned())];
        Self::new(name, partitions, &settings, user)
    }

    fn new(name: String, partitions: u32, own: &[(&str, String)], user: &[(String, String)]) -> Self {
        let mut configs = Configs::from([("message.timestamp.type".to_owned(), "CreateTime".to_owned())]);
        configs.extend(own.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        configs.extend(user.iter().cloned());
        Self { name, partitions, configs: configs.into_iter().collect() }
    }

    fn config(&self, name: &str) -> Option<&str> {
        self.configs.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// Why the internal topics are not as the topology needs them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum InternalTopicError {
    /// A topic exists with another number of partitions.
    #[error(
        "internal topic `{topic}` has {found} partitions and the topology needs {expected}: give the input topics \
         their former partition count, or reset the application by deleting its internal topics"
    )]
    Partitions {
        /// The topic.
        topic: String,
        /// Partitions that the topology needs.
        expected: u32,
        /// Partitions that it has.
        found: u32,
    },
    /// A topic exists with a setting under which records that are still needed would be lost.
    #[error(
        "internal topic `{topic}` has {name}={found} and the topology needs {expected}: change the topic's setting"
    )]
    Config {
        /// The topic.
        topic: String,
        /// Kafka's name of the setting.
        name: &'static str,
        /// What the topology needs, in words.
        expected: String,
        /// What it has.
        found: String,
    },
    /// Topics are missing and cannot be made.
    #[error("internal topics are missing and the brokers offer no CreateTopics: create {topics} beforehand")]
    NotCreatable {
        /// Names and partition counts.
        topics: String,
    },
    /// A topic could not be made.
    #[error("internal topic `{topic}` cannot be created: {source}")]
    Create {
        /// The topic.
        topic: String,
        /// The broker's answer.
        source: KafkaError,
    },
    /// Topics were still missing at the deadline.
    #[error("internal topics {topics} did not appear within {waited_ms} ms: check the brokers")]
    Missing {
        /// Their names.
        topics: String,
        /// How long was waited, in milliseconds.
        waited_ms: u64,
    },
    /// A look at the topics failed.
    #[error(transparent)]
    Admin(#[from] AdminError),
}

/// Makes what is missing and checks what exists; answers the names of the topics made. `replication`: -1 for the
/// brokers' default; brokers that know no default get 1.
pub(crate) fn ensure(
    admin: &Admin,
    topics: &[InternalTopic],
    replication: i32,
    timeout: Duration,
) -> Result<Vec<String>, InternalTopicError> {
    let deadline = Instant::now() + timeout;
    let mut factor = replication;
    let mut made: Vec<String> = Vec::new();
    loop {
        let missing = missing(admin, topics)?;
        if missing.is_empty() {
            break;
        }
        let unmade: Vec<&InternalTopic> = missing.iter().copied().filter(|topic| !made.contains(&topic.name)).collect();
        if !unmade.is_empty() && !admin.offered(ApiKey::CreateTopics) {
            let named = unmade.iter().map(|topic| format!("`{}` ({} partitions)", topic.name, topic.partitions));
            return Err(InternalTopicError::NotCreatable { topics: named.collect::<Vec<_>>().join(", ") });
        }
        if create(admin, &unmade, factor, &mut made)? == Created::NoDefaultFactor {
            factor = 1;
            continue;
        }
        if Instant::now() >= deadline {
            let names: Vec<_> = missing.iter().map(|topic| format!("`{}`", topic.name)).collect();
            let waited_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            return Err(InternalTopicError::Missing { topics: names.join(", "), waited_ms });
        }
        std::thread::sleep(RETRY);
    }
    check_configs(admin, topics, &made)?;
    Ok(made)
}

/// Topics that do not exist; those that do must have their partition count.
fn missing<'t>(admin: &Admin, topics: &'t [InternalTopic]) -> Result<Vec<&'t InternalTopic>, InternalTopicError> {
    let names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
    let counts = match admin.topics(&names) {
        // A topic that is just being made may have no leader yet: it counts as missing until it has.
        Err(AdminError::Topic { source, .. }) if source.code() == Some(Code::LEADER_NOT_AVAILABLE) => {
            vec![None; names.len()]
        }
        counts => counts?,
    };
    let mut missing = Vec::new();
    for (topic, count) in topics.iter().zip(counts) {
        match count {
            None => missing.push(topic),
            Some(found) if found != topic.partitions => {
                let (topic, expected) = (topic.name.clone(), topic.partitions);
                return Err(InternalTopicError::Partitions { topic, expected, found });
            }
            Some(_) => {}
        }
    }
    Ok(missing)
}

#[derive(PartialEq, Eq)]
enum Created {
    /// Everything that could be was made; the rest is tried again.
    Done,
    /// The brokers know no default replication factor.
    NoDefaultFactor,
}

fn create(
    admin: &Admin,
    topics: &[&InternalTopic],
    factor: i32,
    made: &mut Vec<String>,
) -> Result<Created, InternalTopicError> {
    let new: Vec<NewTopic<'_>> = topics.iter().map(|topic| topic_of(topic, factor)).collect();
    for (topic, result) in admin.create(&new)? {
        let Err(source) = result else {
            made.push(topic);
            continue;
        };
        match source.code() {
            // Another instance was faster, or still is.
            Some(Code::TOPIC_ALREADY_EXISTS) => {}
            Some(Code::INVALID_REPLICATION_FACTOR | Code::UNSUPPORTED_VERSION) if factor < 0 => {
                return Ok(Created::NoDefaultFactor);
            }
            _ if source.is_retriable() => {}
            _ => return Err(InternalTopicError::Create { topic, source }),
        }
    }
    Ok(Created::Done)
}

fn topic_of(topic: &InternalTopic, replication: i32) -> NewTopic<'_> {
    NewTopic { name: &topic.name, partitions: topic.partitions, replication, configs: &topic.configs }
}

fn check_configs(admin: &Admin, topics: &[InternalTopic], made: &[String]) -> Result<(), InternalTopicError> {
    if !admin.offered(ApiKey::DescribeConfigs) {
        return Ok(());
    }
    let found: Vec<&InternalTopic> = topics.iter().filter(|topic| !made.contains(&topic.name)).collect();
    let names: Vec<&str> = found.iter().map(|topic| topic.name.as_str()).collect();
    for (topic, configs) in found.iter().zip(admin.configs(&names)?) {
        check(topic, &configs)?;
    }
    Ok(())
}

/// Pure: the settings that an existing topic must have.
fn check(topic: &InternalTopic, found: &Configs) -> Result<(), InternalTopicError> {
    let has =
        |configs: Option<&str>, policy: &str| configs.is_some_and(|all| all.split(',').any(|p| p.trim() == policy));
    let value = |name: &str| found.get(name).map(String::as_str);
    let wrong = |name: &'static str, expected: &str| {
        let found = found.get(name).cloned().unwrap_or_default();
        Err(InternalTopicError::Config { topic: topic.name.clone(), name, expected: expected.to_owned(), found })
    };
    let wanted = topic.config(CLEANUP);
    let (deletes, compacts) = (has(value(CLEANUP), "delete"), has(value(CLEANUP), "compact"));
    if compacts && !has(wanted, "compact") {
        return wrong(CLEANUP, "no `compact`");
    }
    if deletes && !has(wanted, "delete") {
        return wrong(CLEANUP, "no `delete`");
    }
    if deletes && value(RETENTION_BYTES).is_some_and(|bytes| bytes != "-1") && topic.config(RETENTION_BYTES).is_none() {
        return wrong(RETENTION_BYTES, "-1");
    }
    if deletes && !at_least(value(RETENTION_MS), topic.config(RETENTION_MS)) {
        return wrong(RETENTION_MS, &format!("at least {}", topic.config(RETENTION_MS).unwrap_or_default()));
    }
    if compacts && topic.config(MIN_LAG_MS).is_some() && !at_least(value(MIN_LAG_MS), topic.config(MIN_LAG_MS)) {
        return wrong(MIN_LAG_MS, &format!("at least {}", topic.config(MIN_LAG_MS).unwrap_or_default()));
    }
    Ok(())
}

/// Compares durations of which -1 is without end. What is not there or no number demands nothing.
fn at_least(found: Option<&str>, wanted: Option<&str>) -> bool {
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<i64>().ok());
    let endless = |ms: i64| if ms < 0 { i64::MAX } else { ms };
    match (number(found), number(wanted)) {
        (Some(found), Some(wanted)) => endless(found) >= endless(wanted),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
