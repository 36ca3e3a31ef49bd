//! `count`, `reduce` and `aggregate` of a grouped table: the old value is taken out, then the new one is put in.
use crate::codec::{Changed, Codec, Schema};
use crate::node::{Cx, Drain, Fault, Flow, Fn2, Fn3, Node, Record, TableOut};
use std::marker::PhantomData;
use std::sync::Arc;

/// How an update changes the aggregate.
pub(crate) trait TableFold<K: Schema, V: Schema, A: Codec> {
    /// Takes a value out.
    fn subtract<'x>(&self, key: K::View<'x>, value: V::View<'x>, aggregate: &mut A::Owned);
    /// Puts a value in; there may be no aggregate yet.
    fn add<'x>(&self, key: K::View<'x>, value: V::View<'x>, aggregate: &mut Option<A::Owned>);
}

/// As `aggregate` does.
pub(crate) struct AddSubtract<I, F, G> {
    pub(crate) init: Arc<I>,
    pub(crate) add: Arc<F>,
    pub(crate) subtract: Arc<G>,
}

impl<I, F, G> Clone for AddSubtract<I, F, G> {
    fn clone(&self) -> Self {
        let (init, add, subtract) = (Arc::clone(&self.init), Arc::clone(&self.add), Arc::clone(&self.subtract));
        Self { init, add, subtract }
    }
}

impl<K: Schema, V: Schema, A: Codec, I, F, G> TableFold<K, V, A> for AddSubtract<I, F, G>
where
    I: Fn() -> A::Owned,
    F: for<'x, 'm> Fn3<K::View<'x>, V::View<'x>, &'m mut A::Owned, ()>,
    G: for<'x, 'm> Fn3<K::View<'x>, V::View<'x>, &'m mut A::Owned, ()>,
{
    fn subtract<'x>(&self, key: K::View<'x>, value: V::View<'x>, aggregate: &mut A::Owned) {
        (self.subtract)(key, value, aggregate);
    }

    fn add<'x>(&self, key: K::View<'x>, value: V::View<'x>, aggregate: &mut Option<A::Owned>) {
        (self.add)(key, value, aggregate.get_or_insert_with(|| (self.init)()));
    }
}

/// As `reduce` does.
pub(crate) struct TableReduce<F, G> {
    pub(crate) add: Arc<F>,
    pub(crate) subtract: Arc<G>,
}

impl<F, G> Clone for TableReduce<F, G> {
    fn clone(&self) -> Self {
        Self { add: Arc::clone(&self.add), subtract: Arc::clone(&self.subtract) }
    }
}

impl<K: Schema, V: Codec, F, G> TableFold<K, V, V> for TableReduce<F, G>
where
    F: for<'x, 'm> Fn2<&'m mut V::Owned, V::View<'x>, ()>,
    G: for<'x, 'm> Fn2<&'m mut V::Owned, V::View<'x>, ()>,
{
    fn subtract<'x>(&self, _key: K::View<'x>, value: V::View<'x>, aggregate: &mut V::Owned) {
        (self.subtract)(aggregate, value);
    }

    fn add<'x>(&self, _key: K::View<'x>, value: V::View<'x>, aggregate: &mut Option<V::Owned>) {
        match aggregate {
            Some(aggregate) => (self.add)(aggregate, value),
            None => *aggregate = Some(V::own(value)),
        }
    }
}

/// The node.
pub(crate) struct TableAggregate<K, V, A: Codec, F> {
    pub(crate) fold: F,
    pub(crate) out: TableOut<K, A>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Codec, V: Schema, A: Codec, F: TableFold<K, V, A>> Node<K, Changed<V>> for TableAggregate<K, V, A, F> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Changed<V>>) -> Flow {
        let is_null = |aggregate: &A::Owned| A::is_null(A::view(aggregate));
        let stamp = |old: Option<i64>| old.map_or(r.timestamp, |old| old.max(r.timestamp));
        self.out.change(cx, r.key, stamp, |aggregate| {
            if let (Some(old), Some(aggregate)) = (r.value.old, aggregate.as_mut()) {
                self.fold.subtract(r.key, old, aggregate);
            }
            let Some(new) = r.value.new else { return };
            if aggregate.as_ref().is_some_and(is_null) {
                *aggregate = None;
            }
            self.fold.add(r.key, new, aggregate);
        })
    }
}

impl<K: Codec, V, A: Codec, F> Drain for TableAggregate<K, V, A, F> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        self.out.drain_one(cx)
    }
}
