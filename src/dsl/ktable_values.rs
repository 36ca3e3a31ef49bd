//! Operators that look at one value of a table at a time.
use super::ktable::{KTable, made_table, named_store, stored_getter};
use super::options::Materialized;
use crate::base::id::StoreId;
use crate::codec::{Change, Codec};
use crate::node::ops::{FilterGetter, MapValuesGetter, TableFilter, TableMapValues};
use crate::node::{Fn1, Fn2, Make, MakeGetter, TableOut};
use crate::topology::{NewNode, Port, TableKind};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

impl<K: Codec, V: Codec> KTable<K, V> {
    /// The rows of this table for which the closure says true.
    ///
    /// # Null
    /// The closure does not see deletions; they go on, and so does a row that is not wanted any more, as a deletion.
    /// # Late
    /// Every update goes on, whatever its time.
    /// # Stores
    /// None; what is looked up here is looked up in this table.
    /// # Java
    /// `KTable#filter(Predicate)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let stock = builder.table("stock", Consumed::with(Utf8, I64));
    /// stock.filter(|_, n| n < 10).to_stream().to("scarce");
    /// # builder.build().unwrap();
    /// ```
    #[must_use]
    pub fn filter(&self, f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, bool>) -> Self {
        self.filter_if(true, None, f)
    }

    /// As [`filter`](Self::filter); the result is kept in a store if it is named.
    ///
    /// # Null
    /// As [`filter`](Self::filter).
    /// # Late
    /// As [`filter`](Self::filter).
    /// # Stores
    /// The named one, with its changelog.
    /// # Java
    /// `KTable#filter(Predicate, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let stock = builder.table("stock", Consumed::with(Utf8, I64));
    /// stock.filter_with(Materialized::named("scarce"), |_, n| n < 10);
    /// # builder.build().unwrap();
    /// ```
    pub fn filter_with(&self, materialized: Materialized, f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, bool>) -> Self {
        self.filter_if(true, Some(materialized), f)
    }

    /// The rows of this table for which the closure says false.
    ///
    /// # Null
    /// As [`filter`](Self::filter).
    /// # Late
    /// As [`filter`](Self::filter).
    /// # Stores
    /// None.
    /// # Java
    /// `KTable#filterNot(Predicate)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.table("stock", Consumed::with(Utf8, I64)).filter_not(|_, n| n < 10).to_stream().to("plenty");
    /// # builder.build().unwrap();
    /// ```
    #[must_use]
    pub fn filter_not(&self, f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, bool>) -> Self {
        self.filter_if(false, None, f)
    }

    /// As [`filter_not`](Self::filter_not); the result is kept in a store if it is named.
    ///
    /// # Null
    /// As [`filter`](Self::filter).
    /// # Late
    /// As [`filter`](Self::filter).
    /// # Stores
    /// The named one, with its changelog.
    /// # Java
    /// `KTable#filterNot(Predicate, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let stock = builder.table("stock", Consumed::with(Utf8, I64));
    /// stock.filter_not_with(Materialized::named("plenty"), |_, n| n < 10);
    /// # builder.build().unwrap();
    /// ```
    pub fn filter_not_with(
        &self,
        materialized: Materialized,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, bool>,
    ) -> Self {
        self.filter_if(false, Some(materialized), f)
    }

    fn filter_if(
        &self,
        keep: bool,
        materialized: Option<Materialized>,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, bool>,
    ) -> Self {
        let f = Arc::new(f);
        let parent = Arc::clone(&self.getter);
        let getter: MakeGetter<K, V> = {
            let f = Arc::clone(&f);
            Arc::new(move |w| Ok(Rc::new(FilterGetter { keep, f: Arc::clone(&f), parent: parent(w)? })))
        };
        let key = self.key.clone();
        let versioned = self.shelf.borrow().is_versioned(self.at.0);
        let wants_old = self.shelf.borrow_mut().want_old(self.at.0, false);
        let table = self.computed("KTABLE-FILTER-", materialized, self.value.clone(), getter, |store| {
            Box::new(move |w, id| {
                let out = TableOut::wire(w, id, &key, store)?;
                let cached = out.is_cached();
                let node = TableFilter { keep, f: Arc::clone(&f), versioned, out };
                Ok(made_table::<K, Change<V>, _>(w, id, node, cached))
            })
        });
        if wants_old {
            self.shelf.borrow_mut().send_old(table.at.0);
        }
        table
    }

