//! The handle of a grouped stream, and the tables made of it.
use super::kstream::KStream;
use super::ktable::KTable;
use super::ktable::table_store;
use super::options::{Materialized, STREAMS};
use super::repartition::add_repartition;
use crate::base::id::StoreId;
use crate::codec::{Change, Codec, I64, Scratch};
use crate::node::ops::{Aggregate, FromInit, Reduce, WindowFold};
use crate::node::{Drain, Fn2, Fn3, KeyValue, Make, Node, make_store};
use crate::store::kind::Layout;
use crate::topology::{NewNode, Port};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// A stream grouped by its key: what `count`, `reduce` and `aggregate` make a table of. Records whose key or value is
/// null are skipped, as in Kafka Streams.
pub struct KGroupedStream<K, V> {
    pub(super) stream: KStream<K, V>,
    /// Names the repartition topic.
    pub(super) name: Option<String>,
    /// With a name, all tables of this grouping share one repartition topic: where it is read.
    pub(super) repartitioned: Rc<Cell<Option<Port>>>,
}

impl<K, V> fmt::Debug for KGroupedStream<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KGroupedStream").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: Clone, V: Clone> Clone for KGroupedStream<K, V> {
    fn clone(&self) -> Self {
        let (stream, name) = (self.stream.clone(), self.name.clone());
        Self { stream, name, repartitioned: Rc::clone(&self.repartitioned) }
    }
}

impl<K, V> KGroupedStream<K, V> {
    pub(crate) fn new(stream: KStream<K, V>, name: Option<String>) -> Self {
        Self { stream, name, repartitioned: Rc::default() }
    }
}

pub(super) const AGGREGATE: &str = "KSTREAM-AGGREGATE-";
pub(super) const REDUCE: &str = "KSTREAM-REDUCE-";

impl<K: Codec, V: Codec> KGroupedStream<K, V> {
    /// The number of records of each key.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let clicks = builder.stream("clicks", Consumed::with(Utf8, Bytes));
    /// let counts = clicks.group_by_key().count(Materialized::named("clicks"));
    /// counts.to_stream().to("click-counts");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// A record with a null key or value is dropped and counted.
    /// # Late
    /// A late record changes the value as any other; the entry's timestamp is the highest so far.
    /// # Stores
    /// One timestamped key-value store with a changelog; a repartition topic before it if the key was changed.
    /// # Java
    /// `KGroupedStream.count(materialized)`
    pub fn count(&self, materialized: Materialized) -> KTable<K, I64> {
        if materialized.name.is_none() {
            // Kafka Streams generates a name that it does not use.
            self.stream.shelf.borrow_mut().names.store(AGGREGATE);
        }
        let fold = FromInit { init: Arc::new(|| 0), f: Arc::new(count_one::<K, V>) };
        self.table(AGGREGATE, I64, materialized, fold)
    }

    /// Merges the values of each key: the closure changes the first by the second.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("numbers", Consumed::with(Utf8, I64))
    ///     .group_by_key()
    ///     .reduce(Materialized::named("sums"), |sum, n| *sum += n)
    ///     .to_stream()
    ///     .to("sums");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// A record with a null key or value is dropped and counted. A null that the closure makes deletes the key.
    /// # Late
    /// A late record changes the value as any other; the entry's timestamp is the highest so far.
    /// # Stores
    /// One timestamped key-value store with a changelog; a repartition topic before it if the key was changed.
    /// # Java
    /// `KGroupedStream.reduce(reducer, materialized)`; the first argument is changed in place instead of answered.
    pub fn reduce(
        &self,
        materialized: Materialized,
        f: impl for<'a, 'm> Fn2<&'m mut V::Owned, V::View<'a>, ()>,
    ) -> KTable<K, V> {
        self.table(REDUCE, self.stream.value.clone(), materialized, Reduce { f: Arc::new(f) })
    }

