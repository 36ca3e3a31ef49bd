//! Emission of closed windows: each window once, when no record can change it any more.
//!
//! Owns the buffer in which closed windows are put into the order of their times. Invariant: what is emitted lies in
//! the given range and comes in the order of time, then key (sessions: end, start, key). Bound: [`CLOSED_BYTES`] of
//! keys; more windows than that are emitted in several passes over the store. Called by the windowed aggregates.
use super::window_parts::{NEVER, WindowClock, WindowParts};
use crate::codec::{Codec, Delta, WindowForm};
use crate::node::{Cx, Flow, Keys, Visit};
use crate::store::backend::Order;

/// Bytes of keys that are sorted at a time.
const CLOSED_BYTES: usize = 1 << 20;

/// When a window's value goes down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EmitRule {
    /// With every change.
    Updates,
    /// Once, when it is closed.
    Closed,
}

/// A closed window: its time, and where its row's key lies in the buffer.
#[derive(Clone, Copy, Default)]
struct Found {
    /// Start; of sessions the end.
    time: i64,
    /// Zero; of sessions the start.
    second: i64,
    at: usize,
    len: usize,
    /// Bytes of the user's key.
    own: usize,
}

impl Found {
    fn row<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        bytes.get(self.at..self.at + self.len).unwrap_or_default()
    }

    /// What windows are ordered by.
    fn place<'b>(&self, bytes: &'b [u8]) -> (i64, i64, &'b [u8]) {
        let key = self.row(bytes).get(..self.own).unwrap_or_default();
        (self.time, self.second, key)
    }
}

/// A window that was at hand, with a copy of its row's key.
#[derive(Default)]
struct Mark {
    found: Found,
    bytes: Vec<u8>,
    is_set: bool,
}

impl Mark {
    fn set(&mut self, found: Found, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(found.row(bytes));
        self.found = Found { at: 0, ..found };
        self.is_set = true;
    }

    fn place(&self) -> Option<(i64, i64, &[u8])> {
        self.is_set.then(|| self.found.place(&self.bytes))
    }
}

/// Closed windows in the order of their times.
#[derive(Default)]
pub(crate) struct Closed {
    bytes: Vec<u8>,
    found: Vec<Found>,
    /// For packing what is kept.
    spare: Vec<u8>,
    /// What was emitted last: later passes go on behind it.
    last: Mark,
    /// Nothing beyond this fits in this pass.
    ceiling: Mark,
}

impl Closed {
    fn begin(&mut self) {
        self.bytes.clear();
        self.found.clear();
        self.ceiling.is_set = false;
    }

    /// Takes a window, unless an earlier pass emitted it or a later one will.
    fn add(&mut self, time: i64, second: i64, row: &[u8], own: usize) {
        let new = Found { time, second, at: 0, len: row.len(), own };
        let place = new.place(row);
        let is_early = self.last.place().is_some_and(|last| place <= last);
        if is_early || self.ceiling.place().is_some_and(|ceiling| place > ceiling) {
            return;
        }
        self.found.push(Found { at: self.bytes.len(), ..new });
        self.bytes.extend_from_slice(row);
        if self.bytes.len() > CLOSED_BYTES {
            self.halve();
        }
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.found.sort_unstable_by(|a, b| a.place(bytes).cmp(&b.place(bytes)));
    }

    /// Keeps the earlier half.
    fn halve(&mut self) {
        self.sort();
        self.found.truncate(self.found.len().div_ceil(2));
        if let Some(last) = self.found.last() {
            self.ceiling.set(*last, &self.bytes);
        }
        self.spare.clear();
        for found in &mut self.found {
            let at = self.spare.len();
            self.spare.extend_from_slice(found.row(&self.bytes));
            found.at = at;
        }
        std::mem::swap(&mut self.bytes, &mut self.spare);
    }

    /// A pass is over. Whether there is another one.
    fn emitted(&mut self) -> bool {
        if let Some(last) = self.found.last() {
            self.last.set(*last, &self.bytes);
        }
        self.ceiling.is_set
    }
}

