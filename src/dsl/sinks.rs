//! Where streams end in other ways than `to`: partitions that the user chooses, topics that records name, text.
use super::kstream::{KStream, made_sink};
use super::options::{Produced, Repartitioned};
use super::printed::Printed;
use super::repartition::add_repartition_by;
use crate::base::id::{NodeId, SinkId};
use crate::codec::{Codec, Schema};
use crate::node::ops::{NamedSink, PartitionChoice, PartitionedSink, Print};
use crate::node::{Fn2, Fn3, Make, Node, TopicName, WiringError};
use crate::topology::{Graph, NewNode, Port};
use std::cell::RefCell;
use std::fmt::Debug;
use std::fs::OpenOptions;
use std::io::{Write, stdout};
use std::rc::Rc;
use std::sync::Arc;

impl<K: Codec, V: Codec> KStream<K, V> {
    /// Writes the stream to a topic, to the partitions that the closure chooses for each record: one, several or none.
    ///
    /// # Null
    /// Null keys and values are written as null.
    /// # Late
    /// Every record is written, whatever its time.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream#to(String, Produced.streamPartitioner(..))`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let orders = builder.stream("orders", Consumed::with(Utf8, I64));
    /// orders.to_partitioned("by-size", Produced::default(), |_, amount, to| to.partition((amount > 100).into()));
    /// # builder.build().unwrap();
    /// ```
    pub fn to_partitioned(
        &self,
        topic: &str,
        produced: Produced,
        f: impl for<'a, 'p> Fn3<K::View<'a>, V::View<'a>, &'p mut PartitionChoice, ()>,
    ) {
        let mut graph = self.shelf.borrow_mut();
        let topic = TopicName::External(topic.to_owned());
        graph.check_topic(&topic);
        let name = graph.names.given_or(produced.name.as_deref(), "KSTREAM-SINK-");
        self.partitioned_sink(&mut graph, self.at, name, topic, Arc::new(f));
    }

    /// As [`repartition`](Self::repartition), to the partitions that the closure chooses.
    ///
    /// # Null
    /// Records without a key are dropped.
    /// # Late
    /// Every record goes on, whatever its time.
    /// # Stores
    /// None; a repartition topic.
    /// # Java
    /// `KStream#repartition(Repartitioned.streamPartitioner(..))`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let orders = builder.stream("orders", Consumed::with(Utf8, I64));
    /// let wide = Repartitioned::with_partitions(12).named("wide");
    /// orders.repartition_partitioned(wide, |_, amount, to| to.partition(amount as u32 % to.count())).to("out");
    /// # builder.build().unwrap();
    /// ```
    #[must_use]
    pub fn repartition_partitioned(
        &self,
        repartitioned: Repartitioned,
        f: impl for<'a, 'p> Fn3<K::View<'a>, V::View<'a>, &'p mut PartitionChoice, ()>,
    ) -> Self {
        let mut graph = self.shelf.borrow_mut();
        let prefix = repartitioned.name.unwrap_or_else(|| graph.names.processor("KSTREAM-REPARTITION-"));
        let (how, f) = ((repartitioned.partitions, false), Arc::new(f));
        let sink = |graph: &mut Graph, from, name, topic| self.partitioned_sink(graph, from, name, topic, f);
        let at = add_repartition_by(&mut graph, self.at, &prefix, how, &self.key, &self.value, sink);
        Self::new(&self.shelf, at, self.key.clone(), self.value.clone(), false)
    }

