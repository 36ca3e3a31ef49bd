//! The handle of a table.
use super::kstream::{KStream, Shelf};
use crate::base::id::StoreId;
use crate::codec::{Change, Opt, Schema};
use crate::node::ops::ToStream;
use crate::node::{Make, Wiring};
use crate::topology::{NewNode, Port};
use std::fmt;
use std::rc::Rc;

/// A table: the latest value of each key.
pub struct KTable<K, V> {
    shelf: Shelf,
    at: Port,
    key: K,
    value: V,
    /// Where its values are.
    store: StoreId,
}

impl<K: Clone, V: Clone> Clone for KTable<K, V> {
    fn clone(&self) -> Self {
        Self::new(&self.shelf, self.at, self.key.clone(), self.value.clone(), self.store)
    }
}

impl<K, V> fmt::Debug for KTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KTable").field("at", &self.at).finish_non_exhaustive()
    }
}

impl<K, V> KTable<K, V> {
    pub(crate) fn new(shelf: &Shelf, at: Port, key: K, value: V, store: StoreId) -> Self {
        Self { shelf: Rc::clone(shelf), at, key, value, store }
    }

    /// Names the node that made this table.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.shelf.borrow_mut().rename(self.at.0, name);
        self
    }
}

impl<K: Schema, V: Schema> KTable<K, V> {
    /// The table's updates as a stream. A deletion is a null, so closures below see an `Option`; on a topic there is no
    /// difference.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let counts = builder.stream("words", Consumed::with(Utf8, Utf8)).group_by_key().count(Materialized::new());
    /// counts.to_stream().filter(|_, n| n.is_some_and(|n| n > 100)).to("frequent");
    /// # builder.build().unwrap();
    /// ```
    pub fn to_stream(&self) -> KStream<K, Opt<V>> {
        let make: Make =
            Box::new(|w, id| Ok(Wiring::made::<K, Change<V>>(ToStream { out: w.edge::<K, Opt<V>>(id, 0)? })));
        let mut graph = self.shelf.borrow_mut();
        let name = graph.names.processor("KTABLE-TOSTREAM-");
        let node = graph.add(NewNode { name, parents: &[self.at], outputs: 1, stores: &[], named_by: None, make });
        drop(graph);
        KStream::new(&self.shelf, Port(node, 0), self.key.clone(), Opt(self.value.clone()), false)
    }
}
