//! Where tables begin: a topic or a stream.
use super::builder::StreamsBuilder;
use super::consumed::Consumed;
use super::kstream::KStream;
use super::ktable::{KTable, made_table};
use super::late_table::MayBeKept;
use super::options::Materialized;
use super::repartition::add_repartition;
use super::source::add_source;
use crate::codec::{Codec, Opt};
use crate::node::TopicName;
use crate::node::ops::{StreamToTable, TableSource};
use crate::topology::{Graph, Port, SourceTemplate};

impl StreamsBuilder {
    /// Reads a topic as a table: the latest value of each key. It is kept in a store only if something needs that: a
    /// join, a grouping.
    ///
    /// # Null
    /// A null value deletes its key. A record whose key is null is skipped.
    /// # Late
    /// Every record is taken, whatever its time: the last one in the topic counts.
    /// # Stores
    /// `<topic>-STATE-STORE-…` with its changelog, if something needs it.
    /// # Java
    /// `StreamsBuilder#table(String, Consumed)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.table("regions", Consumed::with(Utf8, Utf8)).to_stream().to("regions-copy");
    /// # builder.build().unwrap();
    /// ```
    pub fn table<K: Codec, V: Codec>(&self, topic: &str, consumed: Consumed<K, V>) -> KTable<K, V> {
        self.add_table(topic, consumed, Materialized::new())
    }

    /// As [`table`](Self::table), kept in a store if it is named.
    ///
    /// # Null
    /// As [`table`](Self::table).
    /// # Late
    /// As [`table`](Self::table).
    /// # Stores
    /// The named one, with its changelog.
    /// # Java
    /// `StreamsBuilder#table(String, Consumed, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.table_with("regions", Consumed::with(Utf8, Utf8), Materialized::named("regions"));
    /// # builder.build().unwrap();
    /// ```
    pub fn table_with<K: Codec, V: Codec>(
        &self,
        topic: &str,
        consumed: Consumed<K, V>,
        materialized: Materialized,
    ) -> KTable<K, V> {
        self.add_table(topic, consumed, materialized)
    }

    fn add_table<K: Codec, V: Codec>(
        &self,
        topic: &str,
        consumed: Consumed<K, V>,
        materialized: Materialized,
    ) -> KTable<K, V> {
        let mut graph = self.shelf.borrow_mut();
        let store = MayBeKept::new(&mut graph, materialized, &format!("{topic}-"));
        let source = graph.names.processor("KSTREAM-SOURCE-");
        let source = consumed.name.as_ref().map_or(source, |name| format!("{name}-source"));
        let name = graph.names.given_or(consumed.name.as_deref(), "KTABLE-SOURCE-");
        let at = add_table_source(&mut graph, source, topic, &consumed);
        let schemas = (&consumed.key, &consumed.value);
        let (at, late) = store.add(&mut graph, name, (at, Some(at.0)), schemas, |w, id, out, cached| {
            made_table::<Opt<K>, Opt<V>, _>(w, id, TableSource(out), cached)
        });
        drop(graph);
        KTable::late(&self.shelf, at, consumed.key, consumed.value, late)
    }
}

/// The source node of a table's topic: its keys and values may be null.
pub(super) fn add_table_source<K: Codec, V: Codec>(
    graph: &mut Graph,
    name: String,
    topic: &str,
    consumed: &Consumed<K, V>,
) -> Port {
    let topic = TopicName::External(topic.to_owned());
    graph.check_topic(&topic);
    let schemas = (Opt(consumed.key.clone()), Opt(consumed.value.clone()));
    let template = SourceTemplate { reset: consumed.reset, timestamps: consumed.timestamps };
    Port(add_source(graph, name, &[topic], schemas, &template, None), 0)
}

impl<K: Codec, V: Codec> KStream<K, V> {
    /// The stream's records as updates of a table. If the key was changed, they go through a repartition topic first.
    ///
    /// # Null
    /// A null value deletes its key. A record whose key is null is skipped.
    /// # Late
    /// Every record is taken, whatever its time: the last one counts.
    /// # Stores
    /// The named one, or a generated one if something needs it, with its changelog.
    /// # Java
    /// `KStream#toTable(Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let prices = builder.stream("prices", Consumed::with(Utf8, I64)).filter(|_, cents| cents > 0);
    /// let latest = prices.to_table(Materialized::named("latest"));
    /// # let _ = latest;
    /// # builder.build().unwrap();
    /// ```
    pub fn to_table(&self, materialized: Materialized) -> KTable<K, V> {
        let mut graph = self.shelf.borrow_mut();
        let name = graph.names.processor("KSTREAM-TOTABLE-");
        let store = MayBeKept::new(&mut graph, materialized, "KSTREAM-TOTABLE-");
        let parent = if self.key_changed {
            add_repartition(&mut graph, self.at, &name, &self.key, &self.value)
        } else {
            self.at
        };
        let schemas = (&self.key, &self.value);
        let (at, late) = store.add(&mut graph, name, (parent, None), schemas, |w, id, out, cached| {
            made_table::<K, V, _>(w, id, StreamToTable(out), cached)
        });
        drop(graph);
        KTable::late(&self.shelf, at, self.key.clone(), self.value.clone(), late)
    }
}
