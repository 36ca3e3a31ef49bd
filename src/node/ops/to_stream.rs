//! `to_stream`.
use crate::codec::{Change, Opt, Schema};
use crate::node::{Cx, Edge, Flow, Node, Record};

/// A table's updates as records; a deletion is a null.
pub(crate) struct ToStream<K, V> {
    pub(crate) out: Edge<K, Opt<V>>,
}

impl<K: Schema, V: Schema> Node<K, Change<V>> for ToStream<K, V> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        self.out.send(cx, &Record { key: r.key, value: r.value.new, timestamp: r.timestamp })
    }
}
