//! `count`, `reduce` and `aggregate` by sliding windows: one for each set of records that lie no further apart than the
//! time difference.
//!
//! A record makes at most three windows: the one that ends with it, the one that begins behind it and the one that
//! begins behind the record before it; and it changes every window that it falls into.
use super::window_fold::WindowFold;
use super::window_parts::{NEVER, WindowClock, WindowParts};
use crate::codec::{Codec, Schema};
use crate::node::{Cx, Drain, Fault, Flow, Node, Record};
use crate::store::backend::Order;
use std::cell::RefCell;
use std::marker::PhantomData;

/// Milliseconds, both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlidingSpec {
    pub(crate) difference_ms: i64,
    pub(crate) grace_ms: i64,
}

/// Values that windows to come take over, and when their last record was.
struct Kept<T> {
    value: Option<T>,
    timestamp: i64,
    is_set: bool,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { value: None, timestamp: NEVER, is_set: false }
    }
}

impl<T> Kept<T> {
    fn keep<A: Codec<Owned = T>>(&mut self, view: A::View<'_>, timestamp: i64) {
        match self.value.as_mut() {
            Some(value) => A::own_into(view, value),
            None => self.value = Some(A::own(view)),
        }
        (self.timestamp, self.is_set) = (timestamp, true);
    }
}

/// What the store holds around a record.
struct Around<T> {
    /// Start and timestamp of each window of the key that was looked at.
    windows: Vec<(i64, i64)>,
    /// What the window of the records behind this one begins with.
    right: Kept<T>,
    /// What the window that ends with this one begins with.
    left: Kept<T>,
}

impl<T> Default for Around<T> {
    fn default() -> Self {
        Self { windows: Vec::new(), right: Kept::default(), left: Kept::default() }
    }
}

impl<T> Around<T> {
    fn has(&self, start: i64) -> bool {
        self.windows.iter().any(|(at, _)| *at == start)
    }

    fn begin(&mut self) {
        self.windows.clear();
        (self.right.is_set, self.left.is_set) = (false, false);
    }
}

/// What a new window begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// The fold's first value.
    First,
    /// The kept left value.
    Left,
}

/// The node.
pub(crate) struct SlidingAggregate<K, V, A: Codec, F> {
    pub(crate) parts: WindowParts<K, A>,
    pub(crate) windows: SlidingSpec,
    pub(crate) fold: F,
    pub(crate) from: PhantomData<V>,
    around: RefCell<Around<A::Owned>>,
}

impl<K, V, A: Codec, F> SlidingAggregate<K, V, A, F> {
    pub(crate) fn new(parts: WindowParts<K, A>, windows: SlidingSpec, fold: F) -> Self {
        Self { parts, windows, fold, from: PhantomData, around: RefCell::default() }
    }
}

impl<K: Codec, V: Codec, A: Codec, F: WindowFold<K, V, A>> Node<K, V> for SlidingAggregate<K, V, A, F> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        if K::is_null(r.key) || V::is_null(r.value) {
            self.parts.dropped(cx);
            return Ok(());
        }
        let mut clock = self.parts.clock.get(cx.task.partition);
        clock.observed = clock.observed.max(r.timestamp);
        let close = clock.observed.saturating_sub(self.windows.grace_ms);
        let mut step = Step { node: self, cx, r, close, clock };
        let done = step.run();
        self.parts.clock.set(cx.task.partition, step.clock);
        done
    }
}

/// A record at work.
struct Step<'s, 'a, K: Codec, V: Codec, A: Codec, F> {
    node: &'s SlidingAggregate<K, V, A, F>,
    cx: &'s Cx<'a>,
    r: &'s Record<'a, K, V>,
    /// Windows that end before it are closed.
    close: i64,
    clock: WindowClock,
}

impl<K: Codec, V: Codec, A: Codec, F: WindowFold<K, V, A>> Step<'_, '_, K, V, A, F> {
    fn run(&mut self) -> Flow {
        let difference = self.node.windows.difference_ms;
        if self.r.timestamp.saturating_add(difference) < self.close {
            self.node.parts.dropped(self.cx);
            return Ok(());
        }
        let node = self.node;
        let mut around = node.around.borrow_mut();
        around.begin();
        if self.r.timestamp < difference {
            self.early(&mut around)
        } else {
            self.usual(&mut around)?;
            self.emit()
        }
    }

    /// Looks at the key's windows from the latest down to the first that ends before the record.
    fn look_back(&self, around: &mut Around<A::Owned>) -> Flow {
        let (t, difference) = (self.r.timestamp, self.node.windows.difference_ms);
        let range = [t.saturating_sub(difference.saturating_mul(2)).max(0), t.saturating_add(1)];
        self.node.parts.scan(self.cx, self.r.key, range, Order::Reverse, &mut |start, end, value, timestamp| {
            around.windows.push((start, timestamp));
            if start == t + 1 {
                return Ok(true);
            }
            if end > t && !around.right.is_set {
                around.right.keep::<A>(value, timestamp);
            }
            if end < t {
                around.left.keep::<A>(value, timestamp);
            }
            // The window that ends with the record and holds one of its time: nothing is missing.
            Ok(end > t || (end == t && timestamp < t))
        })
    }

