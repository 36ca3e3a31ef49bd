//! Joins of a table with another by a key that is in its values.
use super::kstream::add_sink;
use super::ktable::{KTable, made_table, table_store};
use super::late_table::MayBeKept;
use super::options::Materialized;
use super::source::add_source;
use crate::base::id::StoreId;
use crate::codec::{Bytes, Change, Codec, Opt, Read, Schema, Scratch};
use crate::node::ops::{
    AnswerAll, AnswerNew, AnswerSink, Answering, Inner, JoinAnswer, Joiner, KeepSubscriptions, Left, Subscribe,
    TableSource,
};
use crate::node::{Fn2, KeyValue, Make, TopicName, Wiring, make_store};
use crate::store::kind::{Layout, StoreKind};
use crate::topology::{BuildError, Graph, NewNode, Port, RepartitionSpec, SourceTemplate};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// How two tables are joined by a foreign key.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// let orders = builder.table("orders", Consumed::with(Utf8, Utf8));
/// let users = builder.table("users", Consumed::with(Utf8, Utf8));
/// let how = TableJoined::named("users-of-orders");
/// orders.join_on_with(&users, |_, user| user, Utf8, how, Materialized::new(), |_, user| user);
/// assert!(builder.build().unwrap().describe().contains("users-of-orders-subscription-registration-topic"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct TableJoined {
    pub(crate) name: Option<String>,
}

impl TableJoined {
    /// A join of this name: its nodes, its store and its two topics are named after it.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()) }
    }
}

impl<K: Codec, V: Codec> KTable<K, V> {
    /// Joins each row of this table with the row of the other whose key the closure finds in it.
    ///
    /// # Null
    /// A row that goes away on either side deletes the result. A row without a foreign key is skipped and counted.
    /// # Late
    /// Every update is joined with what the other table has now; its time is the later of both.
    /// # Stores
    /// Both tables are kept. A subscription and a response topic lie between them, and a store of subscriptions with
    /// its changelog. The result is kept if it is named, or if something needs it.
    /// # Java
    /// `KTable#join(KTable, Function, ValueJoiner, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let orders = builder.table("orders", Consumed::with(Utf8, Utf8));
    /// let users = builder.table("users", Consumed::with(Utf8, Utf8));
    /// orders.join_on(&users, |_, user| user, Utf8, Materialized::new(), |_, user| user).to_stream().to("out");
    /// # builder.build().unwrap();
    /// ```
    pub fn join_on<J: Codec, R: Codec, W: Codec>(
        &self,
        other: &KTable<J, R>,
        foreign_key: impl for<'a> Fn2<K::View<'a>, V::View<'a>, J::Out<'a>>,
        to: W,
        materialized: Materialized,
        f: impl for<'a> Fn2<V::View<'a>, R::View<'a>, W::Out<'a>>,
    ) -> KTable<K, W> {
        self.join_on_with(other, foreign_key, to, TableJoined::default(), materialized, f)
    }

    /// As [`join_on`](Self::join_on), with a name.
    ///
    /// # Null
    /// As [`join_on`](Self::join_on).
    /// # Late
    /// As [`join_on`](Self::join_on).
    /// # Stores
    /// As [`join_on`](Self::join_on).
    /// # Java
    /// `KTable#join(KTable, Function, ValueJoiner, TableJoined, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let orders = builder.table("orders", Consumed::with(Utf8, Utf8));
    /// let users = builder.table("users", Consumed::with(Utf8, Utf8));
    /// let how = TableJoined::named("users-of-orders");
    /// orders.join_on_with(&users, |_, user| user, Utf8, how, Materialized::named("joined"), |_, user| user);
    /// # builder.build().unwrap();
    /// ```
    pub fn join_on_with<J: Codec, R: Codec, W: Codec>(
        &self,
        other: &KTable<J, R>,
        foreign_key: impl for<'a> Fn2<K::View<'a>, V::View<'a>, J::Out<'a>>,
        to: W,
        joined: TableJoined,
        materialized: Materialized,
        f: impl for<'a> Fn2<V::View<'a>, R::View<'a>, W::Out<'a>>,
    ) -> KTable<K, W> {
        let join = ForeignKeyJoin { left: self, right: other, is_left: false, name: joined.name };
        join.add(foreign_key, to, materialized, Inner(Arc::new(f)))
    }

