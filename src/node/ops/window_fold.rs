//! What windowed aggregates ask of a fold beyond a change: the value it begins with, and how two values become one.
use super::aggregate::{Fold, FromInit};
use super::reduce::Reduce;
use crate::codec::{Codec, I64, Schema};
use crate::node::{Fn2, Fn3};
use std::sync::Arc;

/// A fold whose beginning is known.
pub(crate) trait WindowFold<K: Schema, V: Schema, A: Codec>: Fold<K, V, A> {
    /// What an aggregate is before its first record.
    fn begin(&self) -> Option<A::Owned>;
}

impl<K: Schema, V: Schema, A: Codec, I, F> WindowFold<K, V, A> for FromInit<I, F>
where
    I: Fn() -> A::Owned,
    F: for<'x, 'm> Fn3<K::View<'x>, V::View<'x>, &'m mut A::Owned, ()>,
{
    fn begin(&self) -> Option<A::Owned> {
        Some((self.init)())
    }
}

impl<K: Schema, V: Codec, F> WindowFold<K, V, V> for Reduce<F>
where
    F: for<'x, 'm> Fn2<&'m mut V::Owned, V::View<'x>, ()>,
{
    fn begin(&self) -> Option<V::Owned> {
        None
    }
}

/// How two sessions' aggregates become one.
pub(crate) trait Merge<K: Schema, A: Codec> {
    fn merge<'x>(&self, key: K::View<'x>, into: &mut Option<A::Owned>, other: A::View<'x>);
}

/// Counts add up.
#[derive(Clone, Copy)]
pub(crate) struct MergeCounts;

impl<K: Schema> Merge<K, I64> for MergeCounts {
    fn merge<'x>(&self, _key: K::View<'x>, into: &mut Option<i64>, other: i64) {
        *into = Some(into.unwrap_or(0) + other);
    }
}

impl<K: Schema, V: Codec, F> Merge<K, V> for Reduce<F>
where
    F: for<'x, 'm> Fn2<&'m mut V::Owned, V::View<'x>, ()>,
{
    fn merge<'x>(&self, _key: K::View<'x>, into: &mut Option<V::Owned>, other: V::View<'x>) {
        match into {
            Some(into) => (self.f)(into, other),
            None => *into = Some(V::own(other)),
        }
    }
}

/// As the user's closure says.
pub(crate) struct Merger<M>(pub(crate) Arc<M>);

impl<M> Clone for Merger<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Schema, A: Codec, M> Merge<K, A> for Merger<M>
where
    M: for<'x, 'm> Fn3<K::View<'x>, &'m mut A::Owned, A::View<'x>, ()>,
{
    fn merge<'x>(&self, key: K::View<'x>, into: &mut Option<A::Owned>, other: A::View<'x>) {
        match into {
            Some(into) => (self.0)(key, into, other),
            None => *into = Some(A::own(other)),
        }
    }
}
