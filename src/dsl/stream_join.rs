//! `join` of two streams, inner, left and outer.
use super::joiner::{Inner, InnerWithKey, Left, LeftWithKey, Outer, OuterWithKey};
use super::kstream::KStream;
use super::stream_joined::{JoinWindows, StreamJoined};
use crate::base::id::{NodeId, StoreId};
use crate::codec::{Bytes, Codec, Schema, Scratch};
use crate::node::ops::{
    FromLeft, FromRight, JoinTimes, Pass, SideJoiner, StreamJoin, StreamJoiner, StreamSelfJoin, StreamWindow, Times,
    Unjoined,
};
use crate::node::{Fn2, Fn3, KeyValue, Make, PerTask, Wiring, WiringError, make_store};
use crate::store::kind::{Layout, StoreKind};
use crate::topology::{BuildError, Graph, NewNode, Port, StoreSpec, StreamJoin as JoinNodes};
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

impl<K: Codec, V: Codec> KStream<K, V> {
    /// Joins each record with the records of the other stream that have the same key and whose time lies in its window.
    ///
    /// Both streams must have equally many partitions; one whose key was changed goes through a repartition topic
    /// first. A result has the higher time of both records.
    ///
    /// # Null
    /// Records whose key or value is null are dropped and counted.
    ///
    /// # Late
    /// A record is joined with what the other window still has: it keeps records until the stream's time is the window
    /// and its grace period behind them.
    ///
    /// # Stores
    /// Two windows, named after the join's nodes; their changelogs have `cleanup.policy=delete`.
    ///
    /// # Java
    /// `stream.join(otherStream, joiner, windows)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// let orders = builder.stream("orders", Consumed::with(Utf8, I64));
    /// let payments = builder.stream("payments", Consumed::with(Utf8, I64));
    /// let within = JoinWindows::of_time_difference_with_no_grace(Duration::from_secs(60));
    /// orders.join_stream(&payments, within, I64, |order, payment| order - payment).to("open");
    /// # builder.build().unwrap();
    /// ```
    pub fn join_stream<R: Codec, W: Schema>(
        &self,
        other: &KStream<K, R>,
        windows: JoinWindows,
        to: W,
        f: impl for<'a> Fn2<V::View<'a>, R::View<'a>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.join_stream_with(other, windows, StreamJoined::new(), to, f)
    }

    /// As [`join_stream`](Self::join_stream), with names and settings.
    pub fn join_stream_with<R: Codec, W: Schema>(
        &self,
        other: &KStream<K, R>,
        windows: JoinWindows,
        joined: StreamJoined,
        to: W,
        f: impl for<'a> Fn2<V::View<'a>, R::View<'a>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.joined(other, &Plan { windows, joined, outer: [false, false] }, to, Inner(f))
    }

    /// As [`join_stream_with`](Self::join_stream_with); the closure sees the key too.
    pub fn join_stream_with_key<R: Codec, W: Schema>(
        &self,
        other: &KStream<K, R>,
        windows: JoinWindows,
        joined: StreamJoined,
        to: W,
        f: impl for<'a> Fn3<K::View<'a>, V::View<'a>, R::View<'a>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.joined(other, &Plan { windows, joined, outer: [false, false] }, to, InnerWithKey(f))
    }

    /// As [`join_stream`](Self::join_stream), and each record of this stream that finds no partner goes on alone once
    /// its window has closed. That is looked for at most once a second.
    ///
    /// # Null
    /// A record of this stream whose key is null goes on alone at once; other records whose key or value is null are
    /// dropped and counted.
    ///
    /// # Late
    /// A record whose window has closed when it comes goes on alone at once if it finds no partner.
    ///
    /// # Stores
    /// Two windows and a store of the records that wait for a partner, each with a changelog.
    ///
    /// # Java
    /// `stream.leftJoin(otherStream, joiner, windows)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// let orders = builder.stream("orders", Consumed::with(Utf8, I64));
    /// let payments = builder.stream("payments", Consumed::with(Utf8, I64));
    /// let within = JoinWindows::of_time_difference_with_no_grace(Duration::from_secs(60));
    /// orders.left_join_stream(&payments, within, I64, |order, paid| order - paid.unwrap_or(0)).to("open");
    /// # builder.build().unwrap();
    /// ```
    pub fn left_join_stream<R: Codec, W: Schema>(
        &self,
        other: &KStream<K, R>,
        windows: JoinWindows,
        to: W,
        f: impl for<'a> Fn2<V::View<'a>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.left_join_stream_with(other, windows, StreamJoined::new(), to, f)
    }

