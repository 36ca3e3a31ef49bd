//! `try_map_values`.
use crate::base::id::NodeId;
use crate::codec::Schema;
use crate::node::{BoxError, Cx, Edge, Fault, Flow, Fn1, Node, Parked, Record};
use std::marker::PhantomData;
use std::sync::Arc;

/// A value made of each value, or an error that fails the task.
pub(crate) struct TryMapValues<K, V, W, F> {
    pub(crate) node: NodeId,
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<K, W>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Schema, V: Schema, W: Schema, F> Node<K, V> for TryMapValues<K, V, W, F>
where
    F: for<'x> Fn1<V::View<'x>, Result<W::Out<'x>, BoxError>>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        match (self.f)(r.value) {
            Ok(out) => {
                self.out.send(cx, &Record { key: K::shorten(r.key), value: W::lend(&out), timestamp: r.timestamp })
            }
            Err(error) => Err(cx.fault.park(Fault::User, Parked::User { node: self.node, error })),
        }
    }
}
