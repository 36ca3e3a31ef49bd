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
}

impl Topology {
    pub(crate) fn new(
        blueprint: Blueprint,
        nodes: Vec<NodeSpec>,
        sources: Vec<SourceSpec>,
        sinks: Vec<SinkSpec>,
        stores: Vec<StoreSpec>,
        repartitions: Vec<RepartitionSpec>,
    ) -> Self {
        let subtopologies = subtopologies(&nodes, &stores);
        Self { blueprint, nodes, sources, sinks, stores, repartitions, subtopologies }
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

fn subtopologies(nodes: &[NodeSpec], stores: &[StoreSpec]) -> Vec<Subtopology> {
    let count = nodes.iter().map(|node| node.subtopology + 1).max().unwrap_or(0);
    let mut all: Vec<Subtopology> = (0..count)
        .map(|id| Subtopology {
            id,
            nodes: Vec::new(),
            sources: Vec::new(),
            sinks: Vec::new(),
            stores: Vec::new(),
            copartitioned: Vec::new(),
        })
        .collect();
    for (index, node) in nodes.iter().enumerate() {
        let Some(of) = usize::try_from(node.subtopology).ok().and_then(|at| all.get_mut(at)) else {
            continue;
        };
        of.nodes.push(NodeId(u16::try_from(index).unwrap_or(u16::MAX)));
        match &node.kind {
            NodeKind::Source(sources) => of.sources.extend(sources),
            NodeKind::Sink(sink) => of.sinks.push(*sink),
            NodeKind::Processor => {}
        }
    }
    for (index, store) in stores.iter().enumerate() {
        let home = store.nodes.first().and_then(|node| nodes.get(node.index())).map(|node| node.subtopology);
        if let Some(of) = home.and_then(|at| all.get_mut(usize::try_from(at).ok()?)) {
            of.stores.push(StoreId(u16::try_from(index).unwrap_or(u16::MAX)));
        }
    }
    all
}
