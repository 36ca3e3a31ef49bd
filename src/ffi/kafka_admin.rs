//! Administration over the control-plane handle: each call sends one request, waits for its answer at most so long,
//! and reads it into plain values (`kafka_admin_read`). Used by `client::admin`, which adds what the engine means by
//! them.
use std::ffi::{CString, c_char};
use std::time::{Duration, Instant};

use rd::rd_kafka_admin_op_t as Op;
use rdkafka_sys as rd;

use super::kafka::{Handle, Queue, as_consumer, buffer_text, millis, text, timeout_ms};
use super::kafka_admin_read::{NewTopic, PerTopic, TopicConfigs, TopicDescription, items, read_configs, read_result};
use super::kafka_error::{Code, KafkaError, raw};
use super::kafka_list::{Element, List, ListRef, c_string};

impl Handle {
    /// Describes topics by name, each asked for by itself: DescribeTopics would ask the controller, which the mock
    /// cluster does not have.
    pub(crate) fn describe_topics(
        &self,
        names: &[&str],
        timeout: Duration,
    ) -> Result<Vec<TopicDescription>, KafkaError> {
        let deadline = Instant::now() + timeout;
        let describe = |name: &&str| {
            let name = c_string("topic", name)?;
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            // SAFETY: handle and text are live; the topic object is ours, used for this call alone and destroyed
            // after it; null (an invalid name) is never dereferenced.
            unsafe {
                let topic = rd::rd_kafka_topic_new(self.as_ptr(), name.as_ptr(), std::ptr::null_mut());
                if topic.is_null() {
                    let name = name.to_string_lossy().into_owned();
                    return Ok(TopicDescription { name, partitions: Err(Code::UNKNOWN_TOPIC_OR_PARTITION) });
                }
                let found = self.metadata(topic, left);
                rd::rd_kafka_topic_destroy(topic);
                let name = name.to_string_lossy();
                let missing = Err(Code::UNKNOWN_TOPIC_OR_PARTITION);
                let found = found?.into_iter().find(|topic| topic.name == name);
                Ok(found.unwrap_or_else(|| TopicDescription { name: name.into_owned(), partitions: missing }))
            }
        };
        as_consumer(|| names.iter().map(describe).collect())
    }

    /// # Safety
    /// `only` is null, for all topics, or a live topic object of this handle.
    unsafe fn metadata(
        &self,
        only: *mut rd::rd_kafka_topic_t,
        timeout: Duration,
    ) -> Result<Vec<TopicDescription>, KafkaError> {
        const CALL: &str = "Metadata";
        let mut metadata: *const rd::rd_kafka_metadata = std::ptr::null();
        // SAFETY: the handle is live; a successful call makes an object that is ours to destroy; its topics are
        // `topic_cnt` initialised elements with NUL-terminated names. Codes are read as integers.
        unsafe {
            let out = (&raw mut metadata).cast();
            let all = i32::from(only.is_null());
            match Code(raw::rd_kafka_metadata(self.as_ptr().cast(), all, only.cast(), out, millis(timeout))) {
                Code::TIMED_OUT | Code::TRANSPORT => {
                    return Err(KafkaError::TimedOut { call: CALL, waited_ms: timeout_ms(timeout) });
                }
                code => code.check(CALL)?,
            }
            let count = usize::try_from((*metadata).topic_cnt).unwrap_or(0);
            let topics = (0..count).map(|index| {
                let topic = (*metadata).topics.add(index);
                let code = Code((&raw const (*topic).err).cast::<i32>().read());
                let count = u32::try_from((*topic).partition_cnt).unwrap_or(0);
                let partitions = if code.is_error() { Err(code) } else { Ok(count) };
                TopicDescription { name: text((*topic).topic), partitions }
            });
            let topics = topics.collect();
            rd::rd_kafka_metadata_destroy(metadata);
            Ok(topics)
        }
    }

