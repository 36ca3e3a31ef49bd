//! `map`.
use crate::codec::Schema;
use crate::node::{Cx, Edge, Flow, Fn2, Node, Record};
use std::marker::PhantomData;
use std::sync::Arc;

/// A key and a value made of each key and value.
pub(crate) struct Map<K, V, J, W, F> {
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<J, W>,
    pub(crate) from: PhantomData<(K, V)>,
}

impl<K: Schema, V: Schema, J: Schema, W: Schema, F> Node<K, V> for Map<K, V, J, W, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, (J::Out<'x>, W::Out<'x>)>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        let (key, value) = (self.f)(r.key, r.value);
        self.out.send(cx, &Record { key: J::lend(&key), value: W::lend(&value), timestamp: r.timestamp })
    }
}