    fn partitioned_sink<F>(
        &self,
        graph: &mut Graph,
        parent: Port,
        name: String,
        topic: TopicName,
        f: Arc<F>,
    ) -> (SinkId, NodeId)
    where
        F: for<'a, 'p> Fn3<K::View<'a>, V::View<'a>, &'p mut PartitionChoice, ()>,
    {
        let id = graph.next_sink();
        let (key, value, place) = (self.key.clone(), self.value.clone(), topic.clone());
        let make: Make = Box::new(move |w, node| {
            let sink = made_sink(w, (id, node), &place, &key, &value);
            let node: Rc<dyn Node<K, V>> =
                Rc::new(PartitionedSink { sink, f: Arc::clone(&f), choice: RefCell::default() });
            Ok(Box::new(node))
        });
        graph.add_sink(NewNode { name, parents: &[parent], outputs: 0, stores: &[], named_by: None, make }, topic)
    }

    /// Writes each record to the topic that the closure names. The topics must exist when they are first named.
    ///
    /// # Null
    /// Null keys and values are written as null.
    /// # Late
    /// Every record is written, whatever its time.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream#to(TopicNameExtractor)`. `describe` prints the closure's type for the extractor's class.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let orders = builder.stream("orders", Consumed::with(Utf8, I64));
    /// orders.to_by(Produced::named("by-size"), |_, amount| if amount > 100 { "large" } else { "small" });
    /// # builder.build().unwrap();
    /// ```
    pub fn to_by<F: for<'a> Fn2<K::View<'a>, V::View<'a>, &'a str>>(&self, produced: Produced, f: F) {
        let mut graph = self.shelf.borrow_mut();
        let name = graph.names.given_or(produced.name.as_deref(), "KSTREAM-SINK-");
        let (id, f) = (graph.next_sink(), Arc::new(f));
        let (key, value, place) = (self.key.clone(), self.value.clone(), TopicName::External(String::new()));
        let make: Make = Box::new(move |w, node| {
            let sink = made_sink(w, (id, node), &place, &key, &value);
            let node: Rc<dyn Node<K, V>> = Rc::new(NamedSink { sink, f: Arc::clone(&f) });
            Ok(Box::new(node))
        });
        let new = NewNode { name, parents: &[self.at], outputs: 0, stores: &[], named_by: None, make };
        graph.add_named_sink(new, std::any::type_name::<F>());
    }
}

impl<K: Schema, V: Schema> KStream<K, V>
where
    for<'a> K::View<'a>: Debug,
    for<'a> V::View<'a>: Debug,
{
    /// Prints each record; the stream ends here.
    ///
    /// # Null
    /// A null is printed as its schema shows it.
    /// # Late
    /// Every record is printed, whatever its time.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream#print(Printed)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use plimsoll::testing::Driver;
    ///
    /// let file = std::env::temp_dir().join(format!("printed-{}", std::process::id()));
    /// let builder = StreamsBuilder::new();
    /// builder.stream("in", Consumed::with(Utf8, I64)).print(Printed::to_file(&file));
    /// let driver = Driver::new(&builder.build().unwrap()).unwrap();
    /// driver.input("in", Utf8, I64).pipe("a", 1).unwrap();
    /// assert_eq!(std::fs::read_to_string(&file).unwrap(), "[KSTREAM-SOURCE-0000000000]: \"a\", 1\n");
    /// # std::fs::remove_file(file).unwrap();
    /// ```
    pub fn print(&self, printed: Printed) {
        let mut graph = self.shelf.borrow_mut();
        let name = graph.names.given_or(printed.name.as_deref(), "KSTREAM-PRINTER-");
        let label = printed.label.unwrap_or_else(|| graph.name_of(self.at.0));
        let file = printed.file;
        let make: Make = Box::new(move |_, node| {
            let out: Box<dyn Write> = match &file {
                None => Box::new(stdout()),
                Some(path) => {
                    let opened = OpenOptions::new().append(true).create(true).open(path);
                    Box::new(opened.map_err(|_| WiringError::CannotPrint(node))?)
                }
            };
            let node: Rc<dyn Node<K, V>> = Rc::new(Print { node, label: label.clone(), out: RefCell::new(out) });
            Ok(Box::new(node))
        });
        graph.add(NewNode { name, parents: &[self.at], outputs: 0, stores: &[], named_by: None, make });
    }
}
