//! Kafka Streams' optimisations of a topology, by the same rules and with the same names.
//!
//! Repartition topics below one operator that changes the key become one, written right behind it. A repartition keeps
//! its types: where an operator in between made records of another type without saying so, Kafka Streams would move it
//! all the same and fail with a class cast; here it stays where it is.
use super::draft::{Draft, NewNode, Port};
use super::error::BuildError;
use super::graph::Graph;
use super::optimisation::Optimization;
use super::repartition::{Movable, Repartition};
use super::spec::{NodeKind, RepartitionSpec};
use crate::base::id::NodeId;
use crate::node::{Make, WiringError};
use std::any::TypeId;

/// A node that changes keys, or merges streams that do, and the repartitions below it.
struct Changer {
    node: NodeId,
    /// Positions in the graph's list.
    repartitions: Vec<usize>,
}

impl Graph {
    pub(super) fn optimise(&mut self, optimization: Optimization) {
        if optimization.reuse_ktable_source_topics {
            self.reuse_source_topics();
        }
        if optimization.merge_repartition_topics {
            self.merge_repartitions();
        }
        if optimization.single_store_self_join {
            self.rewrite_self_joins();
        }
    }

    /// Tables of topics write no changelog: their topic is it.
    fn reuse_source_topics(&mut self) {
        for (store, source) in std::mem::take(&mut self.table_sources) {
            let topic = self.node(source).and_then(|draft| match &draft.kind {
                NodeKind::Source(sources) => sources.first().copied(),
                _ => None,
            });
            if let (Some((spec, _)), Some(topic)) = (self.stores.get_mut(store.index()), topic) {
                spec.logged = false;
                self.reused.push((store, topic));
            }
        }
    }

    fn merge_repartitions(&mut self) {
        for changer in self.changers() {
            let first = changer.repartitions.first().and_then(|at| self.movable(*at));
            if let Some(first) = first.filter(|first| self.type_below(changer.node) == Some(first.types)) {
                self.merge_below(&changer, first);
            }
        }
        // What was merged away has no nodes any more.
        let live: Vec<bool> = self
            .repartitions
            .iter()
            .map(|r| r.movable.is_none_or(|m| self.node(m.source).is_some_and(|draft| draft.live)))
            .collect();
        let mut keep = live.iter();
        self.repartitions.retain(|_| keep.next().copied().unwrap_or(true));
    }

    fn movable(&self, at: usize) -> Option<Movable> {
        self.repartitions.get(at).and_then(|r| r.movable)
    }

    fn type_below(&self, node: NodeId) -> Option<TypeId> {
        self.node(node).and_then(|draft| draft.mark.key_changing.or(draft.mark.merges))
    }

    /// Operators that change keys, with the repartitions whose nearest change above is that one; those that a merge
    /// joins count as the merge.
    fn changers(&self) -> Vec<Changer> {
        let nodes = || self.nodes.iter().enumerate().filter(|(_, draft)| draft.live);
        let id = |index| NodeId(u16::try_from(index).unwrap_or(u16::MAX));
        let changing = nodes().filter(|(_, draft)| draft.mark.key_changing.is_some());
        let mut changers: Vec<Changer> =
            changing.map(|(index, _)| Changer { node: id(index), repartitions: Vec::new() }).collect();
        for (at, repartition) in self.repartitions.iter().enumerate() {
            let Some(movable) = repartition.movable else { continue };
            let changes = |draft: &Draft| draft.mark.key_changing.is_some() || draft.mark.value_changing;
            let above = self.find_above(movable.filter, &changes);
            let key = self.find_above(movable.filter, &|draft| draft.mark.key_changing.is_some());
            let changer = changers.iter_mut().find(|changer| above == key && Some(changer.node) == key);
            if let Some(changer) = changer {
                changer.repartitions.push(at);
            }
        }
        let mut merges = Vec::new();
        for (index, _) in nodes().filter(|(_, draft)| draft.mark.merges.is_some()) {
            let joined: Vec<usize> = (0..changers.len())
                .filter(|at| changers.get(*at).is_some_and(|changer| self.is_merged(id(index), changer)))
                .collect();
            merges.push((id(index), joined));
        }
        let of = |joined: &[usize]| {
            let of = joined.iter().filter_map(|at| changers.get(*at)).flat_map(|changer| &changer.repartitions);
            let mut all = Vec::new();
            for at in of {
                if !all.contains(at) {
                    all.push(*at);
                }
            }
            all
        };
        let merged: Vec<Changer> =
            merges.iter().map(|(node, joined)| Changer { node: *node, repartitions: of(joined) }).collect();
        let gone = |at: &usize| merges.iter().any(|(_, joined)| joined.contains(at));
        let alone = changers.into_iter().enumerate().filter(|(at, _)| !gone(at)).map(|(_, changer)| changer);
        alone.chain(merged).filter(|changer| !changer.repartitions.is_empty()).collect()
    }

    /// Whether the merge lies between the changer and all its repartitions.
    fn is_merged(&self, merge: NodeId, changer: &Changer) -> bool {
        let below = |node: NodeId, above: NodeId| self.child_towards(above, node).is_some();
        let mut filters = changer.repartitions.iter().filter_map(|at| self.movable(*at)).map(|movable| movable.filter);
        filters.all(|filter| below(filter, merge)) && below(merge, changer.node)
    }

    /// The child of `above` through which its records come to `node`, or `node` itself.
    fn child_towards(&self, above: NodeId, node: NodeId) -> Option<NodeId> {
        self.find_above(node, &|draft| draft.parents.iter().any(|port| port.0 == above))
    }

