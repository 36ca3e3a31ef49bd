//! A node while the topology is built.
use super::error::BuildError;
use super::names::check_name;
use super::spec::NodeKind;
use crate::base::id::{NodeId, StoreId};
use crate::node::Make;
use std::any::TypeId;

/// An output of a node; a branch has several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Port(pub(crate) NodeId, pub(crate) usize);

impl Port {
    /// Of a node that could not be made; the graph holds the error.
    pub(crate) const NOWHERE: Self = Self(NodeId(u16::MAX), 0);
}

/// What an operator adds.
pub(crate) struct NewNode<'a> {
    pub(crate) name: String,
    pub(crate) parents: &'a [Port],
    /// Number of outputs.
    pub(crate) outputs: usize,
    /// Stores that it reads or writes.
    pub(crate) stores: &'a [StoreId],
    /// What to use instead of `.named`, where that cannot name the node.
    pub(crate) named_by: Option<&'static str>,
    pub(crate) make: Make,
}

/// What the optimiser and the null-key rule look at. Types are those of the node's output, key and value together.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Mark {
    /// It may change the key.
    pub(crate) key_changing: Option<TypeId>,
    /// It may change the value, so that no repartition is moved above it.
    pub(crate) value_changing: bool,
    /// It merges streams.
    pub(crate) merges: Option<TypeId>,
    /// It is a left or outer join that takes null keys, so no repartition above drops them.
    pub(crate) wants_null_keys: bool,
}

/// A node that is not frozen yet.
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) kind: NodeKind,
    pub(super) parents: Vec<Port>,
    pub(super) stores: Vec<StoreId>,
    pub(super) outputs: usize,
    pub(super) named_by: Option<&'static str>,
    pub(super) sends_old: bool,
    pub(super) make: Make,
    /// Where Kafka Streams writes it to the topology: in the order of the calls, but for what the optimiser puts
    /// behind another.
    pub(super) rank: (usize, u8),
    pub(super) mark: Mark,
    /// What it reads through a store instead of an edge.
    pub(super) reads: Vec<Port>,
    /// Cleared when the optimiser takes it out.
    pub(super) live: bool,
}

impl Draft {
    pub(super) fn new(new: NewNode<'_>, kind: NodeKind, rank: usize) -> Self {
        let mut parents: Vec<Port> = Vec::with_capacity(new.parents.len());
        for parent in new.parents {
            // Merged with itself, a stream is one parent.
            if !parents.contains(parent) {
                parents.push(*parent);
            }
        }
        Self {
            name: new.name,
            kind,
            parents,
            stores: new.stores.to_vec(),
            outputs: new.outputs,
            named_by: new.named_by,
            sends_old: false,
            make: new.make,
            rank: (rank, 0),
            mark: Mark::default(),
            reads: Vec::new(),
            live: true,
        }
    }

    pub(super) fn rename(&mut self, name: &str) -> Result<(), BuildError> {
        if let Some(instead) = self.named_by {
            return Err(BuildError::NotNameable { name: name.to_owned(), instead });
        }
        name.clone_into(&mut self.name);
        check_name(name)
    }

    /// Connects what hung at one port to another, which becomes the last parent.
    pub(super) fn move_parent(&mut self, from: Port, to: Port) {
        let before = self.parents.len();
        self.parents.retain(|port| *port != from);
        if self.parents.len() < before && !self.parents.contains(&to) {
            self.parents.push(to);
        }
    }
}
