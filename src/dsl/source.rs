//! The source node of every topic that is read, the user's and the library's own.
use crate::base::id::NodeId;
use crate::codec::{Read, Side};
use crate::node::ops::SourceNode;
use crate::node::{Make, TopicName, Wiring};
use crate::topology::{Graph, NewNode, SourceTemplate};

/// Adds a node that reads topics, decoded at the place of the first.
pub(super) fn add_source<K: Read, V: Read>(
    graph: &mut Graph,
    name: String,
    topics: &[TopicName],
    (key, value): (K, V),
    template: &SourceTemplate,
    named_by: Option<&'static str>,
) -> NodeId {
    let place = topics.first().cloned();
    let make: Make = Box::new(move |w, id| {
        let (mut key, mut value) = (key.clone(), value.clone());
        if let Some(place) = &place {
            key = w.with_place(place, Side::Key, |at| key.at(at));
            value = w.with_place(place, Side::Value, |at| value.at(at));
        }
        Ok(Wiring::made_source(SourceNode { key, value, out: w.edge::<K, V>(id, 0)? }))
    });
    let new = NewNode { name, parents: &[], outputs: 1, stores: &[], named_by, make };
    graph.add_source(new, topics, template).0
}
