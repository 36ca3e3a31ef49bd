//! Global tables, and the joins of streams with them.
use super::builder::StreamsBuilder;
use super::consumed::Consumed;
use super::kstream::{KStream, Shelf};
use super::ktable::{made_table, stored_getter, table_store};
use super::ktable_source::add_table_source;
use super::options::Materialized;
use crate::codec::{Codec, Opt, Schema};
use crate::node::ops::{GlobalGetter, Inner, Joiner, Left, StreamGlobalJoin, TableSource};
use crate::node::{Fn2, Make, MakeGetter, TableOut, Wiring, make_key_value};
use crate::topology::{BuildError, NewNode};
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// A table of which every instance of the application has all partitions: a stream is joined with it by any key.
pub struct GlobalKTable<K: Schema, V: Schema> {
    shelf: Shelf,
    getter: MakeGetter<K, V>,
}

impl<K: Schema, V: Schema> Clone for GlobalKTable<K, V> {
    fn clone(&self) -> Self {
        Self { shelf: Rc::clone(&self.shelf), getter: Arc::clone(&self.getter) }
    }
}

impl<K: Schema, V: Schema> fmt::Debug for GlobalKTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GlobalKTable").finish_non_exhaustive()
    }
}

impl StreamsBuilder {
    /// Reads a topic as a global table. It runs in the test driver; an application does not offer it yet.
    ///
    /// # Null
    /// A null value deletes its key. A record whose key is null is skipped.
    /// # Late
    /// Every record is taken, whatever its time: the last one in the topic counts.
    /// # Stores
    /// `<topic>-STATE-STORE-…` without a changelog: the topic is its own.
    /// # Java
    /// `StreamsBuilder#globalTable(String, Consumed)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let rates = builder.global_table("rates", Consumed::with(Utf8, F64));
    /// let prices = builder.stream("prices", Consumed::with(Utf8, F64));
    /// prices.join_global_table(&rates, F64, |currency, _| currency, |price, rate| price * rate).to("in-euro");
    /// # builder.build().unwrap();
    /// ```
    pub fn global_table<K: Codec, V: Codec>(&self, topic: &str, consumed: Consumed<K, V>) -> GlobalKTable<K, V> {
        self.global_table_with(topic, consumed, Materialized::new())
    }

    /// As [`global_table`](Self::global_table), with a name for the store.
    ///
    /// # Null
    /// As [`global_table`](Self::global_table).
    /// # Late
    /// As [`global_table`](Self::global_table).
    /// # Stores
    /// The named one, without a changelog.
    /// # Java
    /// `StreamsBuilder#globalTable(String, Consumed, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.global_table_with("rates", Consumed::with(Utf8, F64), Materialized::named("rates"));
    /// # builder.build().unwrap();
    /// ```
    pub fn global_table_with<K: Codec, V: Codec>(
        &self,
        topic: &str,
        consumed: Consumed<K, V>,
        mut materialized: Materialized,
    ) -> GlobalKTable<K, V> {
        let mut graph = self.shelf.borrow_mut();
        materialized.check_unversioned(&mut graph, "a global table");
        let store_name = materialized.name.take().unwrap_or_else(|| graph.names.store(&format!("{topic}-")));
        let source = graph.names.processor("KSTREAM-SOURCE-");
        let source = consumed.name.as_ref().map_or(source, |name| format!("{name}-source"));
        let name = graph.names.given_or(consumed.name.as_deref(), "KTABLE-SOURCE-");
        let at = add_table_source(&mut graph, source, topic, &consumed);
        graph.set_global(at.0);
        let spec = table_store(store_name, materialized.caching(false).logging(false));
        let store = graph.add_store(spec, make_key_value(consumed.value.clone()));
        let key = consumed.key.clone();
        let make: Make = Box::new(move |w, id| {
            let out = TableOut::<K, V>::wire(w, id, &key, Some(store))?;
            Ok(made_table::<Opt<K>, Opt<V>, _>(w, id, TableSource(out), false))
        });
        graph.add(NewNode { name, parents: &[at], outputs: 1, stores: &[store], named_by: None, make });
        let stored: MakeGetter<K, V> = stored_getter(consumed.key.clone(), move || Some(store));
        let getter: MakeGetter<K, V> = Arc::new(move |w| Ok(Rc::new(GlobalGetter(stored(w)?))));
        GlobalKTable { shelf: Rc::clone(&self.shelf), getter }
    }
}

