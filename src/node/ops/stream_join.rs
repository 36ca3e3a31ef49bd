//! One side of a stream-stream join: looks for partners in the other stream's window and, for a left or outer join,
//! keeps records that found none until their window closes.
//!
//! Kafka Streams' `KStreamKStreamJoin`. Owns nothing but scratch buffers; the times of a task are shared by both sides.
//! Invariant: a kept record is deleted when a partner comes or when it goes downstream alone, never both. Bound: the
//! window's retention; keys to delete are collected at most `GONE_BYTES` at a time.
use super::stream_join_times::{JoinTimes, Times};
use super::stream_join_unjoined::{Unjoined, elements};
use crate::base::id::NodeId;
use crate::codec::{Codec, Schema, Scratch, Side};
use crate::node::{Cx, Edge, Fault, Flow, KeyValue, Keys, Node, Parked, PerTask, Record, RecordContext};
use crate::store::backend::Order;
use crate::store::kind::window_parts;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// What a join makes of a left and a right value. `None` for a side that has no partner; the answer is `None` where the
/// join makes nothing of that, which never happens.
pub(crate) trait StreamJoiner<K: Schema, L: Schema, R: Schema, W: Schema>: Send + Sync + 'static {
    fn join<'x>(&self, key: K::View<'x>, left: Option<L::View<'x>>, right: Option<R::View<'x>>) -> Option<W::Out<'x>>;
}

/// A joiner as one side sees it: its own value first.
pub(crate) trait SideJoiner<K: Schema, T: Schema, O: Schema, W: Schema>: 'static {
    fn join<'x>(&self, key: K::View<'x>, this: Option<T::View<'x>>, other: Option<O::View<'x>>) -> Option<W::Out<'x>>;
}

/// The left side's.
pub(crate) struct FromLeft<J>(pub(crate) Arc<J>);
/// The right side's.
pub(crate) struct FromRight<J>(pub(crate) Arc<J>);

impl<K: Schema, L: Schema, R: Schema, W: Schema, J: StreamJoiner<K, L, R, W>> SideJoiner<K, L, R, W> for FromLeft<J> {
    fn join<'x>(&self, key: K::View<'x>, this: Option<L::View<'x>>, other: Option<R::View<'x>>) -> Option<W::Out<'x>> {
        self.0.join(key, this, other)
    }
}

impl<K: Schema, L: Schema, R: Schema, W: Schema, J: StreamJoiner<K, L, R, W>> SideJoiner<K, R, L, W> for FromRight<J> {
    fn join<'x>(&self, key: K::View<'x>, this: Option<R::View<'x>>, other: Option<L::View<'x>>) -> Option<W::Out<'x>> {
        self.0.join(key, other, this)
    }
}

/// The node.
pub(crate) struct StreamJoin<K, T: Schema, O: Codec, W, J> {
    pub(crate) node: NodeId,
    pub(crate) key: K,
    pub(crate) value: T,
    pub(crate) other_value: O,
    pub(crate) join: J,
    pub(crate) times: JoinTimes,
    /// The window of the other stream.
    pub(crate) other: Rc<KeyValue<O>>,
    /// Records of both streams that have found no partner, for a left or outer join.
    pub(crate) unjoined: Option<Unjoined>,
    pub(crate) task: Rc<PerTask<Times>>,
    pub(crate) emit_interval_ms: i64,
    /// The key's bytes.
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) out: Edge<K, W>,
}

impl<K: Codec, T: Codec, O: Codec, W: Schema, J: SideJoiner<K, T, O, W>> Node<K, T> for StreamJoin<K, T, O, W, J> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, T>) -> Flow {
        let partition = cx.task.partition;
        let mut now = self.task.get(partition);
        now.stream_time = now.stream_time.max(r.timestamp);
        self.task.set(partition, now);
        let (null_key, null_value) = (K::is_null(r.key), T::is_null(r.value));
        if self.times.is_outer && null_key && !null_value {
            return self.emit(cx, r.key, Some(r.value), None, r.timestamp);
        }
        if null_key || null_value {
            cx.port.dropped(self.node);
            return Ok(());
        }
        if r.timestamp == now.stream_time {
            self.emit_closed(cx, r.timestamp)?;
        }
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        self.key.encode(r.key, &mut scratch);
        self.check(cx, &scratch)?;
        self.look_for_partners(cx, r, scratch.bytes())
    }
}