    /// Folds the values of each key: the closure changes an aggregate in place, which begins as `init` answers.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("names", Consumed::with(Utf8, Utf8))
    ///     .group_by_key()
    ///     .aggregate(Utf8, Materialized::named("lists"), String::new, |_, name, list| {
    ///         list.push_str(name);
    ///         list.push(';');
    ///     })
    ///     .to_stream()
    ///     .to("lists");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// A record with a null key or value is dropped and counted. A null that the closure makes deletes the key.
    /// # Late
    /// A late record changes the value as any other; the entry's timestamp is the highest so far.
    /// # Stores
    /// One timestamped key-value store with a changelog; a repartition topic before it if the key was changed.
    /// # Java
    /// `KGroupedStream.aggregate(initializer, aggregator, materialized)`; the aggregate is changed in place instead of
    /// answered.
    pub fn aggregate<A: Codec>(
        &self,
        to: A,
        materialized: Materialized,
        init: impl Fn() -> A::Owned + Send + Sync + 'static,
        f: impl for<'a, 'm> Fn3<K::View<'a>, V::View<'a>, &'m mut A::Owned, ()>,
    ) -> KTable<K, A> {
        self.table(AGGREGATE, to, materialized, FromInit { init: Arc::new(init), f: Arc::new(f) })
    }

    /// Where the table's node is to be attached.
    pub(super) fn partitioned(&self, store: &str) -> Port {
        if !self.stream.key_changed {
            return self.stream.at;
        }
        let mut graph = self.stream.shelf.borrow_mut();
        if let (Some(_), Some(port)) = (&self.name, self.repartitioned.get()) {
            // The names of the second table's own repartition are used up, as in Kafka Streams.
            for _ in 0..3 {
                graph.names.processor("");
            }
            return port;
        }
        let prefix = self.name.as_deref().unwrap_or(store);
        let port = add_repartition(&mut graph, self.stream.at, prefix, &self.stream.key, &self.stream.value);
        self.repartitioned.set(Some(port));
        port
    }

    fn table<A: Codec>(
        &self,
        prefix: &str,
        value: A,
        mut materialized: Materialized,
        fold: impl WindowFold<K, V, A> + Clone + Send + Sync + 'static,
    ) -> KTable<K, A> {
        let shelf = &self.stream.shelf;
        let kind = materialized.place(Layout::Timestamped);
        let (store_name, node_name) = {
            let names = &mut shelf.borrow_mut().names;
            (materialized.name.take().unwrap_or_else(|| names.store(prefix)), names.processor(prefix))
        };
        let parent = self.partitioned(&store_name);
        let mut graph = shelf.borrow_mut();
        materialized.check_unversioned(&mut graph, STREAMS);
        let spec = table_store(store_name, materialized);
        let store = graph.add_store(spec, make_store(value.clone(), kind));
        let key = self.stream.key.clone();
        let make = make_aggregate::<K, V, A, _>(key, fold, store);
        let stores = [store];
        let new = NewNode { name: node_name, parents: &[parent], outputs: 1, stores: &stores, named_by: None, make };
        let node = graph.add(new);
        drop(graph);
        KTable::new(shelf, Port(node, 0), self.stream.key.clone(), value, store)
    }
}

pub(super) fn count_one<K: Codec, V: Codec>(_key: K::View<'_>, _value: V::View<'_>, count: &mut i64) {
    *count += 1;
}

/// The closure that makes an aggregate's node.
pub(super) fn make_aggregate<K: Codec, V: Codec, A: Codec, F: WindowFold<K, V, A> + Clone + Send + Sync + 'static>(
    key: K,
    fold: F,
    store: StoreId,
) -> Make {
    Box::new(move |w, id| {
        let node = Rc::new(Aggregate::<K, V, A, _> {
            node: id,
            key: key.clone(),
            fold: fold.clone(),
            store: w.store::<Rc<KeyValue<A>>>(store)?,
            sends_old: w.sends_old(id),
            scratch: RefCell::new(Scratch::with_limit(w.settings().record_bytes)),
            out: w.edge::<K, Change<A>>(id, 0)?,
            from: PhantomData,
        });
        let drain: Rc<dyn Drain> = Rc::clone(&node) as _;
        w.drain(id, drain);
        let node: Rc<dyn Node<K, V>> = node;
        Ok(Box::new(node))
    })
}
