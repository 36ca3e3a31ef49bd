//! What puts the records of a stream into its window, for the other side of a join to find.
use crate::base::id::NodeId;
use crate::codec::{Codec, Scratch};
use crate::node::{Cx, Edge, Fault, Flow, KeyValue, Node, Parked, PerTask, Record};
use std::cell::RefCell;
use std::rc::Rc;

/// Passes each record on, then keeps it: by key, time, and a number that tells records of one key and time apart.
pub(crate) struct StreamWindow<K, V: Codec> {
    pub(crate) node: NodeId,
    pub(crate) key: K,
    pub(crate) store: Rc<KeyValue<V>>,
    /// The last number given.
    pub(crate) number: PerTask<u32>,
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) out: Edge<K, V>,
}

impl<K: Codec, V: Codec> Node<K, V> for StreamWindow<K, V> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        self.out.send(cx, r)?;
        if K::is_null(r.key) {
            return Ok(());
        }
        let partition = cx.task.partition;
        // From 1 to the highest positive number of Java, then from 0.
        let number = self.number.get(partition).wrapping_add(1) & (u32::MAX >> 1);
        self.number.set(partition, number);
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        scratch.extend(&partition.to_be_bytes());
        self.key.encode(K::shorten(r.key), &mut scratch);
        scratch.extend(&r.timestamp.to_be_bytes());
        scratch.extend(&number.to_be_bytes());
        scratch.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node: self.node, full }))?;
        if V::is_null(r.value) {
            return self.store.log_tombstone(cx, scratch.bytes(), r.timestamp);
        }
        self.store.put(cx, scratch.bytes(), Some(V::shorten(r.value)), r.timestamp)
    }
}
