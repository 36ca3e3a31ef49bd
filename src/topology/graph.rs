//! The topology while it is built: what the operators add, and the checks at the end.
use super::error::BuildError;
use super::group::group;
use super::names::{Names, check_name};
use super::spec::{NodeKind, NodeSpec, RepartitionSpec, SinkSpec, SourceSpec, StoreSpec};
use super::topology::Topology;
use crate::base::id::{NodeId, SinkId, SourceId, StoreId};
use crate::node::{Blueprint, Make, MakeStore, Part, SourcePart, StorePart, TopicName};
use std::collections::HashSet;

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

struct Draft {
    name: String,
    kind: NodeKind,
    parents: Vec<Port>,
    stores: Vec<StoreId>,
    outputs: usize,
    named_by: Option<&'static str>,
    sends_old: bool,
    make: Make,
}

/// A topology under construction. Operators cannot fail where they are called, so the first error waits for `build`.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) names: Names,
    nodes: Vec<Draft>,
    sources: Vec<SourceSpec>,
    sinks: Vec<SinkSpec>,
    stores: Vec<(StoreSpec, MakeStore)>,
    repartitions: Vec<RepartitionSpec>,
    error: Option<BuildError>,
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

    /// Adds an operator.
    pub(crate) fn add(&mut self, new: NewNode<'_>) -> NodeId {
        self.add_kind(new, NodeKind::Processor)
    }

    fn add_kind(&mut self, new: NewNode<'_>, kind: NodeKind) -> NodeId {
        self.checked(check_name(&new.name));
        let id = NodeId(self.number(self.nodes.len(), "nodes"));
        for store in new.stores {
            if let Some((spec, _)) = self.stores.get_mut(store.index()) {
                spec.nodes.push(id);
            }
        }
        self.nodes.push(Draft {
            name: new.name,
            kind,
            parents: new.parents.to_vec(),
            stores: new.stores.to_vec(),
            outputs: new.outputs,
            named_by: new.named_by,
            sends_old: false,
            make: new.make,
        });
        id
    }

    /// Adds a source node over one or several topics; `make` gets the ids of its topics.
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

    /// The id that the next sink will have, for its `make`.
    pub(crate) fn next_sink(&mut self) -> SinkId {
        SinkId(self.number(self.sinks.len(), "sinks"))
    }

    /// Adds a sink.
    pub(crate) fn add_sink(&mut self, new: NewNode<'_>, topic: TopicName) -> SinkId {
        let id = self.next_sink();
        self.sinks.push(SinkSpec { topic });
        self.add_kind(new, NodeKind::Sink(id));
        id
    }

    /// Adds a store.
    pub(crate) fn add_store(&mut self, spec: StoreSpec, make: MakeStore) -> StoreId {
        self.checked(check_name(&spec.name));
        let id = StoreId(self.number(self.stores.len(), "stores"));
        self.stores.push((spec, make));
        id
    }

    /// Notes that a repartition topic lies between a sink and a source.
    pub(crate) fn add_repartition(&mut self, spec: RepartitionSpec) {
        self.repartitions.push(spec);
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

    /// Refuses a topic whose name a broker would refuse.
    pub(crate) fn check_topic(&mut self, topic: &TopicName) {
        self.checked(check_name(&topic.to_string()));
    }

    /// Gives the node of a port another name.
    pub(crate) fn rename(&mut self, node: NodeId, name: &str) {
        let Some(draft) = self.nodes.get_mut(node.index()) else {
            return;
        };
        if let Some(instead) = draft.named_by {
            return self.refuse(BuildError::NotNameable { name: name.to_owned(), instead });
        }
        name.clone_into(&mut draft.name);
        self.checked(check_name(name));
    }

    /// Something below this node needs the old values of its updates.
    #[allow(dead_code)] // for the operators on tables
    pub(crate) fn send_old(&mut self, node: NodeId) {
        if let Some(draft) = self.nodes.get_mut(node.index()) {
            draft.sends_old = true;
        }
    }

    /// Checks and freezes.
    pub(crate) fn finish(self) -> Result<Topology, BuildError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.sources.is_empty() {
            return Err(BuildError::Empty);
        }
        self.check_unique()?;
        let grouping = group(&self.nodes.iter().map(Draft::shape).collect::<Vec<_>>(), self.stores.len());
        Ok(self.freeze(&grouping))
    }

    fn check_unique(&self) -> Result<(), BuildError> {
        let mut seen = HashSet::new();
        for name in self.nodes.iter().map(|node| &node.name) {
            if !seen.insert(name) {
                return Err(BuildError::NameTwice { name: name.clone() });
            }
        }
        seen.clear();
        for name in self.stores.iter().map(|(store, _)| &store.name) {
            if !seen.insert(name) {
                return Err(BuildError::NameTwice { name: name.clone() });
            }
        }
        let mut topics = HashSet::new();
        for topic in self.sources.iter().map(|source| &source.topic) {
            if !topics.insert(topic) {
                return Err(BuildError::TopicTwice { topic: topic.to_string() });
            }
        }
        Ok(())
    }

    fn freeze(self, grouping: &[u32]) -> Topology {
        let mut ports: Vec<Vec<Vec<NodeId>>> = self.nodes.iter().map(|n| vec![Vec::new(); n.outputs]).collect();
        for (index, node) in self.nodes.iter().enumerate() {
            let child = NodeId(u16::try_from(index).unwrap_or(u16::MAX));
            for parent in &node.parents {
                if let Some(port) = ports.get_mut(parent.0.index()).and_then(|p| p.get_mut(parent.1)) {
                    port.push(child);
                }
            }
        }
        let mut blueprint = Blueprint::default();
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for ((draft, ports), subtopology) in self.nodes.into_iter().zip(ports).zip(grouping) {
            nodes.push(NodeSpec {
                name: draft.name,
                kind: draft.kind,
                parents: draft.parents.iter().map(|port| port.0).collect(),
                stores: draft.stores,
                subtopology: *subtopology,
            });
            let (make, sends_old) = (draft.make, draft.sends_old);
            blueprint.parts.push(Part { ports, make, subtopology: *subtopology, sends_old });
        }
        let mut stores = Vec::with_capacity(self.stores.len());
        for (spec, make) in self.stores {
            let (name, cached, logged) = (spec.name.clone(), spec.cached, spec.logged);
            let writer = spec.nodes.first().copied();
            blueprint.stores.push(StorePart { make, name, cached, logged, writer });
            stores.push(spec);
        }
        blueprint.sources = self.sources.iter().map(|s| SourcePart { node: s.node }).collect();
        Topology::new(blueprint, nodes, self.sources, self.sinks, stores, self.repartitions)
    }
}

impl Draft {
    fn shape(&self) -> super::group::Shape<'_> {
        super::group::Shape { parents: self.parents.iter().map(|port| port.0).collect(), stores: &self.stores }
    }
}

/// What all topics of a source node share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SourceTemplate {
    pub(crate) reset: Option<super::spec::OffsetReset>,
    pub(crate) timestamps: super::spec::TimestampPolicy,
}