    /// Makes topics; the answer comes when they exist.
    pub(crate) fn create_topics(&self, topics: &[NewTopic<'_>], timeout: Duration) -> Result<PerTopic, KafkaError> {
        const CALL: &str = "CreateTopics";
        as_consumer(|| {
            let made: Vec<NewTopicObject> = topics.iter().map(NewTopicObject::new).collect::<Result<_, _>>()?;
            let mut pointers: Vec<_> = made.iter().map(|topic| topic.0).collect();
            let call = Call::new(self, CALL, Op::RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout)?;
            // SAFETY: all objects are live; the request copies the topics. The answer lives as long as the event.
            unsafe {
                let queue = call.queue.as_ptr();
                rd::rd_kafka_CreateTopics(self.as_ptr(), pointers.as_mut_ptr(), pointers.len(), call.options, queue);
                let event = call.answer()?;
                let mut count = 0;
                let answer = rd::rd_kafka_event_CreateTopics_result(event.raw);
                let results = rd::rd_kafka_CreateTopics_result_topics(answer, &mut count);
                Ok(items(results, count).map(|result| read_result(CALL, result)).collect())
            }
        })
    }

    /// Reads topics' settings.
    pub(crate) fn describe_configs(&self, topics: &[&str], timeout: Duration) -> Result<Vec<TopicConfigs>, KafkaError> {
        const CALL: &str = "DescribeConfigs";
        as_consumer(|| {
            let names: Vec<CString> = topics.iter().map(|name| c_string("topic", name)).collect::<Result<_, _>>()?;
            let call = Call::new(self, CALL, Op::RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout)?;
            // SAFETY: all objects are live; the request copies the resources, which are ours to destroy. The answer
            // lives as long as the event.
            unsafe {
                let kind = rd::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC;
                let resource = |name: &CString| rd::rd_kafka_ConfigResource_new(kind, name.as_ptr());
                let mut objects: Vec<_> = names.iter().map(resource).collect();
                let queue = call.queue.as_ptr();
                rd::rd_kafka_DescribeConfigs(self.as_ptr(), objects.as_mut_ptr(), objects.len(), call.options, queue);
                rd::rd_kafka_ConfigResource_destroy_array(objects.as_mut_ptr(), objects.len());
                let event = call.answer()?;
                let mut count = 0;
                let answer = rd::rd_kafka_event_DescribeConfigs_result(event.raw);
                let found = rd::rd_kafka_DescribeConfigs_result_resources(answer, &mut count);
                Ok(items(found, count).map(|resource| read_configs(resource)).collect())
            }
        })
    }

    /// Deletes the records before an offset of each partition.
    pub(crate) fn delete_records(&self, before: &List, timeout: Duration) -> Result<Vec<Element>, KafkaError> {
        const CALL: &str = "DeleteRecords";
        as_consumer(|| {
            let call = Call::new(self, CALL, Op::RD_KAFKA_ADMIN_OP_DELETERECORDS, timeout)?;
            // SAFETY: all objects are live; the request copies its object, which is ours to destroy. The answer lives
            // as long as the event.
            unsafe {
                let object = rd::rd_kafka_DeleteRecords_new(before.as_ptr());
                let mut objects = [object];
                rd::rd_kafka_DeleteRecords(self.as_ptr(), objects.as_mut_ptr(), 1, call.options, call.queue.as_ptr());
                rd::rd_kafka_DeleteRecords_destroy(object);
                let event = call.answer()?;
                let answer = rd::rd_kafka_event_DeleteRecords_result(event.raw);
                let list = ListRef::from_ptr(rd::rd_kafka_DeleteRecords_result_offsets(answer));
                Ok(list.map(ListRef::elements).unwrap_or_default())
            }
        })
    }
}

/// One request under way: its options and the queue for its answer.
struct Call<'h> {
    queue: Queue<'h>,
    options: *mut rd::rd_kafka_AdminOptions_t,
    name: &'static str,
    timeout: Duration,
}

