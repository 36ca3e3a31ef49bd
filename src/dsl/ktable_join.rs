//! Joins of two tables with equal keys.
use super::ktable::{KTable, made_table, stored_getter, table_rows, table_store};
use super::options::Materialized;
use crate::base::id::{NodeId, StoreId};
use crate::codec::{Change, Codec};
use crate::node::ops::{Flipped, Inner, JoinGetter, Joiner, Left, Outer, TableJoinSide, TableMerge};
use crate::node::{Fn2, Make, MakeGetter, TableOut, Wiring};
use crate::topology::{BuildError, Graph, NewNode, Port, TableKind};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// Which sides a result needs, and the store that the user asked for.
struct How {
    needs_left: bool,
    needs_right: bool,
    materialized: Option<Materialized>,
}

impl<K: Codec, V: Codec> KTable<K, V> {
    /// Joins the rows of both tables that have equal keys. Each update of either table updates the result.
    ///
    /// # Null
    /// A row that goes away on either side deletes the result. A result that is null deletes too.
    /// # Late
    /// Every update is joined with what the other table has now; its time is the later of both. Late updates of two
    /// versioned tables are skipped.
    /// # Stores
    /// Both tables are kept. The result is computed again where it is looked up.
    /// # Java
    /// `KTable#join(KTable, ValueJoiner)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let prices = builder.table("prices", Consumed::with(Utf8, I64));
    /// let stock = builder.table("stock", Consumed::with(Utf8, I64));
    /// prices.join(&stock, I64, |price, n| price * n).to_stream().to("worth");
    /// # builder.build().unwrap();
    /// ```
    pub fn join<R: Codec, W: Codec>(
        &self,
        other: &KTable<K, R>,
        to: W,
        f: impl for<'a> Fn2<V::View<'a>, R::View<'a>, W::Out<'a>>,
    ) -> KTable<K, W> {
        let how = How { needs_left: true, needs_right: true, materialized: None };
        self.join_as(other, to, how, Inner(Arc::new(f)))
    }

    /// As [`join`](Self::join), with the result kept in a store.
    ///
    /// # Null
    /// As [`join`](Self::join).
    /// # Late
    /// As [`join`](Self::join).
    /// # Stores
    /// As [`join`](Self::join), and one for the result with its changelog, named or not.
    /// # Java
    /// `KTable#join(KTable, ValueJoiner, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let prices = builder.table("prices", Consumed::with(Utf8, I64));
    /// let stock = builder.table("stock", Consumed::with(Utf8, I64));
    /// prices.join_with(&stock, I64, Materialized::named("worth"), |price, n| price * n);
    /// # builder.build().unwrap();
    /// ```
    pub fn join_with<R: Codec, W: Codec>(
        &self,
        other: &KTable<K, R>,
        to: W,
        materialized: Materialized,
        f: impl for<'a> Fn2<V::View<'a>, R::View<'a>, W::Out<'a>>,
    ) -> KTable<K, W> {
        let how = How { needs_left: true, needs_right: true, materialized: Some(materialized) };
        self.join_as(other, to, how, Inner(Arc::new(f)))
    }

