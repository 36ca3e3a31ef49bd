//! The topology while it is built: what the operators add.
//!
//! Owns drafts of nodes, topics and stores. Invariant: numbers never change, what is taken out leaves a hole;
//! nodes are added in the order in which Kafka Streams adds its own, which numbers the subtopologies. Bound: 65,535 of
//! each. Called by `dsl`; `freeze` makes a `Topology` of it.
use super::draft::{Draft, Mark, NewNode, Port};
use super::error::BuildError;
use super::names::{Names, check_name};
use super::repartition::Repartition;
use super::self_join::StreamJoin;
use super::spec::{NodeKind, OffsetReset, RepartitionSpec, SinkSpec, SourceSpec, StoreSpec, TimestampPolicy};
use super::tables::Tables;
use crate::base::id::{NodeId, SinkId, SourceId, StoreId};
use crate::node::{MakeStore, TopicName};
use std::any::TypeId;

/// A topology under construction. Operators cannot fail where they are called, so the first error waits for `build`.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) names: Names,
    pub(super) tables: Tables,
    pub(super) nodes: Vec<Draft>,
    pub(super) sources: Vec<SourceSpec>,
    pub(super) sinks: Vec<SinkSpec>,
    pub(super) stores: Vec<(StoreSpec, MakeStore)>,
    pub(super) repartitions: Vec<Repartition>,
    pub(super) joins: Vec<StreamJoin>,
    /// Sources of streams and the type of what they read: those of equal topics become one.
    pub(super) streams: Vec<(NodeId, TypeId)>,
    /// Stores that are what one source topic holds.
    pub(super) table_sources: Vec<(StoreId, NodeId)>,
    /// Stores whose changelog is the topic of this source.
    pub(super) reused: Vec<(StoreId, SourceId)>,
    /// Source nodes of global tables.
    pub(super) globals: Vec<NodeId>,
    /// Source nodes whose topics must have equal numbers of partitions.
    pub(super) copartitioned: Vec<Vec<NodeId>>,
    /// Streams that were repartitioned for a join, and where they are read again.
    pub(super) join_repartitions: Vec<(Port, Port)>,
    /// Nodes of windowed tables, and how long after its end a window may change, milliseconds.
    graces: Vec<(NodeId, i64)>,
    /// Nodes of tables of which it is known whether they are versioned.
    pub(super) versioned: Vec<(NodeId, bool)>,
    pub(super) error: Option<BuildError>,
}

impl Graph {
    /// Remembers the first error for `build`.
    pub(crate) fn refuse(&mut self, error: BuildError) {
        self.error.get_or_insert(error);
    }

    fn checked(&mut self, checked: Result<(), BuildError>) {
        if let Err(error) = checked {
            self.refuse(error);
        }
    }