    /// The first node that fits, `from` itself or above it, through repartition topics too.
    fn find_above(&self, from: NodeId, fits: &dyn Fn(&Draft) -> bool) -> Option<NodeId> {
        let draft = self.node(from)?;
        if fits(draft) {
            return Some(from);
        }
        self.parents_of(from, draft).into_iter().find_map(|parent| self.find_above(parent, fits))
    }

    /// Parents, and for the source of a repartition topic who writes it.
    pub(super) fn parents_of(&self, id: NodeId, draft: &Draft) -> Vec<NodeId> {
        let mut parents: Vec<NodeId> = draft.parents.iter().map(|port| port.0).collect();
        if let NodeKind::Source(_) = draft.kind {
            let spec = |node: NodeId| self.sources.iter().find(|source| source.node == node);
            let repartition = spec(id).and_then(|s| self.repartitions.iter().find(|r| r.spec.topic == s.topic));
            let sinks = repartition.map_or(&[][..], |r| &r.spec.sinks);
            let writes = |draft: &Draft| matches!(&draft.kind, NodeKind::Sink(sink) if sinks.contains(sink));
            let writers = self.nodes.iter().enumerate().filter(|(_, draft)| draft.live && writes(draft));
            parents.extend(writers.map(|(index, _)| NodeId(u16::try_from(index).unwrap_or(u16::MAX))));
        }
        parents
    }

    /// Puts one repartition behind the changer in the place of all below it.
    fn merge_below(&mut self, changer: &Changer, first: Movable) {
        let Some(merged) = self.copy_behind(changer.node, first) else { return };
        let (from, to) = (Port(changer.node, 0), Port(merged.source, 0));
        for at in &changer.repartitions {
            let Some(old) = self.movable(*at) else { continue };
            // Kafka Streams does not find its way either where two repartitions share an operator below the change.
            let Some(child) = self.child_towards(changer.node, old.filter).and_then(|child| self.node_mut(child))
            else {
                let name = self.name_of(changer.node);
                return self.refuse(BuildError::NotMergeable { name });
            };
            child.move_parent(from, to);
            let parents = self.node(old.filter).map(|draft| draft.parents.clone()).unwrap_or_default();
            for draft in self.nodes.iter_mut().filter(|draft| draft.parents.contains(&Port(old.source, 0))) {
                draft.parents.retain(|port| *port != Port(old.source, 0));
                let new: Vec<Port> = parents.iter().filter(|port| !draft.parents.contains(port)).copied().collect();
                draft.parents.extend(new);
            }
            self.redirect(old.sink, merged.sink);
            for node in [old.filter, old.sink, old.source] {
                self.take_out(node);
            }
            for group in &mut self.copartitioned {
                if group.contains(&old.source) {
                    group.retain(|node| *node != old.source && *node != merged.source);
                    group.push(merged.source);
                }
            }
        }
        if let Some(filter) = self.node_mut(merged.filter) {
            filter.parents.push(from);
        }
    }

    /// Lets the unused number of a sink stand for the topic of another.
    fn redirect(&mut self, unused: NodeId, to: NodeId) {
        let sink = |graph: &Self, node| match graph.node(node).map(|draft| &draft.kind) {
            Some(NodeKind::Sink(sink)) => Some(sink.index()),
            _ => None,
        };
        let (Some(unused), Some(to)) = (sink(self, unused), sink(self, to)) else { return };
        let topic = self.sinks.get(to).map(|sink| sink.topic.clone());
        if let (Some(sink), Some(topic)) = (self.sinks.get_mut(unused), topic) {
            sink.topic = topic;
        }
    }

    /// The nodes of a repartition once more, ranked right behind a node and not yet connected to it. The topic is the
    /// same; what read and wrote it before has no use any more.
    fn copy_behind(&mut self, behind: NodeId, first: Movable) -> Option<Movable> {
        let NodeKind::Sink(sink) = self.node(first.sink)?.kind else { return None };
        let NodeKind::Source(sources) = self.node(first.source)?.kind.clone() else { return None };
        let topic = self.sinks.get(sink.index())?.topic.clone();
        let kinds = [NodeKind::Processor, NodeKind::Sink(sink), NodeKind::Source(sources.clone())];
        let old = [first.filter, first.sink, first.source];
        let mut ids = [NodeId(u16::MAX); 3];
        for (at, ((part, kind), old)) in (1..).zip(["filter", "sink", "source"].into_iter().zip(kinds).zip(old)) {
            self.names.processor("");
            let make = std::mem::replace(&mut self.node_mut(old)?.make, unused());
            let parent = ids.first().map(|filter| Port(*filter, 0)).filter(|_| part == "sink");
            let (parents, outputs) = (parent.as_slice(), usize::from(part != "sink"));
            let name = format!("{topic}-{part}");
            let new = NewNode { name, parents, outputs, stores: &[], named_by: None, make };
            let id = self.add_kind(new, kind);
            let rank = self.node(behind)?.rank.0;
            self.node_mut(id)?.rank = (rank, at);
            *ids.get_mut(usize::from(at) - 1)? = id;
        }
        let [filter, sink_node, source] = ids;
        for id in sources {
            self.sources.get_mut(id.index())?.node = source;
        }
        let movable = Movable { filter, sink: sink_node, source, types: first.types };
        let spec = RepartitionSpec { topic, partitions: None, sinks: vec![sink] };
        self.repartitions.push(Repartition { spec, movable: Some(movable) });
        Some(movable)
    }
}

/// Of a node that is not wired.
fn unused() -> Make {
    Box::new(|_, node| Err(WiringError::NoNode(node)))
}
