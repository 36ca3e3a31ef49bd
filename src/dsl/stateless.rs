//! Operators that look at one record at a time.
use super::kstream::KStream;
use crate::codec::Schema;
use crate::node::ops::{
    Filter, FlatMap, FlatMapValues, FlatMapValuesWithKey, ForEach, Map, MapValues, MapValuesIn, MapValuesWithKey, Pass,
    Peek, Push, PushPair, TryMapValues,
};
use crate::node::{BoxError, Fn1, Fn2, Fn3, Make, NoRoom, Pen, Wiring};
use crate::topology::{BuildError, NewNode, Port};
use std::any::TypeId;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

impl<K: Schema, V: Schema> KStream<K, V> {
    /// Passes on the records for which the closure says true.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.stream("in", Consumed::with(Utf8, I64)).filter(|_, n| n > 0).named("positive").to("out");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Null keys and values reach the closure where the schemas allow them (`Opt`).
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream.filter(predicate)`
    #[must_use]
    pub fn filter(&self, f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, bool>) -> Self {
        self.filter_if(true, f)
    }

    /// Passes on the records for which the closure says false.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.stream("in", Consumed::with(Utf8, I64)).filter_not(|_, n| n < 0).to("out");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Null keys and values reach the closure where the schemas allow them (`Opt`).
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream.filterNot(predicate)`
    #[must_use]
    pub fn filter_not(&self, f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, bool>) -> Self {
        self.filter_if(false, f)
    }

    fn filter_if(&self, keep: bool, f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, bool>) -> Self {
        let f = Arc::new(f);
        let make: Make = Box::new(move |w, id| {
            Ok(Wiring::made::<K, V>(Filter { keep, f: Arc::clone(&f), out: w.edge::<K, V>(id, 0)? }))
        });
        self.add("KSTREAM-FILTER-", 1, self.key.clone(), self.value.clone(), make)
    }

    /// Makes a value of each value; it may borrow from it.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("in", Consumed::with(Utf8, Utf8))
    ///     .map_values(Utf8, |line| line.trim())
    ///     .map_values(I64, |line| line.len() as i64)
    ///     .to("out");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Null keys and values reach the closure where the schemas allow them (`Opt`).
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream.mapValues(mapper)`
    pub fn map_values<W: Schema>(&self, to: W, f: impl for<'a> Fn1<V::View<'a>, W::Out<'a>>) -> KStream<K, W> {
        let f = Arc::new(f);
        let make: Make = Box::new(move |w, id| {
            let (f, out) = (Arc::clone(&f), w.edge::<K, W>(id, 0)?);
            Ok(Wiring::made::<K, V>(MapValues { f, out, from: PhantomData }))
        });
        self.add("KSTREAM-MAPVALUES-", 1, self.key.clone(), to, make).value_changed()
    }

    /// As [`map_values`](Self::map_values), seeing the key too. It cannot change it, so nothing is repartitioned.
    pub fn map_values_with_key<W: Schema>(
        &self,
        to: W,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, W::Out<'a>>,
    ) -> KStream<K, W> {
        let f = Arc::new(f);
        let make: Make = Box::new(move |w, id| {
            let (f, out) = (Arc::clone(&f), w.edge::<K, W>(id, 0)?);
            Ok(Wiring::made::<K, V>(MapValuesWithKey { f, out, from: PhantomData }))
        });
        self.add("KSTREAM-MAPVALUES-", 1, self.key.clone(), to, make).value_changed()
    }

    /// As [`map_values`](Self::map_values), where an error fails the task.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.stream("in", Consumed::with(Utf8, Utf8)).try_map_values(I64, |text| Ok(text.parse()?)).to("numbers");
    /// # builder.build().unwrap();
    /// ```
    pub fn try_map_values<W: Schema>(
        &self,
        to: W,
        f: impl for<'a> Fn1<V::View<'a>, Result<W::Out<'a>, BoxError>>,
    ) -> KStream<K, W> {
        let f = Arc::new(f);
        let make: Make = Box::new(move |w, id| {
            let (f, out) = (Arc::clone(&f), w.edge::<K, W>(id, 0)?);
            Ok(Wiring::made::<K, V>(TryMapValues { node: id, f, out, from: PhantomData }))
        });
        self.add("KSTREAM-MAPVALUES-", 1, self.key.clone(), to, make).value_changed()
    }

