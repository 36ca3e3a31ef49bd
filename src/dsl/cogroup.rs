//! Several grouped streams folded into one table.
use super::grouped::{KGroupedStream, make_aggregate};
use super::kstream::Shelf;
use super::ktable::{KTable, table_store};
use super::options::{Materialized, STREAMS};
use super::repartition::add_repartition;
use super::window_table::{Frame, add_window_store, finish, make_node};
use super::windows::Windows;
use crate::base::id::StoreId;
use crate::codec::{Change, Codec, Windowed};
use crate::node::ops::{
    EmitRule, FromInit, Merge, Merger, Pass, SessionAggregate, SessionSpec, SlidingAggregate, SlidingSpec, TimeSpec,
    WindowAggregate, WindowPlan,
};
use crate::node::{Fn3, Make, Wiring, make_store};
use crate::store::kind::Layout;
use crate::topology::{Graph, NewNode, Port, TableKind};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

const AGGREGATE: &str = "COGROUPKSTREAM-AGGREGATE-";
const MERGE: &str = "COGROUPKSTREAM-MERGE-";

type Init<A> = Arc<dyn Fn() -> <A as Codec>::Owned + Send + Sync>;

/// How sessions merge, of any closure.
struct AnyMerge<K, A>(Arc<dyn Merge<K, A> + Send + Sync>);

impl<K, A> Clone for AnyMerge<K, A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Codec, A: Codec> Merge<K, A> for AnyMerge<K, A> {
    fn merge<'x>(&self, key: K::View<'x>, into: &mut Option<A::Owned>, other: A::View<'x>) {
        self.0.merge(key, into, other);
    }
}

/// What the streams are cut into.
enum Cut<K, A> {
    Not,
    Time(TimeSpec, WindowPlan),
    Sliding(SlidingSpec, WindowPlan),
    Session(SessionSpec, WindowPlan, AnyMerge<K, A>),
}

/// One of the streams, without the type of its values.
trait Part<K, A: Codec> {
    /// Whether it is of this grouping.
    fn is(&self, grouping: *const Cell<Option<Port>>) -> bool;
    /// Where its node is to be attached.
    fn parent(&self, graph: &mut Graph, store: &str) -> Port;
    fn make(&self, init: Init<A>, cut: &Cut<K, A>, store: StoreId) -> Make;
}

struct Folded<K, V, F> {
    grouped: KGroupedStream<K, V>,
    f: Arc<F>,
    /// Its repartition topic, once there is one.
    at: Cell<Option<Port>>,
}

impl<K: Codec, V: Codec, A: Codec, F> Part<K, A> for Folded<K, V, F>
where
    F: for<'x, 'm> Fn3<K::View<'x>, V::View<'x>, &'m mut A::Owned, ()>,
{
    fn is(&self, grouping: *const Cell<Option<Port>>) -> bool {
        std::ptr::eq(Rc::as_ptr(&self.grouped.repartitioned), grouping)
    }

    fn parent(&self, graph: &mut Graph, store: &str) -> Port {
        let stream = &self.grouped.stream;
        if !stream.key_changed {
            return stream.at;
        }
        if let Some(port) = self.at.get() {
            // The names of another repartition are used up, as in Kafka Streams.
            for _ in 0..3 {
                graph.names.processor("");
            }
            return port;
        }
        let prefix = self.grouped.name.as_deref().unwrap_or(store);
        let port = add_repartition(graph, stream.at, prefix, &stream.key, &stream.value);
        self.at.set(Some(port));
        port
    }

    fn make(&self, init: Init<A>, cut: &Cut<K, A>, store: StoreId) -> Make {
        let key = self.grouped.stream.key.clone();
        let fold = FromInit { init: Arc::new(move || init()), f: Arc::clone(&self.f) };
        match cut {
            Cut::Not => make_aggregate::<K, V, A, _>(key, fold, store),
            Cut::Time(windows, plan) => {
                let windows = *windows;
                make_node::<K, A>(key, store, *plan, move |w, parts| {
                    let (id, fold) = (parts.node, fold.clone());
                    let node = WindowAggregate { parts, windows, fold, from: PhantomData::<V> };
                    finish::<K, V, _>(w, id, EmitRule::Updates, node)
                })
            }
            Cut::Sliding(windows, plan) => {
                let windows = *windows;
                make_node::<K, A>(key, store, *plan, move |w, parts| {
                    let id = parts.node;
                    finish::<K, V, _>(w, id, EmitRule::Updates, SlidingAggregate::new(parts, windows, fold.clone()))
                })
            }
            Cut::Session(windows, plan, merge) => {
                let (windows, merge) = (*windows, merge.clone());
                make_node::<K, A>(key, store, *plan, move |w, parts| {
                    let id = parts.node;
                    let node = SessionAggregate::new(parts, windows, fold.clone(), merge.clone());
                    finish::<K, V, _>(w, id, EmitRule::Updates, node)
                })
            }
        }
    }
}

