//! `peek`.
use crate::codec::Schema;
use crate::node::{Cx, Edge, Flow, Fn2, Node, Record};
use std::sync::Arc;

/// Shows each record to a closure and passes it on.
pub(crate) struct Peek<K, V, F> {
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<K, V>,
}

impl<K: Schema, V: Schema, F: for<'x> Fn2<K::View<'x>, V::View<'x>, ()>> Node<K, V> for Peek<K, V, F> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        (self.f)(r.key, r.value);
        self.out.send(cx, r)
    }

    fn warm(&self, partition: u32, key: &[u8]) {
        self.out.warm(partition, key);
    }

    fn warms(&self) -> bool {
        self.out.warms()
    }
}
