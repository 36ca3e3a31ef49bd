//! Errors of the control plane: Kafka's and librdkafka's codes as numbers, and what a call of ours can answer.
//!
//! librdkafka's header declares its codes as an enum, but passes on whatever number a broker sends. A number that the
//! enum does not list must never become a Rust enum, so the functions that return one are declared here again with an
//! integer, and the rest of the rooms see [`Code`].
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;

use rdkafka_sys as rd;

/// An error code of Kafka (-1, 1 and up) or of librdkafka itself (below -100).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub(crate) i32);

impl Code {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const UNKNOWN_TOPIC_OR_PARTITION: Self = Self(3);
    pub(crate) const LEADER_NOT_AVAILABLE: Self = Self(5);
    pub(crate) const REQUEST_TIMED_OUT: Self = Self(7);
    pub(crate) const COORDINATOR_LOAD_IN_PROGRESS: Self = Self(14);
    pub(crate) const COORDINATOR_NOT_AVAILABLE: Self = Self(15);
    pub(crate) const NOT_COORDINATOR: Self = Self(16);
    pub(crate) const ILLEGAL_GENERATION: Self = Self(22);
    pub(crate) const UNKNOWN_MEMBER_ID: Self = Self(25);
    pub(crate) const REBALANCE_IN_PROGRESS: Self = Self(27);
    pub(crate) const UNSUPPORTED_VERSION: Self = Self(35);
    pub(crate) const TOPIC_ALREADY_EXISTS: Self = Self(36);
    pub(crate) const INVALID_REPLICATION_FACTOR: Self = Self(38);
    pub(crate) const NOT_CONTROLLER: Self = Self(41);
    pub(crate) const FENCED_INSTANCE_ID: Self = Self(82);
    pub(crate) const UNSTABLE_OFFSET_COMMIT: Self = Self(88);
    /// No answer within the time given.
    pub(crate) const TIMED_OUT: Self = Self(-185);
    pub(crate) const TRANSPORT: Self = Self(-195);
    pub(crate) const ALL_BROKERS_DOWN: Self = Self(-187);
    pub(crate) const RESOLVE: Self = Self(-193);
    pub(crate) const WAIT_COORD: Self = Self(-180);
    #[cfg(test)]
    pub(crate) const NO_OFFSET: Self = Self(-168);

    /// Is this an error?
    pub(crate) fn is_error(self) -> bool {
        self != Self::NONE
    }

    /// `Err` for anything but [`Self::NONE`].
    pub(crate) fn check(self, call: &'static str) -> Result<(), KafkaError> {
        if self.is_error() { Err(KafkaError::refused(call, self, "")) } else { Ok(()) }
    }

    /// The number: Kafka's protocol's, or librdkafka's own below -100.
    pub fn number(self) -> i32 {
        self.0
    }

    /// Kafka's name of the code, such as `REBALANCE_IN_PROGRESS`; librdkafka's own begin with `_`.
    pub fn name(self) -> &'static str {
        // SAFETY: any number is accepted; the answer is a constant of the library or one of its ring of static buffers
        // ("Err-%i?" for unknown numbers), never null, never freed.
        unsafe { static_text(raw::rd_kafka_err2name(self.0)) }
    }

    /// Kafka's text for the code.
    pub fn text(self) -> &'static str {
        // SAFETY: as in `name`.
        unsafe { static_text(raw::rd_kafka_err2str(self.0)) }
    }
}

/// # Safety
/// `text` is null or a NUL-terminated string that lives as long as the process.
unsafe fn static_text(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "?";
    }
    // SAFETY: by the contract of this function.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("?")
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text(), self.name())
    }
}

/// What a call to the control plane can answer instead of a result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KafkaError {
    /// librdkafka does not know a setting or refuses its value.
    #[error("setting `{name}` is refused: {reason}")]
    Setting {
        /// Name of the setting.
        name: String,
        /// librdkafka's words.
        reason: String,
    },
    /// The plan owns the setting.
    #[error("setting `{name}` is owned by the memory plan's row `{row}`: remove it and give the row another share")]
    OwnedByPlan {
        /// Name of the setting.
        name: String,
        /// Row of the plan that decides it.
        row: String,
    },
    /// The engine cannot work with another value.
    #[error("setting `{name}` is fixed by the engine: {why}; remove it")]
    Fixed {
        /// Name of the setting.
        name: String,
        /// Why it is fixed.
        why: &'static str,
    },
    /// librdkafka could not make a handle.
    #[error("the kafka client cannot start: {reason}")]
    Start {
        /// librdkafka's words.
        reason: String,
    },
    /// A request was answered with an error.
    #[error("{call} failed: {code}{}{detail}", if detail.is_empty() { "" } else { ": " })]
    Refused {
        /// The request, in Kafka's words.
        call: &'static str,
        /// Kafka's code.
        code: Code,
        /// The broker's or librdkafka's words, if any.
        detail: String,
    },
    /// No answer in time.
    #[error("{call} was not answered within {waited_ms} ms: check bootstrap.servers and the brokers")]
    TimedOut {
        /// The request, in Kafka's words.
        call: &'static str,
        /// How long was waited, in milliseconds.
        waited_ms: u64,
    },
    /// A name holds a NUL byte.
    #[error("{what} holds a NUL byte: {text:?}")]
    Nul {
        /// What it names.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// librdkafka could not allocate.
    #[error("librdkafka is out of memory in {call}")]
    OutOfMemory {
        /// The function.
        call: &'static str,
    },
}

