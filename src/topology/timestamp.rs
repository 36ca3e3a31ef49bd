//! Which time a record has.
use super::spec::TimestampPolicy;

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

impl TimestampPolicy {
    /// The time of a record with this timestamp, in a partition whose highest so far is `partition_time` (-1: none
    /// yet).
    #[inline]
    pub(crate) fn resolve(self, timestamp: i64, partition_time: i64, now_ms: i64) -> Stamped {
        match self {
            Self::Wallclock => Stamped::At(now_ms),
            _ if timestamp >= 0 => Stamped::At(timestamp),
            Self::LogAndSkipOnInvalid => Stamped::Skip,
            Self::UsePartitionTimeOnInvalid if partition_time >= 0 => Stamped::At(partition_time),
            Self::UsePartitionTimeOnInvalid | Self::FailOnInvalid => Stamped::Invalid,
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