    /// Joins every row of this table with the other's row of the same key, if there is one.
    ///
    /// # Null
    /// Where the other table has no row the closure sees `None`; a row of this table that goes away deletes the result.
    /// # Late
    /// As [`join`](Self::join).
    /// # Stores
    /// As [`join`](Self::join).
    /// # Java
    /// `KTable#leftJoin(KTable, ValueJoiner)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let prices = builder.table("prices", Consumed::with(Utf8, I64));
    /// let stock = builder.table("stock", Consumed::with(Utf8, I64));
    /// prices.left_join(&stock, I64, |price, n| price * n.unwrap_or(0)).to_stream().to("worth");
    /// # builder.build().unwrap();
    /// ```
    pub fn left_join<R: Codec, W: Codec>(
        &self,
        other: &KTable<K, R>,
        to: W,
        f: impl for<'a> Fn2<V::View<'a>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KTable<K, W> {
        let how = How { needs_left: true, needs_right: false, materialized: None };
        self.join_as(other, to, how, Left(Arc::new(f)))
    }

    /// As [`left_join`](Self::left_join), with the result kept in a store.
    ///
    /// # Null
    /// As [`left_join`](Self::left_join).
    /// # Late
    /// As [`join`](Self::join).
    /// # Stores
    /// As [`join_with`](Self::join_with).
    /// # Java
    /// `KTable#leftJoin(KTable, ValueJoiner, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let prices = builder.table("prices", Consumed::with(Utf8, I64));
    /// let stock = builder.table("stock", Consumed::with(Utf8, I64));
    /// prices.left_join_with(&stock, I64, Materialized::named("worth"), |price, n| price * n.unwrap_or(0));
    /// # builder.build().unwrap();
    /// ```
    pub fn left_join_with<R: Codec, W: Codec>(
        &self,
        other: &KTable<K, R>,
        to: W,
        materialized: Materialized,
        f: impl for<'a> Fn2<V::View<'a>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KTable<K, W> {
        let how = How { needs_left: true, needs_right: false, materialized: Some(materialized) };
        self.join_as(other, to, how, Left(Arc::new(f)))
    }

    /// Joins the rows of both tables by their keys, also where only one table has a row.
    ///
    /// # Null
    /// The closure sees `None` for a side that has no row, never for both; when both are gone the result is deleted.
    /// # Late
    /// As [`join`](Self::join).
    /// # Stores
    /// As [`join`](Self::join).
    /// # Java
    /// `KTable#outerJoin(KTable, ValueJoiner)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let here = builder.table("here", Consumed::with(Utf8, I64));
    /// let there = builder.table("there", Consumed::with(Utf8, I64));
    /// here.outer_join(&there, I64, |a, b| a.unwrap_or(0) + b.unwrap_or(0)).to_stream().to("both");
    /// # builder.build().unwrap();
    /// ```
    pub fn outer_join<R: Codec, W: Codec>(
        &self,
        other: &KTable<K, R>,
        to: W,
        f: impl for<'a> Fn2<Option<V::View<'a>>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KTable<K, W> {
        let how = How { needs_left: false, needs_right: false, materialized: None };
        self.join_as(other, to, how, Outer(Arc::new(f)))
    }

    /// As [`outer_join`](Self::outer_join), with the result kept in a store.
    ///
    /// # Null
    /// As [`outer_join`](Self::outer_join).
    /// # Late
    /// As [`join`](Self::join).
    /// # Stores
    /// As [`join_with`](Self::join_with).
    /// # Java
    /// `KTable#outerJoin(KTable, ValueJoiner, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let here = builder.table("here", Consumed::with(Utf8, I64));
    /// let there = builder.table("there", Consumed::with(Utf8, I64));
    /// here.outer_join_with(&there, I64, Materialized::named("both"), |a, b| a.unwrap_or(0) + b.unwrap_or(0));
    /// # builder.build().unwrap();
    /// ```
    pub fn outer_join_with<R: Codec, W: Codec>(
        &self,
        other: &KTable<K, R>,
        to: W,
        materialized: Materialized,
        f: impl for<'a> Fn2<Option<V::View<'a>>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KTable<K, W> {
        let how = How { needs_left: false, needs_right: false, materialized: Some(materialized) };
        self.join_as(other, to, how, Outer(Arc::new(f)))
    }

    fn join_as<R: Codec, W: Codec, J>(&self, other: &KTable<K, R>, to: W, how: How, joiner: J) -> KTable<K, W>
    where
        J: Joiner<V, R, W> + Clone + Send + Sync + 'static,
    {
        let mut graph = self.shelf.borrow_mut();
        if !Rc::ptr_eq(&self.shelf, &other.shelf) {
            graph.refuse(BuildError::OtherBuilder);
        }
        let store = how.materialized.map(|mut materialized| {
            let name = materialized.name.take().unwrap_or_else(|| graph.names.store("KTABLE-MERGE-"));
            let (rows, versioned) = (table_rows(&materialized, &to), materialized.history.is_some());
            (table_store(name, materialized), rows, versioned)
        });
        let versioned = store.as_ref().is_some_and(|(_, _, versioned)| *versioned);
        let names = ["KTABLE-MERGE-", "KTABLE-JOINTHIS-", "KTABLE-JOINOTHER-"].map(|p| graph.names.processor(p));
        let [merge_name, this_name, other_name] = names;
        if !how.needs_right {
            graph.want_old(self.at.0, true);
        }
        if !how.needs_left {
            graph.want_old(other.at.0, true);
        }
        let stores = [graph.table_stores(self.at.0), graph.table_stores(other.at.0)];
        let [this_stores, other_stores] = &stores;
        let this = Side { name: this_name, needs_other: how.needs_right, joiner: joiner.clone() };
        let this = this.add::<K, V, R, W>(&mut graph, [self.at, other.at], other_stores, &other.getter);
        let that = Side { name: other_name, needs_other: how.needs_left, joiner: Flipped(joiner.clone()) };
        let that = that.add::<K, R, V, W>(&mut graph, [other.at, self.at], this_stores, &self.getter);
        let store = store.map(|(spec, make, _)| graph.add_store(spec, make));
        let node = add_merge(&mut graph, merge_name, [this, that], &self.key, &to, store);
        let tables = [self.at.0, other.at.0];
        graph.add_table(node, TableKind::Joined { tables, sides: [this, that], store });
        graph.set_versioned(node, versioned);
        graph.copartition(&[self.at, other.at]);
        let (left, right) = (Arc::clone(&self.getter), Arc::clone(&other.getter));
        let getter: MakeGetter<K, W> = match store {
            Some(store) => stored_getter(self.key.clone(), move || Some(store)),
            None => Arc::new(move |w| {
                let (left, right, joiner) = (left(w)?, right(w)?, joiner.clone());
                Ok(Rc::new(JoinGetter { joiner, left, right, to: PhantomData::<W> }))
            }),
        };
        KTable { shelf: Rc::clone(&self.shelf), at: Port(node, 0), key: self.key.clone(), value: to, getter }
    }
}

struct Side<J> {
    name: String,
    needs_other: bool,
    joiner: J,
}

impl<J: Clone + Send + Sync + 'static> Side<J> {
    /// Adds the node of a side: below its own table, reading the other.
    fn add<K: Codec, V: Codec, R: Codec, W: Codec>(
        self,
        graph: &mut Graph,
        [table, reads]: [Port; 2],
        stores: &[StoreId],
        other: &MakeGetter<K, R>,
    ) -> NodeId
    where
        J: Joiner<V, R, W>,
    {
        let Self { name, needs_other, joiner } = self;
        let (other, versioned) = (Arc::clone(other), graph.is_versioned(table.0));
        let make: Make = Box::new(move |w, node| {
            Ok(Wiring::made::<K, Change<V>>(TableJoinSide::<K, V, R, W, J> {
                node,
                joiner: joiner.clone(),
                other: other(w)?,
                needs_other,
                versioned,
                sends_old: w.sends_old(node),
                out: w.edge::<K, Change<W>>(node, 0)?,
                from: PhantomData,
            }))
        });
        let new = NewNode { name, parents: &[table], outputs: 1, stores, named_by: None, make };
        let node = graph.add(new);
        graph.reads(node, reads);
        node
    }
}

fn add_merge<K: Codec, W: Codec>(
    graph: &mut Graph,
    name: String,
    [this, that]: [NodeId; 2],
    key: &K,
    _to: &W,
    store: Option<StoreId>,
) -> NodeId {
    let key = key.clone();
    let make: Make = Box::new(move |w, id| {
        let out = TableOut::<K, W>::wire(w, id, &key, store)?;
        let cached = out.is_cached();
        Ok(made_table::<K, Change<W>, _>(w, id, TableMerge(out), cached))
    });
    let stores: Vec<StoreId> = store.into_iter().collect();
    let parents = [Port(this, 0), Port(that, 0)];
    graph.add(NewNode { name, parents: &parents, outputs: 1, stores: &stores, named_by: None, make })
}
