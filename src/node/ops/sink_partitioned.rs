//! A sink whose partitions the user chooses.
use super::sink::Sink;
use crate::codec::Codec;
use crate::node::{Cx, Fault, Flow, Fn3, Node, Parked, Record};
use std::cell::RefCell;
use std::sync::Arc;

/// Where a record is to go: what a partitioner closure fills in. A record for which it chooses nothing is dropped and
/// counted.
///
/// # Null
/// The closure sees null keys and values as its schemas do.
///
/// # Late
/// Partitions do not depend on time.
///
/// # Stores
/// None.
///
/// # Java
/// `StreamPartitioner#partitions`: an empty `Optional` is [`by_key`](Self::by_key), an empty set is nothing.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder.stream("in", Consumed::with(Utf8, I64)).to_partitioned("out", Produced::default(), |_, amount, to| {
///     match amount {
///         0 => {} // nowhere
///         1..=99 => to.partition(0),
///         100..=999 => to.by_key(),
///         _ => to.all(),
///     }
/// });
/// # builder.build().unwrap();
/// ```
#[derive(Debug, Default)]
pub struct PartitionChoice {
    count: u32,
    chosen: Vec<u32>,
    by_key: bool,
}

impl PartitionChoice {
    /// Number of partitions of the topic.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// To this partition, beside those chosen before.
    pub fn partition(&mut self, partition: u32) {
        self.chosen.push(partition);
    }

    /// To every partition.
    pub fn all(&mut self) {
        self.chosen.extend(0..self.count);
    }

    /// To the partition that the key's hash gives, as without a partitioner.
    pub fn by_key(&mut self) {
        self.by_key = true;
    }
}

/// Encodes once and hands to the port for each partition chosen.
pub(crate) struct PartitionedSink<K, V, F> {
    pub(crate) sink: Sink<K, V>,
    pub(crate) f: Arc<F>,
    pub(crate) choice: RefCell<PartitionChoice>,
}

impl<K: Codec, V: Codec, F> Node<K, V> for PartitionedSink<K, V, F>
where
    F: for<'x, 'p> Fn3<K::View<'x>, V::View<'x>, &'p mut PartitionChoice, ()>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        let (id, node) = (self.sink.id, self.sink.node);
        let mut choice = self.choice.borrow_mut();
        choice.chosen.clear();
        choice.by_key = false;
        choice.count = cx.port.partitions(id)?;
        (self.f)(K::shorten(r.key), V::shorten(r.value), &mut choice);
        if choice.by_key {
            return self.sink.process(cx, r);
        }
        choice.chosen.sort_unstable();
        choice.chosen.dedup();
        let Some(highest) = choice.chosen.last().copied() else {
            cx.port.dropped(node);
            return Ok(());
        };
        if highest >= choice.count {
            let error = format!("a partitioner chose partition {highest} of {}", choice.count).into();
            return Err(cx.fault.park(Fault::User, Parked::User { node, error }));
        }
        self.sink.encoded(cx, r, |record| {
            choice.chosen.iter().try_for_each(|partition| cx.port.produce(cx.task, id, Some(*partition), record))
        })
    }
}
