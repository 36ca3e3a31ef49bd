//! The filter, sink and source of a repartition topic.
use super::kstream::add_sink;
use super::source::add_source;
use crate::base::id::{NodeId, SinkId};
use crate::codec::Codec;
use crate::node::ops::NotNullKey;
use crate::node::{Make, TopicName, Wiring};
use crate::topology::{
    BuildError, Graph, Movable, NewNode, Port, Repartition, RepartitionSpec, SourceTemplate, is_generated_stream_name,
};
use std::any::TypeId;

const SUFFIX: &str = "-repartition";
const NAMED_BY: Option<&str> = Some("name it with Repartitioned or Grouped");

/// Puts a repartition topic between `from` and the port that is answered; the optimiser may merge it with others.
pub(crate) fn add_repartition<K: Codec, V: Codec>(
    graph: &mut Graph,
    from: Port,
    prefix: &str,
    key: &K,
    value: &V,
) -> Port {
    add_repartition_as(graph, from, prefix, None, true, key, value)
}

/// As [`add_repartition`], with a number of partitions; or one that stays where it is.
pub(crate) fn add_repartition_as<K: Codec, V: Codec>(
    graph: &mut Graph,
    from: Port,
    prefix: &str,
    partitions: Option<u32>,
    optimizable: bool,
    key: &K,
    value: &V,
) -> Port {
    let (sink_key, sink_value) = (key.clone(), value.clone());
    let sink = |graph: &mut Graph, from, name, topic| add_sink(graph, from, name, topic, sink_key, sink_value);
    add_repartition_by(graph, from, prefix, (partitions, optimizable), key, value, sink)
}

/// As [`add_repartition_as`], through a sink of the caller's.
pub(super) fn add_repartition_by<K: Codec, V: Codec>(
    graph: &mut Graph,
    from: Port,
    prefix: &str,
    (partitions, optimizable): (Option<u32>, bool),
    key: &K,
    value: &V,
    add_sink: impl FnOnce(&mut Graph, Port, String, TopicName) -> (SinkId, NodeId),
) -> Port {
    if partitions == Some(0) {
        graph.refuse(BuildError::NoPartitions { name: prefix.to_owned() });
    }
    // A name that has the suffix already does not get it twice.
    let topic = TopicName::Repartition(prefix.strip_suffix(SUFFIX).unwrap_or(prefix).to_owned());
    graph.check_topic(&topic);
    let generated = [
        graph.names.processor("KSTREAM-SINK-"),
        graph.names.processor("KSTREAM-FILTER-"),
        graph.names.processor("KSTREAM-SOURCE-"),
    ];
    let [sink, filter, source] = if is_generated_stream_name(prefix) {
        generated
    } else {
        ["sink", "filter", "source"].map(|part| format!("{topic}-{part}"))
    };
    let make: Make = Box::new(|w, node| {
        let keeps = w.keeps_null_keys(node);
        Ok(Wiring::made::<K, V>(NotNullKey { node, keeps, out: w.edge::<K, V>(node, 0)? }))
    });
    let filter =
        graph.add(NewNode { name: filter, parents: &[from], outputs: 1, stores: &[], named_by: NAMED_BY, make });
    let (sink, sink_node) = add_sink(graph, Port(filter, 0), sink, topic.clone());
    let (topics, template) = (std::slice::from_ref(&topic), SourceTemplate::default());
    let node = add_source(graph, source, topics, (key.clone(), value.clone()), &template, NAMED_BY);
    let movable = optimizable.then(|| Movable { filter, sink: sink_node, source: node, types: TypeId::of::<(K, V)>() });
    graph.add_stream_repartition(Repartition {
        spec: RepartitionSpec { topic, partitions, sinks: vec![sink] },
        movable,
    });
    Port(node, 0)
}