/// Grouped streams that are folded into one aggregate, each by its own closure.
pub struct CogroupedKStream<K, A: Codec> {
    pub(super) shelf: Shelf,
    key: K,
    value: A,
    parts: Vec<Rc<dyn Part<K, A>>>,
}

impl<K: Clone, A: Codec> Clone for CogroupedKStream<K, A> {
    fn clone(&self) -> Self {
        let (key, value, parts) = (self.key.clone(), self.value.clone(), self.parts.clone());
        Self { shelf: Rc::clone(&self.shelf), key, value, parts }
    }
}

impl<K, A: Codec> fmt::Debug for CogroupedKStream<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CogroupedKStream").field("streams", &self.parts.len()).finish_non_exhaustive()
    }
}

impl<K: Codec, V: Codec> KGroupedStream<K, V> {
    /// Begins to fold several grouped streams into one aggregate: this one by the closure.
    ///
    /// # Null
    /// As the aggregation that is made of it.
    /// # Late
    /// As the aggregation that is made of it.
    /// # Stores
    /// None of its own.
    /// # Java
    /// `KGroupedStream.cogroup(aggregator)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let clicks = builder.stream("clicks", Consumed::with(Utf8, Utf8)).group_by_key();
    /// let sales = builder.stream("sales", Consumed::with(Utf8, I64)).group_by_key();
    /// clicks
    ///     .cogroup(I64, |_, _, score| *score += 1)
    ///     .cogroup(&sales, |_, cents, score| *score += cents)
    ///     .aggregate(Materialized::named("scores"), || 0);
    /// # builder.build().unwrap();
    /// ```
    pub fn cogroup<A: Codec>(
        &self,
        to: A,
        f: impl for<'a, 'm> Fn3<K::View<'a>, V::View<'a>, &'m mut A::Owned, ()>,
    ) -> CogroupedKStream<K, A> {
        let (shelf, key) = (Rc::clone(&self.stream.shelf), self.stream.key.clone());
        CogroupedKStream { shelf, key, value: to, parts: Vec::new() }.cogroup(self, f)
    }
}

impl<K: Codec, A: Codec> CogroupedKStream<K, A> {
    /// Folds another grouped stream into the aggregate.
    ///
    /// # Null
    /// As the aggregation that is made of it.
    /// # Late
    /// As the aggregation that is made of it.
    /// # Stores
    /// None of its own.
    /// # Java
    /// `CogroupedKStream.cogroup(groupedStream, aggregator)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let clicks = builder.stream("clicks", Consumed::with(Utf8, Utf8)).group_by_key();
    /// let sales = builder.stream("sales", Consumed::with(Utf8, I64)).group_by_key();
    /// let both = clicks.cogroup(I64, |_, _, n| *n += 1).cogroup(&sales, |_, cents, n| *n += cents);
    /// both.aggregate(Materialized::named("scores"), || 0);
    /// # builder.build().unwrap();
    /// ```
    #[must_use]
    pub fn cogroup<V: Codec>(
        mut self,
        grouped: &KGroupedStream<K, V>,
        f: impl for<'a, 'm> Fn3<K::View<'a>, V::View<'a>, &'m mut A::Owned, ()>,
    ) -> Self {
        let grouping = Rc::as_ptr(&grouped.repartitioned);
        let part = Rc::new(Folded { grouped: grouped.clone(), f: Arc::new(f), at: Cell::default() });
        match self.parts.iter_mut().find(|part| part.is(grouping)) {
            Some(known) => *known = part,
            None => self.parts.push(part),
        }
        self
    }

