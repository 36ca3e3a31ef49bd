//! The finished topology.
use super::describe::describe;
use super::spec::{NodeKind, NodeSpec, RepartitionSpec, SinkSpec, SourceSpec, StoreSpec, Subtopology};
use crate::base::id::{NodeId, SinkId, SourceId, StoreId};
use crate::node::{Blueprint, Parked, Spot, WireSettings, Wired, Wiring, WiringError};
use crate::store::kind::StoreKind;
use std::fmt;

/// What an application does: made by [`StreamsBuilder::build`](crate::StreamsBuilder::build), given to an application
/// or to a test driver. `Send + Sync`; every stream thread wires its own nodes from it.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder.stream("lines", Consumed::with(Bytes, Bytes)).to("copy");
/// let topology = builder.build().unwrap();
/// assert_eq!(
///     topology.describe(),
///     "Topologies:
///    Sub-topology: 0
///     Source: KSTREAM-SOURCE-0000000000 (topics: [lines])
///       --> KSTREAM-SINK-0000000001
///     Sink: KSTREAM-SINK-0000000001 (topic: copy)
///       <-- KSTREAM-SOURCE-0000000000
///
/// "
/// );
/// ```
pub struct Topology {
    blueprint: Blueprint,
    nodes: Vec<NodeSpec>,
    sources: Vec<SourceSpec>,
    sinks: Vec<SinkSpec>,
    stores: Vec<StoreSpec>,
    repartitions: Vec<RepartitionSpec>,
    subtopologies: Vec<Subtopology>,
    reused: Vec<(StoreId, SourceId)>,
}

/// What a topology is made of.
pub(super) struct Parts {
    pub(super) blueprint: Blueprint,
    /// By number; what the optimiser took out is in no subtopology.
    pub(super) nodes: Vec<NodeSpec>,
    /// As Kafka Streams writes them.
    pub(super) order: Vec<NodeId>,
    pub(super) sources: Vec<SourceSpec>,
    pub(super) sinks: Vec<SinkSpec>,
    pub(super) stores: Vec<StoreSpec>,
    pub(super) repartitions: Vec<RepartitionSpec>,
    /// Source nodes of global stores.
    pub(super) globals: Vec<NodeId>,
    pub(super) copartitioned: Vec<Vec<NodeId>>,
    /// Stores whose changelog is a source's topic.
    pub(super) reused: Vec<(StoreId, SourceId)>,
}

impl Topology {
    pub(super) fn new(parts: Parts) -> Self {
        let subtopologies = subtopologies(&parts);
        let Parts { blueprint, nodes, sources, sinks, stores, repartitions, reused, .. } = parts;
        Self { blueprint, nodes, sources, sinks, stores, repartitions, subtopologies, reused }
    }

    /// The topology as text, equal to what Kafka Streams prints for the same topology.
    pub fn describe(&self) -> String {
        describe(self)
    }

    /// Builds the nodes of one subtopology for the calling thread.
    pub(crate) fn wire(&self, subtopology: u32, settings: &WireSettings<'_>) -> Result<Wired, WiringError> {
        Wiring::wire(&self.blueprint, subtopology, settings)
    }

    /// A fault in words, with the name of the operator or the store where it happened.
    pub(crate) fn explain(&self, fault: &Parked) -> String {
        let name = fault.spot().and_then(|spot| match spot {
            Spot::Node(id) => self.node(id).map(|node| &node.name),
            Spot::Store(id) => self.store(id).map(|store| &store.name),
        });
        name.map_or_else(|| fault.to_string(), |name| format!("{name}: {fault}"))
    }

    /// By number.
    pub(crate) fn subtopologies(&self) -> &[Subtopology] {
        &self.subtopologies
    }

    /// By [`NodeId`].
    pub(crate) fn nodes(&self) -> &[NodeSpec] {
        &self.nodes
    }

    /// By [`SourceId`].
    pub(crate) fn sources(&self) -> &[SourceSpec] {
        &self.sources
    }

    /// By [`SinkId`].
    pub(crate) fn sinks(&self) -> &[SinkSpec] {
        &self.sinks
    }

    /// By [`StoreId`].
    pub(crate) fn stores(&self) -> &[StoreSpec] {
        &self.stores
    }

    /// Stores whose changelog is the topic of a source.
    pub(crate) fn reused(&self) -> &[(StoreId, SourceId)] {
        &self.reused
    }

    pub(crate) fn repartitions(&self) -> &[RepartitionSpec] {
        &self.repartitions
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&NodeSpec> {
        self.nodes.get(id.index())
    }

    pub(crate) fn source(&self, id: SourceId) -> Option<&SourceSpec> {
        self.sources.get(id.index())
    }

    pub(crate) fn sink(&self, id: SinkId) -> Option<&SinkSpec> {
        self.sinks.get(id.index())
    }

    /// Which stores keep their rows in memory, by [`StoreId`].
    pub(crate) fn in_memory(&self) -> Vec<bool> {
        self.blueprint.stores.iter().map(|store| store.make.kind.in_memory).collect()
    }

    /// What kind of store it is.
    pub(crate) fn store_kind(&self, id: StoreId) -> Option<StoreKind> {
        self.blueprint.stores.get(id.index()).map(|store| store.make.kind)
    }

    pub(crate) fn store(&self, id: StoreId) -> Option<&StoreSpec> {
        self.stores.get(id.index())
    }
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

fn subtopologies(parts: &Parts) -> Vec<Subtopology> {
    let nodes = || parts.order.iter().filter_map(|id| Some((*id, parts.nodes.get(id.index())?)));
    let count = nodes().map(|(_, node)| node.subtopology + 1).max().unwrap_or(0);
    let mut all: Vec<Subtopology> = (0..count).map(Subtopology::empty).collect();
    for (id, node) in nodes() {
        let Some(of) = usize::try_from(node.subtopology).ok().and_then(|at| all.get_mut(at)) else {
            continue;
        };
        of.nodes.push(id);
        match &node.kind {
            NodeKind::Source(sources) if parts.globals.contains(&id) => of.global.extend(sources),
            NodeKind::Source(sources) => of.sources.extend(sources),
            NodeKind::Sink(sink) => of.sinks.push(*sink),
            NodeKind::Processor => {}
        }
    }
    let home = |node: &NodeId| parts.nodes.get(node.index()).map(|node| node.subtopology);
    for (index, store) in parts.stores.iter().enumerate() {
        if let Some(of) = store.nodes.first().and_then(home).and_then(|at| all.get_mut(usize::try_from(at).ok()?)) {
            of.stores.push(StoreId(u16::try_from(index).unwrap_or(u16::MAX)));
        }
    }
    for group in &parts.copartitioned {
        let live = |node: &&NodeId| parts.nodes.get(node.index()).is_some_and(NodeSpec::is_live);
        let live: Vec<&NodeId> = group.iter().filter(live).collect();
        let of = live.first().and_then(|node| home(node)).and_then(|at| all.get_mut(usize::try_from(at).ok()?));
        if let Some(of) = of.filter(|_| live.len() > 1) {
            let topics = live.iter().filter_map(|node| parts.nodes.get(node.index())).flat_map(NodeSpec::sources);
            of.copartitioned.push(topics.copied().collect());
        }
    }
    all
}
