//! A node that only passes on: a branch's output, a merge.
use crate::codec::Schema;
use crate::node::{Cx, Edge, Flow, Node, Record};

/// Passes each record on.
pub(crate) struct Pass<K, V> {
    pub(crate) out: Edge<K, V>,
}

impl<K: Schema, V: Schema> Node<K, V> for Pass<K, V> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        self.out.send(cx, r)
    }

    fn warm(&self, partition: u32, key: &[u8]) {
        self.out.warm(partition, key);
    }

    fn warms(&self) -> bool {
        self.out.warms()
    }
}
