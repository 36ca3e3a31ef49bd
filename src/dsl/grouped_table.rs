//! The handle of a grouped table, and the tables made of it.
use super::kstream::add_sink;
use super::ktable::{KTable, made_table, table_rows, table_store};
use super::options::{Grouped, Materialized};
use super::source::add_source;
use crate::base::id::StoreId;
use crate::codec::{Change, Changed, Codec, I64, Schema, Scratch};
use crate::node::ops::{AddSubtract, TableAggregate, TableFold, TableGroupBy, TableReduce};
use crate::node::{Fn2, Fn3, Make, TableOut, TopicName, Wiring};
use crate::topology::{Graph, NewNode, Port, RepartitionSpec, SourceTemplate};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

const AGGREGATE: &str = "KTABLE-AGGREGATE-";
const REDUCE: &str = "KTABLE-REDUCE-";

/// A table grouped by another key: what `count`, `reduce` and `aggregate` make a table of. An update takes the old
/// value out of its group before the new one is put in.
pub struct KGroupedTable<K: Schema, V: Schema> {
    /// Where the updates have their new keys.
    from: KTable<K, V>,
    /// Names the repartition topic.
    name: Option<String>,
    /// With a name, all tables of this grouping share one repartition topic: where it is read.
    repartitioned: Rc<Cell<Option<Port>>>,
}

impl<K: Schema, V: Schema> fmt::Debug for KGroupedTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KGroupedTable").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: Schema, V: Schema> Clone for KGroupedTable<K, V> {
    fn clone(&self) -> Self {
        let (from, name) = (self.from.clone(), self.name.clone());
        Self { from, name, repartitioned: Rc::clone(&self.repartitioned) }
    }
}

impl<K: Codec, V: Codec> KTable<K, V> {
    /// Groups the table's rows by a new key; the closure answers key and value of a row in its group.
    ///
    /// # Null
    /// The closure does not see deletions. A row whose new key or value is null is in no group.
    /// # Late
    /// Every update is taken, whatever its time; late ones of a versioned table are passed over.
    /// # Stores
    /// This table is kept, since its old values are needed. The updates go through a repartition topic.
    /// # Java
    /// `KTable#groupBy(KeyValueMapper)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let towns = builder.table("towns-of-people", Consumed::with(Utf8, Utf8));
    /// let people = towns.group_by(Utf8, Utf8, |person, town| (town, person)).count(Materialized::named("people"));
    /// people.to_stream().to("people-in-towns");
    /// # builder.build().unwrap();
    /// ```
    pub fn group_by<J: Codec, W: Codec>(
        &self,
        key: J,
        value: W,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, (J::Out<'a>, W::Out<'a>)>,
    ) -> KGroupedTable<J, W> {
        self.group_by_with(key, value, Grouped::default(), f)
    }

    /// As [`group_by`](Self::group_by), with a name for the repartition topic.
    ///
    /// # Null
    /// As [`group_by`](Self::group_by).
    /// # Late
    /// As [`group_by`](Self::group_by).
    /// # Stores
    /// As [`group_by`](Self::group_by).
    /// # Java
    /// `KTable#groupBy(KeyValueMapper, Grouped)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let towns = builder.table("towns-of-people", Consumed::with(Utf8, Utf8));
    /// let by_town = towns.group_by_with(Utf8, Utf8, Grouped::named("by-town"), |person, town| (town, person));
    /// by_town.count(Materialized::named("people"));
    /// assert!(builder.build().unwrap().describe().contains("by-town-repartition"));
    /// ```
    pub fn group_by_with<J: Codec, W: Codec>(
        &self,
        key: J,
        value: W,
        grouped: Grouped,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, (J::Out<'a>, W::Out<'a>)>,
    ) -> KGroupedTable<J, W> {
        let f = Arc::new(f);
        let mut graph = self.shelf.borrow_mut();
        let name = graph.names.given_or(grouped.name.as_deref(), "KTABLE-SELECT-");
        let (to, versioned) = (key.clone(), graph.is_versioned(self.at.0));
        let make: Make = Box::new(move |w, node| {
            let scratch = || Scratch::with_limit(w.settings().record_bytes);
            let scratch = RefCell::new((scratch(), scratch()));
            let (f, key, out) = (Arc::clone(&f), to.clone(), w.edge::<J, Changed<W>>(node, 0)?);
            let from = PhantomData;
            Ok(Wiring::made::<K, Change<V>>(TableGroupBy { node, f, key, versioned, scratch, out, from }))
        });
        let node = graph.add(NewNode { name, parents: &[self.at], outputs: 1, stores: &[], named_by: None, make });
        graph.want_old(self.at.0, true);
        drop(graph);
        let none = Arc::new(|_: &mut Wiring<'_>| Err(crate::node::WiringError::StoreType(StoreId(u16::MAX))));
        let from = KTable { shelf: Rc::clone(&self.shelf), at: Port(node, 0), key, value, getter: none };
        KGroupedTable { from, name: grouped.name, repartitioned: Rc::default() }
    }
}

impl<K: Codec, V: Codec> KGroupedTable<K, V> {
    /// The number of rows in each group.
    ///
    /// # Null
    /// A group that lost its last row counts 0; it is not deleted.
    /// # Late
    /// Every update is taken; the result's time is the highest of those that made it.
    /// # Stores
    /// The named one, or a generated one, with its changelog.
    /// # Java
    /// `KGroupedTable#count(Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let towns = builder.table("towns-of-people", Consumed::with(Utf8, Utf8));
    /// towns.group_by(Utf8, Utf8, |person, town| (town, person)).count(Materialized::new()).to_stream().to("people");
    /// # builder.build().unwrap();
    /// ```
    pub fn count(&self, materialized: Materialized) -> KTable<K, I64> {
        let fold = AddSubtract {
            init: Arc::new(|| 0),
            add: Arc::new(|_: K::View<'_>, _: V::View<'_>, count: &mut i64| *count += 1),
            subtract: Arc::new(|_: K::View<'_>, _: V::View<'_>, count: &mut i64| *count -= 1),
        };
        self.table(AGGREGATE, I64, materialized, fold)
    }