    fn number(&mut self, of: usize, what: &'static str) -> u16 {
        u16::try_from(of).unwrap_or_else(|_| {
            self.refuse(BuildError::TooMany { what });
            u16::MAX
        })
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&Draft> {
        self.nodes.get(id.index())
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> Option<&mut Draft> {
        self.nodes.get_mut(id.index())
    }

    /// Adds an operator.
    pub(crate) fn add(&mut self, new: NewNode<'_>) -> NodeId {
        self.add_kind(new, NodeKind::Processor)
    }

    pub(super) fn add_kind(&mut self, new: NewNode<'_>, kind: NodeKind) -> NodeId {
        self.checked(check_name(&new.name));
        let id = NodeId(self.number(self.nodes.len(), "nodes"));
        for store in new.stores {
            if let Some((spec, _)) = self.stores.get_mut(store.index()) {
                spec.nodes.push(id);
            }
        }
        self.nodes.push(Draft::new(new, kind, usize::from(id.0)));
        id
    }

    /// Adds a source node over one or several topics.
    pub(crate) fn add_source(
        &mut self,
        new: NewNode<'_>,
        topics: &[TopicName],
        template: &SourceTemplate,
    ) -> (NodeId, Vec<SourceId>) {
        let node = NodeId(self.number(self.nodes.len(), "nodes"));
        let mut ids = Vec::with_capacity(topics.len());
        for topic in topics {
            ids.push(SourceId(self.number(self.sources.len(), "source topics")));
            self.sources.push(SourceSpec {
                node,
                topic: topic.clone(),
                reset: template.reset,
                timestamps: template.timestamps,
            });
        }
        (self.add_kind(new, NodeKind::Source(ids.clone())), ids)
    }

    /// The node is a stream's source of records of this type: two that read the same topics become one.
    pub(crate) fn set_stream_source(&mut self, node: NodeId, types: TypeId) {
        self.streams.push((node, types));
    }

    /// What the store holds is what this source node reads: the topic can serve as its changelog.
    pub(crate) fn set_table_source(&mut self, store: StoreId, source: NodeId) {
        self.table_sources.push((store, source));
    }

    /// The source node feeds a global store: its group makes no tasks.
    pub(crate) fn set_global(&mut self, source: NodeId) {
        self.globals.push(source);
    }

    /// The id that the next sink will have, for its `make`.
    pub(crate) fn next_sink(&mut self) -> SinkId {
        SinkId(self.number(self.sinks.len(), "sinks"))
    }

    /// Adds a sink; answers its number as a sink and as a node.
    pub(crate) fn add_sink(&mut self, new: NewNode<'_>, topic: TopicName) -> (SinkId, NodeId) {
        let id = self.next_sink();
        self.sinks.push(SinkSpec { topic, extractor: None });
        (id, self.add_kind(new, NodeKind::Sink(id)))
    }

    /// Adds a sink whose records name their topics; `extractor` is the type of what does.
    pub(crate) fn add_named_sink(&mut self, new: NewNode<'_>, extractor: &'static str) {
        let id = self.next_sink();
        self.sinks.push(SinkSpec { topic: TopicName::External(String::new()), extractor: Some(extractor) });
        self.add_kind(new, NodeKind::Sink(id));
    }

    /// Adds a store.
    pub(crate) fn add_store(&mut self, spec: StoreSpec, make: MakeStore) -> StoreId {
        self.checked(check_name(&spec.name));
        let id = StoreId(self.number(self.stores.len(), "stores"));
        self.stores.push((spec, make));
        id
    }

    /// Gives a node a store after the fact: tables get theirs when somebody needs it.
    pub(crate) fn connect_store(&mut self, node: NodeId, store: StoreId) {
        let Some(draft) = self.nodes.get_mut(node.index()).filter(|draft| !draft.stores.contains(&store)) else {
            return;
        };
        draft.stores.push(store);
        if let Some((spec, _)) = self.stores.get_mut(store.index()) {
            spec.nodes.push(node);
        }
    }

    /// Notes that a repartition topic lies between a sink and a source, never moved by the optimiser.
    pub(crate) fn add_repartition(&mut self, spec: RepartitionSpec) {
        self.repartitions.push(Repartition { spec, movable: None });
    }

    /// Notes a repartition of a stream.
    pub(crate) fn add_stream_repartition(&mut self, repartition: Repartition) {
        self.repartitions.push(repartition);
    }

    /// Where a stream was repartitioned for a join before.
    pub(crate) fn join_repartition(&self, stream: Port) -> Option<Port> {
        self.join_repartitions.iter().rev().find(|(at, _)| *at == stream).map(|(_, port)| *port)
    }

    /// Notes where a stream was repartitioned for a join.
    pub(crate) fn set_join_repartition(&mut self, stream: Port, port: Port) {
        self.join_repartitions.push((stream, port));
    }

    /// Notes the nodes of a stream-stream join.
    pub(crate) fn add_stream_join(&mut self, join: StreamJoin) {
        self.joins.push(join);
    }

    /// One more output of a node.
    pub(crate) fn add_output(&mut self, node: NodeId) -> Port {
        let outputs = self.nodes.get_mut(node.index()).map(|draft| &mut draft.outputs);
        let number = outputs.map_or(0, |outputs| {
            *outputs += 1;
            *outputs - 1
        });
        Port(node, number)
    }

    /// Says what the optimiser must know of a node.
    pub(crate) fn mark(&mut self, node: NodeId, change: impl FnOnce(&mut Mark)) {
        if let Some(draft) = self.nodes.get_mut(node.index()) {
            change(&mut draft.mark);
        }
    }

    /// The node reads what is at this port through a store: a join's table. Its records come from there too.
    pub(crate) fn reads(&mut self, node: NodeId, port: Port) {
        if let Some(draft) = self.nodes.get_mut(node.index()) {
            draft.reads.push(port);
        }
    }

    /// The topics that feed these must have equal numbers of partitions: they are joined.
    pub(crate) fn copartition(&mut self, ports: &[Port]) {
        let mut group = Vec::new();
        for port in ports {
            self.sources_of(port.0, &mut group);
        }
        self.copartitioned.push(group);
    }

    /// Source nodes whose records come to this node without another topic between.
    fn sources_of(&self, node: NodeId, into: &mut Vec<NodeId>) {
        let Some(draft) = self.node(node) else { return };
        if matches!(draft.kind, NodeKind::Source(_)) && !into.contains(&node) {
            into.push(node);
        }
        for port in draft.parents.iter().chain(&draft.reads) {
            self.sources_of(port.0, into);
        }
    }

    /// The node makes a windowed table whose windows may change so long after their end.
    pub(crate) fn set_grace(&mut self, node: NodeId, closes_after_ms: i64) {
        self.graces.push((node, closes_after_ms));
    }

    /// How long after its end a window of this table may change: the longest of all windowed tables that it is made
    /// of. `None` if it is made of another one.
    pub(crate) fn grace(&self, node: NodeId) -> Option<i64> {
        if let Some((_, grace)) = self.graces.iter().find(|(of, _)| *of == node) {
            return Some(*grace);
        }
        let parents = self.node(node).map_or(&[][..], |draft| draft.parents.as_slice());
        let graces = parents.iter().map(|port| self.grace(port.0)).collect::<Option<Vec<_>>>()?;
        graces.into_iter().max()
    }

    /// Refuses a topic whose name a broker would refuse.
    pub(crate) fn check_topic(&mut self, topic: &TopicName) {
        self.checked(check_name(&topic.to_string()));
    }

    /// Gives the node of a port another name.
    pub(crate) fn rename(&mut self, node: NodeId, name: &str) {
        let renamed = self.nodes.get_mut(node.index()).map_or(Ok(()), |draft| draft.rename(name));
        self.checked(renamed);
    }

    /// The name of a node, as it stands.
    pub(crate) fn name_of(&self, node: NodeId) -> String {
        self.node(node).map(|draft| draft.name.clone()).unwrap_or_default()
    }

    /// Whether the node sends old values.
    pub(super) fn sends_old(&self, node: NodeId) -> bool {
        self.node(node).is_some_and(|draft| draft.sends_old)
    }

    /// Something below this node needs the old values of its updates.
    pub(crate) fn send_old(&mut self, node: NodeId) {
        if let Some(draft) = self.nodes.get_mut(node.index()) {
            draft.sends_old = true;
        }
    }
}

/// What all topics of a source node share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SourceTemplate {
    pub(crate) reset: Option<OffsetReset>,
    pub(crate) timestamps: TimestampPolicy,
}
