//! Administration that only tests ask for: the cluster's topics, offsets and groups as librdkafka sees them. Compiled
//! for tests alone.
use std::ffi::CString;
use std::time::Duration;

use rd::rd_kafka_admin_op_t as Op;
use rdkafka_sys as rd;

use super::Call;
use crate::base::partition::TopicPartition;
use crate::ffi::kafka::{Handle, as_consumer, text};
use crate::ffi::kafka_admin_read::{PerTopic, TopicDescription, items, read_result};
use crate::ffi::kafka_error::{Code, KafkaError, read_error, take_error};
use crate::ffi::kafka_list::{Element, List, ListRef, c_string, read};

/// Which offset of a partition is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OffsetOf {
    /// The first that is still there.
    Earliest,
    /// The one that the next record will get (reading uncommitted), or the last stable one (reading committed).
    Latest,
    /// The first whose timestamp is at least this, in milliseconds since the Unix epoch.
    Timestamp(i64),
}

impl OffsetOf {
    fn as_spec(self) -> i64 {
        match self {
            Self::Earliest => rd::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_EARLIEST as i64,
            Self::Latest => rd::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_LATEST as i64,
            Self::Timestamp(ms) => ms.max(0),
        }
    }
}

/// A consumer group as its coordinator sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GroupDescription {
    pub(crate) state: GroupState,
    pub(crate) members: Vec<GroupMember>,
}

/// State of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GroupState {
    /// All members know their assignment.
    Stable,
    /// A generation is being formed.
    Rebalancing,
    /// No member.
    Empty,
    /// No such group.
    Dead,
    /// Something that this version does not know.
    Unknown,
}

/// One member of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GroupMember {
    pub(crate) member_id: String,
    pub(crate) client_id: String,
    pub(crate) instance_id: Option<String>,
    /// The peer's address as the broker sees it.
    pub(crate) host: String,
    pub(crate) assignment: Vec<TopicPartition>,
}

impl Handle {
    /// All topics of the cluster.
    pub(crate) fn all_topics(&self, timeout: Duration) -> Result<Vec<TopicDescription>, KafkaError> {
        // SAFETY: null asks for all topics.
        as_consumer(|| unsafe { self.metadata(std::ptr::null_mut(), timeout) })
    }

    /// Deletes topics.
    pub(crate) fn delete_topics(&self, names: &[&str], timeout: Duration) -> Result<PerTopic, KafkaError> {
        const CALL: &str = "DeleteTopics";
        as_consumer(|| {
            let names: Vec<CString> = names.iter().map(|name| c_string("topic", name)).collect::<Result<_, _>>()?;
            let call = Call::new(self, CALL, Op::RD_KAFKA_ADMIN_OP_DELETETOPICS, timeout)?;
            // SAFETY: all objects are live; the request copies the topics, which are ours to destroy. The answer lives
            // as long as the event.
            unsafe {
                let mut objects: Vec<_> =
                    names.iter().map(|name| rd::rd_kafka_DeleteTopic_new(name.as_ptr())).collect();
                let queue = call.queue.as_ptr();
                rd::rd_kafka_DeleteTopics(self.as_ptr(), objects.as_mut_ptr(), objects.len(), call.options, queue);
                rd::rd_kafka_DeleteTopic_destroy_array(objects.as_mut_ptr(), objects.len());
                let event = call.answer()?;
                let mut count = 0;
                let answer = rd::rd_kafka_event_DeleteTopics_result(event.raw);
                let results = rd::rd_kafka_DeleteTopics_result_topics(answer, &mut count);
                Ok(items(results, count).map(|result| read_result(CALL, result)).collect())
            }
        })
    }

