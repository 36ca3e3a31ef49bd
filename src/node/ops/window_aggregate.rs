//! `count`, `reduce` and `aggregate` by time windows: tumbling, hopping and unlimited ones.
use super::window_fold::WindowFold;
use super::window_parts::{NEVER, WindowClock, WindowParts};
use crate::codec::{Codec, Schema};
use crate::node::{Cx, Drain, Fault, Flow, Node, Record};
use std::marker::PhantomData;

/// Which windows a timestamp is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimeSpec {
    /// One every `advance_ms`, each `size_ms` long. Milliseconds, all.
    Fixed { size_ms: i64, advance_ms: i64, grace_ms: i64 },
    /// One, from here on.
    Unlimited { start_ms: i64 },
}

impl TimeSpec {
    pub(crate) fn size_ms(self) -> i64 {
        match self {
            Self::Fixed { size_ms, .. } => size_ms,
            Self::Unlimited { .. } => i64::MAX,
        }
    }

    pub(crate) fn grace_ms(self) -> i64 {
        match self {
            Self::Fixed { grace_ms, .. } => grace_ms,
            Self::Unlimited { .. } => 0,
        }
    }

    /// Starts of the first and the last window of a timestamp and the step between starts; none if the first is behind
    /// the last.
    fn starts(self, timestamp: i64) -> (i64, i64, i64) {
        match self {
            Self::Fixed { size_ms, advance_ms, .. } => {
                let first =
                    timestamp.saturating_sub(size_ms).saturating_add(advance_ms).max(0) / advance_ms * advance_ms;
                (first, timestamp / advance_ms * advance_ms, advance_ms)
            }
            Self::Unlimited { start_ms } if timestamp >= start_ms => (start_ms, start_ms, 1),
            Self::Unlimited { .. } => (1, 0, 1),
        }
    }
}

/// The node.
pub(crate) struct WindowAggregate<K, V, A: Codec, F> {
    pub(crate) parts: WindowParts<K, A>,
    pub(crate) windows: TimeSpec,
    pub(crate) fold: F,
    pub(crate) from: PhantomData<V>,
}

impl<K: Codec, V: Codec, A: Codec, F: WindowFold<K, V, A>> Node<K, V> for WindowAggregate<K, V, A, F> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        if K::is_null(r.key) {
            self.parts.dropped(cx);
            return Ok(());
        }
        let mut clock = self.parts.clock.get(cx.task.partition);
        clock.observed = clock.observed.max(r.timestamp);
        let close = clock.observed.saturating_sub(self.windows.grace_ms());
        let (mut start, last, step) = self.windows.starts(r.timestamp);
        while start <= last {
            let end = start.saturating_add(self.windows.size_ms());
            if end > close {
                self.update(cx, r, start, end)?;
            } else {
                self.parts.dropped(cx);
            }
            start += step;
        }
        if self.parts.looks_for_closed(cx, &mut clock, close) {
            self.emit(cx, &mut clock, close)?;
        }
        self.parts.clock.set(cx.task.partition, clock);
        Ok(())
    }
}

impl<K: Codec, V: Codec, A: Codec, F: WindowFold<K, V, A>> WindowAggregate<K, V, A, F> {
    fn update<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>, start: i64, end: i64) -> Flow {
        let parts = &self.parts;
        let slot = parts.slot(cx, r.key, start, end)?;
        // Uncached, Kafka Streams tells what is below that a new window had the fold's first value.
        let mut is_new = false;
        parts.store.change(cx, slot, r.timestamp, |aggregate| {
            is_new = aggregate.is_none();
            self.fold.fold(r.key, r.value, aggregate);
        });
        let first = if is_new && parts.tells_first() { self.fold.begin() } else { None };
        parts.settle(cx, slot, first.as_ref())
    }

    fn emit(&self, cx: &Cx<'_>, clock: &mut WindowClock, close: i64) -> Flow {
        let size = self.windows.size_ms();
        let to = close.saturating_sub(size);
        if to < 0 {
            return Ok(());
        }
        let mut from = 0;
        if clock.emitted != NEVER {
            from = (clock.emitted - size).max(0) + 1;
            if self.windows.starts(to) == self.windows.starts(from - 1) {
                return Ok(());
            }
        }
        self.parts.emit(cx, from, to)?;
        clock.emitted = close;
        Ok(())
    }
}

impl<K: Codec, V: Schema, A: Codec, F> Drain for WindowAggregate<K, V, A, F> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        self.parts.drain_one(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(spec: TimeSpec, timestamp: i64) -> Vec<i64> {
        let (mut start, last, step) = spec.starts(timestamp);
        let mut all = Vec::new();
        while start <= last {
            all.push(start);
            start += step;
        }
        all
    }

    /// Kafka's own cases: `TimeWindowsTest`, `UnlimitedWindowsTest`.
    #[test]
    fn a_timestamp_is_in_the_windows_that_kafka_says() {
        let hopping = TimeSpec::Fixed { size_ms: 12, advance_ms: 5, grace_ms: 0 };
        assert_eq!(all(hopping, 21), [10, 15, 20]);
        let barely = TimeSpec::Fixed { size_ms: 6, advance_ms: 5, grace_ms: 0 };
        assert_eq!(all(barely, 7), [5]);
        assert_eq!(all(barely, 10), [5, 10]);
        let tumbling = TimeSpec::Fixed { size_ms: 12, advance_ms: 12, grace_ms: 0 };
        assert_eq!(all(tumbling, 21), [12]);
        assert_eq!(all(tumbling, 0), [0]);
        let unlimited = TimeSpec::Unlimited { start_ms: 50 };
        assert_eq!((all(unlimited, 50), all(unlimited, 49)), (vec![50], vec![]));
    }
}
