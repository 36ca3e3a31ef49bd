//! Answers of the administration, as plain values, and how they are read out of librdkafka's objects.
use rdkafka_sys as rd;

use super::kafka::text;
use super::kafka_error::{Code, KafkaError, raw};

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