    /// Joins each row of this table with the row of the other whose key the closure finds in it, or with nothing.
    ///
    /// # Null
    /// Without a row in the other table, or without a foreign key, the closure sees `None`. A row of this table that
    /// goes away deletes the result.
    /// # Late
    /// As [`join_on`](Self::join_on).
    /// # Stores
    /// As [`join_on`](Self::join_on).
    /// # Java
    /// `KTable#leftJoin(KTable, Function, ValueJoiner, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let orders = builder.table("orders", Consumed::with(Utf8, Utf8));
    /// let users = builder.table("users", Consumed::with(Utf8, Utf8));
    /// let names = orders.left_join_on(&users, |_, id| id, Utf8, Materialized::new(), |id, user| user.unwrap_or(id));
    /// names.to_stream().to("out");
    /// # builder.build().unwrap();
    /// ```
    pub fn left_join_on<J: Codec, R: Codec, W: Codec>(
        &self,
        other: &KTable<J, R>,
        foreign_key: impl for<'a> Fn2<K::View<'a>, V::View<'a>, J::Out<'a>>,
        to: W,
        materialized: Materialized,
        f: impl for<'a> Fn2<V::View<'a>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KTable<K, W> {
        self.left_join_on_with(other, foreign_key, to, TableJoined::default(), materialized, f)
    }

    /// As [`left_join_on`](Self::left_join_on), with a name.
    ///
    /// # Null
    /// As [`left_join_on`](Self::left_join_on).
    /// # Late
    /// As [`join_on`](Self::join_on).
    /// # Stores
    /// As [`join_on`](Self::join_on).
    /// # Java
    /// `KTable#leftJoin(KTable, Function, ValueJoiner, TableJoined, Materialized)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let orders = builder.table("orders", Consumed::with(Utf8, Utf8));
    /// let users = builder.table("users", Consumed::with(Utf8, Utf8));
    /// let how = TableJoined::named("users-of-orders");
    /// let kept = Materialized::named("joined");
    /// orders.left_join_on_with(&users, |_, user| user, Utf8, how, kept, |id, user| user.unwrap_or(id));
    /// # builder.build().unwrap();
    /// ```
    pub fn left_join_on_with<J: Codec, R: Codec, W: Codec>(
        &self,
        other: &KTable<J, R>,
        foreign_key: impl for<'a> Fn2<K::View<'a>, V::View<'a>, J::Out<'a>>,
        to: W,
        joined: TableJoined,
        materialized: Materialized,
        f: impl for<'a> Fn2<V::View<'a>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KTable<K, W> {
        let join = ForeignKeyJoin { left: self, right: other, is_left: true, name: joined.name };
        join.add(foreign_key, to, materialized, Left(Arc::new(f)))
    }
}

/// A join that is being added.
struct ForeignKeyJoin<'t, K: Schema, V: Schema, J: Schema, R: Schema> {
    left: &'t KTable<K, V>,
    right: &'t KTable<J, R>,
    is_left: bool,
    name: Option<String>,
}

/// Names in the order in which they use up numbers.
struct ForeignKeyNames {
    subscriptions: String,
    subscribe: String,
    subscription_sink: String,
    subscription_source: String,
    store: String,
    keep: String,
    answer_new: String,
    answer_all: String,
    answers: String,
    answer_sink: String,
    answer_source: String,
    join: String,
    result: String,
}

impl ForeignKeyNames {
    fn new(graph: &mut Graph, name: Option<&str>) -> Self {
        let mut next = |suffix: &str, prefix: &str| {
            let generated = graph.names.processor(prefix);
            name.map_or(generated, |name| format!("{name}{suffix}"))
        };
        const REGISTRATION: &str = "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-";
        const PROCESSOR: &str = "KTABLE-FK-JOIN-SUBSCRIPTION-PROCESSOR-";
        Self {
            subscriptions: next("-subscription-registration", REGISTRATION) + "-topic",
            subscribe: next("-subscription-registration-processor", REGISTRATION),
            subscription_sink: next("-subscription-registration-sink", "KTABLE-SINK-"),
            subscription_source: next("-subscription-registration-source", "KTABLE-SOURCE-"),
            store: next("-subscription-store", "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-"),
            keep: next("-subscription-receive", PROCESSOR),
            answer_new: next("-subscription-join-foreign", PROCESSOR),
            answer_all: next("-foreign-join-subscription", PROCESSOR),
            answers: next("-subscription-response", "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-") + "-topic",
            answer_sink: next("-subscription-response-sink", "KTABLE-SINK-"),
            answer_source: next("-subscription-response-source", "KTABLE-SOURCE-"),
            join: next("-subscription-response-resolver", "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-"),
            result: next("-result", "KTABLE-FK-JOIN-OUTPUT-"),
        }
    }
}

impl<K: Codec, V: Codec, J: Codec, R: Codec> ForeignKeyJoin<'_, K, V, J, R> {
    fn add<W: Codec, M>(
        self,
        extract: impl for<'a> Fn2<K::View<'a>, V::View<'a>, J::Out<'a>>,
        to: W,
        materialized: Materialized,
        joiner: M,
    ) -> KTable<K, W>
    where
        M: Joiner<V, R, W> + Clone + Send + Sync + 'static,
    {
        let shelf = &self.left.shelf;
        let mut graph = shelf.borrow_mut();
        if !Rc::ptr_eq(shelf, &self.right.shelf) {
            graph.refuse(BuildError::OtherBuilder);
        }
        graph.want_old(self.right.at.0, true);
        graph.want_old(self.left.at.0, true);
        let names = ForeignKeyNames::new(&mut graph, self.name.as_deref());
        let store = MayBeKept::new(&mut graph, materialized, "KTABLE-FK-JOIN-OUTPUT-");
        let subscriptions = self.add_subscribe(&mut graph, &names, extract);
        let answers = self.add_answers(&mut graph, &names, subscriptions);
        let joined = self.add_join(&mut graph, names.join, answers, &to, joiner);
        let schemas = (&self.left.key, &to);
        let (at, late) = store.add(&mut graph, names.result, (joined, None), schemas, |w, id, out, cached| {
            made_table::<Opt<K>, Opt<W>, _>(w, id, TableSource(out), cached)
        });
        drop(graph);
        KTable::late(shelf, at, self.left.key.clone(), to, late)
    }

