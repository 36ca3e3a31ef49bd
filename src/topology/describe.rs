//! The text of a topology, letter for letter as Kafka Streams prints it.
//!
//! Nodes are printed by the size of what hangs below them. The order of a node's parents and children is what Java's
//! collections make of it: they are inserted into sorted sets, in the order of a hash map, by sizes that still change.
//! So both collections are imitated here. Cold code.
use super::spec::{NodeKind, NodeSpec};
use super::topology::Topology;
use super::tree_set::TreeSet;
use std::fmt::Write as _;

/// The text of the whole topology.
pub(crate) fn describe(topology: &Topology) -> String {
    let mut text = String::from("Topologies:\n ");
    for subtopology in topology.subtopologies() {
        let nodes: Vec<&NodeSpec> = subtopology.nodes.iter().filter_map(|id| topology.node(*id)).collect();
        let global = if subtopology.global.is_empty() { "" } else { " for global store (will not generate tasks)" };
        let _ = writeln!(text, "  Sub-topology: {}{global}", subtopology.id);
        let family = Family::new(topology, &nodes);
        for node in family.in_print_order() {
            family.print(topology, node, &mut text);
        }
        if global.is_empty() {
            text.push('\n');
        }
    }
    text
}

/// `String.hashCode` with the spread of `HashMap`.
fn java_hash(text: &str) -> u32 {
    let hash = text.encode_utf16().fold(0u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)));
    hash ^ (hash >> 16)
}

/// Positions of the texts in the order in which a Java hash set gives them back, inserted in the order given.
fn hash_set_order(texts: &[&str]) -> Vec<usize> {
    let mut capacity = 16u32;
    while texts.len() as u64 * 4 > u64::from(capacity) * 3 {
        capacity *= 2;
    }
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|&at| texts.get(at).map_or(0, |text| java_hash(text) & (capacity - 1)));
    order
}

/// The nodes of a subtopology with their relations.
struct Family<'a> {
    nodes: Vec<&'a NodeSpec>,
    size: Vec<usize>,
    parents: Vec<TreeSet>,
    children: Vec<TreeSet>,
}

impl<'a> Family<'a> {
    fn new(topology: &'a Topology, nodes: &[&'a NodeSpec]) -> Self {
        let nodes = nodes.to_vec();
        let order = hash_set_order(&nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>());
        let count = nodes.len();
        let set = || (0..count).map(|_| TreeSet::default()).collect();
        let mut family = Self { nodes, size: vec![1; count], parents: set(), children: set() };
        for at in order {
            let Some(node) = family.nodes.get(at).copied() else {
                continue;
            };
            for parent in node.parents.iter().filter_map(|id| topology.node(*id)) {
                if let Some(parent) = family.nodes.iter().position(|other| other.name == parent.name) {
                    family.connect(parent, at);
                }
            }
        }
        family
    }

    /// Whether `a` is printed before `b` as things stand.
    fn before(nodes: &[&NodeSpec], size: &[usize], a: usize, b: usize) -> bool {
        let key = |at: usize| (std::cmp::Reverse(size.get(at)), nodes.get(at).map(|node| &node.name));
        key(a) < key(b)
    }

    fn connect(&mut self, parent: usize, child: usize) {
        let (nodes, size) = (&self.nodes, &self.size);
        let before = |a: usize, b: usize| Self::before(nodes, size, a, b);
        if let Some(set) = self.parents.get_mut(child) {
            set.insert(parent, before);
        }
        if let Some(set) = self.children.get_mut(parent) {
            set.insert(child, before);
        }
        let delta = self.size.get(child).copied().unwrap_or(0);
        self.grow(parent, delta);
    }

    fn grow(&mut self, node: usize, delta: usize) {
        if let Some(size) = self.size.get_mut(node) {
            *size += delta;
        }
        for parent in self.parents.get(node).map(TreeSet::in_order).unwrap_or_default() {
            self.grow(parent, delta);
        }
    }

    fn in_print_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|&a, &b| {
            if Self::before(&self.nodes, &self.size, a, b) {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Greater
            }
        });
        order
    }

    fn names(&self, of: &[TreeSet], node: usize) -> String {
        let at = of.get(node).map(TreeSet::in_order).unwrap_or_default();
        let names: Vec<&str> = at.iter().filter_map(|at| self.nodes.get(*at)).map(|node| node.name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    fn print(&self, topology: &Topology, at: usize, text: &mut String) {
        let Some(node) = self.nodes.get(at) else {
            return;
        };
        let (parents, children) = (self.names(&self.parents, at), self.names(&self.children, at));
        let _ = match &node.kind {
            NodeKind::Source(sources) => {
                let topics: Vec<String> =
                    sources.iter().filter_map(|id| topology.source(*id)).map(|s| s.topic.to_string()).collect();
                let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
                let topics: Vec<&str> =
                    hash_set_order(&topics).iter().filter_map(|at| topics.get(*at).copied()).collect();
                writeln!(text, "    Source: {} (topics: [{}])\n      --> {children}", node.name, topics.join(", "))
            }
            NodeKind::Processor => {
                let mut stores: Vec<&str> = Vec::new();
                for store in node.stores.iter().filter_map(|id| topology.store(*id)) {
                    if !stores.contains(&store.name.as_str()) {
                        stores.push(&store.name);
                    }
                }
                let stores: Vec<&str> =
                    hash_set_order(&stores).iter().filter_map(|at| stores.get(*at).copied()).collect();
                let stores = stores.join(", ");
                writeln!(
                    text,
                    "    Processor: {} (stores: [{stores}])\n      --> {children}\n      <-- {parents}",
                    node.name
                )
            }
            NodeKind::Sink(sink) => {
                let spec = topology.sink(*sink);
                let goes = spec.map_or_else(String::new, |sink| match sink.extractor {
                    Some(extractor) => format!("extractor class: {extractor}"),
                    None => format!("topic: {}", sink.topic),
                });
                writeln!(text, "    Sink: {} ({goes})\n      <-- {parents}", node.name)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_their_order_are_javas() {
        let plain = "abc".encode_utf16().fold(0u32, |h, u| h.wrapping_mul(31).wrapping_add(u32::from(u)));
        assert_eq!(plain, 96354);
        let texts = ["lines", "a", "b", "q"]; // buckets of 16: 12, 1, 2 and 1
        assert_eq!(hash_set_order(&texts), [1, 3, 2, 0]);
    }
}