impl<K: Codec, V: Codec> KStream<K, V> {
    /// Joins each record with the global table's row whose key the first closure makes of it.
    ///
    /// # Null
    /// A record whose value is null, or of which a null key is made, is skipped and counted. Without a row there is no
    /// result. The first closure sees the record all the same.
    /// # Late
    /// A record is joined with what the table has now.
    /// # Stores
    /// The global table's. The stream is not repartitioned.
    /// # Java
    /// `KStream#join(GlobalKTable, KeyValueMapper, ValueJoiner)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let regions = builder.global_table("regions", Consumed::with(Utf8, Utf8));
    /// let views = builder.stream("views", Consumed::with(Opt(Utf8), Utf8));
    /// views.join_global_table(&regions, Utf8, |_, user| user, |_, region| region).to("out");
    /// # builder.build().unwrap();
    /// ```
    pub fn join_global_table<G: Codec, R: Codec, W: Schema>(
        &self,
        table: &GlobalKTable<G, R>,
        to: W,
        key: impl for<'a> Fn2<K::View<'a>, V::View<'a>, G::Out<'a>>,
        f: impl for<'a> Fn2<V::View<'a>, R::View<'a>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.global_join(table, to, false, key, Inner(Arc::new(f)))
    }

    /// As [`join_global_table`](Self::join_global_table), or with nothing if there is no row.
    ///
    /// # Null
    /// A record whose value is null is skipped and counted. One of which a null key is made is joined with nothing.
    /// # Late
    /// As [`join_global_table`](Self::join_global_table).
    /// # Stores
    /// As [`join_global_table`](Self::join_global_table).
    /// # Java
    /// `KStream#leftJoin(GlobalKTable, KeyValueMapper, ValueJoiner)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let regions = builder.global_table("regions", Consumed::with(Utf8, Utf8));
    /// let views = builder.stream("views", Consumed::with(Utf8, Utf8));
    /// let or_none = |_: &str, region: Option<&str>| region.unwrap_or("none").to_owned();
    /// views.left_join_global_table(&regions, Text, |_, user| user, or_none).to("out");
    /// # builder.build().unwrap();
    /// ```
    pub fn left_join_global_table<G: Codec, R: Codec, W: Schema>(
        &self,
        table: &GlobalKTable<G, R>,
        to: W,
        key: impl for<'a> Fn2<K::View<'a>, V::View<'a>, G::Out<'a>>,
        f: impl for<'a> Fn2<V::View<'a>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.global_join(table, to, true, key, Left(Arc::new(f)))
    }

    fn global_join<G: Codec, R: Codec, W: Schema, J>(
        &self,
        table: &GlobalKTable<G, R>,
        to: W,
        left: bool,
        mapper: impl for<'a> Fn2<K::View<'a>, V::View<'a>, G::Out<'a>>,
        joiner: J,
    ) -> KStream<K, W>
    where
        J: Joiner<V, R, W> + Clone + Send + Sync + 'static,
    {
        if !Rc::ptr_eq(&self.shelf, &table.shelf) {
            self.shelf.borrow_mut().refuse(BuildError::OtherBuilder);
        }
        let (mapper, getter) = (Arc::new(mapper), Arc::clone(&table.getter));
        let make: Make = Box::new(move |w, node| {
            Ok(Wiring::made::<K, V>(StreamGlobalJoin::<K, V, G, R, W, _, J> {
                node,
                left,
                mapper: Arc::clone(&mapper),
                joiner: joiner.clone(),
                table: getter(w)?,
                out: w.edge::<K, W>(node, 0)?,
                from: PhantomData,
            }))
        });
        // Kafka Streams names both kinds so.
        let stream = self.add("KSTREAM-LEFTJOIN-", 1, self.key.clone(), to, make);
        if left {
            self.shelf.borrow_mut().mark(stream.at.0, |mark| mark.wants_null_keys = true);
        }
        stream
    }
}
