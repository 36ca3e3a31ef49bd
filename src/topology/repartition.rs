//! A repartition topic while the topology is built.
use super::spec::RepartitionSpec;
use crate::base::id::NodeId;
use std::any::TypeId;

/// A repartition topic and the nodes around it.
pub(crate) struct Repartition {
    pub(crate) spec: RepartitionSpec,
    /// What the optimiser needs to merge it with others; `None` where it stays as it is.
    pub(crate) movable: Option<Movable>,
}

/// The nodes of a repartition that may be merged with others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Movable {
    /// Drops null keys.
    pub(crate) filter: NodeId,
    pub(crate) sink: NodeId,
    pub(crate) source: NodeId,
    /// Of its records, key and value together.
    pub(crate) types: TypeId,
}