    /// Makes a table of the aggregates, which begin as `init` answers.
    ///
    /// # Null
    /// Records with a null key or value are dropped and counted.
    /// # Late
    /// Every record counts, whatever its time.
    /// # Stores
    /// A key-value store with a changelog.
    /// # Java
    /// `CogroupedKStream.aggregate(initializer, materialized)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let clicks = builder.stream("clicks", Consumed::with(Utf8, Utf8)).group_by_key();
    /// let sales = builder.stream("sales", Consumed::with(Utf8, I64)).group_by_key();
    /// let both = clicks.cogroup(I64, |_, _, n| *n += 1).cogroup(&sales, |_, cents, n| *n += cents);
    /// both.aggregate(Materialized::named("scores"), || 0);
    /// # builder.build().unwrap();
    /// ```
    pub fn aggregate(
        &self,
        materialized: Materialized,
        init: impl Fn() -> A::Owned + Send + Sync + 'static,
    ) -> KTable<K, A> {
        let add = |graph: &mut Graph, name: String, mut materialized: Materialized, value: &A| {
            let kind = materialized.place(Layout::Timestamped);
            materialized.name = None;
            (graph.add_store(table_store(name, materialized), make_store(value.clone(), kind)), Cut::Not, None)
        };
        self.build(materialized, Arc::new(init), self.key.clone(), add)
    }

    /// Cuts the streams into windows.
    ///
    /// # Null
    /// As the windows say.
    /// # Late
    /// As the windows say.
    /// # Stores
    /// None of its own.
    /// # Java
    /// `CogroupedKStream.windowedBy(windows)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// let clicks = builder.stream("clicks", Consumed::with(Utf8, Utf8)).group_by_key();
    /// let sales = builder.stream("sales", Consumed::with(Utf8, I64)).group_by_key();
    /// let both = clicks.cogroup(I64, |_, _, n| *n += 1).cogroup(&sales, |_, cents, n| *n += cents);
    /// let hour = Duration::from_secs(3600);
    /// both.windowed_by(TimeWindows::of_size_with_no_grace(hour)).aggregate(Materialized::new(), || 0);
    /// # builder.build().unwrap();
    /// ```
    pub fn windowed_by<W: Windows>(&self, windows: W) -> W::Cogrouped<K, A> {
        windows.cogroup(self)
    }

    /// Adds store, streams' nodes and the node that joins them.
    fn build<J: Codec>(
        &self,
        mut materialized: Materialized,
        init: Init<A>,
        key: J,
        add: impl FnOnce(&mut Graph, String, Materialized, &A) -> (StoreId, Cut<K, A>, Option<i64>),
    ) -> KTable<J, A> {
        let mut graph = self.shelf.borrow_mut();
        materialized.check_unversioned(&mut graph, STREAMS);
        let name = materialized.name.take().unwrap_or_else(|| graph.names.store(AGGREGATE));
        let ports: Vec<Port> = self.parts.iter().map(|part| part.parent(&mut graph, &name)).collect();
        if ports.len() > 1 {
            graph.copartition(&ports);
        }
        let (store, cut, grace) = add(&mut graph, name, materialized, &self.value);
        let mut nodes = Vec::new();
        for (part, port) in self.parts.iter().zip(ports) {
            let (name, make) = (graph.names.processor(AGGREGATE), part.make(Arc::clone(&init), &cut, store));
            let new = NewNode { name, parents: &[port], outputs: 1, stores: &[store], named_by: None, make };
            let node = graph.add(new);
            if let Some(grace) = grace {
                graph.set_grace(node, grace);
            }
            nodes.push(node);
        }
        let make: Make =
            Box::new(|w, id| Ok(Wiring::made::<J, Change<A>>(Pass { out: w.edge::<J, Change<A>>(id, 0)? })));
        let parents: Vec<Port> = nodes.iter().map(|node| Port(*node, 0)).collect();
        let name = graph.names.processor(MERGE);
        let merge = graph.add(NewNode { name, parents: &parents, outputs: 1, stores: &[], named_by: None, make });
        drop(graph);
        let table = KTable::new(&self.shelf, Port(merge, 0), key, self.value.clone(), store);
        self.shelf.borrow_mut().add_table(merge, TableKind::Merged { parts: nodes, store });
        table
    }
}

/// Cogrouped streams in time windows or sliding windows.
pub struct TimeWindowedCogroupedKStream<K, A: Codec> {
    streams: CogroupedKStream<K, A>,
    windows: TimeOrSliding,
}

/// Which of the two nodes over window stores.
#[derive(Clone, Copy, Debug)]
pub(super) enum TimeOrSliding {
    Time(TimeSpec),
    Sliding(SlidingSpec),
}

impl<K, A: Codec> fmt::Debug for TimeWindowedCogroupedKStream<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeWindowedCogroupedKStream").field("windows", &self.windows).finish_non_exhaustive()
    }
}

impl<K: Codec, A: Codec> TimeWindowedCogroupedKStream<K, A> {
    pub(super) fn new(streams: CogroupedKStream<K, A>, windows: TimeOrSliding) -> Self {
        Self { streams, windows }
    }

