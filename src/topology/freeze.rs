//! From a topology under construction to one that can be wired.
use super::draft::{Draft, Port};
use super::error::BuildError;
use super::graph::Graph;
use super::group::{Shape, group};
use super::optimisation::Optimization;
use super::spec::{NodeKind, NodeSpec};
use super::topology::{Parts, Topology};
use crate::base::id::NodeId;
use crate::node::{Blueprint, Part, SourcePart, StorePart, TopicName};
use std::collections::{BTreeMap, HashSet};

/// The subtopology of what the optimiser took out.
const NOWHERE: u32 = u32::MAX;

impl Graph {
    /// Optimises, checks and freezes.
    pub(crate) fn finish(mut self, optimization: Optimization) -> Result<Topology, BuildError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.sources.is_empty() {
            return Err(BuildError::Empty);
        }
        self.merge_sources()?;
        self.optimise(optimization);
        if let Some(error) = self.error {
            return Err(error);
        }
        self.check_unique()?;
        self.check_copartitioned()?;
        Ok(self.freeze())
    }

    /// Streams read from the same topics become one source, as in Kafka Streams.
    fn merge_sources(&mut self) -> Result<(), BuildError> {
        let mut first: Vec<(NodeId, std::any::TypeId, HashSet<TopicName>)> = Vec::new();
        for (node, types) in std::mem::take(&mut self.streams) {
            let topics: HashSet<TopicName> =
                self.sources.iter().filter(|s| s.node == node).map(|s| s.topic.clone()).collect();
            let Some((main, main_types, main_topics)) = first.iter().find(|(_, _, t)| !t.is_disjoint(&topics)) else {
                first.push((node, types, topics));
                continue;
            };
            let topic = main_topics.intersection(&topics).next().map(ToString::to_string).unwrap_or_default();
            if *main_types != types || *main_topics != topics {
                return Err(BuildError::TopicTwice { topic });
            }
            let reset = |node| self.sources.iter().find(|source| source.node == node).map(|source| source.reset);
            if reset(node) != reset(*main) {
                return Err(BuildError::ResetDiffers { topic });
            }
            for draft in &mut self.nodes {
                draft.move_parent(Port(node, 0), Port(*main, 0));
            }
            self.take_out(node);
        }
        Ok(())
    }

    fn is_live(&self, node: NodeId) -> bool {
        self.node(node).is_some_and(|draft| draft.live)
    }

    fn check_unique(&self) -> Result<(), BuildError> {
        let mut seen = HashSet::new();
        for name in self.nodes.iter().filter(|draft| draft.live).map(|node| &node.name) {
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
        for topic in self.sources.iter().filter(|source| self.is_live(source.node)).map(|source| &source.topic) {
            if !topics.insert(topic) {
                return Err(BuildError::TopicTwice { topic: topic.to_string() });
            }
        }
        Ok(())
    }

    /// Repartition topics that are joined and were given numbers of partitions were given one number. What the broker
    /// says of other topics is checked when the application starts.
    fn check_copartitioned(&self) -> Result<(), BuildError> {
        for group in &self.copartitioned {
            let topics = self.sources.iter().filter(|source| group.contains(&source.node) && self.is_live(source.node));
            let given = |topic: &TopicName| {
                self.repartitions.iter().find(|r| r.spec.topic == *topic).and_then(|r| r.spec.partitions)
            };
            let counts: Option<BTreeMap<String, u32>> =
                topics.map(|source| Some((source.topic.to_string(), given(&source.topic)?))).collect();
            let Some(counts) = counts else { continue };
            if counts.values().any(|count| Some(count) != counts.values().next()) {
                let found = counts.iter().map(|(topic, count)| format!("{topic} ({count})"));
                return Err(BuildError::NotCopartitioned { found: found.collect::<Vec<_>>().join(", ") });
            }
        }
        Ok(())
    }

    /// Nodes in the order in which Kafka Streams writes them.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<(usize, &Draft)> = self.nodes.iter().enumerate().filter(|(_, draft)| draft.live).collect();
        order.sort_by_key(|(_, draft)| draft.rank);
        order.into_iter().map(|(index, _)| index).collect()
    }

    /// Nodes above a left or outer join, which takes null keys.
    fn want_null_keys(&self) -> Vec<bool> {
        let mut wants = vec![false; self.nodes.len()];
        let mut open: Vec<NodeId> = Vec::new();
        for draft in self.nodes.iter().filter(|draft| draft.live && draft.mark.wants_null_keys) {
            open.extend(draft.parents.iter().map(|port| port.0));
        }
        while let Some(node) = open.pop() {
            if let Some(wants) = wants.get_mut(node.index()).filter(|wants| !**wants) {
                *wants = true;
                open.extend(self.node(node).map(|draft| self.parents_of(node, draft)).unwrap_or_default());
            }
        }
        wants
    }

    fn freeze(mut self) -> Topology {
        let order = self.order();
        let wants = self.want_null_keys();
        let mut ports: Vec<Vec<Vec<NodeId>>> = self.nodes.iter().map(|n| vec![Vec::new(); n.outputs]).collect();
        let drafts = |index: &usize| self.nodes.get(*index);
        for (index, node) in order.iter().filter_map(|index| Some((*index, drafts(index)?))) {
            let child = NodeId(u16::try_from(index).unwrap_or(u16::MAX));
            for parent in &node.parents {
                if let Some(port) = ports.get_mut(parent.0.index()).and_then(|p| p.get_mut(parent.1)) {
                    port.push(child);
                }
            }
        }
        let mut ranks = vec![u32::MAX; self.nodes.len()];
        for (rank, index) in (0u32..).zip(&order) {
            if let Some(slot) = ranks.get_mut(*index) {
                *slot = rank;
            }
        }
        let shapes: Vec<Shape<'_>> = order.iter().filter_map(drafts).map(|draft| self.shape(draft, &ranks)).collect();
        let mut grouping = vec![NOWHERE; self.nodes.len()];
        for (index, number) in order.iter().zip(group(&shapes, self.stores.len())) {
            if let Some(slot) = grouping.get_mut(*index) {
                *slot = number;
            }
        }
        drop(shapes);
        let mut blueprint = Blueprint::default();
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let rest = ports.into_iter().zip(grouping).zip(ranks.iter().zip(wants));
        for (draft, ((ports, subtopology), (rank, keeps_null_keys))) in
            std::mem::take(&mut self.nodes).into_iter().zip(rest)
        {
            let name = draft.name.clone();
            nodes.push(NodeSpec {
                name: draft.name,
                kind: draft.kind,
                parents: draft.parents.iter().map(|port| port.0).collect(),
                stores: draft.stores,
                subtopology,
            });
            let (make, sends_old, rank) = (draft.make, draft.sends_old, *rank);
            blueprint.parts.push(Part { name, ports, make, subtopology, sends_old, rank, keeps_null_keys });
        }
        self.assemble(blueprint, nodes, &order)
    }

    /// A node as grouping sees it, its parents by rank.
    fn shape<'a>(&self, draft: &'a Draft, ranks: &[u32]) -> Shape<'a> {
        let by_rank = |port: &Port| {
            let rank = ranks.get(port.0.index()).copied().unwrap_or(u32::MAX);
            NodeId(u16::try_from(rank).unwrap_or(u16::MAX))
        };
        Shape { parents: draft.parents.iter().map(by_rank).collect(), stores: &draft.stores }
    }

    fn assemble(self, mut blueprint: Blueprint, nodes: Vec<NodeSpec>, order: &[usize]) -> Topology {
        let mut stores = Vec::with_capacity(self.stores.len());
        for (spec, make) in self.stores {
            let (name, cached, logged) = (spec.name.clone(), spec.cached, spec.logged);
            let writer = spec.nodes.first().copied();
            blueprint.stores.push(StorePart { make, name, cached, logged, writer });
            stores.push(spec);
        }
        blueprint.sources = self.sources.iter().map(|s| SourcePart { node: s.node }).collect();
        Topology::new(Parts {
            blueprint,
            nodes,
            order: order.iter().map(|index| NodeId(u16::try_from(*index).unwrap_or(u16::MAX))).collect(),
            sources: self.sources,
            sinks: self.sinks,
            stores,
            repartitions: self.repartitions.into_iter().map(|repartition| repartition.spec).collect(),
            globals: self.globals,
            reused: self.reused,
            copartitioned: self.copartitioned,
        })
    }
}

impl NodeSpec {
    /// Whether the optimiser left it in.
    pub(super) fn is_live(&self) -> bool {
        self.subtopology != NOWHERE
    }

    /// Its topics, if it is a source.
    pub(super) fn sources(&self) -> &[crate::base::id::SourceId] {
        match &self.kind {
            NodeKind::Source(sources) => sources,
            _ => &[],
        }
    }
}
