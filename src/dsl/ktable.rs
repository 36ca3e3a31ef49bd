//! The handle of a table.
use super::kstream::{KStream, Shelf};
use super::options::Materialized;
use super::stream_joined::millis;
use crate::base::id::{NodeId, StoreId};
use crate::codec::{Change, Codec, Opt, Schema};
use crate::node::ops::ToStream;
use crate::node::{
    Drain, Fn2, Make, MakeGetter, MakeStore, Node, StoreGetter, Wiring, WiringError, make_history, make_key_value,
};
use crate::store::kind::StoreKind;
use crate::topology::{Graph, LateStore, NewNode, Port, StoreSpec, TableKind};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A table: the latest value of each key.
pub struct KTable<K: Schema, V: Schema> {
    pub(super) shelf: Shelf,
    pub(super) at: Port,
    pub(super) key: K,
    pub(super) value: V,
    /// How its values are looked up.
    pub(super) getter: MakeGetter<K, V>,
}

impl<K: Schema, V: Schema> Clone for KTable<K, V> {
    fn clone(&self) -> Self {
        Self {
            shelf: Rc::clone(&self.shelf),
            at: self.at,
            key: self.key.clone(),
            value: self.value.clone(),
            getter: Arc::clone(&self.getter),
        }
    }
}

impl<K: Schema, V: Schema> fmt::Debug for KTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KTable").field("at", &self.at).finish_non_exhaustive()
    }
}

impl<K: Codec, V: Codec> KTable<K, V> {
    /// A table whose values are all in this store.
    pub(crate) fn new(shelf: &Shelf, at: Port, key: K, value: V, store: StoreId) -> Self {
        shelf.borrow_mut().add_table(at.0, TableKind::Stored(store));
        let getter = stored_getter(key.clone(), move || Some(store));
        Self { shelf: Rc::clone(shelf), at, key, value, getter }
    }

    /// A table that is kept when somebody asks for it.
    pub(super) fn late(shelf: &Shelf, at: Port, key: K, value: V, store: LateStore) -> Self {
        let getter = stored_getter(key.clone(), move || store.get().copied());
        Self { shelf: Rc::clone(shelf), at, key, value, getter }
    }
}

/// Looks up in a store that is there when threads are wired.
pub(super) fn stored_getter<K: Codec, V: Codec>(
    key: K,
    store: impl Fn() -> Option<StoreId> + Send + Sync + 'static,
) -> MakeGetter<K, V> {
    Arc::new(move |w| StoreGetter::wire(w, &key, store().ok_or(WiringError::StoreType(StoreId(u16::MAX)))?))
}

/// What a store of a table is to be.
pub(super) fn table_store(name: String, materialized: Materialized) -> StoreSpec {
    StoreSpec {
        name,
        logged: materialized.logged,
        cached: materialized.cached && materialized.history.is_none(),
        topic_configs: materialized.topic_configs,
        nodes: Vec::new(),
    }
}

/// The rows of a table's store: the latest value of each key, or what it was over time.
pub(super) fn table_rows<V: Codec>(materialized: &Materialized, value: &V) -> MakeStore {
    match materialized.history {
        Some(history) => make_history(value.clone(), materialized.place(StoreKind::versioned(millis(history)))),
        None => make_key_value(value.clone()),
    }
}

/// The store that the user asked for by name; without a name the table is not kept, but the number of the name that
/// Kafka Streams generates is used up.
pub(super) fn named_store<V: Codec>(
    graph: &mut Graph,
    prefix: &str,
    materialized: Option<Materialized>,
    value: &V,
) -> Option<StoreId> {
    let mut materialized = materialized?;
    let is_wanted = materialized.name.is_some() || materialized.history.is_some();
    let name = materialized.name.take().unwrap_or_else(|| graph.names.store(prefix));
    let rows = table_rows(&materialized, value);
    is_wanted.then(|| graph.add_store(table_store(name, materialized), rows))
}

/// An erased node; its forwards wait for the commit if its store is cached.
pub(super) fn made_table<K: Schema, V: Schema, N: Node<K, V> + Drain + 'static>(
    w: &mut Wiring<'_>,
    id: NodeId,
    node: N,
    cached: bool,
) -> Box<dyn std::any::Any> {
    let node = Rc::new(node);
    if cached {
        let drain: Rc<dyn Drain> = Rc::clone(&node) as _;
        w.drain(id, drain);
    }
    let node: Rc<dyn Node<K, V>> = node;
    Box::new(node)
}

impl<K: Schema, V: Schema> KTable<K, V> {
    /// Names the node that made this table; those of a join's two sides are named after it.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.shelf.borrow_mut().rename_table(self.at.0, name);
        self
    }

    /// The table's updates as a stream. A deletion is a null, so closures below see an `Option`; on a topic there is no
    /// difference.
    ///
    /// # Null
    /// A deletion becomes a record whose value is null.
    /// # Late
    /// Every update goes on, whatever its time.
    /// # Stores
    /// None.
    /// # Java
    /// `KTable#toStream()`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let counts = builder.stream("words", Consumed::with(Utf8, Utf8)).group_by_key().count(Materialized::new());
    /// counts.to_stream().filter(|_, n| n.is_some_and(|n| n > 100)).to("frequent");
    /// # builder.build().unwrap();
    /// ```
    pub fn to_stream(&self) -> KStream<K, Opt<V>> {
        let make: Make =
            Box::new(|w, id| Ok(Wiring::made::<K, Change<V>>(ToStream { out: w.edge::<K, Opt<V>>(id, 0)? })));
        let mut graph = self.shelf.borrow_mut();
        let name = graph.names.processor("KTABLE-TOSTREAM-");
        let node = graph.add(NewNode { name, parents: &[self.at], outputs: 1, stores: &[], named_by: None, make });
        drop(graph);
        KStream::new(&self.shelf, Port(node, 0), self.key.clone(), Opt(self.value.clone()), false)
    }

    /// As [`to_stream`](Self::to_stream), with a new key for each update.
    ///
    /// # Null
    /// The closure sees a deletion as `None`.
    /// # Late
    /// Every update goes on, whatever its time.
    /// # Stores
    /// None; grouping or joining below writes through a repartition topic first.
    /// # Java
    /// `KTable#toStream(KeyValueMapper)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let names = builder.table("names", Consumed::with(Utf8, Utf8));
    /// names.to_stream_with_key(Utf8, |_, name| name.unwrap_or("nobody")).to("by-name");
    /// # builder.build().unwrap();
    /// ```
    pub fn to_stream_with_key<J: Schema>(
        &self,
        to: J,
        f: impl for<'a> Fn2<K::View<'a>, <Opt<V> as Schema>::View<'a>, J::Out<'a>>,
    ) -> KStream<J, Opt<V>> {
        self.to_stream().select_key(to, f)
    }
}
