//! How two streams are joined: the window, and what is named and kept.
use std::time::Duration;

/// How far apart in time two records may be that are joined: the right one from `before` earlier to `after` later than
/// the left one, both ends included. The time that a record may be late is the grace period.
///
/// # Null
/// Windows do not look at keys or values.
///
/// # Late
/// A record is kept for partners until the stream's time is `before + after + grace` behind it.
///
/// # Stores
/// The retention of both windows is `before + after + grace`.
///
/// # Java
/// `JoinWindows.ofTimeDifferenceWithNoGrace(d)`, `.ofTimeDifferenceAndGrace(d, g)`, `.before(d)`, `.after(d)`.
///
/// ```
/// use plimsoll::prelude::*;
/// use std::time::Duration;
///
/// let within_a_minute = JoinWindows::of_time_difference_with_no_grace(Duration::from_secs(60));
/// let only_later = within_a_minute.before(Duration::ZERO);
/// # let _ = only_later;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinWindows {
    pub(crate) before_ms: i64,
    pub(crate) after_ms: i64,
    pub(crate) grace_ms: i64,
}

/// Milliseconds, cut at the highest number.
pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl JoinWindows {
    /// At most so far apart in both directions; late records are not waited for.
    pub fn of_time_difference_with_no_grace(difference: Duration) -> Self {
        Self::of_time_difference_and_grace(difference, Duration::ZERO)
    }

    /// At most so far apart in both directions; records that are late by the grace period are joined.
    pub fn of_time_difference_and_grace(difference: Duration, grace: Duration) -> Self {
        let difference = millis(difference);
        Self { before_ms: difference, after_ms: difference, grace_ms: millis(grace) }
    }

    /// The right record may be at most so much earlier.
    #[must_use]
    pub fn before(mut self, time: Duration) -> Self {
        self.before_ms = millis(time);
        self
    }

    /// The right record may be at most so much later.
    #[must_use]
    pub fn after(mut self, time: Duration) -> Self {
        self.after_ms = millis(time);
        self
    }

    /// How long a window's rows are kept.
    pub(crate) fn retention_ms(&self) -> i64 {
        self.before_ms.saturating_add(self.after_ms).saturating_add(self.grace_ms)
    }
}

/// What a stream-stream join names and keeps.
///
/// # Null
/// Options do not look at keys or values.
///
/// # Late
/// Options do not decide when a record is late.
///
/// # Stores
/// `store_name` names the windows `<name>-this-join-store` and `<name>-other-join-store` (with `outer-` in front of
/// `this` or `other` where that side's partner may miss), and the store of records without a partner
/// `<name>-left-shared-join-store` or `<name>-outer-shared-join-store`.
///
/// # Java
/// `StreamJoined.as(storeName)`, `.withName(name)`, `.withLoggingDisabled()`, `.withLoggingEnabled(config)`.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let joined = StreamJoined::named("orders-payments").store_name("op").topic_config("min.insync.replicas", "2");
/// # let _ = joined;
/// ```
#[derive(Clone, Debug)]
pub struct StreamJoined {
    pub(crate) name: Option<String>,
    pub(crate) store: Option<String>,
    pub(crate) logged: bool,
    pub(crate) topic_configs: Vec<(String, String)>,
}

impl Default for StreamJoined {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamJoined {
    /// Everything named by the counter, with changelogs.
    pub fn new() -> Self {
        Self { name: None, store: None, logged: true, topic_configs: Vec::new() }
    }

    /// The name of the join's nodes and repartition topics.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::new() }
    }

    /// The name that the stores' begin with.
    #[must_use]
    pub fn store_name(mut self, name: &str) -> Self {
        self.store = Some(name.to_owned());
        self
    }

    /// Off: no changelog topics, and the windows are lost with their disk.
    #[must_use]
    pub fn logging(mut self, on: bool) -> Self {
        self.logged = on;
        self
    }

    /// A setting of the changelog topics, over the library's own; `cleanup.policy` of the windows stays `delete`.
    #[must_use]
    pub fn topic_config(mut self, key: &str, value: &str) -> Self {
        self.topic_configs.push((key.to_owned(), value.to_owned()));
        self
    }
}
