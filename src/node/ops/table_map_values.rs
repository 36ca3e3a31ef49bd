//! `map_values` on a table.
use crate::codec::{Change, Codec, Delta, Schema};
use crate::node::{Cx, Drain, Fault, Flow, Fn2, Found, Getter, Node, Record, TableOut};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// A value made of each value; what becomes null is a deletion.
pub(crate) struct TableMapValues<K, V, W: Codec, F> {
    pub(crate) f: Arc<F>,
    pub(crate) out: TableOut<K, W>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Codec, V: Schema, W: Codec, F> Node<K, Change<V>> for TableMapValues<K, V, W, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, W::Out<'x>>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        let new = r.value.new.map(|value| (self.f)(r.key, value));
        let old = if self.out.sends_old && !self.out.is_kept() { r.value.old } else { None };
        let old = old.map(|value| (self.f)(r.key, value));
        let value = Delta { new: lend::<W>(new.as_ref()), old: lend::<W>(old.as_ref()) };
        self.out.update(cx, &Record { key: K::shorten(r.key), value, timestamp: r.timestamp })
    }
}

/// A view of a result; a null is none.
pub(crate) fn lend<'s, 'a: 's, W: Codec>(out: Option<&'s W::Out<'a>>) -> Option<W::View<'s>> {
    out.map(W::lend).filter(|view| !W::is_null(*view))
}

impl<K: Codec, V, W: Codec, F> Drain for TableMapValues<K, V, W, F> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        self.out.drain_one(cx)
    }
}

/// Looks up in the table whose values are mapped.
pub(crate) struct MapValuesGetter<K: Schema, V: Schema, W, F> {
    pub(crate) f: Arc<F>,
    pub(crate) parent: Rc<dyn Getter<K, V>>,
    pub(crate) to: PhantomData<W>,
}

impl<K: Schema, V: Schema, W: Codec, F> MapValuesGetter<K, V, W, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, W::Out<'x>>,
{
    fn map(&self, key: K::View<'_>, value: Option<(V::View<'_>, i64)>, found: Found<'_, W>) -> Flow {
        let Some((value, timestamp)) = value else { return found(None) };
        let out = (self.f)(K::shorten(key), V::shorten(value));
        found(lend::<W>(Some(&out)).map(|view| (view, timestamp)))
    }
}

impl<K: Schema, V: Schema, W: Codec, F> Getter<K, W> for MapValuesGetter<K, V, W, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, W::Out<'x>>,
{
    fn get(&self, cx: &Cx<'_>, key: K::View<'_>, found: Found<'_, W>) -> Flow {
        self.parent.get(cx, key, &mut |value| self.map(key, value, found))
    }

    fn get_at(&self, cx: &Cx<'_>, key: K::View<'_>, at: i64, found: Found<'_, W>) -> Flow {
        self.parent.get_at(cx, key, at, &mut |value| self.map(key, value, found))
    }
}
