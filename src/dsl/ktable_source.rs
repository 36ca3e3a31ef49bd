//! Where tables begin: a topic or a stream.
use super::builder::StreamsBuilder;
use super::consumed::Consumed;
use super::kstream::KStream;
use super::ktable::{KTable, made_table, table_rows, table_store};
use super::options::Materialized;
use super::repartition::add_repartition;
use crate::codec::{Codec, Opt, Read, Side};
use crate::node::ops::{SourceNode, StreamToTable, TableSource};
use crate::node::{TableOut, TopicName, Wiring};
use crate::topology::{Graph, LateStore, NewNode, Port, SourceTemplate};
use std::sync::Arc;

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
        mut materialized: Materialized,
    ) -> KTable<K, V> {
        let mut graph = self.shelf.borrow_mut();
        let given = materialized.name.take();
        let is_versioned = materialized.history.is_some();
        let is_kept = given.is_some() || is_versioned;
        let store_name = given.unwrap_or_else(|| graph.names.store(&format!("{topic}-")));
        let source = graph.names.processor("KSTREAM-SOURCE-");
        let source = consumed.name.as_ref().map_or(source, |name| format!("{name}-source"));
        let name = graph.names.given_or(consumed.name.as_deref(), "KTABLE-SOURCE-");
        let at = add_table_source(&mut graph, source, topic, &consumed);
        let late = LateStore::default();
        let (key, store) = (consumed.key.clone(), Arc::clone(&late));
        let new = NewNode {
            name,
            parents: &[at],
            outputs: 1,
            stores: &[],
            named_by: None,
            make: Box::new(move |w, id| {
                let out = TableOut::<K, V>::wire(w, id, &key, store.get().copied())?;
                let cached = out.is_cached();
                Ok(made_table::<Opt<K>, Opt<V>, _>(w, id, TableSource(out), cached))
            }),
        };
        let node = graph.add(new);
        let rows = table_rows(&materialized, &consumed.value);
        graph.add_source_table(node, Some(at.0), &late, (table_store(store_name, materialized), rows));
        graph.set_versioned(node, is_versioned);
        if is_kept {
            graph.keep_table(node);
        }
        drop(graph);
        KTable::late(&self.shelf, Port(node, 0), consumed.key, consumed.value, late)
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
    let (key, value, place) = (Opt(consumed.key.clone()), Opt(consumed.value.clone()), topic.clone());
    let new = NewNode {
        name,
        parents: &[],
        outputs: 1,
        stores: &[],
        named_by: None,
        make: Box::new(move |w, id| {
            Ok(Wiring::made_source(SourceNode {
                key: w.with_place(&place, Side::Key, |place| key.at(place)),
                value: w.with_place(&place, Side::Value, |place| value.at(place)),
                out: w.edge(id, 0)?,
            }))
        }),
    };
    let template = SourceTemplate { reset: consumed.reset, timestamps: consumed.timestamps };
    Port(graph.add_source(new, &[topic], &template).0, 0)
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
    pub fn to_table(&self, mut materialized: Materialized) -> KTable<K, V> {
        let mut graph = self.shelf.borrow_mut();
        let name = graph.names.processor("KSTREAM-TOTABLE-");
        let given = materialized.name.take();
        let is_versioned = materialized.history.is_some();
        let is_kept = given.is_some() || is_versioned;
        let store_name = given.unwrap_or_else(|| graph.names.store("KSTREAM-TOTABLE-"));
        let parent = if self.key_changed {
            add_repartition(&mut graph, self.at, &name, &self.key, &self.value)
        } else {
            self.at
        };
        let late = LateStore::default();
        let (key, store) = (self.key.clone(), Arc::clone(&late));
        let new = NewNode {
            name,
            parents: &[parent],
            outputs: 1,
            stores: &[],
            named_by: None,
            make: Box::new(move |w, id| {
                let out = TableOut::<K, V>::wire(w, id, &key, store.get().copied())?;
                let cached = out.is_cached();
                Ok(made_table::<K, V, _>(w, id, StreamToTable(out), cached))
            }),
        };
        let node = graph.add(new);
        let rows = table_rows(&materialized, &self.value);
        graph.add_source_table(node, None, &late, (table_store(store_name, materialized), rows));
        graph.set_versioned(node, is_versioned);
        if is_kept {
            graph.keep_table(node);
        }
        drop(graph);
        KTable::late(&self.shelf, Port(node, 0), self.key.clone(), self.value.clone(), late)
    }
}