    /// The left table's side: sends subscriptions. Answers where they arrive.
    fn add_subscribe(
        &self,
        graph: &mut Graph,
        names: &ForeignKeyNames,
        extract: impl for<'a> Fn2<K::View<'a>, V::View<'a>, J::Out<'a>>,
    ) -> Port {
        let (is_left, extract) = (self.is_left, Arc::new(extract));
        let versioned = graph.is_versioned(self.left.at.0);
        let (key, value, foreign) = (self.left.key.clone(), self.left.value.clone(), self.right.key.clone());
        let make: Make = Box::new(move |w, node| {
            let scratch = || Scratch::with_limit(w.settings().record_bytes);
            let scratch = RefCell::new([scratch(), scratch(), scratch()]);
            Ok(Wiring::made::<K, Change<V>>(Subscribe {
                node,
                left: is_left,
                versioned,
                key: key.clone(),
                value: value.clone(),
                foreign: foreign.clone(),
                extract: Arc::clone(&extract),
                scratch,
                out: w.edge::<Opt<Bytes>, Bytes>(node, 0)?,
            }))
        });
        let name = names.subscribe.clone();
        let node = graph.add(NewNode { name, parents: &[self.left.at], outputs: 1, stores: &[], named_by: None, make });
        let topic = TopicName::Internal(names.subscriptions.clone());
        graph.check_topic(&topic);
        let sink_name = names.subscription_sink.clone();
        let (sink, _) = add_sink(graph, Port(node, 0), sink_name, topic.clone(), Opt(Bytes), Bytes);
        let source = add_topic(graph, names.subscription_source.clone(), &topic, (Opt(Bytes), Bytes));
        graph.add_repartition(RepartitionSpec { topic, partitions: None, sinks: vec![sink] });
        source
    }