impl<K: Codec, A: Codec> WindowParts<K, A> {
    /// Whether it is time to look for closed windows: not too soon after the last look, and something may have closed.
    pub(crate) fn looks_for_closed(&self, cx: &Cx<'_>, clock: &mut WindowClock, close: i64) -> bool {
        if self.plan.emit != EmitRule::Closed || cx.now_ms < clock.next_emit {
            return false;
        }
        clock.next_emit = cx.now_ms.saturating_add(self.emit_interval_ms);
        clock.emitted == NEVER || clock.emitted < close
    }

    /// Sends down the windows whose start (of sessions: end) is in this range, both ends included.
    pub(crate) fn emit(&self, cx: &Cx<'_>, from: i64, to: i64) -> Flow {
        let times = [self.emitted_from(cx, from)?, to];
        if self.plan.form == WindowForm::Session {
            return self.emit_sessions(cx, times);
        }
        self.closed_rows(cx, times, &mut |row, value, timestamp| {
            let (key, start, end) = self.window(cx, row)?;
            self.down(cx, key, (start, end), Delta { new: Some(A::shorten(value)), old: None }, timestamp)?;
            Ok(true)
        })
    }

    fn closed_rows(&self, cx: &Cx<'_>, times: [i64; 2], visit: Visit<'_, A>) -> Flow {
        self.store.fetch_kept(cx.fault, cx.task.partition, Keys::ALL, times, Order::Forward, visit)
    }

    /// Sessions that end at one time lie by key; they are told by start, then by key.
    fn emit_sessions(&self, cx: &Cx<'_>, times: [i64; 2]) -> Flow {
        let mut closed = self.closed.borrow_mut();
        closed.last.is_set = false;
        loop {
            closed.begin();
            self.closed_rows(cx, times, &mut |row, _, _| {
                let (key, start, end) = self.window(cx, row)?;
                closed.add(end, start, row, key.len());
                Ok(true)
            })?;
            closed.sort();
            for found in &closed.found {
                self.emit_session(cx, found.row(&closed.bytes))?;
            }
            if !closed.emitted() {
                return Ok(());
            }
        }
    }

    fn emit_session(&self, cx: &Cx<'_>, row: &[u8]) -> Flow {
        let (key, start, end) = self.window(cx, row)?;
        let mut full = self.full.borrow_mut();
        full.clear();
        full.extend(&cx.task.partition.to_be_bytes());
        full.extend(row);
        self.store.get_kept(cx, full.bytes(), |found| {
            let Some((value, _)) = found else { return Ok(()) };
            self.down(cx, key, (start, end), Delta { new: Some(A::shorten(value)), old: None }, end)
        })?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(closed: &mut Closed) -> Vec<(i64, Vec<u8>)> {
        closed.sort();
        closed.found.iter().map(|found| (found.time, found.row(&closed.bytes).to_vec())).collect()
    }

    #[test]
    fn windows_come_by_time_then_the_users_key() {
        let mut closed = Closed::default();
        // Row keys; the byte behind the user's key is not part of the order.
        let (a, a0, b) = (b"a\x09", b"a\0\x09", b"b\x09");
        closed.add(20, 0, a, 1);
        closed.add(10, 0, b, 1);
        closed.add(10, 0, a0, 2);
        closed.add(10, 0, a, 1);
        let expected = [(10, a.to_vec()), (10, a0.to_vec()), (10, b.to_vec()), (20, a.to_vec())];
        assert_eq!(rows(&mut closed), expected);
    }

    #[test]
    fn what_does_not_fit_is_left_to_a_later_pass_that_goes_on_behind() {
        let mut closed = Closed::default();
        let mut seen = Vec::new();
        let mut passes = 0;
        loop {
            closed.begin();
            for number in (0..10u8).rev() {
                // Five keys in each of two windows.
                let row = vec![number / 2; CLOSED_BYTES / 4];
                closed.add(i64::from(number % 2), 0, &row, CLOSED_BYTES / 4);
            }
            seen.extend(rows(&mut closed).into_iter().map(|(time, row)| (time, row[0])));
            passes += 1;
            if !closed.emitted() {
                break;
            }
        }
        let expected = [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4)];
        assert_eq!((seen.as_slice(), passes > 1), (&expected[..], true));
    }
}
