//! Tables whose store is there only if it was asked for, or when somebody needs it.
use super::ktable::{table_rows, table_store};
use super::options::Materialized;
use crate::base::id::NodeId;
use crate::codec::Codec;
use crate::node::{Made, Make, TableOut, Wiring};
use crate::topology::{Graph, LateStore, NewNode, Port};
use std::sync::Arc;

/// The store that such a table may have.
pub(super) struct MayBeKept {
    name: String,
    /// Whether it is there in any case: it was named, or its past was asked for.
    is_kept: bool,
    materialized: Materialized,
}

impl MayBeKept {
    /// A store that nobody named uses up a name, also if it is never there.
    pub(super) fn new(graph: &mut Graph, mut materialized: Materialized, prefix: &str) -> Self {
        let given = materialized.name.take();
        let is_kept = given.is_some() || materialized.history.is_some();
        let name = given.unwrap_or_else(|| graph.names.store(prefix));
        Self { name, is_kept, materialized }
    }

    /// Adds the table's node, which `wire` makes over its store and edge; told whether that is cached. `topic` is the
    /// source that could be its changelog.
    pub(super) fn add<K: Codec, V: Codec>(
        self,
        graph: &mut Graph,
        name: String,
        (parent, topic): (Port, Option<NodeId>),
        (key, value): (&K, &V),
        wire: impl Fn(&mut Wiring<'_>, NodeId, TableOut<K, V>, bool) -> Made + Send + Sync + 'static,
    ) -> (Port, LateStore) {
        let late = LateStore::default();
        let (key, store) = (key.clone(), Arc::clone(&late));
        let make: Make = Box::new(move |w, id| {
            let out = TableOut::<K, V>::wire(w, id, &key, store.get().copied())?;
            let cached = out.is_cached();
            Ok(wire(w, id, out, cached))
        });
        let node = graph.add(NewNode { name, parents: &[parent], outputs: 1, stores: &[], named_by: None, make });
        let (rows, is_versioned) = (table_rows(&self.materialized, value), self.materialized.history.is_some());
        graph.add_source_table(node, topic, &late, (table_store(self.name, self.materialized), rows));
        graph.set_versioned(node, is_versioned);
        if self.is_kept {
            graph.keep_table(node);
        }
        (Port(node, 0), late)
    }
}
