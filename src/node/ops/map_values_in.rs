//! `map_values_in`.
use crate::base::id::NodeId;
use crate::codec::Schema;
use crate::node::{Cx, Edge, Fault, Flow, Fn2, NoRoom, Node, Parked, Pen, Record};
use std::marker::PhantomData;
use std::sync::Arc;

/// A value made of each value, written into the arena.
pub(crate) struct MapValuesIn<K, V, W, F> {
    pub(crate) node: NodeId,
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<K, W>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Schema, V: Schema, W: Schema, F> Node<K, V> for MapValuesIn<K, V, W, F>
where
    F: for<'x> Fn2<V::View<'x>, Pen<'x>, Result<W::Out<'x>, NoRoom>>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        match (self.f)(r.value, Pen::new(cx.arena)) {
            Ok(out) => {
                self.out.send(cx, &Record { key: K::shorten(r.key), value: W::lend(&out), timestamp: r.timestamp })
            }
            Err(error) => {
                let details = Parked::NoRoom { node: self.node, error };
                Err(cx.fault.park(Fault::TooLarge, details))
            }
        }
    }
}