    /// As [`map_values`](Self::map_values), for text and bytes that are made rather than cut out of others: the closure
    /// writes them with a [`Pen`] into memory that is used again for the next record, so nothing is allocated.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("in", Consumed::with(Utf8, I64))
    ///     .map_values_in(Utf8, |cents, pen| pen.write(format_args!("{}.{:02}", cents / 100, cents % 100)))
    ///     .to("prices");
    /// # builder.build().unwrap();
    /// ```
    pub fn map_values_in<W: Schema>(
        &self,
        to: W,
        f: impl for<'a> Fn2<V::View<'a>, Pen<'a>, Result<W::Out<'a>, NoRoom>>,
    ) -> KStream<K, W> {
        let f = Arc::new(f);
        let make: Make = Box::new(move |w, id| {
            let (f, out) = (Arc::clone(&f), w.edge::<K, W>(id, 0)?);
            Ok(Wiring::made::<K, V>(MapValuesIn { node: id, f, out, from: PhantomData }))
        });
        self.add("KSTREAM-MAPVALUES-", 1, self.key.clone(), to, make).value_changed()
    }

    /// Makes any number of values of each value: the closure pushes them, each goes downstream at once.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let lines = builder.stream("lines", Consumed::with(Utf8, Utf8));
    /// lines.flat_map_values(Utf8, |line, out| line.split(' ').for_each(|word| out.push(word))).to("words");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Null keys and values reach the closure where the schemas allow them (`Opt`).
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream.flatMapValues(mapper)`; the values are pushed instead of answered in a list.
    pub fn flat_map_values<W: Schema>(
        &self,
        to: W,
        f: impl for<'a, 's, 'p> Fn2<V::View<'a>, &'p mut Push<'s, 'a, W>, ()>,
    ) -> KStream<K, W> {
        let f = Arc::new(f);
        let make: Make = Box::new(move |w, id| {
            let (f, out) = (Arc::clone(&f), w.edge::<K, W>(id, 0)?);
            Ok(Wiring::made::<K, V>(FlatMapValues { f, out, from: PhantomData }))
        });
        self.add("KSTREAM-FLATMAPVALUES-", 1, self.key.clone(), to, make).value_changed()
    }

    /// As [`flat_map_values`](Self::flat_map_values), seeing the key too. It cannot change it, so nothing is
    /// repartitioned.
    ///
    /// # Null
    /// The closure sees null keys and values as its schemas do.
    /// # Late
    /// Every record goes on, whatever its time.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream#flatMapValues(ValueMapperWithKey)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let lines = builder.stream("lines", Consumed::with(I64, Utf8));
    /// lines
    ///     .flat_map_values_with_key(Utf8, |most, line, out| {
    ///         line.split(' ').take(most as usize).for_each(|word| out.push(word));
    ///     })
    ///     .to("words");
    /// # builder.build().unwrap();
    /// ```
    pub fn flat_map_values_with_key<W: Schema>(
        &self,
        to: W,
        f: impl for<'a, 's, 'p> Fn3<K::View<'a>, V::View<'a>, &'p mut Push<'s, 'a, W>, ()>,
    ) -> KStream<K, W> {
        let f = Arc::new(f);
        let make: Make = Box::new(move |w, id| {
            let (f, out) = (Arc::clone(&f), w.edge::<K, W>(id, 0)?);
            Ok(Wiring::made::<K, V>(FlatMapValuesWithKey { f, out, from: PhantomData }))
        });
        self.add("KSTREAM-FLATMAPVALUES-", 1, self.key.clone(), to, make).value_changed()
    }