impl KafkaError {
    pub(crate) fn refused(call: &'static str, code: Code, detail: &str) -> Self {
        Self::Refused { call, code, detail: detail.to_owned() }
    }

    /// The code of a refusal, or that of a missing answer.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::TimedOut { .. } => Some(Code::TIMED_OUT),
            _ => None,
        }
    }

    /// Asking again later may succeed without anyone changing anything.
    pub fn is_retriable(&self) -> bool {
        self.code().is_some_and(|code| {
            [
                Code::TIMED_OUT,
                Code::TRANSPORT,
                Code::ALL_BROKERS_DOWN,
                Code::RESOLVE,
                Code::WAIT_COORD,
                Code::REQUEST_TIMED_OUT,
                Code::COORDINATOR_LOAD_IN_PROGRESS,
                Code::COORDINATOR_NOT_AVAILABLE,
                Code::NOT_COORDINATOR,
                Code::NOT_CONTROLLER,
                Code::UNSTABLE_OFFSET_COMMIT,
            ]
            .contains(&code)
        })
    }
}

/// Owns and reads an error object of librdkafka's.
///
/// # Safety
/// `error` is null or an error object that the caller owns; it is destroyed here.
pub(crate) unsafe fn take_error(call: &'static str, error: *mut rd::rd_kafka_error_t) -> Result<(), KafkaError> {
    // SAFETY: by the contract of this function.
    let result = unsafe { read_error(call, error) };
    if !error.is_null() {
        // SAFETY: the caller gave up ownership, and nothing borrowed from it is left.
        unsafe { rd::rd_kafka_error_destroy(error) };
    }
    result
}

/// Reads an error object of librdkafka's.
///
/// # Safety
/// `error` is null or a live error object.
pub(crate) unsafe fn read_error(call: &'static str, error: *const rd::rd_kafka_error_t) -> Result<(), KafkaError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: `error` is live; its text lives as long as it, and is copied.
    unsafe {
        let code = Code(raw::rd_kafka_error_code(error.cast()));
        let detail = super::kafka::text(rd::rd_kafka_error_string(error));
        if code.is_error() { Err(KafkaError::refused(call, code, &detail)) } else { Ok(()) }
    }
}

/// Functions of librdkafka whose enum results are taken as integers (see the module's header).
pub(crate) mod raw {
    use super::{c_char, c_int, c_void};

    unsafe extern "C" {
        pub(crate) fn rd_kafka_err2name(code: c_int) -> *const c_char;
        pub(crate) fn rd_kafka_err2str(code: c_int) -> *const c_char;
        pub(crate) fn rd_kafka_error_code(error: *const c_void) -> c_int;
        pub(crate) fn rd_kafka_event_error(event: *mut c_void) -> c_int;
        pub(crate) fn rd_kafka_topic_result_error(result: *const c_void) -> c_int;
        pub(crate) fn rd_kafka_ConfigResource_error(resource: *const c_void) -> c_int;
        pub(crate) fn rd_kafka_committed(rk: *mut c_void, list: *mut c_void, timeout_ms: c_int) -> c_int;
        #[cfg(test)]
        pub(crate) fn rd_kafka_fatal_error(rk: *mut c_void, text: *mut c_char, size: usize) -> c_int;
        pub(crate) fn rd_kafka_metadata(
            rk: *mut c_void,
            all_topics: c_int,
            only: *mut c_void,
            metadata: *mut *const c_void,
            timeout_ms: c_int,
        ) -> c_int;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_kafkas_names_and_unknown_numbers_are_harmless() {
        let named = [
            (Code::UNKNOWN_TOPIC_OR_PARTITION, "UNKNOWN_TOPIC_OR_PART"),
            (Code::ILLEGAL_GENERATION, "ILLEGAL_GENERATION"),
            (Code::UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID"),
            (Code::REBALANCE_IN_PROGRESS, "REBALANCE_IN_PROGRESS"),
            (Code::TOPIC_ALREADY_EXISTS, "TOPIC_ALREADY_EXISTS"),
            (Code::INVALID_REPLICATION_FACTOR, "INVALID_REPLICATION_FACTOR"),
            (Code::FENCED_INSTANCE_ID, "FENCED_INSTANCE_ID"),
            (Code::UNSTABLE_OFFSET_COMMIT, "UNSTABLE_OFFSET_COMMIT"),
            (Code::TIMED_OUT, "_TIMED_OUT"),
            (Code::TRANSPORT, "_TRANSPORT"),
            (Code::ALL_BROKERS_DOWN, "_ALL_BROKERS_DOWN"),
            (Code::RESOLVE, "_RESOLVE"),
            (Code::WAIT_COORD, "_WAIT_COORD"),
            (Code::NO_OFFSET, "_NO_OFFSET"),
        ];
        for (code, name) in named {
            assert_eq!(code.name(), name);
        }
        assert!(Code(30_000).name().contains("30000"), "{}", Code(30_000).name());
    }

    #[test]
    fn an_error_says_what_failed_and_with_which_code() {
        let error = KafkaError::refused("CreateTopics", Code::TOPIC_ALREADY_EXISTS, "Topic 'a' already exists.");
        let expected =
            "CreateTopics failed: Broker: Topic already exists (TOPIC_ALREADY_EXISTS): Topic 'a' already exists.";
        assert_eq!(error.to_string(), expected);
        assert!(!error.is_retriable());
        assert!(KafkaError::TimedOut { call: "DescribeTopics", waited_ms: 10 }.is_retriable());
    }
}
