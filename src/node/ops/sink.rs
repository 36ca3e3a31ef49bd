//! Where views become bytes of a topic.
use crate::base::id::{NodeId, SinkId};
use crate::codec::{Codec, Schema, Scratch};
use crate::node::{Cx, Edge, Fault, Flow, Node, OutBytes, Parked, Record};
use std::cell::RefCell;

/// Encodes and hands to the port.
pub(crate) struct Sink<K, V> {
    pub(crate) id: SinkId,
    pub(crate) node: NodeId,
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) scratch: RefCell<Scratch>,
}

impl<K: Codec, V: Codec> Node<K, V> for Sink<K, V> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        self.encoded(cx, r, |record| cx.port.produce(cx.task, self.id, None, record))
    }
}

impl<K: Codec, V: Codec> Sink<K, V> {
    /// Lends the bytes of a record.
    #[inline]
    pub(super) fn encoded<'a>(
        &self,
        cx: &Cx<'a>,
        r: &Record<'a, K, V>,
        produce: impl FnOnce(&OutBytes<'_>) -> Flow,
    ) -> Flow {
        let (null_key, null_value) = (K::is_null(r.key), V::is_null(r.value));
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        // Bytes that lie somewhere already go straight into the batch.
        let (direct_key, direct_value) = (self.key.as_bytes(r.key), self.value.as_bytes(r.value));
        match direct_key {
            Some(bytes) => scratch.count(bytes.len()),
            None if null_key => {}
            None => self.key.encode(r.key, &mut scratch),
        }
        let split = scratch.len();
        match direct_value {
            Some(bytes) => scratch.count(bytes.len()),
            None if null_value => {}
            None => self.value.encode(r.value, &mut scratch),
        }
        scratch.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node: self.node, full }))?;
        let (key, value) = scratch.bytes().split_at(split);
        let record = OutBytes {
            key: (!null_key).then_some(direct_key.unwrap_or(key)),
            value: (!null_value).then_some(direct_value.unwrap_or(value)),
            headers: cx.source.headers,
            timestamp: r.timestamp,
        };
        produce(&record)
    }
}

/// Drops records without a key in front of a repartition topic, unless a left or outer join below takes them.
pub(crate) struct NotNullKey<K, V> {
    pub(crate) node: NodeId,
    pub(crate) keeps: bool,
    pub(crate) out: Edge<K, V>,
}

impl<K: Codec, V: Schema> Node<K, V> for NotNullKey<K, V> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        if !self.keeps && K::is_null(r.key) {
            cx.port.dropped(self.node);
            return Ok(());
        }
        self.out.send(cx, r)
    }
}
