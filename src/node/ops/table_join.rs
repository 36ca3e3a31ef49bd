//! Joins of two tables by their keys: a node a side, and one where both meet.
use super::joiner::Joiner;
use super::table_map_values::lend;
use crate::base::id::NodeId;
use crate::codec::{Change, Codec, Delta, Schema};
use crate::node::{Cx, Drain, Edge, Fault, Flow, Found, Getter, Node, Record, TableOut};
use std::marker::PhantomData;
use std::rc::Rc;

/// The time of a side that is not there.
const UNKNOWN: i64 = -1;

/// One side: each update of its table is joined with what the other table has.
pub(crate) struct TableJoinSide<K: Schema, V: Schema, R: Schema, W: Codec, J> {
    pub(crate) node: NodeId,
    pub(crate) joiner: J,
    pub(crate) other: Rc<dyn Getter<K, R>>,
    /// Without the other side there is no result.
    pub(crate) needs_other: bool,
    /// Out-of-order updates of a versioned table are skipped.
    pub(crate) versioned: bool,
    pub(crate) sends_old: bool,
    pub(crate) out: Edge<K, Change<W>>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Schema, V: Schema, R: Schema, W: Codec, J: Joiner<V, R, W>> Node<K, Change<V>>
    for TableJoinSide<K, V, R, W, J>
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        if self.versioned && !cx.latest {
            cx.port.dropped(self.node);
            return Ok(());
        }
        self.other.get(cx, r.key, &mut |found| {
            let Delta { new, old } = Change::<V>::shorten(r.value);
            if found.is_none() && (self.needs_other || (new.is_none() && old.is_none())) {
                return Ok(());
            }
            let timestamp = r.timestamp.max(found.map_or(UNKNOWN, |(_, timestamp)| timestamp));
            let other = found.map(|(value, _)| R::shorten(value));
            let new = self.joiner.join(new, other);
            let old = if self.sends_old { self.joiner.join(old, other) } else { None };
            let value = Delta { new: lend::<W>(new.as_ref()), old: lend::<W>(old.as_ref()) };
            self.out.send(&cx.stamped(timestamp), &Record { key: K::shorten(r.key), value, timestamp })
        })
    }
}

/// Where the two sides meet.
pub(crate) struct TableMerge<K, W: Codec>(pub(crate) TableOut<K, W>);

impl<K: Codec, W: Codec> Node<K, Change<W>> for TableMerge<K, W> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<W>>) -> Flow {
        self.0.update(cx, r)
    }
}

impl<K: Codec, W: Codec> Drain for TableMerge<K, W> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        self.0.drain_one(cx)
    }
}

/// Looks up in both tables.
pub(crate) struct JoinGetter<K: Schema, V: Schema, R: Schema, W, J> {
    pub(crate) joiner: J,
    pub(crate) left: Rc<dyn Getter<K, V>>,
    pub(crate) right: Rc<dyn Getter<K, R>>,
    pub(crate) to: PhantomData<W>,
}

impl<K: Schema, V: Schema, R: Schema, W: Codec, J: Joiner<V, R, W>> Getter<K, W> for JoinGetter<K, V, R, W, J> {
    fn get(&self, cx: &Cx<'_>, key: K::View<'_>, found: Found<'_, W>) -> Flow {
        self.left.get(cx, key, &mut |left| {
            self.right.get(cx, key, &mut |right| {
                let time = left.map_or(UNKNOWN, |(_, time)| time).max(right.map_or(UNKNOWN, |(_, time)| time));
                let left = left.map(|(value, _)| V::shorten(value));
                let out = self.joiner.join(left, right.map(|(value, _)| R::shorten(value)));
                found(lend::<W>(out.as_ref()).map(|view| (view, time)))
            })
        })
    }
}
