//! Topologies by hand: sources, processors and sinks, edge by edge.
use super::builder::Topics;
use super::consumed::Consumed;
use super::kstream::{Shelf, add_sink_below};
use super::process::Processing;
use super::source::add_source;
use super::stores::StoreBuilder;
use crate::codec::{Codec, Read, Schema};
use crate::node::{Connect, Make, Opener, OpenerBox, Processor, ProcessorNode, TopicName};
use crate::topology::{BuildError, NewNode, Optimization, Port, SourceTemplate, Topology};
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// Builds a topology node by node. Every node is named. The handles carry the types of what goes over their edges, so
/// that a wrong edge does not compile.
///
/// # Java
/// `org.apache.kafka.streams.Topology`, whose nodes are connected by names.
///
/// ```
/// use plimsoll::prelude::*;
/// use plimsoll::testing::Driver;
///
/// /// Counts the records of each key.
/// struct Count {
///     counts: KeyValueStore<Utf8, I64>,
/// }
/// impl Processor for Count {
///     type KIn = Utf8;
///     type VIn = Utf8;
///     type KOut = Utf8;
///     type VOut = I64;
///     fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
///         let counts = cx.store(&self.counts)?;
///         let count = counts.get(record.key)?.unwrap_or(0) + 1;
///         counts.put(record.key, count)?;
///         cx.forward(record.with_value(count))
///     }
/// }
///
/// let topology = TopologyBuilder::new();
/// let counts = topology.add_state_store(Stores::key_value("counts", Utf8, I64));
/// let lines = topology.add_source("lines", "in", Consumed::with(Utf8, Utf8));
/// let how = Processing::new().stores(&[&counts]);
/// let count = topology.add_processor("count", move || Count { counts: counts.clone() }, &[&lines], how);
/// topology.add_sink("writer", "out", Utf8, I64, &[&count]);
/// let topology = topology.build().unwrap();
/// assert_eq!(
///     topology.describe(),
///     "Topologies:
///    Sub-topology: 0
///     Source: lines (topics: [in])
///       --> count
///     Processor: count (stores: [counts])
///       --> writer
///       <-- lines
///     Sink: writer (topic: out)
///       <-- count
///
/// "
/// );
/// let driver = Driver::new(&topology)?;
/// driver.input("in", Utf8, Utf8).pipe("k", "v")?;
/// assert_eq!(driver.output("out", Utf8, I64).read_pairs()?, [("k".to_owned(), 1)]);
/// # Ok::<(), plimsoll::testing::DriverError>(())
/// ```
///
/// A sink of other values than its parent forwards does not compile:
///
/// ```compile_fail,E0308
/// use plimsoll::prelude::*;
///
/// let topology = TopologyBuilder::new();
/// let lines = topology.add_source("lines", "in", Consumed::with(Utf8, Utf8));
/// topology.add_sink("writer", "out", Utf8, I64, &[&lines]);
/// ```
///
/// Neither does a processor of other records:
///
/// ```compile_fail,E0308
/// use plimsoll::prelude::*;
///
/// struct Echo;
/// impl Processor for Echo {
///     type KIn = Utf8;
///     type VIn = I64;
///     type KOut = Utf8;
///     type VOut = I64;
///     fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, I64>) -> Processed {
///         cx.forward(record)
///     }
/// }
/// let topology = TopologyBuilder::new();
/// let lines = topology.add_source("lines", "in", Consumed::with(Utf8, Utf8));
/// topology.add_processor("echo", || Echo, &[&lines], Processing::new());
/// ```
#[derive(Default)]
pub struct TopologyBuilder {
    shelf: Shelf,
}

/// A node of a [`TopologyBuilder`] that forwards keys and values of these schemas.
pub struct Stage<K, V> {
    shelf: Shelf,
    at: Port,
    /// Of a processor: what it opens.
    openers: Arc<Mutex<Vec<Opener>>>,
    types: PhantomData<(K, V)>,
}

impl<K, V> Clone for Stage<K, V> {
    fn clone(&self) -> Self {
        let (shelf, openers) = (Rc::clone(&self.shelf), Arc::clone(&self.openers));
        Self { shelf, at: self.at, openers, types: PhantomData }
    }
}

impl<K, V> fmt::Debug for Stage<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("at", &self.at).finish_non_exhaustive()
    }
}

impl fmt::Debug for TopologyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopologyBuilder").finish_non_exhaustive()
    }
}

impl TopologyBuilder {
    /// An empty topology.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source that reads these topics.
    ///
    /// # Null
    /// A null needs [`Opt`](crate::Opt); otherwise the record goes to the deserialization handler.
    /// # Late
    /// Every record is forwarded.
    /// # Stores
    /// None.
    /// # Java
    /// `Topology.addSource(name, keyDeserializer, valueDeserializer, topics)`.
    pub fn add_source<K: Read, V: Read>(
        &self,
        name: &str,
        topics: impl Topics,
        consumed: Consumed<K, V>,
    ) -> Stage<K, V> {
        let topics: Vec<TopicName> = topics.names().into_iter().map(TopicName::External).collect();
        let mut graph = self.shelf.borrow_mut();
        for topic in &topics {
            graph.check_topic(topic);
        }
        if topics.is_empty() {
            graph.refuse(BuildError::NoTopics);
            return self.stage(Port::NOWHERE);
        }
        let template = SourceTemplate { reset: consumed.reset, timestamps: consumed.timestamps };
        let node = add_source(&mut graph, name.to_owned(), &topics, (consumed.key, consumed.value), &template, None);
        self.stage(Port(node, 0))
    }

