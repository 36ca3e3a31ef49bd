//! `for_each`.
use crate::codec::Schema;
use crate::node::{Cx, Flow, Fn2, Node, Record};
use std::marker::PhantomData;
use std::sync::Arc;

/// Shows each record to a closure; nothing is below.
pub(crate) struct ForEach<K, V, F> {
    pub(crate) f: Arc<F>,
    pub(crate) from: PhantomData<(K, V)>,
}

impl<K: Schema, V: Schema, F: for<'x> Fn2<K::View<'x>, V::View<'x>, ()>> Node<K, V> for ForEach<K, V, F> {
    fn process<'a>(&self, _cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        (self.f)(r.key, r.value);
        Ok(())
    }
}
