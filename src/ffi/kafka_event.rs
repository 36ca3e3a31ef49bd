//! Events of the consumer queue, read into plain values.
use rdkafka_sys as rd;

use super::kafka::text;
use super::kafka_error::{Code, raw};
use super::kafka_list::ListRef;
use crate::base::partition::TopicPartition;

/// What librdkafka has to say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A generation began; the list is what the assignor offers this member. Answered by `assign_nothing`.
    Assign(Vec<TopicPartition>),
    /// The generation ends for this member. Answered by `unassign`.
    Revoke {
        /// What was offered.
        partitions: Vec<TopicPartition>,
        /// The group has already gone on without this member: nothing may be committed.
        lost: bool,
    },
    /// A commit was answered.
    Committed {
        /// As given to the commit.
        ticket: u64,
        /// Kafka's answer: of the commit, or of the last partition that failed.
        code: Code,
    },
    /// Something failed; librdkafka goes on trying unless it is fatal.
    Error {
        /// What.
        code: Code,
        /// librdkafka's words.
        text: String,
        /// The handle cannot go on.
        fatal: bool,
    },
    /// An event that was not asked for.
    Other,
}

impl Event {
    /// # Safety
    /// `rk` is a live handle, `event` a live event of it.
    pub(super) unsafe fn read(rk: *mut rd::rd_kafka_t, event: *mut rd::rd_kafka_event_t) -> Self {
        // SAFETY: both are live by the contract; what is read from the event is copied.
        unsafe {
            match rd::rd_kafka_event_type(event) {
                rd::RD_KAFKA_EVENT_REBALANCE => {
                    let list = ListRef::from_ptr(rd::rd_kafka_event_topic_partition_list(event));
                    let partitions = list.map(ListRef::partitions).unwrap_or_default();
                    let assign = rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS as i32;
                    if raw::rd_kafka_event_error(event.cast()) == assign {
                        Self::Assign(partitions)
                    } else {
                        Self::Revoke { partitions, lost: rd::rd_kafka_assignment_lost(rk) != 0 }
                    }
                }
                rd::RD_KAFKA_EVENT_OFFSET_COMMIT => Self::Committed {
                    ticket: rd::rd_kafka_event_opaque(event).addr() as u64,
                    code: Code(raw::rd_kafka_event_error(event.cast())),
                },
                rd::RD_KAFKA_EVENT_ERROR => Self::Error {
                    code: Code(raw::rd_kafka_event_error(event.cast())),
                    text: text(rd::rd_kafka_event_error_string(event)),
                    fatal: rd::rd_kafka_event_error_is_fatal(event) != 0,
                },
                _ => Self::Other,
            }
        }
    }
}
