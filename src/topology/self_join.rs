//! A stream joined with itself, with one store where two would hold the same.
use super::graph::Graph;
use crate::base::id::{NodeId, StoreId};
use crate::node::Make;

/// The nodes of a stream-stream join while the topology is built.
pub(crate) struct StreamJoin {
    /// What puts records of the left stream into its store.
    pub(crate) this_window: NodeId,
    pub(crate) other_window: NodeId,
    pub(crate) join_this: NodeId,
    pub(crate) join_other: NodeId,
    pub(crate) merge: NodeId,
    /// Of the left stream.
    pub(crate) this_store: StoreId,
    /// Makes the node that joins the left stream with itself, in the place of `merge`.
    pub(crate) self_join: Make,
}

impl Graph {
    /// Rewrites each join whose sides are one stream: the second store and three nodes fall away.
    pub(super) fn rewrite_self_joins(&mut self) {
        for join in std::mem::take(&mut self.joins) {
            let parents = |node| self.node(node).filter(|draft| draft.live).map(|draft| draft.parents.clone());
            let Some(parents) = parents(join.this_window).filter(|p| Some(p) == parents(join.other_window).as_ref())
            else {
                continue;
            };
            if parents.len() != 1 {
                continue;
            }
            // The repartition above keeps null keys for a left or outer join all the same.
            let wants_null_keys = self.node(join.join_this).is_some_and(|draft| draft.mark.wants_null_keys);
            for node in [join.other_window, join.join_this, join.join_other] {
                self.take_out(node);
            }
            if let Some(draft) = self.node_mut(join.merge) {
                draft.mark.wants_null_keys = wants_null_keys;
                draft.make = join.self_join;
                draft.parents = vec![super::draft::Port(join.this_window, 0)];
            }
            self.connect_store(join.merge, join.this_store);
        }
    }

    /// Takes a node out of the topology; its number stays unused.
    pub(super) fn take_out(&mut self, node: NodeId) {
        if let Some(draft) = self.node_mut(node) {
            draft.live = false;
            draft.stores.clear();
        }
        for (store, _) in &mut self.stores {
            store.nodes.retain(|user| *user != node);
        }
    }
}
