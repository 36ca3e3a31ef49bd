//! Administration of topics and a look at the group, over the control-plane handle.
//!
//! Every call blocks, at most as long as the deadline given at construction, and asks nothing that the brokers do not
//! offer. Called by the starting thread and by the control thread; never by a stream thread.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::base::partition::TopicPartition;
use crate::ffi::kafka::Handle;
use crate::ffi::kafka_admin_read::{NewTopic, PerTopic};
use crate::ffi::kafka_error::{Code, KafkaError};
use crate::ffi::kafka_list::List;
use crate::wire::message::{ApiKey, Offered};

/// Why an administrative call gave no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AdminError {
    /// The brokers do not have the API.
    #[error("the brokers offer no {api}")]
    NotOffered {
        /// Kafka's name of the API.
        api: &'static str,
    },
    /// The call failed.
    #[error(transparent)]
    Kafka(#[from] KafkaError),
    /// The call failed for one topic.
    #[error("topic `{topic}`: {source}")]
    Topic {
        /// The topic.
        topic: String,
        /// What happened.
        source: KafkaError,
    },
}

/// Settings of a topic by name.
pub(crate) type Configs = BTreeMap<String, String>;

/// The administrator.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    handle: Arc<Handle>,
    offered: Offered,
    timeout: Duration,
}

impl Admin {
    /// `offered`: from [`super::offered::ask_offered`]. `timeout`: of each call.
    pub(crate) fn new(handle: Arc<Handle>, offered: Offered, timeout: Duration) -> Self {
        Self { handle, offered, timeout }
    }

    /// Whether the brokers have an API at all.
    pub(crate) fn offered(&self, api: ApiKey) -> bool {
        self.offered.has(api)
    }

    fn need(&self, api: ApiKey) -> Result<(), AdminError> {
        if self.offered(api) { Ok(()) } else { Err(AdminError::NotOffered { api: api.name() }) }
    }

    /// Partition counts in the order asked; `None` where there is no such topic.
    pub(crate) fn topics(&self, names: &[&str]) -> Result<Vec<Option<u32>>, AdminError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.handle.describe_topics(names, self.timeout)?;
        let count = |name: &&str| match found.iter().find(|topic| topic.name == *name).map(|topic| topic.partitions) {
            Some(Ok(count)) => Ok(Some(count)),
            Some(Err(Code::UNKNOWN_TOPIC_OR_PARTITION)) | None => Ok(None),
            Some(Err(code)) => Err(topic_error(name, "Metadata", code)),
        };
        names.iter().map(count).collect()
    }

    /// Creates topics; one result each.
    pub(crate) fn create(&self, topics: &[NewTopic<'_>]) -> Result<PerTopic, AdminError> {
        self.need(ApiKey::CreateTopics)?;
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.handle.create_topics(topics, self.timeout)?)
    }

    /// Settings of topics, in the order asked.
    pub(crate) fn configs(&self, names: &[&str]) -> Result<Vec<Configs>, AdminError> {
        self.need(ApiKey::DescribeConfigs)?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = self.handle.describe_configs(names, self.timeout)?;
        let configs = |name: &&str| {
            let at = found.iter().position(|configs| configs.topic == *name);
            match at.map(|at| found.swap_remove(at).entries) {
                Some(Ok(entries)) => Ok(entries.into_iter().collect()),
                Some(Err(code)) => Err(topic_error(name, "DescribeConfigs", code)),
                None => Err(topic_error(name, "DescribeConfigs", Code::UNKNOWN_TOPIC_OR_PARTITION)),
            }
        };
        names.iter().map(configs).collect()
    }

    /// Deletes the records before an offset of each partition (of consumed repartition topics).
    pub(crate) fn delete_records(&self, before: &[(&TopicPartition, i64)]) -> Result<(), AdminError> {
        self.need(ApiKey::DeleteRecords)?;
        if before.is_empty() {
            return Ok(());
        }
        let mut list = List::with_capacity(before.len())?;
        for (partition, offset) in before {
            list.push(&partition.topic, partition.partition, Some(*offset), None)?;
        }
        let answers = self.handle.delete_records(&list, self.timeout)?;
        match answers.iter().find(|element| element.code.is_error()) {
            Some(failed) => Err(topic_error(&failed.partition.topic, "DeleteRecords", failed.code)),
            None => Ok(()),
        }
    }
}

fn topic_error(topic: &str, call: &'static str, code: Code) -> AdminError {
    AdminError::Topic { topic: topic.to_owned(), source: KafkaError::refused(call, code, "") }
}

#[cfg(test)]
mod probe;
#[cfg(test)]
mod tests;
