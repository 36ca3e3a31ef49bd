//! `filter` and `filter_not`.
use crate::codec::Schema;
use crate::node::{Cx, Edge, Flow, Fn2, Node, Record};
use std::sync::Arc;

/// Passes on what the predicate says `keep` of.
pub(crate) struct Filter<K, V, F> {
    pub(crate) keep: bool,
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<K, V>,
}

impl<K: Schema, V: Schema, F: for<'x> Fn2<K::View<'x>, V::View<'x>, bool>> Node<K, V> for Filter<K, V, F> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        if (self.f)(r.key, r.value) == self.keep { self.out.send(cx, r) } else { Ok(()) }
    }

    fn warm(&self, partition: u32, key: &[u8]) {
        self.out.warm(partition, key);
    }

    fn warms(&self) -> bool {
        self.out.warms()
    }
}