    /// Merges the values of each group: `add` puts a value into the first, `subtract` takes one out.
    ///
    /// # Null
    /// A result that is null deletes.
    /// # Late
    /// As [`count`](Self::count).
    /// # Stores
    /// As [`count`](Self::count).
    /// # Java
    /// `KGroupedTable#reduce(Reducer, Reducer, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let stock = builder.table("stock", Consumed::with(Utf8, I64));
    /// let all = stock.group_by(Utf8, I64, |_, n| ("all", n));
    /// all.reduce(Materialized::named("total"), |sum, n| *sum += n, |sum, n| *sum -= n);
    /// # builder.build().unwrap();
    /// ```
    pub fn reduce(
        &self,
        materialized: Materialized,
        add: impl for<'a, 'm> Fn2<&'m mut V::Owned, V::View<'a>, ()>,
        subtract: impl for<'a, 'm> Fn2<&'m mut V::Owned, V::View<'a>, ()>,
    ) -> KTable<K, V> {
        let fold = TableReduce { add: Arc::new(add), subtract: Arc::new(subtract) };
        self.table(REDUCE, self.from.value.clone(), materialized, fold)
    }

    /// Folds the values of each group into an aggregate, which begins as `init` answers: `add` puts a value in,
    /// `subtract` takes one out.
    ///
    /// # Null
    /// An aggregate that is null deletes, and begins anew with the next value.
    /// # Late
    /// As [`count`](Self::count).
    /// # Stores
    /// As [`count`](Self::count).
    /// # Java
    /// `KGroupedTable#aggregate(Initializer, Aggregator, Aggregator, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let names = builder.table("names", Consumed::with(Utf8, Utf8));
    /// let all = names.group_by(Utf8, Utf8, |_, name| ("all", name));
    /// let letters = Materialized::named("letters");
    /// all.aggregate(I64, letters, || 0, |_, v, n| *n += v.len() as i64, |_, v, n| *n -= v.len() as i64);
    /// # builder.build().unwrap();
    /// ```
    pub fn aggregate<A: Codec>(
        &self,
        to: A,
        materialized: Materialized,
        init: impl Fn() -> A::Owned + Send + Sync + 'static,
        add: impl for<'a, 'm> Fn3<K::View<'a>, V::View<'a>, &'m mut A::Owned, ()>,
        subtract: impl for<'a, 'm> Fn3<K::View<'a>, V::View<'a>, &'m mut A::Owned, ()>,
    ) -> KTable<K, A> {
        let fold = AddSubtract { init: Arc::new(init), add: Arc::new(add), subtract: Arc::new(subtract) };
        self.table(AGGREGATE, to, materialized, fold)
    }

    fn table<A: Codec>(
        &self,
        prefix: &str,
        value: A,
        mut materialized: Materialized,
        fold: impl TableFold<K, V, A> + Clone + Send + Sync + 'static,
    ) -> KTable<K, A> {
        let mut graph = self.from.shelf.borrow_mut();
        let store_name = materialized.name.take().unwrap_or_else(|| graph.names.store(AGGREGATE));
        let names = ["KSTREAM-SINK-", "KSTREAM-SOURCE-", prefix].map(|prefix| graph.names.processor(prefix));
        let [sink, source, name] = names;
        let parent = match (&self.name, self.repartitioned.get()) {
            (Some(_), Some(port)) => port,
            _ => {
                let topic = self.name.as_deref().unwrap_or(&store_name);
                let port = self.repartition(&mut graph, topic, sink, source);
                self.repartitioned.set(Some(port));
                port
            }
        };
        let versioned = materialized.history.is_some();
        let rows = table_rows(&materialized, &value);
        let store = graph.add_store(table_store(store_name, materialized), rows);
        let key = self.from.key.clone();
        let make: Make = Box::new(move |w, id| {
            let out = TableOut::<K, A>::wire(w, id, &key, Some(store))?;
            let cached = out.is_cached();
            let node = TableAggregate { fold: fold.clone(), out, from: PhantomData::<V> };
            Ok(made_table::<K, Changed<V>, _>(w, id, node, cached))
        });
        let stores = [store];
        let node = graph.add(NewNode { name, parents: &[parent], outputs: 1, stores: &stores, named_by: None, make });
        graph.set_versioned(node, versioned);
        drop(graph);
        KTable::new(&self.from.shelf, Port(node, 0), self.from.key.clone(), value, store)
    }

    /// The topic through which the updates come to the tasks of their new keys.
    fn repartition(&self, graph: &mut Graph, topic: &str, sink: String, source: String) -> Port {
        let topic = TopicName::Repartition(topic.to_owned());
        graph.check_topic(&topic);
        let (key, value) = (self.from.key.clone(), Changed(self.from.value.clone()));
        let (sink, _) = add_sink(graph, self.from.at, sink, topic.clone(), key.clone(), value.clone());
        let (topics, template) = (std::slice::from_ref(&topic), SourceTemplate::default());
        let node = add_source(graph, source, topics, (key, value), &template, None);
        graph.add_repartition(RepartitionSpec { topic, partitions: None, sinks: vec![sink] });
        Port(node, 0)
    }
}