    /// Adds a processor below these nodes; the supplier makes one for each task.
    ///
    /// # Null
    /// Reaches the processor where the schema is an [`Opt`](crate::Opt).
    /// # Late
    /// Reaches the processor.
    /// # Stores
    /// Those that `how` names, or [`connect`](Self::connect) connects.
    /// # Java
    /// `Topology.addProcessor(name, supplier, parents)`.
    pub fn add_processor<P: Processor>(
        &self,
        name: &str,
        supplier: impl Fn() -> P + Send + Sync + 'static,
        parents: &[&Stage<P::KIn, P::VIn>],
        how: Processing,
    ) -> Stage<P::KOut, P::VOut> {
        let (ports, supplier) = (self.ports(parents), Arc::new(supplier));
        let openers = Arc::new(Mutex::new(how.openers));
        let opened = Arc::clone(&openers);
        let make: Make = Box::new(move |w, id| {
            let openers = opened.lock().unwrap_or_else(PoisonError::into_inner).clone();
            ProcessorNode::<P>::make(w, id, Arc::clone(&supplier) as _, &openers)
        });
        let name = name.to_owned();
        let new = NewNode { name, parents: &ports, outputs: 1, stores: &how.stores, named_by: None, make };
        let node = self.shelf.borrow_mut().add(new);
        Stage { openers, ..self.stage(Port(node, 0)) }
    }

    /// Adds a sink that writes what these nodes forward to a topic.
    ///
    /// # Null
    /// A null key or value is written as null.
    /// # Late
    /// Every record is written.
    /// # Stores
    /// None.
    /// # Java
    /// `Topology.addSink(name, topic, keySerializer, valueSerializer, parents)`.
    pub fn add_sink<K: Codec, V: Codec>(&self, name: &str, topic: &str, key: K, value: V, parents: &[&Stage<K, V>]) {
        let ports = self.ports(parents);
        let mut graph = self.shelf.borrow_mut();
        let topic = TopicName::External(topic.to_owned());
        graph.check_topic(&topic);
        add_sink_below(&mut graph, &ports, name.to_owned(), topic, key, value);
    }

    /// Declares a store.
    ///
    /// # Null
    /// Does not apply.
    /// # Late
    /// Does not apply.
    /// # Stores
    /// This one.
    /// # Java
    /// `Topology.addStateStore(builder)`.
    pub fn add_state_store<K: Codec, V: Codec, H>(&self, store: StoreBuilder<K, V, H>) -> H {
        store.declare(&mut self.shelf.borrow_mut())
    }

    /// Connects a processor to stores that it was not given when it was added.
    ///
    /// # Null
    /// Does not apply.
    /// # Late
    /// Does not apply.
    /// # Stores
    /// These.
    /// # Java
    /// `Topology.connectProcessorAndStateStores(processor, stores)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// # struct Echo;
    /// # impl Processor for Echo {
    /// #     type KIn = Utf8;
    /// #     type VIn = Utf8;
    /// #     type KOut = Utf8;
    /// #     type VOut = Utf8;
    /// #     fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
    /// #         cx.forward(record)
    /// #     }
    /// # }
    /// let topology = TopologyBuilder::new();
    /// let lines = topology.add_source("lines", "in", Consumed::with(Utf8, Utf8));
    /// let echo = topology.add_processor("echo", || Echo, &[&lines], Processing::new());
    /// let seen = topology.add_state_store(Stores::key_value("seen", Utf8, I64));
    /// topology.connect(&echo, &[&seen]);
    /// assert!(topology.build().unwrap().describe().contains("Processor: echo (stores: [seen])"));
    /// ```
    pub fn connect<K, V>(&self, processor: &Stage<K, V>, stores: &[&dyn Connect]) {
        let mut graph = self.shelf.borrow_mut();
        let mut openers = processor.openers.lock().unwrap_or_else(PoisonError::into_inner);
        for OpenerBox(id, opener) in stores.iter().map(|store| store.opener()) {
            graph.connect_store(processor.at.0, id);
            openers.push(opener);
        }
    }

    /// Checks and freezes the topology.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn build(self) -> Result<Topology, BuildError> {
        std::mem::take(&mut *self.shelf.borrow_mut()).finish(Optimization::NONE)
    }

    fn stage<K, V>(&self, at: Port) -> Stage<K, V> {
        Stage { shelf: Rc::clone(&self.shelf), at, openers: Arc::default(), types: PhantomData }
    }

    fn ports<K: Schema, V: Schema>(&self, parents: &[&Stage<K, V>]) -> Vec<Port> {
        if parents.iter().any(|parent| !Rc::ptr_eq(&parent.shelf, &self.shelf)) {
            self.shelf.borrow_mut().refuse(BuildError::OtherBuilder);
        }
        parents.iter().map(|parent| parent.at).collect()
    }
}
