//! `filter` and `filter_not` on a table.
use crate::codec::{Change, Codec, Delta, Schema};
use crate::node::{Cx, Drain, Fault, Flow, Fn2, Found, Getter, Node, Record, TableOut};
use std::rc::Rc;
use std::sync::Arc;

/// Passes on the values of which the predicate says `keep`; the others become deletions.
pub(crate) struct TableFilter<K, V: Codec, F> {
    pub(crate) keep: bool,
    pub(crate) f: Arc<F>,
    /// Updates of a versioned table go on even if nothing was and nothing is.
    pub(crate) versioned: bool,
    pub(crate) out: TableOut<K, V>,
}

impl<K: Codec, V: Codec, F> Node<K, Change<V>> for TableFilter<K, V, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, bool>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        let pass = |value: Option<V::View<'a>>| value.filter(|value| (self.f)(r.key, *value) == self.keep);
        let new = pass(r.value.new);
        let old = if self.out.sends_old && !self.out.is_kept() { pass(r.value.old) } else { None };
        if self.out.sends_old && new.is_none() && !self.versioned {
            let was = if self.out.is_kept() { self.out.has(cx, r.key)? } else { old.is_some() };
            if !was {
                return Ok(());
            }
        }
        self.out.update(cx, &Record { key: r.key, value: Delta { new, old }, timestamp: r.timestamp })
    }
}

impl<K: Codec, V: Codec, F> Drain for TableFilter<K, V, F> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        self.out.drain_one(cx)
    }
}

/// Looks up in the table that is filtered.
pub(crate) struct FilterGetter<K: Schema, V: Schema, F> {
    pub(crate) keep: bool,
    pub(crate) f: Arc<F>,
    pub(crate) parent: Rc<dyn Getter<K, V>>,
}

impl<K: Schema, V: Schema, F> FilterGetter<K, V, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, bool>,
{
    fn pass(&self, key: K::View<'_>, value: Option<(V::View<'_>, i64)>, found: Found<'_, V>) -> Flow {
        found(value.filter(|(value, _)| (self.f)(K::shorten(key), V::shorten(*value)) == self.keep))
    }
}

impl<K: Schema, V: Schema, F> Getter<K, V> for FilterGetter<K, V, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, bool>,
{
    fn get(&self, cx: &Cx<'_>, key: K::View<'_>, found: Found<'_, V>) -> Flow {
        self.parent.get(cx, key, &mut |value| self.pass(key, value, found))
    }

    fn get_at(&self, cx: &Cx<'_>, key: K::View<'_>, at: i64, found: Found<'_, V>) -> Flow {
        self.parent.get_at(cx, key, at, &mut |value| self.pass(key, value, found))
    }
}
