//! The join of a stream with a versioned table that waits: a record is joined once the stream's time is the grace
//! period past it, so that the table's updates of its time have come.
use super::grace_buffer::GraceBuffer;
use super::joiner::Joiner;
use super::stream_table_join::StreamTableJoin;
use crate::codec::{Codec, Schema, Side};
use crate::node::{Cx, Fault, Flow, Node, Parked, PerTask, Record, RecordContext};

/// What a task has seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffered {
    /// Highest time that was kept.
    stream_time: i64,
    /// The last number given.
    number: u32,
}

impl Buffered {
    pub(crate) const START: Self = Self { stream_time: -1, number: 0 };
}

/// Kafka Streams' `KStreamKTableJoin` with a buffer.
pub(crate) struct StreamTableGraceJoin<K: Schema, V, R: Schema, W, J> {
    pub(crate) join: StreamTableJoin<K, V, R, W, J>,
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) buffer: GraceBuffer,
    /// Milliseconds.
    pub(crate) grace: i64,
    pub(crate) task: PerTask<Buffered>,
}

impl<K: Codec, V: Codec, R: Schema, W: Schema, J: Joiner<V, R, W>> Node<K, V> for StreamTableGraceJoin<K, V, R, W, J> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        if !self.join.takes(cx, r) {
            return Ok(());
        }
        let mut now = self.task.get(cx.task.partition);
        // What is late already waits for nothing; nor does a record without a key, which joins with nothing.
        if K::is_null(r.key) || now.stream_time.saturating_sub(self.grace) > r.timestamp {
            return self.join.join(cx, r);
        }
        now.stream_time = now.stream_time.max(r.timestamp);
        now.number = now.number.wrapping_add(1) & (u32::MAX >> 1);
        self.task.set(cx.task.partition, now);
        let cx = cx.at(cx.task, RecordContext { timestamp: r.timestamp, ..cx.source });
        let key = |out: &mut _| self.key.encode(r.key, out);
        let value = |out: &mut _| self.value.encode(r.value, out);
        self.buffer.put(&cx, self.join.node, r.timestamp, now.number, key, value)?;
        let until = now.stream_time.saturating_sub(self.grace);
        self.buffer.emit_until(&cx, until, &mut |context, key, value| self.emit(&cx, context, key, value))
    }
}

impl<K: Codec, V: Codec, R: Schema, W: Schema, J: Joiner<V, R, W>> StreamTableGraceJoin<K, V, R, W, J> {
    fn emit(&self, cx: &Cx<'_>, context: &RecordContext<'_>, key: &[u8], value: &[u8]) -> Flow {
        let refuse = |side, error| {
            cx.fault.park(Fault::Store, Parked::Stored { store: self.buffer.store().store_id(), side, error })
        };
        let key = self.key.decode(key).map_err(|error| refuse(Side::Key, error))?;
        let value = self.value.decode(value).map_err(|error| refuse(Side::Value, error))?;
        let record = Record { key: K::lend(&key), value: V::lend(&value), timestamp: context.timestamp };
        self.join.join(&cx.at(cx.task, *context), &record)
    }
}
