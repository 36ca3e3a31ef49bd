//! Nodes and the edges between them.
use super::cx::Cx;
use super::fault::{Fault, Flow};
use super::record::{RawRecord, Record};
use crate::codec::Schema;
use std::rc::Rc;

/// An operator at work. One virtual call a hop, depth first.
pub(crate) trait Node<K: Schema, V: Schema> {
    /// Does its part and sends what it makes to its children before it returns.
    fn process<'a>(&self, cx: &Cx<'a>, record: &Record<'a, K, V>) -> Flow;

    /// A record whose key has these bytes comes next: who keeps state by key may have its memory fetched meanwhile. A
    /// hint that changes nothing. Passed on by nodes that keep the key.
    fn warm(&self, _partition: u32, _key: &[u8]) {}

    /// Whether [`warm`](Self::warm) has a use here or below.
    fn warms(&self) -> bool {
        false
    }
}

/// A typed edge: the children of one port of a node. `Rc`, because a merge has two parents.
pub(crate) struct Edge<K, V>(Box<[Rc<dyn Node<K, V>>]>);

impl<K: Schema, V: Schema> Edge<K, V> {
    pub(crate) fn new(children: Box<[Rc<dyn Node<K, V>>]>) -> Self {
        Self(children)
    }

    /// Sends a record to each child in turn; the first fault ends it.
    #[inline]
    pub(crate) fn send<'a>(&self, cx: &Cx<'a>, record: &Record<'a, K, V>) -> Flow {
        for child in &self.0 {
            child.process(cx, record)?;
        }
        Ok(())
    }

    /// Sends a record to one child.
    pub(crate) fn send_to<'a>(&self, child: usize, cx: &Cx<'a>, record: &Record<'a, K, V>) -> Flow {
        self.0.get(child).map_or(Ok(()), |child| child.process(cx, record))
    }

    /// As [`Node::warm`], of each child.
    pub(crate) fn warm(&self, partition: u32, key: &[u8]) {
        self.0.iter().for_each(|child| child.warm(partition, key));
    }

    /// Whether a child has a use for it.
    pub(crate) fn warms(&self) -> bool {
        self.0.iter().any(|child| child.warms())
    }
}

/// Where bytes enter a subtopology: called by the task, once per record.
pub(crate) trait Source {
    /// Decodes and walks the record through all nodes below.
    fn feed<'a>(&self, cx: &Cx<'a>, record: &RawRecord<'a>) -> Flow;

    /// As [`Node::warm`].
    fn warm(&self, _partition: u32, _key: &[u8]) {}

    /// As [`Node::warms`].
    fn warms(&self) -> bool {
        false
    }
}

/// A store's node whose forwards wait for the commit.
pub(crate) trait Drain {
    /// Writes to the changelog and forwards the store's oldest dirty entry (in the order of their last changes), in the
    /// context of that entry and of its partition. False when none is dirty.
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault>;
}
