//! The settings of the control-plane handle: what the engine fixes, what the plan owns, what the user gives.
//!
//! The handle never fetches a record, so everything that would hold records is at its smallest value.
use std::ffi::c_char;

use rdkafka_sys as rd;

use super::kafka_error::KafkaError;
use super::kafka_list::c_string;

/// What the caller decides about the handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandleSettings<'a> {
    /// The user's settings in librdkafka's names; a later one wins.
    pub(crate) user: &'a [(String, String)],
    /// Settings that the plan owns, and the row that decides each.
    pub(crate) owned: &'a [(&'a str, &'a str)],
    /// `group.id`: the application's id.
    pub(crate) group_id: &'a str,
    /// `client.id`: carries what the other members must know of this one.
    pub(crate) client_id: &'a str,
    /// `group.instance.id`, for a static member.
    pub(crate) instance_id: Option<&'a str>,
    /// Committed offsets are read only once stable (exactly-once).
    pub(crate) read_committed: bool,
}

struct Fixed {
    name: &'static str,
    value: &'static str,
    why: &'static str,
}

const fn fixed(name: &'static str, value: &'static str, why: &'static str) -> Fixed {
    Fixed { name, value, why }
}

const COMMITS: &str = "the engine commits offsets itself, after everything they stand for is written";
const NO_RECORDS: &str = "records are read by the engine's own data path, within the memory plan";
const SET_BY_APP: &str = "it is decided by the application's builder";

/// Settings that the engine cannot leave to anyone, and their values. Order matters to librdkafka in no case.
const FIXED: &[Fixed] = &[
    fixed("enable.auto.commit", "false", COMMITS),
    fixed("enable.auto.offset.store", "false", COMMITS),
    fixed("group.protocol", "classic", "only the classic protocol gives all members one generation"),
    fixed("partition.assignment.strategy", "range", "tasks need the partitions of their topics side by side"),
    fixed("enable.partition.eof", "false", NO_RECORDS),
    fixed("allow.auto.create.topics", "false", "topics are created explicitly or found missing"),
    fixed("enable.metrics.push", "false", "it costs half a megabyte a client"),
    fixed("statistics.interval.ms", "0", "the engine reports its own counters"),
    fixed("log.queue", "false", "the log goes nowhere"),
    fixed("queued.min.messages", "1", NO_RECORDS),
    fixed("queued.max.messages.kbytes", "1", NO_RECORDS),
    fixed("fetch.message.max.bytes", "1000", NO_RECORDS),
    fixed("message.max.bytes", "1000", NO_RECORDS),
    fixed("fetch.max.bytes", "1000", NO_RECORDS),
    fixed("receive.message.max.bytes", "8388608", NO_RECORDS),
];

/// Settings that come from somewhere else than the user's list, or are other names of fixed ones.
const REFUSED: &[(&str, &str)] = &[
    ("group.id", SET_BY_APP),
    ("client.id", SET_BY_APP),
    ("group.instance.id", SET_BY_APP),
    ("isolation.level", "it follows from the processing guarantee"),
    ("max.partition.fetch.bytes", NO_RECORDS),
    ("test.mock.num.brokers", "start a mock cluster of your own and give its bootstrap.servers"),
];

/// Makes librdkafka's configuration; the caller owns it.
pub(crate) fn build(settings: &HandleSettings<'_>) -> Result<Conf, KafkaError> {
    check(settings)?;
    let conf = Conf::new()?;
    for (name, value) in settings.user {
        conf.set(name, value)?;
    }
    for setting in FIXED {
        conf.set(setting.name, setting.value)?;
    }
    conf.set("group.id", settings.group_id)?;
    conf.set("client.id", settings.client_id)?;
    if let Some(instance) = settings.instance_id {
        conf.set("group.instance.id", instance)?;
    }
    conf.set("isolation.level", if settings.read_committed { "read_committed" } else { "read_uncommitted" })?;
    Ok(conf)
}

