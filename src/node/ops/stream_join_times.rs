//! The times of a stream-stream join: its window, and what a task has seen.
//!
//! Pure arithmetic. Milliseconds.

/// The window as one side of the join sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinTimes {
    /// Whether this side is the left one.
    pub(crate) is_left: bool,
    /// Whether records of this side go on without a partner.
    pub(crate) is_outer: bool,
    /// How much earlier than the left record the right one may be.
    pub(crate) before: i64,
    /// How much later.
    pub(crate) after: i64,
    pub(crate) grace: i64,
}

impl JoinTimes {
    /// Times of the other stream's records that join with one of this time, both ends included.
    pub(crate) fn partners(&self, time: i64) -> [i64; 2] {
        let (before, after) = if self.is_left { (self.before, self.after) } else { (self.after, self.before) };
        [time.saturating_sub(before).max(0), time.saturating_add(after).max(0)]
    }

    /// How far this side looks into the future of its records.
    fn ahead(&self, is_left: bool) -> i64 {
        if is_left { self.after } else { self.before }
    }

    /// Whether a partner may still come for a record of this time and side.
    pub(crate) fn is_open(&self, time: i64, is_left: bool, stream_time: i64) -> bool {
        time.saturating_add(self.ahead(is_left)).saturating_add(self.grace) >= stream_time
    }
}

/// What a task has seen, both sides together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Times {
    /// Highest time of both streams.
    pub(crate) stream_time: i64,
    /// No record without a partner is older.
    pub(crate) unjoined_from: i64,
    /// When to look for closed windows next, by the wall clock.
    next_look: i64,
}

impl Times {
    /// Of a task that begins.
    pub(crate) const START: Self = Self { stream_time: -1, unjoined_from: i64::MAX, next_look: 0 };

    /// Whether it is time to look for closed windows; the next time is set then. Where nothing waits Java's sum
    /// overflows, and so the clock is set all the same.
    pub(crate) fn may_emit(&mut self, times: &JoinTimes, now_ms: i64, interval_ms: i64) -> bool {
        let ahead = times.ahead(times.is_left);
        if self.unjoined_from.wrapping_add(ahead).wrapping_add(times.grace) >= self.stream_time {
            return false;
        }
        if now_ms < self.next_look {
            return false;
        }
        self.next_look = now_ms.saturating_add(interval_ms);
        self.unjoined_from = i64::MAX;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: JoinTimes = JoinTimes { is_left: true, is_outer: true, before: 3, after: 7, grace: 2 };

    #[test]
    fn partners_of_the_right_side_mirror_those_of_the_left() {
        assert_eq!(LEFT.partners(10), [7, 17]);
        assert_eq!(JoinTimes { is_left: false, ..LEFT }.partners(10), [3, 13]);
        assert_eq!(LEFT.partners(1), [0, 8]);
    }

    #[test]
    fn a_window_is_open_until_the_grace_has_passed() {
        assert!(LEFT.is_open(10, true, 19) && !LEFT.is_open(10, true, 20));
        assert!(LEFT.is_open(10, false, 15) && !LEFT.is_open(10, false, 16));
    }

    #[test]
    fn closed_windows_are_looked_for_once_a_second_and_only_if_something_may_wait() {
        let mut now = Times { stream_time: 20, unjoined_from: 10, next_look: 0 };
        assert!(now.may_emit(&LEFT, 5, 1000));
        assert_eq!(now, Times { stream_time: 20, unjoined_from: i64::MAX, next_look: 1005 });
        now.unjoined_from = 10;
        assert!(!now.may_emit(&LEFT, 1004, 1000));
        assert!(now.may_emit(&LEFT, 1005, 1000));
        now = Times { stream_time: 19, unjoined_from: 10, next_look: 0 };
        assert!(!now.may_emit(&LEFT, 5, 1000));
        now = Times { stream_time: 0, ..Times::START };
        assert!(now.may_emit(&LEFT, 5, 1000), "as Java, whose sum overflows");
    }
}