    /// Makes a value of each value; it may borrow from it. A null deletes.
    ///
    /// # Null
    /// The closure does not see deletions; they go on.
    /// # Late
    /// Every update goes on, whatever its time.
    /// # Stores
    /// None; what is looked up here is looked up in this table and mapped again.
    /// # Java
    /// `KTable#mapValues(ValueMapper)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let names = builder.table("names", Consumed::with(Utf8, Utf8));
    /// names.map_values(I64, |name| name.len() as i64).to_stream().to("lengths");
    /// # builder.build().unwrap();
    /// ```
    pub fn map_values<W: Codec>(&self, to: W, f: impl for<'a> Fn1<V::View<'a>, W::Out<'a>>) -> KTable<K, W> {
        self.map(to, None, move |_, value| f(value))
    }

    /// As [`map_values`](Self::map_values); the result is kept in a store if it is named.
    ///
    /// # Null
    /// As [`map_values`](Self::map_values).
    /// # Late
    /// As [`map_values`](Self::map_values).
    /// # Stores
    /// The named one, with its changelog.
    /// # Java
    /// `KTable#mapValues(ValueMapper, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let names = builder.table("names", Consumed::with(Utf8, Utf8));
    /// names.map_values_with(I64, Materialized::named("lengths"), |name| name.len() as i64);
    /// # builder.build().unwrap();
    /// ```
    pub fn map_values_with<W: Codec>(
        &self,
        to: W,
        materialized: Materialized,
        f: impl for<'a> Fn1<V::View<'a>, W::Out<'a>>,
    ) -> KTable<K, W> {
        self.map(to, Some(materialized), move |_, value| f(value))
    }

    /// As [`map_values`](Self::map_values), seeing the key too.
    ///
    /// # Null
    /// As [`map_values`](Self::map_values).
    /// # Late
    /// As [`map_values`](Self::map_values).
    /// # Stores
    /// None.
    /// # Java
    /// `KTable#mapValues(ValueMapperWithKey)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let names = builder.table("names", Consumed::with(Utf8, Utf8));
    /// names.map_values_with_key(Bool, |key, name| key == name).to_stream().to("same");
    /// # builder.build().unwrap();
    /// ```
    pub fn map_values_with_key<W: Codec>(
        &self,
        to: W,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, W::Out<'a>>,
    ) -> KTable<K, W> {
        self.map(to, None, f)
    }

    fn map<W: Codec>(
        &self,
        to: W,
        materialized: Option<Materialized>,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, W::Out<'a>>,
    ) -> KTable<K, W> {
        let f = Arc::new(f);
        let parent = Arc::clone(&self.getter);
        let getter: MakeGetter<K, W> = {
            let f = Arc::clone(&f);
            Arc::new(move |w| {
                Ok(Rc::new(MapValuesGetter { f: Arc::clone(&f), parent: parent(w)?, to: PhantomData::<W> }))
            })
        };
        let key = self.key.clone();
        self.computed("KTABLE-MAPVALUES-", materialized, to, getter, |store| {
            Box::new(move |w, id| {
                let out = TableOut::<K, W>::wire(w, id, &key, store)?;
                let cached = out.is_cached();
                let node = TableMapValues { f: Arc::clone(&f), out, from: PhantomData::<V> };
                Ok(made_table::<K, Change<V>, _>(w, id, node, cached))
            })
        })
    }

    /// Adds a table that is computed from this one. `getter` looks up there if it is not kept.
    fn computed<W: Codec>(
        &self,
        prefix: &str,
        materialized: Option<Materialized>,
        value: W,
        getter: MakeGetter<K, W>,
        make: impl FnOnce(Option<StoreId>) -> Make,
    ) -> KTable<K, W> {
        let mut graph = self.shelf.borrow_mut();
        let versioned = materialized.as_ref().map(|materialized| materialized.history.is_some());
        let store = named_store(&mut graph, prefix, materialized, &value);
        let name = graph.names.processor(prefix);
        let stores: Vec<StoreId> = store.into_iter().collect();
        let make = make(store);
        let node = graph.add(NewNode { name, parents: &[self.at], outputs: 1, stores: &stores, named_by: None, make });
        graph.add_table(node, TableKind::Computed { parent: self.at.0, store });
        if let Some(versioned) = versioned {
            graph.set_versioned(node, versioned);
        }
        let getter = match store {
            Some(store) => stored_getter(self.key.clone(), move || Some(store)),
            None => getter,
        };
        let (shelf, key) = (Rc::clone(&self.shelf), self.key.clone());
        KTable { shelf, at: Port(node, 0), key, value, getter }
    }
}
