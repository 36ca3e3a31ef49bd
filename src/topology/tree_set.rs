//! Java's `TreeSet` where the order of what is in it changes after insertion: a new element goes where the comparisons
//! on the way down lead it, so the shape of the tree matters. Cold code, for descriptions of topologies.
//!
//! Owns a red-black tree of small numbers. Invariant: insertion recolours and rotates as `java.util.TreeMap` does.
//! Bound: the nodes of a subtopology. Called by `describe`.

/// No node.
const NONE: usize = usize::MAX;
const LEFT: usize = 0;
const RIGHT: usize = 1;

#[derive(Clone, Copy)]
struct Entry {
    element: usize,
    parent: usize,
    children: [usize; 2],
    red: bool,
}

/// The set.
pub(super) struct TreeSet {
    entries: Vec<Entry>,
    root: usize,
}

impl Default for TreeSet {
    fn default() -> Self {
        Self { entries: Vec::new(), root: NONE }
    }
}

impl TreeSet {
    /// Puts an element where the comparisons lead, unless it is there.
    pub(super) fn insert(&mut self, new: usize, before: impl Fn(usize, usize) -> bool) {
        if self.entries.iter().any(|entry| entry.element == new) {
            return;
        }
        let (mut parent, mut side, mut at) = (NONE, LEFT, self.root);
        while let Some(entry) = self.entries.get(at) {
            side = if before(new, entry.element) { LEFT } else { RIGHT };
            (parent, at) = (at, entry.children.get(side).copied().unwrap_or(NONE));
        }
        let added = self.entries.len();
        self.entries.push(Entry { element: new, parent, children: [NONE; 2], red: true });
        self.set_child(parent, side, added);
        self.balance(added);
    }

    /// The elements from left to right.
    pub(super) fn in_order(&self) -> Vec<usize> {
        let (mut order, mut open, mut at) = (Vec::with_capacity(self.entries.len()), Vec::new(), self.root);
        loop {
            while let Some(entry) = self.entries.get(at) {
                open.push(entry);
                at = entry.children[LEFT];
            }
            let Some(entry) = open.pop() else { return order };
            order.push(entry.element);
            at = entry.children[RIGHT];
        }
    }

    fn parent(&self, at: usize) -> usize {
        self.entries.get(at).map_or(NONE, |entry| entry.parent)
    }

    fn child(&self, at: usize, side: usize) -> usize {
        self.entries.get(at).and_then(|entry| entry.children.get(side)).copied().unwrap_or(NONE)
    }

    fn is_red(&self, at: usize) -> bool {
        self.entries.get(at).is_some_and(|entry| entry.red)
    }

    fn paint(&mut self, at: usize, red: bool) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.red = red;
        }
    }

    /// Makes a node the child of another, or the root.
    fn set_child(&mut self, parent: usize, side: usize, child: usize) {
        match self.entries.get_mut(parent).and_then(|entry| entry.children.get_mut(side)) {
            Some(slot) => *slot = child,
            None => self.root = child,
        }
        if let Some(entry) = self.entries.get_mut(child) {
            entry.parent = parent;
        }
    }

    /// Lets the child on the other side take the place of a node, which becomes its child on this side.
    fn rotate(&mut self, at: usize, side: usize) {
        let other = 1 - side;
        let (up, parent) = (self.child(at, other), self.parent(at));
        if up == NONE {
            return;
        }
        let inner = self.child(up, side);
        let place = if self.child(parent, LEFT) == at { LEFT } else { RIGHT };
        self.set_child(at, other, inner);
        self.set_child(parent, place, up);
        self.set_child(up, side, at);
    }

    fn balance(&mut self, added: usize) {
        let mut at = added;
        while at != self.root && self.is_red(self.parent(at)) {
            let (mut parent, mut above) = (self.parent(at), self.parent(self.parent(at)));
            let side = if self.child(above, LEFT) == parent { LEFT } else { RIGHT };
            let uncle = self.child(above, 1 - side);
            if self.is_red(uncle) {
                self.paint(parent, false);
                self.paint(uncle, false);
                self.paint(above, true);
                at = above;
                continue;
            }
            if self.child(parent, 1 - side) == at {
                at = parent;
                self.rotate(at, side);
                parent = self.parent(at);
                above = self.parent(parent);
            }
            self.paint(parent, false);
            self.paint(above, true);
            self.rotate(above, 1 - side);
        }
        self.paint(self.root, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_sorted_and_as_flat_as_javas() {
        let mut set = TreeSet::default();
        for element in 0..31 {
            set.insert(element, |a, b| a < b);
            set.insert(element, |a, b| a < b);
        }
        assert_eq!(set.in_order(), (0..31).collect::<Vec<_>>());
        // Seven in a row: Java's tree has 3 at the root only from the eighth on, before that 1.
        let mut seven = TreeSet::default();
        (0..7).for_each(|element| seven.insert(element, |a, b| a < b));
        assert_eq!((seven.root, seven.child(1, RIGHT)), (1, 3));
        seven.insert(7, |a, b| a < b);
        assert_eq!(seven.root, 3);
    }
}
