//! Which time a record has.
use super::spec::TimestampPolicy;
use crate::node::Headers;
use crate::wire::RecordView;

/// What a policy makes of a record's timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stamped {
    /// It is processed with this time, milliseconds since the epoch.
    At(i64),
    /// It is skipped.
    Skip,
    /// The task fails.
    Invalid,
}

/// A record whose time is to be told.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Unstamped<'a> {
    /// Topic, with its full name.
    pub topic: &'a str,
    /// Partition.
    pub partition: u32,
    /// Offset.
    pub offset: i64,
    /// The record's own timestamp, milliseconds since the epoch.
    pub timestamp: i64,
    /// The highest time of its partition so far; -1 before the first record.
    pub partition_time: i64,
    /// The wall clock, milliseconds since the epoch.
    pub wall_time: i64,
    /// The key's bytes.
    pub key: Option<&'a [u8]>,
    /// The value's bytes.
    pub value: Option<&'a [u8]>,
    /// Its headers.
    pub headers: Headers<'a>,
}

/// A function that tells a record's time: see [`TimestampPolicy::By`].
///
/// # Java
/// `TimestampExtractor`, which gets key and value deserialized.
///
/// ```
/// use plimsoll::prelude::*;
/// use plimsoll::testing::Driver;
///
/// // The first eight bytes of the value are the time.
/// let inside = TimestampExtractor::new(|record| {
///     record.value.and_then(|value| value.first_chunk()).map_or(-1, |time| i64::from_be_bytes(*time))
/// });
/// let builder = StreamsBuilder::new();
/// builder.stream("in", Consumed::with(Utf8, Bytes).timestamps(TimestampPolicy::By(inside))).to("out");
/// let driver = Driver::new(&builder.build().unwrap())?;
/// let input = driver.input("in", Utf8, Bytes);
/// input.pipe_at("k", b"\0\0\0\0\0\0\x01\x02", 7)?;
/// input.pipe_at("k", b"short", 7)?; // skipped
/// let out = driver.output("out", Utf8, Bytes);
/// assert_eq!(out.read()?.unwrap().timestamp, 258);
/// assert!(out.read()?.is_none());
/// # Ok::<(), plimsoll::testing::DriverError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TimestampExtractor(fn(&Unstamped<'_>) -> i64);

impl TimestampExtractor {
    /// From a function, or from a closure that captures nothing.
    pub fn new(extract: fn(&Unstamped<'_>) -> i64) -> Self {
        Self(extract)
    }
}

impl PartialEq for TimestampExtractor {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for TimestampExtractor {}

impl TimestampPolicy {
    /// As [`resolve`](Self::resolve), of a record that a function may look at.
    #[inline]
    pub(crate) fn stamp(self, record: &RecordView<'_>, topic: &str, partition: u32, times: [i64; 2]) -> Stamped {
        let [partition_time, wall_time] = times;
        let Self::By(TimestampExtractor(extract)) = self else {
            return self.resolve(record.timestamp, partition_time, wall_time);
        };
        let &RecordView { offset, timestamp, key, value, headers } = record;
        let headers = Headers::of(headers);
        let unstamped =
            Unstamped { topic, partition, offset, timestamp, partition_time, wall_time, key, value, headers };
        match extract(&unstamped) {
            time if time < 0 => Stamped::Skip,
            time => Stamped::At(time),
        }
    }

    /// The time of a record with this timestamp, in a partition whose highest so far is `partition_time` (-1: none
    /// yet).
    #[inline]
    pub(crate) fn resolve(self, timestamp: i64, partition_time: i64, now_ms: i64) -> Stamped {
        match self {
            Self::Wallclock => Stamped::At(now_ms),
            _ if timestamp >= 0 => Stamped::At(timestamp),
            Self::LogAndSkipOnInvalid => Stamped::Skip,
            Self::UsePartitionTimeOnInvalid if partition_time >= 0 => Stamped::At(partition_time),
            Self::UsePartitionTimeOnInvalid | Self::FailOnInvalid | Self::By(_) => Stamped::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_timestamp_is_what_the_policy_says() {
        use TimestampPolicy as P;
        assert_eq!(P::FailOnInvalid.resolve(5, 9, 100), Stamped::At(5));
        assert_eq!(P::FailOnInvalid.resolve(-1, 9, 100), Stamped::Invalid);
        assert_eq!(P::LogAndSkipOnInvalid.resolve(-1, 9, 100), Stamped::Skip);
        assert_eq!(P::UsePartitionTimeOnInvalid.resolve(-1, 9, 100), Stamped::At(9));
        assert_eq!(P::UsePartitionTimeOnInvalid.resolve(-1, -1, 100), Stamped::Invalid);
        assert_eq!(P::Wallclock.resolve(-1, 9, 100), Stamped::At(100));
    }
}
