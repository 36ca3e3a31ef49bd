//! Joins of a stream with what a table has at that moment: by the record's key, or by a key made of the record.
use super::joiner::Joiner;
use crate::base::id::{NodeId, TaskId};
use crate::codec::{Codec, Schema};
use crate::node::{Cx, Edge, Flow, Fn2, Found, Getter, Node, Record};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// Joined by the record's key.
pub(crate) struct StreamTableJoin<K: Schema, V, R: Schema, W, J> {
    pub(crate) node: NodeId,
    /// Records without a match, or without a key, are joined with nothing.
    pub(crate) left: bool,
    pub(crate) joiner: J,
    pub(crate) table: Rc<dyn Getter<K, R>>,
    pub(crate) out: Edge<K, W>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Codec, V: Codec, R: Schema, W: Schema, J: Joiner<V, R, W>> StreamTableJoin<K, V, R, W, J> {
    /// Joins a record: also what a grace period has held back.
    pub(crate) fn join<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        if K::is_null(r.key) {
            return send(&self.joiner, &self.out, cx, r, None::<R::View<'_>>);
        }
        self.table.get_at(cx, r.key, r.timestamp, &mut |found| {
            send(&self.joiner, &self.out, cx, r, found.map(|(value, _)| R::shorten(value)))
        })
    }

    /// Whether a record takes part; if not, it is counted.
    pub(crate) fn takes(&self, cx: &Cx<'_>, r: &Record<'_, K, V>) -> bool {
        takes(self.left, K::is_null(r.key), V::is_null(r.value), self.node, cx)
    }
}

impl<K: Codec, V: Codec, R: Schema, W: Schema, J: Joiner<V, R, W>> Node<K, V> for StreamTableJoin<K, V, R, W, J> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        if self.takes(cx, r) { self.join(cx, r) } else { Ok(()) }
    }
}

fn takes(left: bool, no_key: bool, no_value: bool, node: NodeId, cx: &Cx<'_>) -> bool {
    let takes = !no_value && (left || !no_key);
    if !takes {
        cx.port.dropped(node);
    }
    takes
}

fn send<'a, K: Schema, V: Schema, R: Schema, W: Schema, J: Joiner<V, R, W>>(
    joiner: &J,
    out: &Edge<K, W>,
    cx: &Cx<'a>,
    r: &Record<'a, K, V>,
    found: Option<R::View<'_>>,
) -> Flow {
    let joined = joiner.join(Some(V::shorten(r.value)), found.map(R::shorten));
    let Some(joined) = joined else { return Ok(()) };
    out.send(cx, &Record { key: K::shorten(r.key), value: W::lend(&joined), timestamp: r.timestamp })
}

/// Joined with a global table, by a key that is made of each record.
pub(crate) struct StreamGlobalJoin<K, V, G: Schema, R: Schema, W, M, J> {
    pub(crate) node: NodeId,
    pub(crate) left: bool,
    pub(crate) mapper: Arc<M>,
    pub(crate) joiner: J,
    pub(crate) table: Rc<dyn Getter<G, R>>,
    pub(crate) out: Edge<K, W>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Codec, V: Codec, G: Codec, R: Schema, W: Schema, M, J> Node<K, V> for StreamGlobalJoin<K, V, G, R, W, M, J>
where
    M: for<'x> Fn2<K::View<'x>, V::View<'x>, G::Out<'x>>,
    J: Joiner<V, R, W>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        let mapped = (self.mapper)(r.key, r.value);
        let key = G::lend(&mapped);
        let no_mapped = G::is_null(key);
        if !takes(self.left, no_mapped, V::is_null(r.value), self.node, cx) {
            return Ok(());
        }
        if no_mapped {
            return send(&self.joiner, &self.out, cx, r, None::<R::View<'_>>);
        }
        self.table
            .get(cx, key, &mut |found| send(&self.joiner, &self.out, cx, r, found.map(|(value, _)| R::shorten(value))))
    }
}

/// Looks up in a global table: its rows lie in one place, whatever the task's partition.
pub(crate) struct GlobalGetter<K: Schema, V: Schema>(pub(crate) Rc<dyn Getter<K, V>>);

impl<K: Schema, V: Schema> Getter<K, V> for GlobalGetter<K, V> {
    fn get(&self, cx: &Cx<'_>, key: K::View<'_>, found: Found<'_, V>) -> Flow {
        let task = TaskId { partition: 0, ..cx.task };
        self.0.get(&Cx { task, ..*cx }, key, found)
    }
}
