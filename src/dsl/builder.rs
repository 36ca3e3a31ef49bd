//! Where a topology begins.
use super::consumed::Consumed;
use super::kstream::{KStream, Shelf};
use super::source::add_source;
use crate::codec::Read;
use crate::node::TopicName;
use crate::topology::{BuildError, Optimization, Port, SourceTemplate, Topology};
use std::any::TypeId;

/// Builds a topology. Handles made from it are cheap and may be used any number of times; what they add is numbered in
/// the order of the calls, as in Kafka Streams, whose names the topics get.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("lines", Consumed::values(Utf8))
///     .flat_map_values(Utf8, |line, out| for w in line.split_whitespace() { out.push(w) })
///     .group_by(Utf8, |_, word| word)
///     .count(Materialized::named("counts"))
///     .to_stream()
///     .to("word-counts");
/// let topology = builder.build()?;
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Default)]
pub struct StreamsBuilder {
    pub(super) shelf: Shelf,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &str {}
    impl Sealed for &String {}
    impl<const N: usize> Sealed for [&str; N] {}
    impl Sealed for &[&str] {}
    impl Sealed for Vec<String> {}
}

/// One topic or several: `"a"`, `["a", "b"]`, a slice or a `Vec<String>`. Not for implementing.
pub trait Topics: sealed::Sealed {
    #[doc(hidden)]
    fn names(self) -> Vec<String>;
}

impl Topics for &str {
    fn names(self) -> Vec<String> {
        vec![self.to_owned()]
    }
}

impl Topics for &String {
    fn names(self) -> Vec<String> {
        vec![self.clone()]
    }
}

impl<const N: usize> Topics for [&str; N] {
    fn names(self) -> Vec<String> {
        self.iter().map(|name| (*name).to_owned()).collect()
    }
}

impl Topics for &[&str] {
    fn names(self) -> Vec<String> {
        self.iter().map(|name| (*name).to_owned()).collect()
    }
}

impl Topics for Vec<String> {
    fn names(self) -> Vec<String> {
        self
    }
}

impl StreamsBuilder {
    /// An empty topology.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a topic, or several as one stream. A topic read twice as records of the same type is one source.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.stream(["web", "shop"], Consumed::with(Utf8, I64)).to("sales");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// A null key or value is refused by the deserialization handler unless its schema says `Opt`, or
    /// `Consumed::values` leaves the key unread.
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None; only the topics are read.
    /// # Java
    /// `StreamsBuilder.stream(topics, consumed)`
    pub fn stream<K: Read, V: Read>(&self, topics: impl Topics, consumed: Consumed<K, V>) -> KStream<K, V> {
        let topics: Vec<TopicName> = topics.names().into_iter().map(TopicName::External).collect();
        let mut graph = self.shelf.borrow_mut();
        for topic in &topics {
            graph.check_topic(topic);
        }
        if topics.is_empty() {
            graph.refuse(BuildError::NoTopics);
            drop(graph);
            return KStream::new(&self.shelf, Port::NOWHERE, consumed.key, consumed.value, false);
        }
        let name = graph.names.given_or(consumed.name.as_deref(), "KSTREAM-SOURCE-");
        let schemas = (consumed.key.clone(), consumed.value.clone());
        let template = SourceTemplate { reset: consumed.reset, timestamps: consumed.timestamps };
        let node = add_source(&mut graph, name, &topics, schemas, &template, None);
        graph.set_stream_source(node, TypeId::of::<(K, V)>());
        drop(graph);
        KStream::new(&self.shelf, Port(node, 0), consumed.key, consumed.value, false)
    }

    /// Checks and freezes the topology.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn build(self) -> Result<Topology, BuildError> {
        self.build_with(Optimization::NONE)
    }

    /// As [`build`](Self::build), with optimisations: Kafka Streams' `topology.optimization`. Once an application runs,
    /// they stay as they are: they decide which topics it has.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let words = builder.stream("lines", Consumed::values(Utf8)).select_key(Utf8, |(), line| line);
    /// words.group_by_key().count(Materialized::named("counts"));
    /// words.group_by_key().reduce(Materialized::named("last"), |last, word| word.clone_into(last));
    /// let topology = builder.build_with("all".parse()?)?;
    /// assert_eq!(topology.describe().matches("-repartition-source ").count(), 1); // one topic for both
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn build_with(self, optimization: Optimization) -> Result<Topology, BuildError> {
        std::mem::take(&mut *self.shelf.borrow_mut()).finish(optimization)
    }
}

impl std::fmt::Debug for StreamsBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamsBuilder").finish_non_exhaustive()
    }
}