    /// As [`left_join_stream`](Self::left_join_stream), with names and settings.
    pub fn left_join_stream_with<R: Codec, W: Schema>(
        &self,
        other: &KStream<K, R>,
        windows: JoinWindows,
        joined: StreamJoined,
        to: W,
        f: impl for<'a> Fn2<V::View<'a>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.joined(other, &Plan { windows, joined, outer: [true, false] }, to, Left(f))
    }

    /// As [`left_join_stream_with`](Self::left_join_stream_with); the closure sees the key too.
    pub fn left_join_stream_with_key<R: Codec, W: Schema>(
        &self,
        other: &KStream<K, R>,
        windows: JoinWindows,
        joined: StreamJoined,
        to: W,
        f: impl for<'a> Fn3<K::View<'a>, V::View<'a>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.joined(other, &Plan { windows, joined, outer: [true, false] }, to, LeftWithKey(f))
    }

    /// As [`left_join_stream`](Self::left_join_stream), for records of both streams.
    ///
    /// # Null
    /// A record whose key is null goes on alone at once; one whose value is null is dropped and counted.
    ///
    /// # Late
    /// A record whose window has closed when it comes goes on alone at once if it finds no partner.
    ///
    /// # Stores
    /// Two windows and a store of the records that wait for a partner, each with a changelog.
    ///
    /// # Java
    /// `stream.outerJoin(otherStream, joiner, windows)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// let orders = builder.stream("orders", Consumed::with(Utf8, I64));
    /// let payments = builder.stream("payments", Consumed::with(Utf8, I64));
    /// let within = JoinWindows::of_time_difference_with_no_grace(Duration::from_secs(60));
    /// orders
    ///     .outer_join_stream(&payments, within, I64, |order, paid| order.unwrap_or(0) - paid.unwrap_or(0))
    ///     .to("open");
    /// # builder.build().unwrap();
    /// ```
    pub fn outer_join_stream<R: Codec, W: Schema>(
        &self,
        other: &KStream<K, R>,
        windows: JoinWindows,
        to: W,
        f: impl for<'a> Fn2<Option<V::View<'a>>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.outer_join_stream_with(other, windows, StreamJoined::new(), to, f)
    }

    /// As [`outer_join_stream`](Self::outer_join_stream), with names and settings.
    pub fn outer_join_stream_with<R: Codec, W: Schema>(
        &self,
        other: &KStream<K, R>,
        windows: JoinWindows,
        joined: StreamJoined,
        to: W,
        f: impl for<'a> Fn2<Option<V::View<'a>>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.joined(other, &Plan { windows, joined, outer: [true, true] }, to, Outer(f))
    }

    /// As [`outer_join_stream_with`](Self::outer_join_stream_with); the closure sees the key too.
    pub fn outer_join_stream_with_key<R: Codec, W: Schema>(
        &self,
        other: &KStream<K, R>,
        windows: JoinWindows,
        joined: StreamJoined,
        to: W,
        f: impl for<'a> Fn3<K::View<'a>, Option<V::View<'a>>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.joined(other, &Plan { windows, joined, outer: [true, true] }, to, OuterWithKey(f))
    }

    fn joined<R: Codec, W: Schema>(
        &self,
        other: &KStream<K, R>,
        plan: &Plan,
        to: W,
        join: impl StreamJoiner<K, V, R, W>,
    ) -> KStream<K, W> {
        if !Rc::ptr_eq(&self.shelf, &other.shelf) {
            self.shelf.borrow_mut().refuse(BuildError::OtherBuilder);
            return KStream::new(&self.shelf, Port::NOWHERE, self.key.clone(), to, false);
        }
        let topic = |side: &str| plan.joined.name.as_ref().map(|name| format!("{name}{side}"));
        let left = self.repartitioned_for_join(topic("-left").as_deref());
        let right = other.repartitioned_for_join(topic("-right").as_deref());
        let mut graph = self.shelf.borrow_mut();
        graph.copartition(&[left, right]);
        let names = plan.names(&mut graph);
        let merge = join_nodes(&mut graph, plan, names, [left, right], self, other, &Arc::new(join));
        drop(graph);
        KStream::new(&self.shelf, Port(merge, 0), self.key.clone(), to, false)
    }
}

/// A join as it was asked for.
struct Plan {
    windows: JoinWindows,
    joined: StreamJoined,
    /// Whether the left and the right stream's records go on without a partner.
    outer: [bool; 2],
}

/// Of nodes and stores.
struct JoinNames {
    windowed: [String; 2],
    joins: [String; 2],
    merge: String,
    stores: [String; 2],
    unjoined: String,
}