fn check(settings: &HandleSettings<'_>) -> Result<(), KafkaError> {
    for (name, value) in settings.user {
        if let Some((_, row)) = settings.owned.iter().find(|(owned, _)| owned == name) {
            return Err(KafkaError::OwnedByPlan { name: name.clone(), row: (*row).to_owned() });
        }
        let fixed = FIXED.iter().find(|fixed| fixed.name == name && fixed.value != value).map(|fixed| fixed.why);
        let refused = REFUSED.iter().find(|(refused, _)| refused == name).map(|(_, why)| *why);
        if let Some(why) = fixed.or(refused) {
            return Err(KafkaError::Fixed { name: name.clone(), why });
        }
    }
    Ok(())
}

/// librdkafka's configuration object, ours until a handle takes it.
#[derive(Debug)]
pub(crate) struct Conf {
    raw: *mut rd::rd_kafka_conf_t,
}

impl Conf {
    pub(crate) fn new() -> Result<Self, KafkaError> {
        // SAFETY: no preconditions.
        let raw = unsafe { rd::rd_kafka_conf_new() };
        if raw.is_null() { Err(KafkaError::OutOfMemory { call: "conf_new" }) } else { Ok(Self { raw }) }
    }

    pub(crate) fn set(&self, name: &str, value: &str) -> Result<(), KafkaError> {
        let mut reason = [0 as c_char; 512];
        let (c_name, c_value) = (c_string("a setting's name", name)?, c_string("a setting", value)?);
        // SAFETY: the object is live and used by this thread alone; the texts are copied; `reason` has its length.
        let result = unsafe {
            rd::rd_kafka_conf_set(self.raw, c_name.as_ptr(), c_value.as_ptr(), reason.as_mut_ptr(), reason.len())
        };
        if result == rd::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK {
            return Ok(());
        }
        Err(KafkaError::Setting { name: name.to_owned(), reason: super::kafka::buffer_text(&reason) })
    }

    pub(crate) fn as_ptr(&self) -> *mut rd::rd_kafka_conf_t {
        self.raw
    }

    /// Gives the object away: to a handle, or to nobody (see `Handle::start`).
    pub(crate) fn release(self) {
        let _ = std::mem::ManuallyDrop::new(self);
    }
}

impl Drop for Conf {
    fn drop(&mut self) {
        // SAFETY: the object is ours; `release` skips this.
        unsafe { rd::rd_kafka_conf_destroy(self.raw) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings<'a>(user: &'a [(String, String)], owned: &'a [(&'a str, &'a str)]) -> HandleSettings<'a> {
        HandleSettings { user, owned, group_id: "g", client_id: "c", instance_id: None, read_committed: false }
    }

    fn user(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), value.to_owned())]
    }

    #[test]
    fn the_users_settings_are_passed_on_in_librdkafkas_names() {
        assert!(build(&settings(&user("session.timeout.ms", "6000"), &[])).is_ok());
        assert!(
            build(&settings(&user("enable.auto.commit", "false"), &[])).is_ok(),
            "the fixed value itself may be given"
        );
        let error = build(&settings(&user("session.timeout.msec", "6000"), &[])).unwrap_err();
        let expected =
            "setting `session.timeout.msec` is refused: No such configuration property: \"session.timeout.msec\"";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_setting_of_the_plan_is_refused_with_its_row() {
        let error = build(&settings(&user("fetch.max.bytes", "1"), &[("fetch.max.bytes", "frames")])).unwrap_err();
        assert_eq!(error, KafkaError::OwnedByPlan { name: "fetch.max.bytes".to_owned(), row: "frames".to_owned() });
    }

    #[test]
    fn a_setting_that_the_engine_fixes_is_refused_with_the_reason() {
        for (name, value) in [("enable.auto.commit", "true"), ("group.protocol", "consumer"), ("group.id", "x")] {
            let error = build(&settings(&user(name, value), &[])).unwrap_err();
            assert!(matches!(&error, KafkaError::Fixed { name: found, .. } if found == name), "{error}");
        }
    }
}