    /// Looks up one offset of each partition. Partitions that fail carry their code.
    pub(crate) fn list_offsets(
        &self,
        partitions: &[(&TopicPartition, OffsetOf)],
        read_committed: bool,
        timeout: Duration,
    ) -> Result<Vec<Element>, KafkaError> {
        const CALL: &str = "ListOffsets";
        as_consumer(|| {
            let mut list = List::with_capacity(partitions.len())?;
            for (partition, of) in partitions {
                list.push(&partition.topic, partition.partition, Some(of.as_spec()), None)?;
            }
            let call = Call::new(self, CALL, Op::RD_KAFKA_ADMIN_OP_LISTOFFSETS, timeout)?;
            let level = if read_committed {
                rd::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED
            } else {
                rd::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED
            };
            // SAFETY: all objects are live; the request copies the list. The answer lives as long as the event.
            unsafe {
                take_error(CALL, rd::rd_kafka_AdminOptions_set_isolation_level(call.options, level))?;
                rd::rd_kafka_ListOffsets(self.as_ptr(), list.as_ptr(), call.options, call.queue.as_ptr());
                let event = call.answer()?;
                let mut count = 0;
                let answer = rd::rd_kafka_event_ListOffsets_result(event.raw);
                let found = rd::rd_kafka_ListOffsets_result_infos(answer, &mut count);
                let element = |info| read(rd::rd_kafka_ListOffsetsResultInfo_topic_partition(info), None);
                Ok(items(found, count).map(element).collect())
            }
        })
    }

    /// Describes a consumer group.
    pub(crate) fn describe_group(&self, group: &str, timeout: Duration) -> Result<GroupDescription, KafkaError> {
        const CALL: &str = "DescribeConsumerGroups";
        as_consumer(|| {
            let name = c_string("group", group)?;
            let mut names = [name.as_ptr()];
            let call = Call::new(self, CALL, Op::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS, timeout)?;
            // SAFETY: all objects are live; the request copies the names. The answer lives as long as the event.
            unsafe {
                let queue = call.queue.as_ptr();
                rd::rd_kafka_DescribeConsumerGroups(self.as_ptr(), names.as_mut_ptr(), 1, call.options, queue);
                let event = call.answer()?;
                let mut count = 0;
                let answer = rd::rd_kafka_event_DescribeConsumerGroups_result(event.raw);
                let found = rd::rd_kafka_DescribeConsumerGroups_result_groups(answer, &mut count);
                let group = items(found, count).next();
                let group = group.ok_or_else(|| KafkaError::refused(CALL, Code::UNSUPPORTED_VERSION, "no answer"))?;
                read_error(CALL, rd::rd_kafka_ConsumerGroupDescription_error(group))?;
                Ok(read_group(group))
            }
        })
    }
}

/// # Safety
/// `group` is live.
unsafe fn read_group(group: *const rd::rd_kafka_ConsumerGroupDescription_t) -> GroupDescription {
    use rd::rd_kafka_consumer_group_state_t as State;
    // SAFETY: by the contract; every member index is below the count; texts and lists are copied.
    unsafe {
        let state = match rd::rd_kafka_ConsumerGroupDescription_state(group) {
            State::RD_KAFKA_CONSUMER_GROUP_STATE_STABLE => GroupState::Stable,
            State::RD_KAFKA_CONSUMER_GROUP_STATE_PREPARING_REBALANCE
            | State::RD_KAFKA_CONSUMER_GROUP_STATE_COMPLETING_REBALANCE => GroupState::Rebalancing,
            State::RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY => GroupState::Empty,
            State::RD_KAFKA_CONSUMER_GROUP_STATE_DEAD => GroupState::Dead,
            _ => GroupState::Unknown,
        };
        let count = rd::rd_kafka_ConsumerGroupDescription_member_count(group);
        let member = |index| read_member(rd::rd_kafka_ConsumerGroupDescription_member(group, index));
        GroupDescription { state, members: (0..count).map(member).collect() }
    }
}

/// # Safety
/// `member` is live.
unsafe fn read_member(member: *const rd::rd_kafka_MemberDescription_t) -> GroupMember {
    // SAFETY: by the contract; texts and lists are copied.
    unsafe {
        let instance = rd::rd_kafka_MemberDescription_group_instance_id(member);
        let assignment = rd::rd_kafka_MemberDescription_assignment(member);
        let list = if assignment.is_null() {
            None
        } else {
            ListRef::from_ptr(rd::rd_kafka_MemberAssignment_partitions(assignment))
        };
        GroupMember {
            member_id: text(rd::rd_kafka_MemberDescription_consumer_id(member)),
            client_id: text(rd::rd_kafka_MemberDescription_client_id(member)),
            instance_id: (!instance.is_null()).then(|| text(instance)),
            host: text(rd::rd_kafka_MemberDescription_host(member)),
            assignment: list.map(ListRef::partitions).unwrap_or_default(),
        }
    }
}