    fn usual(&mut self, around: &mut Around<A::Owned>) -> Flow {
        self.look_back(around)?;
        let (t, difference) = (self.r.timestamp, self.node.windows.difference_ms);
        let (mut has_left, mut before) = (false, None);
        for index in 0..around.windows.len() {
            let Some(&(start, timestamp)) = around.windows.get(index) else { break };
            let end = start.saturating_add(difference);
            if start == t + 1 {
                continue;
            }
            if end < t {
                before = Some(timestamp);
                break;
            }
            self.update(start, end)?;
            if end == t {
                has_left = true;
                if timestamp >= t {
                    return Ok(());
                }
                before = Some(timestamp);
            }
        }
        if let Some(before) = before {
            let start = before + 1;
            if !around.has(start) && start.saturating_add(difference) >= t {
                self.make(start, Begin::First, around)?;
            }
        }
        if !has_left {
            let is_within = before.is_some_and(|before| t - difference <= before);
            self.make(t - difference, if is_within { Begin::Left } else { Begin::First }, around)?;
        }
        self.make_right(around)
    }

    /// A record so early that the window that ends with it would begin before zero: it goes into the first one.
    fn early(&mut self, around: &mut Around<A::Owned>) -> Flow {
        let (t, difference) = (self.r.timestamp, self.node.windows.difference_ms);
        let range = [0, t.saturating_add(1)];
        self.node.parts.scan(self.cx, self.r.key, range, Order::Forward, &mut |start, _, value, timestamp| {
            around.windows.push((start, timestamp));
            if start == 0 {
                around.left.keep::<A>(value, timestamp);
            } else if start <= t {
                around.right.keep::<A>(value, timestamp);
            }
            Ok(true)
        })?;
        for index in 0..around.windows.len() {
            let Some(&(start, _)) = around.windows.get(index) else { break };
            if start > 0 && start <= t {
                self.update(start, start.saturating_add(difference))?;
            }
        }
        let combined = around.left.is_set.then_some(around.left.timestamp);
        if !around.right.is_set && combined.is_some_and(|last| last > t) {
            std::mem::swap(&mut around.right, &mut around.left);
        }
        self.make_right(around)?;
        if let Some(before) = combined.filter(|last| *last < t)
            && !around.has(before + 1)
        {
            self.make(before + 1, Begin::First, around)?;
        }
        match combined {
            None => self.make(0, Begin::First, around),
            Some(_) => self.update(0, difference),
        }
    }

    /// A window behind the record, if records are there and it has none.
    fn make_right(&mut self, around: &Around<A::Owned>) -> Flow {
        let start = self.r.timestamp.saturating_add(1);
        let right = &around.right;
        if around.has(start) || !right.is_set || right.timestamp <= self.r.timestamp {
            return Ok(());
        }
        let parts = &self.node.parts;
        let slot = parts.slot(self.cx, self.r.key, start, start.saturating_add(self.node.windows.difference_ms))?;
        parts.store.set(self.cx, slot, right.timestamp, |value| put::<A>(value, right.value.as_ref()));
        parts.settle(self.cx, slot, None)
    }

    fn is_open(&self, end: i64) -> bool {
        let is_open = end >= self.close;
        if !is_open {
            self.node.parts.dropped(self.cx);
        }
        is_open
    }

    /// Adds the record to a window that is there.
    fn update(&mut self, start: i64, end: i64) -> Flow {
        if !self.is_open(end) {
            return Ok(());
        }
        let parts = &self.node.parts;
        let slot = parts.slot(self.cx, self.r.key, start, end)?;
        parts
            .store
            .change(self.cx, slot, self.r.timestamp, |value| self.node.fold.fold(self.r.key, self.r.value, value));
        parts.settle(self.cx, slot, None)
    }

    /// Makes a window with the record in it.
    fn make(&mut self, start: i64, begin: Begin, around: &Around<A::Owned>) -> Flow {
        let end = start.saturating_add(self.node.windows.difference_ms);
        if !self.is_open(end) {
            return Ok(());
        }
        let (parts, fold) = (&self.node.parts, &self.node.fold);
        let slot = parts.slot(self.cx, self.r.key, start, end)?;
        let left = if begin == Begin::Left { around.left.value.as_ref() } else { None };
        parts.store.set(self.cx, slot, self.r.timestamp, |value| {
            put::<A>(value, left);
            fold.fold(self.r.key, self.r.value, value);
        });
        let first = if !parts.tells_first() {
            None
        } else if let Some(left) = left {
            Some(A::own(A::view(left)))
        } else {
            fold.begin()
        };
        parts.settle(self.cx, slot, first.as_ref())
    }

    fn emit(&mut self) -> Flow {
        let parts = &self.node.parts;
        if !parts.looks_for_closed(self.cx, &mut self.clock, self.close) {
            return Ok(());
        }
        let difference = self.node.windows.difference_ms;
        let to = self.close.saturating_sub(difference).saturating_sub(1);
        if to < 0 {
            return Ok(());
        }
        let from = if self.clock.emitted == NEVER { 0 } else { (self.clock.emitted - difference).max(0) };
        parts.emit(self.cx, from, to)?;
        self.clock.emitted = self.close;
        Ok(())
    }
}

/// Replaces a value by another one or none.
fn put<A: Codec>(value: &mut Option<A::Owned>, by: Option<&A::Owned>) {
    match (value.as_mut(), by) {
        (Some(value), Some(by)) => A::own_into(A::view(by), value),
        (_, by) => *value = by.map(|by| A::own(A::view(by))),
    }
}

impl<K: Codec, V: Schema, A: Codec, F> Drain for SlidingAggregate<K, V, A, F> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        self.parts.drain_one(cx)
    }
}