impl Plan {
    /// In the order in which Kafka Streams generates them.
    fn names(&self, graph: &mut Graph) -> JoinNames {
        let [left_outer, right_outer] = self.outer;
        let suffixes = [
            if right_outer { "-outer-this-join" } else { "-this-join" },
            if left_outer { "-outer-other-join" } else { "-other-join" },
        ];
        let named = |suffix: &str| self.joined.name.as_ref().map(|name| format!("{name}{suffix}"));
        let windowed = ["-this-windowed", "-other-windowed"]
            .map(|suffix| graph.names.given_or(named(suffix).as_deref(), "KSTREAM-WINDOWED-"));
        let generated = [
            graph.names.processor(if right_outer { "KSTREAM-OUTERTHIS-" } else { "KSTREAM-JOINTHIS-" }),
            graph.names.processor(if left_outer { "KSTREAM-OUTEROTHER-" } else { "KSTREAM-JOINOTHER-" }),
        ];
        let merge = graph.names.given_or(named("-merge").as_deref(), "KSTREAM-MERGE-");
        let store = |suffix: &str| self.joined.store.as_ref().map(|name| format!("{name}{suffix}"));
        let [this, other] = &generated;
        let number = this.rsplit('-').next().unwrap_or_default();
        let shared = store(if right_outer { "-outer-shared-join" } else { "-left-shared-join" });
        JoinNames {
            windowed,
            joins: suffixes.map(|suffix| named(suffix).unwrap_or_default()),
            merge,
            stores: [
                format!("{}-store", store(suffixes[0]).unwrap_or_else(|| this.clone())),
                format!("{}-store", store(suffixes[1]).unwrap_or_else(|| other.clone())),
            ],
            unjoined: format!("{}-store", shared.unwrap_or_else(|| format!("KSTREAM-OUTERSHARED-{number}"))),
        }
        .or_generated(generated)
    }

    /// The window as a side sees it.
    fn times(&self, is_left: bool) -> JoinTimes {
        let JoinWindows { before_ms: before, after_ms: after, grace_ms: grace } = self.windows;
        let [left_outer, right_outer] = self.outer;
        JoinTimes { is_left, is_outer: if is_left { left_outer } else { right_outer }, before, after, grace }
    }

    fn store(&self, name: String, is_window: bool) -> StoreSpec {
        let mut topic_configs = self.joined.topic_configs.clone();
        if is_window {
            topic_configs.push(("cleanup.policy".to_owned(), "delete".to_owned()));
        }
        StoreSpec { name, logged: self.joined.logged, cached: false, topic_configs, nodes: Vec::new() }
    }
}

impl JoinNames {
    fn or_generated(mut self, generated: [String; 2]) -> Self {
        for (name, generated) in self.joins.iter_mut().zip(generated) {
            if name.is_empty() {
                *name = generated;
            }
        }
        self
    }
}

/// Adds the nodes and stores of a join, in Kafka Streams' order; answers the last.
fn join_nodes<K: Codec, V: Codec, R: Codec, W: Schema, J: StreamJoiner<K, V, R, W>>(
    graph: &mut Graph,
    plan: &Plan,
    names: JoinNames,
    parents: [Port; 2],
    left: &KStream<K, V>,
    right: &KStream<K, R>,
    join: &Arc<J>,
) -> NodeId {
    let (key, [left_at, right_at]) = (&left.key, parents);
    let kind = StoreKind::join_window(plan.windows.retention_ms());
    let ([this_store, other_store], [this_window, other_window]) = (names.stores, names.windowed);
    let this_store = graph.add_store(plan.store(this_store, true), make_store(left.value.clone(), kind));
    let this_window = add_window::<K, V>(graph, this_window, left_at, key, this_store);
    let other_store = graph.add_store(plan.store(other_store, true), make_store(right.value.clone(), kind));
    let other_window = add_window::<K, R>(graph, other_window, right_at, key, other_store);
    let unjoined = plan
        .outer
        .contains(&true)
        .then(|| graph.add_store(plan.store(names.unjoined, false), make_store(Bytes, Layout::Plain)));
    let [join_this, join_other] = names.joins;
    let side = |name, parent, is_left, other| Side {
        name,
        parent,
        times: plan.times(is_left),
        around: this_window,
        other,
        unjoined,
    };
    let this = side(join_this, this_window, true, other_store);
    let join_this = add_side::<K, V, R, W, _>(graph, this, key, [&left.value], [&right.value], {
        let join = Arc::clone(join);
        move || FromLeft(Arc::clone(&join))
    });
    let other = side(join_other, other_window, false, this_store);
    let join_other = add_side::<K, R, V, W, _>(graph, other, key, [&right.value], [&left.value], {
        let join = Arc::clone(join);
        move || FromRight(Arc::clone(&join))
    });
    let make: Make = Box::new(|w, id| Ok(Wiring::made::<K, W>(Pass { out: w.edge::<K, W>(id, 0)? })));
    let parents = [Port(join_this, 0), Port(join_other, 0)];
    let merge =
        graph.add(NewNode { name: names.merge, parents: &parents, outputs: 1, stores: &[], named_by: None, make });
    if unjoined.is_some() {
        for node in [join_this, join_other] {
            graph.mark(node, |mark| mark.wants_null_keys = true);
        }
    }
    let self_join = self_join::<K, V, R, W>(plan, key, this_store, Arc::clone(join) as _);
    graph.add_stream_join(JoinNodes { this_window, other_window, join_this, join_other, merge, this_store, self_join });
    merge
}

