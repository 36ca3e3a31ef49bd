//! `select_key`, which `group_by` is too.
use crate::codec::Schema;
use crate::node::{Cx, Edge, Flow, Fn2, Node, Record};
use std::marker::PhantomData;
use std::sync::Arc;

/// A key made of each key and value.
pub(crate) struct SelectKey<K, V, J, F> {
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<J, V>,
    pub(crate) from: PhantomData<K>,
}

impl<K: Schema, V: Schema, J: Schema, F> Node<K, V> for SelectKey<K, V, J, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, J::Out<'x>>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        let key = (self.f)(r.key, r.value);
        self.out.send(cx, &Record { key: J::lend(&key), value: V::shorten(r.value), timestamp: r.timestamp })
    }
}
