//! A stream joined with itself over one window.
use super::stream_join::StreamJoiner;
use super::stream_join_times::JoinTimes;
use crate::base::id::NodeId;
use crate::codec::{Codec, Schema, Scratch};
use crate::node::{Cx, Edge, Fault, Flow, KeyValue, Keys, Node, Parked, PerTask, Record, RecordContext};
use crate::store::backend::Order;
use crate::store::kind::window_parts;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Kafka Streams' `KStreamKStreamSelfJoin`: the same results in the same order as two windows would give.
pub(crate) struct StreamSelfJoin<K: Schema, V: Codec, W: Schema> {
    pub(crate) node: NodeId,
    pub(crate) key: K,
    pub(crate) join: Arc<dyn StreamJoiner<K, V, V, W>>,
    /// Of the left side.
    pub(crate) times: JoinTimes,
    pub(crate) retention: i64,
    pub(crate) store: Rc<KeyValue<V>>,
    pub(crate) stream_time: PerTask<i64>,
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) out: Edge<K, W>,
}

impl<K: Codec, V: Codec, W: Schema> Node<K, V> for StreamSelfJoin<K, V, W> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        if K::is_null(r.key) || V::is_null(r.value) {
            cx.port.dropped(self.node);
            return Ok(());
        }
        let partition = cx.task.partition;
        let stream_time = self.stream_time.get(partition).max(r.timestamp);
        self.stream_time.set(partition, stream_time);
        // With itself only while it is not expired.
        let with_itself = Cell::new(r.timestamp > stream_time.saturating_sub(self.retention).saturating_add(1));
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        self.key.encode(K::shorten(r.key), &mut scratch);
        scratch.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node: self.node, full }))?;
        let keys = Keys::One(scratch.bytes());
        let (as_left, as_right) =
            (self.times.partners(r.timestamp), JoinTimes { is_left: false, ..self.times }.partners(r.timestamp));
        self.store.fetch(cx.fault, partition, keys, as_left, Order::Forward, &mut |row, other, _| {
            self.emit(cx, r.key, r.value, other, r.timestamp.max(window_parts(row).1))?;
            Ok(true)
        })?;
        self.store.fetch(cx.fault, partition, keys, as_right, Order::Forward, &mut |row, other, _| {
            let time = r.timestamp.max(window_parts(row).1);
            if time > r.timestamp && with_itself.take() {
                self.emit(cx, r.key, r.value, r.value, r.timestamp)?;
            }
            self.emit(cx, r.key, other, r.value, time)?;
            Ok(true)
        })?;
        if with_itself.take() {
            self.emit(cx, r.key, r.value, r.value, r.timestamp)?;
        }
        Ok(())
    }
}

impl<K: Codec, V: Codec, W: Schema> StreamSelfJoin<K, V, W> {
    fn emit(&self, cx: &Cx<'_>, key: K::View<'_>, left: V::View<'_>, right: V::View<'_>, timestamp: i64) -> Flow {
        let cx = cx.at(cx.task, RecordContext { timestamp, ..cx.source });
        let joined = self.join.join(K::shorten(key), Some(V::shorten(left)), Some(V::shorten(right)));
        let Some(out) = joined else { return Ok(()) };
        self.out.send(&cx, &Record { key: K::shorten(key), value: W::lend(&out), timestamp })
    }
}