impl<K: Codec, T: Codec, O: Codec, W: Schema, J: SideJoiner<K, T, O, W>> StreamJoin<K, T, O, W, J> {
    fn look_for_partners<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, T>, key: &[u8]) -> Flow {
        let [from, to] = self.times.partners(r.timestamp);
        let partition = cx.task.partition;
        let found = Cell::new(false);
        self.other.fetch(cx.fault, partition, Keys::One(key), [from, to], Order::Forward, &mut |row, other, _| {
            found.set(true);
            let other_time = window_parts(row).1;
            if let Some(unjoined) = &self.unjoined {
                unjoined.take_out(cx, other_time, !self.times.is_left, key, r.timestamp)?;
            }
            self.emit(cx, r.key, Some(r.value), Some(other), r.timestamp.max(other_time))?;
            Ok(true)
        })?;
        if found.get() || !self.times.is_outer {
            return Ok(());
        }
        let mut now = self.task.get(partition);
        match &self.unjoined {
            Some(unjoined) if to >= now.stream_time => {
                now.unjoined_from = now.unjoined_from.min(r.timestamp);
                self.task.set(partition, now);
                unjoined.keep(cx, self.node, r.timestamp, self.times.is_left, key, |out| {
                    self.value.encode(r.value, out);
                })
            }
            // Its window has closed already.
            _ => self.emit(cx, r.key, Some(r.value), None, r.timestamp),
        }
    }

    /// Sends what is made of two values, or of one that has no partner. Those below see the time of what they get.
    fn emit(
        &self,
        cx: &Cx<'_>,
        key: K::View<'_>,
        this: Option<T::View<'_>>,
        other: Option<O::View<'_>>,
        timestamp: i64,
    ) -> Flow {
        let cx = cx.at(cx.task, RecordContext { timestamp, ..cx.source });
        let Some(out) = self.join.join(K::shorten(key), this.map(T::shorten), other.map(O::shorten)) else {
            return Ok(());
        };
        self.out.send(&cx, &Record { key: K::shorten(key), value: W::lend(&out), timestamp })
    }

    /// Sends records downstream that found no partner and whose window has closed, at most once a second.
    fn emit_closed(&self, cx: &Cx<'_>, timestamp: i64) -> Flow {
        let Some(unjoined) = &self.unjoined else { return Ok(()) };
        let partition = cx.task.partition;
        let mut now = self.task.get(partition);
        if !now.may_emit(&self.times, cx.now_ms, self.emit_interval_ms) {
            return Ok(());
        }
        let (mut left_open, mut right_open) = (false, false);
        self.task.set(partition, now);
        let mut visit = |time: i64, is_left: bool, key: &[u8], list: &[u8]| {
            now.unjoined_from = time;
            if left_open && right_open {
                return Ok(None);
            }
            if self.times.is_open(time, is_left, now.stream_time) {
                *(if is_left { &mut left_open } else { &mut right_open }) = true;
                // Kafka Streams looks at each record of a list, so it ends at the list's second.
                let ends = left_open && right_open && elements(list).nth(1).is_some();
                return Ok((!ends).then_some(false));
            }
            for value in elements(list) {
                self.emit_alone(cx, is_left, key, value, time)?;
            }
            Ok(Some(true))
        };
        unjoined.sweep(cx, timestamp, &mut visit)?;
        self.task.set(partition, now);
        Ok(())
    }

    fn emit_alone(&self, cx: &Cx<'_>, is_left: bool, key: &[u8], value: &[u8], time: i64) -> Flow {
        let refuse =
            |side, error| cx.fault.park(Fault::Store, Parked::Stored { store: self.other.store_id(), side, error });
        let key = self.key.decode(key).map_err(|error| refuse(Side::Key, error))?;
        if is_left == self.times.is_left {
            let this = self.value.decode(value).map_err(|error| refuse(Side::Value, error))?;
            self.emit(cx, K::lend(&key), Some(T::lend(&this)), None, time)
        } else {
            let other = self.other_value.decode(value).map_err(|error| refuse(Side::Value, error))?;
            self.emit(cx, K::lend(&key), None, Some(O::lend(&other)), time)
        }
    }

    fn check(&self, cx: &Cx<'_>, scratch: &Scratch) -> Flow {
        scratch.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node: self.node, full }))
    }
}
