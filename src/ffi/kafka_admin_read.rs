//! Answers of the administration, as plain values, and how they are read out of librdkafka's objects.
use rdkafka_sys as rd;

use super::kafka::text;
use super::kafka_error::{Code, KafkaError, raw};
use super::kafka_list::ListRef;
use crate::base::partition::TopicPartition;

/// A topic as the brokers describe it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TopicDescription {
    pub(crate) name: String,
    /// `Ok(partition count)`, or why it cannot be described (`UNKNOWN_TOPIC_OR_PARTITION`).
    pub(crate) partitions: Result<u32, Code>,
}

/// A topic to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NewTopic<'a> {
    pub(crate) name: &'a str,
    pub(crate) partitions: u32,
    /// -1: the brokers' default.
    pub(crate) replication: i32,
    pub(crate) configs: &'a [(String, String)],
}

/// Settings of one topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TopicConfigs {
    pub(crate) topic: String,
    /// Name and value of each setting that has one.
    pub(crate) entries: Result<Vec<(String, String)>, Code>,
}

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

/// Which answers a request gets per name: the name and its code, with the broker's words.
pub(crate) type PerTopic = Vec<(String, Result<(), KafkaError>)>;

/// # Safety
/// `array` points to `count` live elements, or `count` is 0, for as long as the iterator is used.
pub(super) unsafe fn items<T>(array: *mut *const T, count: usize) -> impl Iterator<Item = *const T> {
    let count = if array.is_null() { 0 } else { count };
    // SAFETY: by the contract of this function.
    (0..count).map(move |index| unsafe { *array.add(index) })
}

/// # Safety
/// `result` is live.
pub(super) unsafe fn read_result(
    call: &'static str,
    result: *const rd::rd_kafka_topic_result_t,
) -> (String, Result<(), KafkaError>) {
    // SAFETY: by the contract; texts are copied.
    unsafe {
        let name = text(rd::rd_kafka_topic_result_name(result));
        let code = Code(raw::rd_kafka_topic_result_error(result.cast()));
        let detail = text(rd::rd_kafka_topic_result_error_string(result));
        (name, if code.is_error() { Err(KafkaError::refused(call, code, &detail)) } else { Ok(()) })
    }
}

/// # Safety
/// `resource` is live.
pub(super) unsafe fn read_configs(resource: *const rd::rd_kafka_ConfigResource_t) -> TopicConfigs {
    // SAFETY: by the contract; texts are copied.
    unsafe {
        let topic = text(rd::rd_kafka_ConfigResource_name(resource));
        let code = Code(raw::rd_kafka_ConfigResource_error(resource.cast()));
        if code.is_error() {
            return TopicConfigs { topic, entries: Err(code) };
        }
        let mut count = 0;
        let entries = rd::rd_kafka_ConfigResource_configs(resource, &mut count);
        let pair = |entry| {
            let value = rd::rd_kafka_ConfigEntry_value(entry);
            (!value.is_null()).then(|| (text(rd::rd_kafka_ConfigEntry_name(entry)), text(value)))
        };
        TopicConfigs { topic, entries: Ok(items(entries, count).filter_map(pair).collect()) }
    }
}

/// # Safety
/// `group` is live.
pub(super) unsafe fn read_group(group: *const rd::rd_kafka_ConsumerGroupDescription_t) -> GroupDescription {
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