impl<'h> Call<'h> {
    fn new(handle: &'h Handle, name: &'static str, op: Op, timeout: Duration) -> Result<Self, KafkaError> {
        let queue = Queue::new(handle)?;
        let mut reason = [0 as c_char; 256];
        // SAFETY: the handle is live; the options are checked before use and freed by `Drop`.
        unsafe {
            let options = rd::rd_kafka_AdminOptions_new(handle.as_ptr(), op);
            if options.is_null() {
                return Err(KafkaError::OutOfMemory { call: "AdminOptions_new" });
            }
            let call = Self { queue, options, name, timeout };
            let ms = millis(timeout).clamp(1, 3_600_000);
            let (text, size) = (reason.as_mut_ptr(), reason.len());
            let mut code = rd::rd_kafka_AdminOptions_set_request_timeout(options, ms, text, size);
            let waits = matches!(op, Op::RD_KAFKA_ADMIN_OP_CREATETOPICS | Op::RD_KAFKA_ADMIN_OP_DELETETOPICS);
            if waits && code as i32 == 0 {
                code = rd::rd_kafka_AdminOptions_set_operation_timeout(options, ms, text, size);
            }
            if code as i32 != 0 {
                return Err(KafkaError::refused(name, Code(code as i32), &buffer_text(&reason)));
            }
            Ok(call)
        }
    }

    /// Waits for the answer; an answer that is an error as a whole becomes one.
    fn answer(&self) -> Result<Answer, KafkaError> {
        // librdkafka answers by itself when the time is over; the second more lets that answer arrive.
        let wait = self.timeout.saturating_add(Duration::from_secs(1));
        let timed_out = || KafkaError::TimedOut { call: self.name, waited_ms: timeout_ms(self.timeout) };
        // SAFETY: the queue is live; an event that is not null is ours, owned by `Answer` from here on.
        unsafe {
            let raw = rd::rd_kafka_queue_poll(self.queue.as_ptr(), millis(wait));
            if raw.is_null() {
                return Err(timed_out());
            }
            let answer = Answer { raw };
            match Code(raw::rd_kafka_event_error(raw.cast())) {
                Code::NONE => Ok(answer),
                Code::TIMED_OUT => Err(timed_out()),
                code => Err(KafkaError::refused(self.name, code, &text(rd::rd_kafka_event_error_string(raw)))),
            }
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        // SAFETY: the options are ours and live.
        unsafe { rd::rd_kafka_AdminOptions_destroy(self.options) };
    }
}

/// An answer event that is ours.
struct Answer {
    raw: *mut rd::rd_kafka_event_t,
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: the event is ours and live, and what was read from it was copied.
        unsafe { rd::rd_kafka_event_destroy(self.raw) };
    }
}

struct NewTopicObject(*mut rd::rd_kafka_NewTopic_t);

impl NewTopicObject {
    fn new(topic: &NewTopic<'_>) -> Result<Self, KafkaError> {
        let name = c_string("topic", topic.name)?;
        let partitions = i32::try_from(topic.partitions).unwrap_or(i32::MAX);
        let mut reason = [0 as c_char; 256];
        // SAFETY: the texts are live and copied; `reason` has its length; the object is checked before use.
        unsafe {
            let (text, size) = (reason.as_mut_ptr(), reason.len());
            let object = rd::rd_kafka_NewTopic_new(name.as_ptr(), partitions, topic.replication, text, size);
            if object.is_null() {
                let name = topic.name.to_owned();
                return Err(KafkaError::Setting { name, reason: buffer_text(&reason) });
            }
            let object = Self(object);
            for (name, value) in topic.configs {
                let (c_name, c_value) = (c_string("a setting's name", name)?, c_string("a setting", value)?);
                let code = rd::rd_kafka_NewTopic_set_config(object.0, c_name.as_ptr(), c_value.as_ptr());
                Code(code as i32).check("NewTopic_set_config")?;
            }
            Ok(object)
        }
    }
}

impl Drop for NewTopicObject {
    fn drop(&mut self) {
        // SAFETY: the object is ours and live.
        unsafe { rd::rd_kafka_NewTopic_destroy(self.0) };
    }
}

#[cfg(test)]
pub(crate) mod probe;