    /// Makes a key and a value of each record. As after [`select_key`](Self::select_key), grouping repartitions.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.stream("in", Consumed::with(Utf8, Utf8)).map(Utf8, Utf8, |key, value| (value, key)).to("swapped");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Null keys and values reach the closure where the schemas allow them (`Opt`).
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None here; what groups or joins by the new key makes a repartition topic first.
    /// # Java
    /// `KStream.map(mapper)`
    pub fn map<J: Schema, W: Schema>(
        &self,
        key: J,
        value: W,
        f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, (J::Out<'a>, W::Out<'a>)>,
    ) -> KStream<J, W> {
        let f = Arc::new(f);
        let make: Make = Box::new(move |w, id| {
            let (f, out) = (Arc::clone(&f), w.edge::<J, W>(id, 0)?);
            Ok(Wiring::made::<K, V>(Map { f, out, from: PhantomData }))
        });
        self.add("KSTREAM-MAP-", 1, key, value, make).key_changed()
    }

    /// Makes any number of keys and values of each record: the closure pushes them, each goes downstream at once.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let lines = builder.stream("lines", Consumed::with(Utf8, Utf8));
    /// lines.flat_map(Utf8, Utf8, |id, line, out| line.split(' ').for_each(|word| out.push(word, id))).to("index");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Null keys and values reach the closure where the schemas allow them (`Opt`).
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None here; what groups or joins by the new key makes a repartition topic first.
    /// # Java
    /// `KStream.flatMap(mapper)`; the pairs are pushed instead of answered in a list.
    pub fn flat_map<J: Schema, W: Schema>(
        &self,
        key: J,
        value: W,
        f: impl for<'a, 's, 'p> Fn3<K::View<'a>, V::View<'a>, &'p mut PushPair<'s, 'a, J, W>, ()>,
    ) -> KStream<J, W> {
        let f = Arc::new(f);
        let make: Make = Box::new(move |w, id| {
            let (f, out) = (Arc::clone(&f), w.edge::<J, W>(id, 0)?);
            Ok(Wiring::made::<K, V>(FlatMap { f, out, from: PhantomData }))
        });
        self.add("KSTREAM-FLATMAP-", 1, key, value, make).key_changed()
    }

    /// Shows each record to the closure and passes it on.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.stream("in", Consumed::with(Utf8, I64)).peek(|key, n| println!("{key}: {n}")).to("out");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Null keys and values reach the closure where the schemas allow them (`Opt`).
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream.peek(action)`
    #[must_use]
    pub fn peek(&self, f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, ()>) -> Self {
        let f = Arc::new(f);
        let make: Make =
            Box::new(move |w, id| Ok(Wiring::made::<K, V>(Peek { f: Arc::clone(&f), out: w.edge::<K, V>(id, 0)? })));
        self.add("KSTREAM-PEEK-", 1, self.key.clone(), self.value.clone(), make)
    }

    /// Shows each record to the closure; the stream ends here.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.stream("in", Consumed::with(Utf8, I64)).for_each(|key, n| println!("{key}: {n}"));
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Null keys and values reach the closure where the schemas allow them (`Opt`).
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream.foreach(action)`
    pub fn for_each(&self, f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, ()>) {
        let f = Arc::new(f);
        let make: Make =
            Box::new(move |_, _| Ok(Wiring::made::<K, V>(ForEach { f: Arc::clone(&f), from: PhantomData })));
        self.add("KSTREAM-FOREACH-", 0, self.key.clone(), self.value.clone(), make);
    }

    /// Both streams as one. There is no order between them.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let (web, shop) = (Consumed::with(Utf8, I64), Consumed::with(Utf8, I64));
    /// builder.stream("web", web).merge(&builder.stream("shop", shop)).to("sales");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Passed on as they are.
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream.merge(stream)`
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        let mut graph = self.shelf.borrow_mut();
        let name = graph.names.processor("KSTREAM-MERGE-");
        if !Rc::ptr_eq(&self.shelf, &other.shelf) {
            graph.refuse(BuildError::OtherBuilder);
            drop(graph);
            return self.clone();
        }
        let make: Make = Box::new(|w, id| Ok(Wiring::made::<K, V>(Pass { out: w.edge::<K, V>(id, 0)? })));
        let parents = [self.at, other.at];
        let node = graph.add(NewNode { name, parents: &parents, outputs: 1, stores: &[], named_by: None, make });
        graph.mark(node, |mark| mark.merges = Some(TypeId::of::<(K, V)>()));
        drop(graph);
        let key_changed = self.key_changed || other.key_changed;
        Self::new(&self.shelf, Port(node, 0), self.key.clone(), self.value.clone(), key_changed)
    }
}
