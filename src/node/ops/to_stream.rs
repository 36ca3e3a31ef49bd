//! `to_stream`.
use crate::codec::{Change, Opt, Schema};
use crate::node::{Cx, Edge, Flow, Fn1, Node, Record};
use std::marker::PhantomData;
use std::sync::Arc;

/// A table's updates as records; a deletion is a null.
pub(crate) struct ToStream<K, V> {
    pub(crate) out: Edge<K, Opt<V>>,
}

impl<K: Schema, V: Schema> Node<K, Change<V>> for ToStream<K, V> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        self.out.send(cx, &Record { key: r.key, value: r.value.new, timestamp: r.timestamp })
    }
}

/// `to_stream_as`: as [`ToStream`], and what the closure makes of the new value.
pub(crate) struct ToStreamAs<V, F, K, W> {
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<K, W>,
    pub(crate) from: PhantomData<fn(V)>,
}

impl<K, V, W, F> Node<K, Change<V>> for ToStreamAs<V, F, K, W>
where
    K: Schema,
    V: Schema,
    W: Schema,
    F: for<'a> Fn1<Option<V::View<'a>>, W::Out<'a>>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        let value = (self.f)(r.value.new);
        self.out.send(cx, &Record { key: K::shorten(r.key), value: W::lend(&value), timestamp: r.timestamp })
    }
}
