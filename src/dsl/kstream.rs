//! The handle of a stream.
use super::grouped::KGroupedStream;
use super::options::{Grouped, Produced, Repartitioned};
use super::repartition::add_repartition_as;
use crate::base::id::{NodeId, SinkId};
use crate::codec::{Codec, Schema, Scratch, Side};
use crate::node::ops::{SelectKey, Sink};
use crate::node::{Fn2, Make, TopicName, Wiring};
use crate::topology::{Graph, NewNode, Port};
use std::any::TypeId;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// The topology under construction, shared by all handles of a builder.
pub(crate) type Shelf = Rc<RefCell<Graph>>;

/// A stream of records: a handle that carries the schemas of its keys and values, so that `to`, `group_by` and `count`
/// need not be told again.
///
/// An operator that makes a new type takes its schema as the first argument; closures may answer a borrow of what they
/// are given.
pub struct KStream<K, V> {
    pub(crate) shelf: Shelf,
    pub(crate) at: Port,
    pub(crate) key: K,
    pub(crate) value: V,
    /// Whether the key may have changed since the records were partitioned by it.
    pub(crate) key_changed: bool,
}

impl<K: Clone, V: Clone> Clone for KStream<K, V> {
    fn clone(&self) -> Self {
        Self::new(&self.shelf, self.at, self.key.clone(), self.value.clone(), self.key_changed)
    }
}

impl<K, V> fmt::Debug for KStream<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KStream").field("at", &self.at).finish_non_exhaustive()
    }
}

impl<K, V> KStream<K, V> {
    pub(crate) fn new(shelf: &Shelf, at: Port, key: K, value: V, key_changed: bool) -> Self {
        Self { shelf: Rc::clone(shelf), at, key, value, key_changed }
    }

    /// Names the node that made this stream: `stream.filter(..).named("large-only")`.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.shelf.borrow_mut().rename(self.at.0, name);
        self
    }
}

impl<K: Schema, V: Schema> KStream<K, V> {
    /// Adds an operator below this stream.
    pub(crate) fn add<J, W>(&self, prefix: &str, outputs: usize, key: J, value: W, make: Make) -> KStream<J, W> {
        let mut graph = self.shelf.borrow_mut();
        let name = graph.names.processor(prefix);
        let new = NewNode { name, parents: &[self.at], outputs, stores: &[], named_by: None, make };
        let node = graph.add(new);
        KStream::new(&self.shelf, Port(node, 0), key, value, self.key_changed)
    }

    /// The node of this stream may have changed the key.
    pub(crate) fn key_changed(mut self) -> Self {
        self.key_changed = true;
        let types = TypeId::of::<(K, V)>();
        self.shelf.borrow_mut().mark(self.at.0, |mark| mark.key_changing = Some(types));
        self
    }

    /// The node of this stream may have changed the value.
    pub(crate) fn value_changed(self) -> Self {
        self.shelf.borrow_mut().mark(self.at.0, |mark| mark.value_changing = true);
        self
    }

    /// Gives each record the key that the closure answers; it may borrow from key or value. Grouping or joining by the
    /// new key writes the records through a repartition topic first.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("orders", Consumed::values(Utf8))
    ///     .select_key(Utf8, |(), order| order.split(',').next().unwrap_or(""))
    ///     .to("orders-by-region");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Null keys and values reach the closure where the schemas allow them (`Opt`).
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None here; what groups or joins by the new key makes a repartition topic first.
    /// # Java
    /// `KStream.selectKey(mapper)`
    pub fn select_key<J: Schema>(
        &self,
        to: J,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, J::Out<'a>>,
    ) -> KStream<J, V> {
        self.select_key_named(to, f, None)
    }

    fn select_key_named<J: Schema>(
        &self,
        to: J,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, J::Out<'a>>,
        name: Option<&str>,
    ) -> KStream<J, V> {
        let f = Arc::new(f);
        let make: Make = Box::new(move |w, id| {
            let (f, out) = (Arc::clone(&f), w.edge::<J, V>(id, 0)?);
            Ok(Wiring::made::<K, V>(SelectKey { f, out, from: PhantomData }))
        });
        let stream = self.add("KSTREAM-KEY-SELECT-", 1, to, self.value.clone(), make).key_changed();
        match name {
            Some(name) => stream.named(name),
            None => stream,
        }
    }

    /// Groups by a new key, for a table of one value a key.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let words = builder.stream("words", Consumed::values(Utf8));
    /// let by_length = words.group_by(I64, |(), word| word.len() as i64).count(Materialized::named("lengths"));
    /// # let _ = by_length;
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// As [`select_key`](Self::select_key); the grouping's operators drop records whose key or value is null.
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None here; the grouping's first operator makes a repartition topic.
    /// # Java
    /// `KStream.groupBy(mapper)`
    pub fn group_by<J: Codec>(
        &self,
        to: J,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, J::Out<'a>>,
    ) -> KGroupedStream<J, V>
    where
        V: Codec,
    {
        self.group_by_with(to, f, Grouped::default())
    }

