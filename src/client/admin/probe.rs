//! What only tests ask of the administration.
use super::{Admin, AdminError, topic_error};
use crate::base::partition::TopicPartition;
use crate::ffi::kafka_admin::probe::{GroupDescription, OffsetOf};
use crate::ffi::kafka_admin_read::PerTopic;
use crate::ffi::kafka_error::Code;
use crate::wire::message::ApiKey;

impl Admin {
    /// Names and partition counts of all topics of the cluster.
    pub(crate) fn all_topics(&self) -> Result<Vec<(String, u32)>, AdminError> {
        let topics = self.handle.all_topics(self.timeout)?;
        Ok(topics.into_iter().filter_map(|topic| Some((topic.name, topic.partitions.ok()?))).collect())
    }

    /// Deletes topics; one result each.
    pub(crate) fn delete(&self, names: &[&str]) -> Result<PerTopic, AdminError> {
        self.need(ApiKey::DeleteTopics)?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.handle.delete_topics(names, self.timeout)?)
    }

    /// One offset of each partition, in the order asked; `None` when no record has the timestamp asked for.
    pub(crate) fn list_offsets(
        &self,
        partitions: &[(&TopicPartition, OffsetOf)],
        read_committed: bool,
    ) -> Result<Vec<Option<i64>>, AdminError> {
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.handle.list_offsets(partitions, read_committed, self.timeout)?;
        let offset = |(partition, _): &(&TopicPartition, OffsetOf)| {
            let element = found.iter().find(|element| element.partition == **partition);
            let element = element.ok_or_else(|| topic_error(&partition.topic, "ListOffsets", Code::NO_OFFSET))?;
            match element.code {
                Code::NONE => Ok((element.offset >= 0).then_some(element.offset)),
                code => Err(topic_error(&partition.topic, "ListOffsets", code)),
            }
        };
        partitions.iter().map(offset).collect()
    }

    /// The group as its coordinator sees it.
    pub(crate) fn group(&self, group: &str) -> Result<GroupDescription, AdminError> {
        self.need(ApiKey::DescribeGroups)?;
        Ok(self.handle.describe_group(group, self.timeout)?)
    }
}
