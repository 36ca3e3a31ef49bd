//! `split` and `branch`.
use crate::codec::Schema;
use crate::node::{Cx, Edge, Flow, Fn2, Node, Record};
use std::sync::Arc;

/// A branch's predicate; `None` takes what is left.
pub(crate) type Predicate<K, V> =
    Option<Arc<dyn for<'x> Fn2<<K as Schema>::View<'x>, <V as Schema>::View<'x>, bool, Output = bool>>>;

/// Sends each record to the first output whose predicate says yes; to none if none does.
pub(crate) struct Branch<K: Schema, V: Schema> {
    pub(crate) ways: Vec<(Predicate<K, V>, Edge<K, V>)>,
}

impl<K: Schema, V: Schema> Node<K, V> for Branch<K, V> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        for (predicate, out) in &self.ways {
            if predicate.as_ref().is_none_or(|predicate| predicate(r.key, r.value)) {
                return out.send(cx, r);
            }
        }
        Ok(())
    }
}