    /// The right table's side: keeps subscriptions and answers them. Answers where the answers arrive.
    fn add_answers(&self, graph: &mut Graph, names: &ForeignKeyNames, subscriptions: Port) -> Port {
        let spec = table_store(names.store.clone(), Materialized::new().caching(false));
        let mut kind = StoreKind::from(Layout::Timestamped);
        kind.logs_headers = true;
        let store = graph.add_store(spec, make_store(Bytes, kind));
        let make: Make = Box::new(move |w, node| {
            Ok(Wiring::made::<Opt<Bytes>, Bytes>(KeepSubscriptions {
                node,
                store: w.store::<Rc<KeyValue<Bytes>>>(store)?,
                scratch: RefCell::new(Scratch::with_limit(w.settings().record_bytes)),
                out: w.edge::<Opt<Bytes>, Bytes>(node, 0)?,
            }))
        });
        let (name, parents) = (names.keep.clone(), [subscriptions]);
        let keep = graph.add(NewNode { name, parents: &parents, outputs: 1, stores: &[store], named_by: None, make });
        let stores = graph.table_stores(self.right.at.0);
        let (key, value, table) = (self.right.key.clone(), self.right.value.clone(), Arc::clone(&self.right.getter));
        let make: Make = Box::new(move |w, node| {
            let (key, table, answers) = (key.clone(), table(w)?, answering(w, node, &value)?);
            Ok(Wiring::made::<Opt<Bytes>, Bytes>(AnswerNew { key, table, answers }))
        });
        let (name, parents) = (names.answer_new.clone(), [Port(keep, 0)]);
        let one = graph.add(NewNode { name, parents: &parents, outputs: 1, stores: &stores, named_by: None, make });
        graph.reads(one, self.right.at);
        let all = self.add_answer_all(graph, names.answer_all.clone(), store);
        graph.copartition(&[self.right.at, subscriptions]);
        let topic = TopicName::Internal(names.answers.clone());
        graph.check_topic(&topic);
        let id = graph.next_sink();
        let make: Make = Box::new(move |_, _| Ok(Wiring::made::<Bytes, crate::codec::Answer>(AnswerSink { id })));
        let (name, parents) = (names.answer_sink.clone(), [Port(one, 0), Port(all, 0)]);
        let new = NewNode { name, parents: &parents, outputs: 0, stores: &[], named_by: None, make };
        let (sink, _) = graph.add_sink(new, topic.clone());
        let source = add_topic(graph, names.answer_source.clone(), &topic, (self.left.key.clone(), Bytes));
        graph.add_repartition(RepartitionSpec { topic, partitions: None, sinks: vec![sink] });
        source
    }

    fn add_answer_all(&self, graph: &mut Graph, name: String, store: StoreId) -> crate::base::id::NodeId {
        let (key, value) = (self.right.key.clone(), self.right.value.clone());
        let versioned = graph.is_versioned(self.right.at.0);
        let make: Make = Box::new(move |w, node| {
            Ok(Wiring::made::<J, Change<R>>(AnswerAll {
                key: key.clone(),
                store: w.store::<Rc<KeyValue<Bytes>>>(store)?,
                versioned,
                range: RefCell::new((Scratch::with_limit(w.settings().record_bytes), Vec::new())),
                answers: answering(w, node, &value)?,
            }))
        });
        graph.add(NewNode { name, parents: &[self.right.at], outputs: 1, stores: &[store], named_by: None, make })
    }

    /// Joins the answers with the left table.
    fn add_join<W: Codec, M>(&self, graph: &mut Graph, name: String, answers: Port, _to: &W, joiner: M) -> Port
    where
        M: Joiner<V, R, W> + Clone + Send + Sync + 'static,
    {
        let stores = graph.table_stores(self.left.at.0);
        let (value, foreign, table) =
            (self.left.value.clone(), self.right.value.clone(), Arc::clone(&self.left.getter));
        let make: Make = Box::new(move |w, node| {
            Ok(Wiring::made::<K, Bytes>(JoinAnswer {
                node,
                value: value.clone(),
                foreign: foreign.clone(),
                joiner: joiner.clone(),
                table: table(w)?,
                scratch: RefCell::new(Scratch::with_limit(w.settings().record_bytes)),
                out: w.edge::<Opt<K>, Opt<W>>(node, 0)?,
                to: PhantomData::<W>,
            }))
        });
        let node = graph.add(NewNode { name, parents: &[answers], outputs: 1, stores: &stores, named_by: None, make });
        graph.reads(node, self.left.at);
        graph.copartition(&[self.left.at, answers]);
        Port(node, 0)
    }
}

fn answering<R: Codec>(
    w: &mut Wiring<'_>,
    node: crate::base::id::NodeId,
    value: &R,
) -> Result<Answering<R>, crate::node::WiringError> {
    let scratch = RefCell::new(Scratch::with_limit(w.settings().record_bytes));
    Ok(Answering { node, value: value.clone(), scratch, out: w.edge(node, 0)? })
}

/// The source node of a topic between the two sides.
fn add_topic<A: Read, B: Read>(graph: &mut Graph, name: String, topic: &TopicName, schemas: (A, B)) -> Port {
    Port(add_source(graph, name, std::slice::from_ref(topic), schemas, &SourceTemplate::default(), None), 0)
}
