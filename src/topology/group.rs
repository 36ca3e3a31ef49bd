//! Which nodes form a subtopology, and the numbers of subtopologies.
use crate::base::id::{NodeId, StoreId};

/// What grouping looks at of a node.
pub(crate) struct Shape<'a> {
    pub(crate) parents: Vec<NodeId>,
    pub(crate) stores: &'a [StoreId],
}

/// The subtopology of each node. Nodes belong together when an edge or a store joins them. Numbers are Kafka Streams':
/// in the order of their first nodes.
pub(crate) fn group(nodes: &[Shape<'_>], stores: usize) -> Vec<u32> {
    let mut roots = Roots((0..nodes.len()).collect());
    let mut first_user = vec![None; stores];
    for (index, node) in nodes.iter().enumerate() {
        for parent in &node.parents {
            roots.unite(index, parent.index());
        }
        for store in node.stores {
            if let Some(first) = first_user.get_mut(store.index()) {
                let first = *first.get_or_insert(index);
                roots.unite(index, first);
            }
        }
    }
    let mut number_of_root = vec![None; nodes.len()];
    let mut result = vec![0; nodes.len()];
    let mut next = 0;
    for index in 0..nodes.len() {
        let root = roots.find(index);
        if let (Some(number), Some(to)) = (number_of_root.get_mut(root), result.get_mut(index)) {
            *to = *number.get_or_insert_with(|| {
                next += 1;
                next - 1
            });
        }
    }
    result
}

/// Union-find, paths halved.
struct Roots(Vec<usize>);

impl Roots {
    fn parent(&self, of: usize) -> usize {
        self.0.get(of).copied().unwrap_or(of)
    }

    fn find(&mut self, mut of: usize) -> usize {
        while self.parent(of) != of {
            let grandparent = self.parent(self.parent(of));
            if let Some(slot) = self.0.get_mut(of) {
                *slot = grandparent;
            }
            of = grandparent;
        }
        of
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        if let Some(slot) = self.0.get_mut(a) {
            *slot = b;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape<'a>(parents: &[u16], stores: &'a [StoreId]) -> Shape<'a> {
        Shape { parents: parents.iter().map(|p| NodeId(*p)).collect(), stores }
    }

    #[test]
    fn an_edge_or_a_store_joins_and_the_first_node_numbers() {
        let store = [StoreId(0)];
        let nodes = [
            shape(&[], &[]),
            shape(&[], &[]),
            shape(&[], &[]),
            shape(&[2], &store),
            shape(&[0], &store),
            shape(&[1], &[]),
        ];
        assert_eq!(group(&nodes, 1), [0, 1, 0, 0, 0, 1]);
        assert_eq!(group(&nodes[..3], 1), [0, 1, 2]);
    }
}