    /// Makes a table of the aggregates of each key and window, which begin as `init` answers.
    ///
    /// # Null
    /// As the windows say.
    /// # Late
    /// As the windows say.
    /// # Stores
    /// A window store with a changelog.
    /// # Java
    /// `TimeWindowedCogroupedKStream.aggregate(initializer, materialized)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// let clicks = builder.stream("clicks", Consumed::with(Utf8, Utf8)).group_by_key();
    /// let sales = builder.stream("sales", Consumed::with(Utf8, I64)).group_by_key();
    /// let both = clicks.cogroup(I64, |_, _, n| *n += 1).cogroup(&sales, |_, cents, n| *n += cents);
    /// let hour = Duration::from_secs(3600);
    /// both.windowed_by(TimeWindows::of_size_with_no_grace(hour)).aggregate(Materialized::new(), || 0);
    /// # builder.build().unwrap();
    /// ```
    pub fn aggregate(
        &self,
        materialized: Materialized,
        init: impl Fn() -> A::Owned + Send + Sync + 'static,
    ) -> KTable<Windowed<K>, A> {
        let windows = self.windows;
        let frame = match windows {
            TimeOrSliding::Time(spec) => Frame::time(spec),
            TimeOrSliding::Sliding(spec) => Frame::sliding(spec),
        };
        let add = move |graph: &mut Graph, name: String, materialized: Materialized, value: &A| {
            let plan = frame.plan(graph, &name, &materialized, EmitRule::Updates);
            let cut = match windows {
                TimeOrSliding::Time(spec) => Cut::Time(spec, plan),
                TimeOrSliding::Sliding(spec) => Cut::Sliding(spec, plan),
            };
            let store = add_window_store(graph, name, &materialized, value, &plan, true);
            (store, cut, Some(frame.closes_after_ms))
        };
        let key = Windowed::new(self.streams.key.clone(), frame.form);
        self.streams.build(materialized, Arc::new(init), key, add)
    }
}

/// Cogrouped streams in sessions.
pub struct SessionWindowedCogroupedKStream<K, A: Codec> {
    streams: CogroupedKStream<K, A>,
    windows: SessionSpec,
}

impl<K, A: Codec> fmt::Debug for SessionWindowedCogroupedKStream<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionWindowedCogroupedKStream").field("windows", &self.windows).finish_non_exhaustive()
    }
}

impl<K: Codec, A: Codec> SessionWindowedCogroupedKStream<K, A> {
    pub(super) fn new(streams: CogroupedKStream<K, A>, windows: SessionSpec) -> Self {
        Self { streams, windows }
    }

    /// Makes a table of the aggregates of each key and session, which begin as `init` answers; `merge` changes the
    /// first of two sessions' aggregates by the second.
    ///
    /// # Null
    /// As [`SessionWindows`](crate::SessionWindows) say.
    /// # Late
    /// As [`SessionWindows`](crate::SessionWindows) say.
    /// # Stores
    /// A session store with a changelog.
    /// # Java
    /// `SessionWindowedCogroupedKStream.aggregate(initializer, sessionMerger, materialized)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// let clicks = builder.stream("clicks", Consumed::with(Utf8, Utf8)).group_by_key();
    /// let sales = builder.stream("sales", Consumed::with(Utf8, I64)).group_by_key();
    /// let both = clicks.cogroup(I64, |_, _, n| *n += 1).cogroup(&sales, |_, cents, n| *n += cents);
    /// let hour = Duration::from_secs(3600);
    /// let sessions = both.windowed_by(SessionWindows::of_inactivity_gap_with_no_grace(hour));
    /// sessions.aggregate(Materialized::new(), || 0, |_, a, b| *a += b);
    /// # builder.build().unwrap();
    /// ```
    pub fn aggregate(
        &self,
        materialized: Materialized,
        init: impl Fn() -> A::Owned + Send + Sync + 'static,
        merge: impl for<'a, 'm> Fn3<K::View<'a>, &'m mut A::Owned, A::View<'a>, ()>,
    ) -> KTable<Windowed<K>, A> {
        let (windows, frame) = (self.windows, Frame::session(self.windows));
        let merge = AnyMerge(Arc::new(Merger(Arc::new(merge))));
        let add = move |graph: &mut Graph, name: String, materialized: Materialized, value: &A| {
            let plan = frame.plan(graph, &name, &materialized, EmitRule::Updates);
            let store = add_window_store(graph, name, &materialized, value, &plan, true);
            (store, Cut::Session(windows, plan, merge), Some(frame.closes_after_ms))
        };
        let key = Windowed::new(self.streams.key.clone(), frame.form);
        self.streams.build(materialized, Arc::new(init), key, add)
    }
}