    /// As [`group_by`](Self::group_by), with a name for the repartition topic.
    pub fn group_by_with<J: Codec>(
        &self,
        to: J,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, J::Out<'a>>,
        grouped: Grouped,
    ) -> KGroupedStream<J, V>
    where
        V: Codec,
    {
        let stream = self.select_key_named(to, f, grouped.name.as_deref());
        KGroupedStream::new(stream, grouped.name)
    }
}

impl<K: Codec, V: Codec> KStream<K, V> {
    /// Groups by the key as it is. Goes through a repartition topic only if the key was changed.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let clicks = builder.stream("clicks", Consumed::with(Utf8, Bytes)).group_by_key();
    /// clicks.count(Materialized::named("clicks")).to_stream().to("click-counts");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// The grouping's operators drop records whose key or value is null.
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None here; the grouping's first operator makes a repartition topic if the key was changed.
    /// # Java
    /// `KStream.groupByKey()`
    pub fn group_by_key(&self) -> KGroupedStream<K, V> {
        self.group_by_key_with(Grouped::default())
    }

    /// As [`group_by_key`](Self::group_by_key), with a name for the repartition topic.
    pub fn group_by_key_with(&self, grouped: Grouped) -> KGroupedStream<K, V> {
        KGroupedStream::new(self.clone(), grouped.name)
    }

    /// Writes the stream to a topic. Records go to the partition that the key's hash gives, as every Kafka client's do.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.stream("in", Consumed::with(Utf8, I64)).to("out");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Written as null. A record without a key goes to any partition, as many in a row as a batch holds.
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None; only the topic is written, which must exist.
    /// # Java
    /// `KStream.to(topic)`
    pub fn to(&self, topic: &str) {
        self.to_with(topic, Produced::default());
    }

    /// As [`to`](Self::to), with a name for the sink.
    pub fn to_with(&self, topic: &str, produced: Produced) {
        let mut graph = self.shelf.borrow_mut();
        let topic = TopicName::External(topic.to_owned());
        graph.check_topic(&topic);
        let name = graph.names.given_or(produced.name.as_deref(), "KSTREAM-SINK-");
        add_sink(&mut graph, self.at, name, topic, self.key.clone(), self.value.clone());
    }

    /// Writes the stream through a topic of the library's own, so that it is partitioned by its key and processed from
    /// there on by the tasks of other partitions. Records without a key are dropped, as in Kafka Streams.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let orders = builder.stream("orders", Consumed::with(Utf8, I64));
    /// orders.repartition(Repartitioned::with_partitions(12).named("wide")).to("out");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// A record without a key is dropped and counted; a null value is passed on.
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// The repartition topic, which the library creates.
    /// # Java
    /// `KStream.repartition(repartitioned)`
    #[must_use]
    pub fn repartition(&self, repartitioned: Repartitioned) -> Self {
        let mut graph = self.shelf.borrow_mut();
        let prefix = match repartitioned.name {
            Some(name) => name,
            None => graph.names.processor("KSTREAM-REPARTITION-"),
        };
        let (key, value) = (&self.key, &self.value);
        let at = add_repartition_as(&mut graph, self.at, &prefix, repartitioned.partitions, false, key, value);
        Self::new(&self.shelf, at, self.key.clone(), self.value.clone(), false)
    }
}

/// Adds a sink node.
pub(crate) fn add_sink<K: Codec, V: Codec>(
    graph: &mut Graph,
    parent: Port,
    name: String,
    topic: TopicName,
    key: K,
    value: V,
) -> (SinkId, NodeId) {
    add_sink_below(graph, &[parent], name, topic, key, value)
}

/// Adds a sink node below several.
pub(crate) fn add_sink_below<K: Codec, V: Codec>(
    graph: &mut Graph,
    parents: &[Port],
    name: String,
    topic: TopicName,
    key: K,
    value: V,
) -> (SinkId, NodeId) {
    let id = graph.next_sink();
    let place = topic.clone();
    let make: Make = Box::new(move |w, node| Ok(Wiring::made::<K, V>(made_sink(w, (id, node), &place, &key, &value))));
    graph.add_sink(NewNode { name, parents, outputs: 0, stores: &[], named_by: None, make }, topic)
}

/// A sink at work.
pub(super) fn made_sink<K: Codec, V: Codec>(
    w: &Wiring<'_>,
    (id, node): (SinkId, NodeId),
    place: &TopicName,
    key: &K,
    value: &V,
) -> Sink<K, V> {
    Sink {
        id,
        node,
        key: w.with_place(place, Side::Key, |at| key.bind(at)),
        value: w.with_place(place, Side::Value, |at| value.bind(at)),
        scratch: RefCell::new(Scratch::with_limit(w.settings().record_bytes)),
    }
}
