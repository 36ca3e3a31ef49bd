//! `map_values` and `map_values_with_key`.
use crate::codec::Schema;
use crate::node::{Cx, Edge, Flow, Fn1, Fn2, Node, Record};
use std::marker::PhantomData;
use std::sync::Arc;

/// A value made of each value.
pub(crate) struct MapValues<K, V, W, F> {
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<K, W>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Schema, V: Schema, W: Schema, F: for<'x> Fn1<V::View<'x>, W::Out<'x>>> Node<K, V> for MapValues<K, V, W, F> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        let out = (self.f)(r.value);
        self.out.send(cx, &Record { key: K::shorten(r.key), value: W::lend(&out), timestamp: r.timestamp })
    }

    fn warm(&self, partition: u32, key: &[u8]) {
        self.out.warm(partition, key);
    }

    fn warms(&self) -> bool {
        self.out.warms()
    }
}

/// A value made of each key and value.
pub(crate) struct MapValuesWithKey<K, V, W, F> {
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<K, W>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Schema, V: Schema, W: Schema, F> Node<K, V> for MapValuesWithKey<K, V, W, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, W::Out<'x>>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        let out = (self.f)(r.key, r.value);
        self.out.send(cx, &Record { key: K::shorten(r.key), value: W::lend(&out), timestamp: r.timestamp })
    }

    fn warm(&self, partition: u32, key: &[u8]) {
        self.out.warm(partition, key);
    }

    fn warms(&self) -> bool {
        self.out.warms()
    }
}
