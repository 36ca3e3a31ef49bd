//! `count`, `reduce` and `aggregate` by sessions: a record joins every session of its key that is within the gap, and
//! those become one.
use super::window_fold::{Merge, WindowFold};
use super::window_parts::WindowParts;
use crate::codec::{Codec, Schema};
use crate::node::{Cx, Drain, Fault, Flow, Node, Record};
use crate::store::backend::Order;
use std::cell::RefCell;
use std::marker::PhantomData;

/// Milliseconds, both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SessionSpec {
    pub(crate) gap_ms: i64,
    pub(crate) grace_ms: i64,
}

/// Sessions that become one.
struct Joined<T> {
    /// Start and end of each.
    sessions: Vec<(i64, i64)>,
    /// Their aggregates, merged; then with the record.
    value: Option<T>,
    /// A value that is not needed any more, for its buffers.
    spare: Option<T>,
}

impl<T> Default for Joined<T> {
    fn default() -> Self {
        Self { sessions: Vec::new(), value: None, spare: None }
    }
}

/// The node.
pub(crate) struct SessionAggregate<K, V, A: Codec, F, M> {
    parts: WindowParts<K, A>,
    windows: SessionSpec,
    fold: F,
    merge: M,
    from: PhantomData<V>,
    joined: RefCell<Joined<A::Owned>>,
}

impl<K, V, A: Codec, F, M> SessionAggregate<K, V, A, F, M> {
    pub(crate) fn new(parts: WindowParts<K, A>, windows: SessionSpec, fold: F, merge: M) -> Self {
        Self { parts, windows, fold, merge, from: PhantomData, joined: RefCell::default() }
    }
}

impl<K, V, A, F, M> Node<K, V> for SessionAggregate<K, V, A, F, M>
where
    K: Codec,
    V: Codec,
    A: Codec,
    F: WindowFold<K, V, A>,
    M: Merge<K, A>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        if K::is_null(r.key) {
            self.parts.dropped(cx);
            return Ok(());
        }
        let mut clock = self.parts.clock.get(cx.task.partition);
        clock.observed = clock.observed.max(r.timestamp);
        let SessionSpec { gap_ms, grace_ms } = self.windows;
        let close = clock.observed.saturating_sub(grace_ms).saturating_sub(gap_ms);
        let mut joined = self.joined.borrow_mut();
        let (start, end) = self.find(cx, r, &mut joined)?;
        if end < close {
            self.parts.dropped(cx);
        } else {
            self.join(cx, r, (start, end), &mut joined)?;
        }
        if self.parts.looks_for_closed(cx, &mut clock, close) {
            // Both ends belong to a session, so one that ends at `close` is open.
            let (from, to) = (clock.emitted.max(0), close.saturating_sub(1));
            if to >= 0 && to >= from {
                self.parts.emit(cx, from, to)?;
                clock.emitted = close;
            }
        }
        self.parts.clock.set(cx.task.partition, clock);
        Ok(())
    }
}

impl<K, V, A, F, M> SessionAggregate<K, V, A, F, M>
where
    K: Codec,
    V: Codec,
    A: Codec,
    F: WindowFold<K, V, A>,
    M: Merge<K, A>,
{
    /// Merges the sessions that the record reaches; answers start and end of what they become with it.
    fn find<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>, joined: &mut Joined<A::Owned>) -> Result<(i64, i64), Fault> {
        joined.sessions.clear();
        joined.spare = joined.value.take().or(joined.spare.take());
        joined.value = self.fold.begin();
        let (mut start, mut end) = (r.timestamp, r.timestamp);
        let latest_start = r.timestamp.saturating_add(self.windows.gap_ms);
        let earliest_end = r.timestamp.saturating_sub(self.windows.gap_ms);
        self.parts.scan(cx, r.key, [earliest_end, latest_start], Order::Forward, &mut |from, to, value, _| {
            joined.sessions.push((from, to));
            match joined.spare.take_if(|_| joined.value.is_none()) {
                Some(mut spare) => {
                    A::own_into(value, &mut spare);
                    joined.value = Some(spare);
                }
                None => self.merge.merge(K::shorten(r.key), &mut joined.value, A::shorten(value)),
            }
            (start, end) = (start.min(from), end.max(to));
            Ok(true)
        })?;
        Ok((start, end))
    }

    /// Removes the sessions that were found and puts the one that they become.
    fn join<'a>(
        &self,
        cx: &Cx<'a>,
        r: &Record<'a, K, V>,
        (start, end): (i64, i64),
        joined: &mut Joined<A::Owned>,
    ) -> Flow {
        let parts = &self.parts;
        if (start, end) != (r.timestamp, r.timestamp) {
            for (from, to) in &joined.sessions {
                let slot = parts.slot(cx, r.key, *from, *to)?;
                parts.store.set(cx, slot, r.timestamp, |value| *value = None);
                parts.settle(cx, slot, None)?;
            }
        }
        self.fold.fold(r.key, r.value, &mut joined.value);
        let slot = parts.slot(cx, r.key, start, end)?;
        parts.store.set(cx, slot, r.timestamp, |value| std::mem::swap(value, &mut joined.value));
        parts.settle(cx, slot, None)
    }
}

impl<K: Codec, V: Schema, A: Codec, F, M> Drain for SessionAggregate<K, V, A, F, M> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        self.parts.drain_one(cx)
    }
}
