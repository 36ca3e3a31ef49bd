//! `group_by` on a table: each update under its new key, the old value under the old one.
use crate::base::id::NodeId;
use crate::codec::{Change, Changed, Codec, Delta, Schema, Scratch};
use crate::node::{Cx, Edge, Fault, Flow, Fn2, Node, Parked, Record};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

/// New keys and values for what was and for what is.
pub(crate) struct TableGroupBy<K, V, J, W, F> {
    pub(crate) node: NodeId,
    pub(crate) f: Arc<F>,
    pub(crate) key: J,
    /// Out-of-order updates of a versioned table are passed over.
    pub(crate) versioned: bool,
    pub(crate) scratch: RefCell<(Scratch, Scratch)>,
    pub(crate) out: Edge<J, Changed<W>>,
    pub(crate) from: PhantomData<(K, V)>,
}

impl<K: Schema, V: Schema, J: Codec, W: Codec, F> TableGroupBy<K, V, J, W, F> {
    fn is_same(&self, cx: &Cx<'_>, a: J::View<'_>, b: J::View<'_>) -> Result<bool, Fault> {
        let (one, two) = &mut *self.scratch.borrow_mut();
        for (scratch, key) in [(&mut *one, J::shorten(a)), (&mut *two, J::shorten(b))] {
            scratch.clear();
            self.key.encode(key, scratch);
            let full = |full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node: self.node, full });
            scratch.check().map_err(full)?;
        }
        Ok(one.bytes() == two.bytes())
    }
}

impl<K: Schema, V: Schema, J: Codec, W: Codec, F> Node<K, Change<V>> for TableGroupBy<K, V, J, W, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, (J::Out<'x>, W::Out<'x>)>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        if self.versioned && !cx.latest {
            return Ok(());
        }
        let (new, old) = (r.value.new.map(|v| (self.f)(r.key, v)), r.value.old.map(|v| (self.f)(r.key, v)));
        let new = new.as_ref().map(|(key, value)| (J::lend(key), W::lend(value)));
        let old = old.as_ref().map(|(key, value)| (J::lend(key), W::lend(value)));
        let new = new.filter(|(key, value)| !J::is_null(*key) && !W::is_null(*value));
        let old = old.filter(|(key, value)| !J::is_null(*key) && !W::is_null(*value));
        let send = |key, new, old| {
            let value = Delta { new, old };
            self.out.send(cx, &Record::<J, Changed<W>> { key, value, timestamp: r.timestamp })
        };
        if let (Some((new_key, new)), Some((old_key, old))) = (new, old)
            && self.is_same(cx, new_key, old_key)?
        {
            return send(old_key, Some(new), Some(old));
        }
        if let Some((key, old)) = old {
            send(key, None, Some(old))?;
        }
        new.map_or(Ok(()), |(key, new)| send(key, Some(new), None))
    }
}
