//! What the builder knows of tables: whose values can be looked up where, and who has to send old values.
//!
//! Owns a note for each node that makes a table. Invariant: a source's store exists only if somebody asked for it, as
//! in Kafka Streams, whose topics depend on it. Bound: one note a node. Called by `dsl` while a topology is built.
use super::graph::Graph;
use super::spec::StoreSpec;
use crate::base::id::{NodeId, StoreId};
use crate::node::MakeStore;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The id of a store, once it was asked for.
pub(crate) type LateStore = Arc<OnceLock<StoreId>>;

/// How a node makes its table.
pub(crate) enum TableKind {
    /// From a topic or a stream; kept when somebody asks for it.
    Source {
        /// Set when it is kept.
        store: LateStore,
        /// What to add then.
        add: Option<(StoreSpec, MakeStore)>,
        /// The source node, if it is the table of a topic: that can serve as changelog.
        topic: Option<NodeId>,
    },
    /// Always kept.
    Stored(StoreId),
    /// Always kept, by several nodes in front of a merging one.
    Merged {
        /// The nodes.
        parts: Vec<NodeId>,
        store: StoreId,
    },
    /// Computed from another table, kept if the user said so.
    Computed {
        /// The node that makes the other.
        parent: NodeId,
        store: Option<StoreId>,
    },
    /// Another table whose updates wait in a buffer.
    Suppressed {
        /// The node that makes the other.
        parent: NodeId,
        buffer: StoreId,
    },
    /// From two tables, kept if the user said so.
    Joined {
        /// The nodes that make the joined tables.
        tables: [NodeId; 2],
        /// The two joining nodes in front of the merging one.
        sides: [NodeId; 2],
        store: Option<StoreId>,
    },
}

/// Notes by node.
#[derive(Default)]
pub(crate) struct Tables(BTreeMap<u16, TableKind>);

impl Graph {
    /// Notes how a node makes its table.
    pub(crate) fn add_table(&mut self, node: NodeId, kind: TableKind) {
        self.tables.0.insert(node.0, kind);
    }

    /// Notes a table that is kept when somebody asks for it.
    pub(crate) fn add_source_table(
        &mut self,
        node: NodeId,
        topic: Option<NodeId>,
        store: &LateStore,
        add: (StoreSpec, MakeStore),
    ) {
        self.add_table(node, TableKind::Source { store: Arc::clone(store), add: Some(add), topic });
    }

    /// Says whether a table is versioned; if nobody does, a computed one is as the one that it is computed from.
    pub(crate) fn set_versioned(&mut self, node: NodeId, yes: bool) {
        self.versioned.push((node, yes));
    }

    /// Whether a table's updates say where they are in time: those below treat late ones differently then.
    pub(crate) fn is_versioned(&self, node: NodeId) -> bool {
        match (self.known_versioned(node), self.tables.0.get(&node.0)) {
            (Some(known), _) => known,
            (None, Some(TableKind::Computed { parent, .. })) => self.is_versioned(*parent),
            _ => false,
        }
    }

    fn known_versioned(&self, node: NodeId) -> Option<bool> {
        self.versioned.iter().find(|(of, _)| *of == node).map(|(_, known)| *known)
    }

    /// Whether a table can be asked what it had at a time. Kafka Streams refuses also what only says that it cannot.
    pub(crate) fn knows_past(&self, node: NodeId) -> bool {
        self.known_versioned(node) != Some(false) && self.is_looked_up_in_versions(node)
    }

    fn is_looked_up_in_versions(&self, node: NodeId) -> bool {
        match self.tables.0.get(&node.0) {
            Some(TableKind::Computed { parent, store: None }) => self.is_looked_up_in_versions(*parent),
            _ => self.known_versioned(node) == Some(true),
        }
    }

    /// Makes a source table kept.
    pub(crate) fn keep_table(&mut self, node: NodeId) {
        let Some(TableKind::Source { store, add, topic }) = self.tables.0.get_mut(&node.0) else { return };
        let Some((spec, make)) = add.take() else { return };
        let (store, topic) = (Arc::clone(store), *topic);
        let id = self.add_store(spec, make);
        let _ = store.set(id);
        self.connect_store(node, id);
        if let Some(topic) = topic {
            self.set_table_source(id, topic);
        }
    }

    /// The store that holds the table itself, and its name; a source is kept from now on.
    pub(crate) fn own_store(&mut self, node: NodeId) -> Option<(StoreId, String)> {
        self.keep_table(node);
        let id = match self.tables.0.get(&node.0)? {
            TableKind::Source { store, .. } => store.get().copied()?,
            TableKind::Stored(store) | TableKind::Merged { store, .. } => *store,
            TableKind::Computed { store, .. } | TableKind::Joined { store, .. } => (*store)?,
            TableKind::Suppressed { .. } => return None,
        };
        Some((id, self.stores.get(id.index())?.0.name.clone()))
    }

    /// The stores in which a table's values are looked up; a source is kept from now on.
    pub(crate) fn table_stores(&mut self, node: NodeId) -> Vec<StoreId> {
        self.keep_table(node);
        match self.tables.0.get(&node.0) {
            Some(TableKind::Source { store, .. }) => store.get().copied().into_iter().collect(),
            Some(TableKind::Stored(store) | TableKind::Merged { store, .. }) => vec![*store],
            Some(TableKind::Computed { store: Some(store), .. } | TableKind::Joined { store: Some(store), .. }) => {
                vec![*store]
            }
            Some(TableKind::Computed { parent, store: None }) => {
                let parent = *parent;
                self.table_stores(parent)
            }
            Some(TableKind::Suppressed { parent, buffer }) => {
                let (parent, mut stores) = (*parent, vec![*buffer]);
                stores.extend(self.table_stores(parent));
                stores
            }
            Some(TableKind::Joined { tables, store: None, .. }) => {
                let tables = *tables;
                tables.iter().flat_map(|table| self.table_stores(*table)).collect()
            }
            None => Vec::new(),
        }
    }

    /// Gives the node that makes a table another name; a join's sides are named after it.
    pub(crate) fn rename_table(&mut self, node: NodeId, name: &str) {
        self.rename(node, name);
        if let Some(TableKind::Joined { sides: [this, other], .. }) = self.tables.0.get(&node.0) {
            let (this, other) = (*this, *other);
            self.rename(this, &format!("{name}-join-this"));
            self.rename(other, &format!("{name}-join-other"));
        }
    }

    /// Somebody below wants a table's old values. Without `force` a source that is not kept does not begin to be.
    /// Answers whether old values will be sent.
    pub(crate) fn want_old(&mut self, node: NodeId, force: bool) -> bool {
        if self.sends_old(node) {
            return true;
        }
        match self.tables.0.get(&node.0) {
            Some(TableKind::Source { add: Some(_), .. }) if !force => return false,
            Some(TableKind::Source { .. }) => self.keep_table(node),
            Some(TableKind::Computed { parent, store: None } | TableKind::Suppressed { parent, .. }) => {
                let parent = *parent;
                if !self.want_old(parent, force) {
                    return false;
                }
            }
            Some(TableKind::Joined { tables, sides, .. }) => {
                let (tables, sides) = (*tables, *sides);
                for table in tables {
                    self.want_old(table, true);
                }
                sides.iter().for_each(|side| self.send_old(*side));
            }
            Some(TableKind::Merged { parts, .. }) => {
                let parts = parts.clone();
                parts.iter().for_each(|part| self.send_old(*part));
            }
            Some(TableKind::Stored(_) | TableKind::Computed { .. }) | None => {}
        }
        self.send_old(node);
        true
    }
}
