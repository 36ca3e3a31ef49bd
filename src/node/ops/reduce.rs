//! How `reduce` folds: the first value is the aggregate, each further one is merged into it.
use super::aggregate::Fold;
use crate::codec::{Codec, Schema};
use crate::node::Fn2;
use std::sync::Arc;

/// Merges values.
pub(crate) struct Reduce<F> {
    pub(crate) f: Arc<F>,
}

impl<F> Clone for Reduce<F> {
    fn clone(&self) -> Self {
        Self { f: Arc::clone(&self.f) }
    }
}

impl<K: Schema, V: Codec, F> Fold<K, V, V> for Reduce<F>
where
    F: for<'x, 'm> Fn2<&'m mut V::Owned, V::View<'x>, ()>,
{
    #[inline]
    fn fold<'x>(&self, _key: K::View<'x>, value: V::View<'x>, aggregate: &mut Option<V::Owned>) {
        match aggregate {
            Some(aggregate) => (self.f)(aggregate, value),
            None => *aggregate = Some(V::own(value)),
        }
    }
}