fn add_window<K: Codec, V: Codec>(graph: &mut Graph, name: String, parent: Port, key: &K, store: StoreId) -> NodeId {
    let key = key.clone();
    let make: Make = Box::new(move |w, id| {
        Ok(Wiring::made::<K, V>(StreamWindow {
            node: id,
            key: key.clone(),
            store: w.store::<Rc<KeyValue<V>>>(store)?,
            number: PerTask::new(w),
            scratch: RefCell::new(Scratch::with_limit(w.settings().record_bytes)),
            out: w.edge::<K, V>(id, 0)?,
        }))
    });
    graph.add(NewNode { name, parents: &[parent], outputs: 1, stores: &[store], named_by: NAMED_BY, make })
}

const NAMED_BY: Option<&str> = Some("name the join with StreamJoined");

/// One side of a join that is added.
struct Side {
    name: String,
    parent: NodeId,
    times: JoinTimes,
    /// What both sides share is found under this node.
    around: NodeId,
    other: StoreId,
    unjoined: Option<StoreId>,
}

fn add_side<K: Codec, T: Codec, O: Codec, W: Schema, J: SideJoiner<K, T, O, W>>(
    graph: &mut Graph,
    side: Side,
    key: &K,
    [value]: [&T; 1],
    [other_value]: [&O; 1],
    join: impl Fn() -> J + Send + Sync + 'static,
) -> NodeId {
    let Side { name, parent, times, around, other, unjoined } = side;
    let (key, value, other_value) = (key.clone(), value.clone(), other_value.clone());
    let make: Make = Box::new(move |w, id| {
        let record_bytes = w.settings().record_bytes;
        let unjoined = unjoined.map(|store| w.store::<Rc<KeyValue<Bytes>>>(store)).transpose()?;
        Ok(Wiring::made::<K, T>(StreamJoin {
            node: id,
            key: key.clone(),
            value: value.clone(),
            other_value: other_value.clone(),
            join: join(),
            times,
            other: w.store::<Rc<KeyValue<O>>>(other)?,
            unjoined: unjoined.map(|store| Unjoined::new(store, record_bytes)),
            task: w.shared(around, |w| Rc::new(PerTask::with(w, Times::START))),
            emit_interval_ms: w.settings().emit_interval_ms,
            scratch: RefCell::new(Scratch::with_limit(record_bytes)),
            out: w.edge::<K, W>(id, 0)?,
        }))
    });
    let stores: Vec<StoreId> = [Some(other), unjoined].into_iter().flatten().collect();
    let parents = [Port(parent, 0)];
    graph.add(NewNode { name, parents: &parents, outputs: 1, stores: &stores, named_by: NAMED_BY, make })
}

/// Makes the node that joins the left stream with itself, where both sides are one and so of one type.
fn self_join<K: Codec, V: Codec, R: Codec, W: Schema>(
    plan: &Plan,
    key: &K,
    store: StoreId,
    join: Arc<dyn StreamJoiner<K, V, R, W>>,
) -> Make {
    let (key, times, retention) = (key.clone(), plan.times(true), plan.windows.retention_ms());
    Box::new(move |w, id| {
        let same = (&join as &dyn Any).downcast_ref::<Arc<dyn StreamJoiner<K, V, V, W>>>();
        let join = Arc::clone(same.ok_or(WiringError::NodeType(id))?);
        Ok(Wiring::made::<K, V>(StreamSelfJoin {
            node: id,
            key: key.clone(),
            join,
            times,
            retention,
            store: w.store::<Rc<KeyValue<V>>>(store)?,
            stream_time: PerTask::with(w, -1),
            scratch: RefCell::new(Scratch::with_limit(w.settings().record_bytes)),
            out: w.edge::<K, W>(id, 0)?,
        }))
    })
}
