//! Joins of a stream with a table.
use super::kstream::KStream;
use super::ktable::KTable;
use super::repartition::add_repartition;
use super::stream_joined::millis;
use crate::base::id::StoreId;
use crate::codec::{Bytes, Codec, Schema};
use crate::node::ops::{Buffered, GraceBuffer, Inner, Joiner, Left, StreamTableGraceJoin, StreamTableJoin};
use crate::node::{Fn2, KeyValue, Make, PerTask, Wiring, WiringError, make_store};
use crate::store::kind::Layout;
use crate::topology::{BuildError, Graph, NewNode, Port, StoreSpec};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How a stream is joined with a table.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// let regions = builder.table("regions", Consumed::with(Utf8, Utf8));
/// let views = builder.stream("views", Consumed::with(Utf8, Utf8)).map(Utf8, Utf8, |page, user| (user, page));
/// views.join_table_with(&regions, Utf8, Joined::named("by-user"), |_, region| region).to("out");
/// assert!(builder.build().unwrap().describe().contains("topics: [by-user-repartition]"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Joined {
    pub(crate) name: Option<String>,
    pub(crate) grace: Option<Duration>,
}

impl Joined {
    /// A join of this name: it names the join's node, and the topic through which a stream whose key was changed goes
    /// first.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }

    /// Records wait until the stream's time is so far past them, and are joined with what a versioned table had at
    /// their time. A record that comes later than that is joined at once.
    ///
    /// # Null
    /// A left join's record without a key does not wait. (Kafka Streams fails with a `NullPointerException`.)
    ///
    /// # Late
    /// A record that is later than the grace period is joined at once.
    ///
    /// # Stores
    /// `<name of the join>-Buffer`, with its changelog: the records that wait, in Kafka Streams' bytes.
    ///
    /// # Java
    /// `Joined.withGracePeriod(Duration)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// let day = Materialized::named("prices").versioned(Duration::from_secs(24 * 3600));
    /// let prices = builder.table_with("prices", Consumed::with(Utf8, I64), day);
    /// let orders = builder.stream("orders", Consumed::with(Utf8, I64));
    /// let patient = Joined::named("priced").grace(Duration::from_secs(10));
    /// orders.join_table_with(&prices, I64, patient, |amount, price| amount * price).to("totals");
    /// assert!(builder.build().unwrap().describe().contains("priced-Buffer"));
    /// ```
    #[must_use]
    pub fn grace(mut self, time: Duration) -> Self {
        self.grace = Some(time);
        self
    }
}

impl<K: Codec, V: Codec> KStream<K, V> {
    /// Joins each record with the table's row of the same key. Only records make results; updates of the table do not.
    ///
    /// # Null
    /// A record whose key or value is null is skipped and counted. Without a row there is no result.
    /// # Late
    /// A record is joined with what the table has now; with a versioned table, with what it had at the record's time.
    /// # Stores
    /// The table is kept. If the stream's key was changed, it goes through a repartition topic first.
    /// # Java
    /// `KStream#join(KTable, ValueJoiner)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let regions = builder.table("regions", Consumed::with(Utf8, Utf8));
    /// builder.stream("views", Consumed::with(Utf8, Utf8)).join_table(&regions, Utf8, |_, region| region).to("out");
    /// # builder.build().unwrap();
    /// ```
    pub fn join_table<R: Codec, W: Schema>(
        &self,
        table: &KTable<K, R>,
        to: W,
        f: impl for<'a> Fn2<V::View<'a>, R::View<'a>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.table_join(table, to, false, Joined::default(), Inner(Arc::new(f)))
    }

    /// As [`join_table`](Self::join_table), with a name.
    ///
    /// # Null
    /// As [`join_table`](Self::join_table).
    /// # Late
    /// As [`join_table`](Self::join_table).
    /// # Stores
    /// As [`join_table`](Self::join_table).
    /// # Java
    /// `KStream#join(KTable, ValueJoiner, Joined)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let regions = builder.table("regions", Consumed::with(Utf8, Utf8));
    /// let views = builder.stream("views", Consumed::with(Utf8, Utf8));
    /// views.join_table_with(&regions, Utf8, Joined::named("region-of"), |_, region| region).to("out");
    /// # builder.build().unwrap();
    /// ```
    pub fn join_table_with<R: Codec, W: Schema>(
        &self,
        table: &KTable<K, R>,
        to: W,
        joined: Joined,
        f: impl for<'a> Fn2<V::View<'a>, R::View<'a>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.table_join(table, to, false, joined, Inner(Arc::new(f)))
    }

    /// Joins each record with the table's row of the same key, or with nothing if there is none.
    ///
    /// # Null
    /// A record whose value is null is skipped and counted; one without a key is joined with nothing.
    /// # Late
    /// As [`join_table`](Self::join_table).
    /// # Stores
    /// As [`join_table`](Self::join_table).
    /// # Java
    /// `KStream#leftJoin(KTable, ValueJoiner)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let regions = builder.table("regions", Consumed::with(Utf8, Utf8));
    /// let views = builder.stream("views", Consumed::with(Utf8, Utf8));
    /// views.left_join_table(&regions, Utf8, |_, region| region.unwrap_or("nowhere")).to("out");
    /// # builder.build().unwrap();
    /// ```
    pub fn left_join_table<R: Codec, W: Schema>(
        &self,
        table: &KTable<K, R>,
        to: W,
        f: impl for<'a> Fn2<V::View<'a>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.table_join(table, to, true, Joined::default(), Left(Arc::new(f)))
    }

    /// As [`left_join_table`](Self::left_join_table), with a name.
    ///
    /// # Null
    /// As [`left_join_table`](Self::left_join_table).
    /// # Late
    /// As [`join_table`](Self::join_table).
    /// # Stores
    /// As [`join_table`](Self::join_table).
    /// # Java
    /// `KStream#leftJoin(KTable, ValueJoiner, Joined)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let regions = builder.table("regions", Consumed::with(Utf8, Utf8));
    /// let views = builder.stream("views", Consumed::with(Utf8, Utf8));
    /// let named = Joined::named("region-of");
    /// views.left_join_table_with(&regions, Utf8, named, |_, region| region.unwrap_or("nowhere")).to("out");
    /// # builder.build().unwrap();
    /// ```
    pub fn left_join_table_with<R: Codec, W: Schema>(
        &self,
        table: &KTable<K, R>,
        to: W,
        joined: Joined,
        f: impl for<'a> Fn2<V::View<'a>, Option<R::View<'a>>, W::Out<'a>>,
    ) -> KStream<K, W> {
        self.table_join(table, to, true, joined, Left(Arc::new(f)))
    }

    fn table_join<R: Codec, W: Schema, J>(
        &self,
        table: &KTable<K, R>,
        to: W,
        left: bool,
        joined: Joined,
        joiner: J,
    ) -> KStream<K, W>
    where
        J: Joiner<V, R, W> + Clone + Send + Sync + 'static,
    {
        let at = self.repartitioned_for_join(joined.name.as_deref());
        let mut graph = self.shelf.borrow_mut();
        if !Rc::ptr_eq(&self.shelf, &table.shelf) {
            graph.refuse(BuildError::OtherBuilder);
        }
        let prefix = if left { "KSTREAM-LEFTJOIN-" } else { "KSTREAM-JOIN-" };
        let name = graph.names.given_or(joined.name.as_deref(), prefix);
        if joined.grace.is_some() && !graph.knows_past(table.at.0) {
            graph.refuse(BuildError::GraceNotVersioned { name: name.clone() });
        }
        let mut stores = graph.table_stores(table.at.0);
        let getter = Arc::clone(&table.getter);
        let join = move |w: &mut Wiring<'_>, node| {
            Ok::<_, WiringError>(StreamTableJoin::<K, V, R, W, J> {
                node,
                left,
                joiner: joiner.clone(),
                table: getter(w)?,
                out: w.edge::<K, W>(node, 0)?,
                from: PhantomData,
            })
        };
        let make: Make = match joined.grace {
            None => Box::new(move |w, node| Ok(Wiring::made::<K, V>(join(w, node)?))),
            Some(grace) => {
                let buffer = grace_buffer(&mut graph, &name);
                stores.push(buffer);
                let (key, value, grace) = (self.key.clone(), self.value.clone(), millis(grace));
                Box::new(move |w, node| {
                    let record_bytes = w.settings().record_bytes;
                    Ok(Wiring::made::<K, V>(StreamTableGraceJoin {
                        join: join(w, node)?,
                        key: key.clone(),
                        value: value.clone(),
                        buffer: GraceBuffer::new(w.store::<Rc<KeyValue<Bytes>>>(buffer)?, record_bytes),
                        grace,
                        task: PerTask::with(w, Buffered::START),
                    }))
                })
            }
        };
        let node = graph.add(NewNode { name, parents: &[at], outputs: 1, stores: &stores, named_by: None, make });
        graph.reads(node, table.at);
        graph.copartition(&[at, table.at]);
        if left {
            graph.mark(node, |mark| mark.wants_null_keys = true);
        }
        drop(graph);
        KStream::new(&self.shelf, Port(node, 0), self.key.clone(), to, false)
    }

    /// Where the stream is partitioned by its key: behind a repartition topic if the key was changed. Joins of one
    /// stream share it unless they are named.
    pub(super) fn repartitioned_for_join(&self, name: Option<&str>) -> Port {
        if !self.key_changed {
            return self.at;
        }
        let mut graph = self.shelf.borrow_mut();
        let own = graph.name_of(self.at.0);
        let prefix = name.unwrap_or(&own);
        if let Some(port) = graph.join_repartition(self.at).filter(|_| prefix == own) {
            // The names of the second join's own repartition are used up, as in Kafka Streams.
            for _ in 0..3 {
                graph.names.processor("");
            }
            return port;
        }
        let port = add_repartition(&mut graph, self.at, prefix, &self.key, &self.value);
        graph.set_join_repartition(self.at, port);
        port
    }
}

/// The store of the records that wait for a join of this name.
fn grace_buffer(graph: &mut Graph, name: &str) -> StoreId {
    let (name, nodes) = (format!("{name}-Buffer"), Vec::new());
    let spec = StoreSpec { name, logged: true, cached: false, topic_configs: Vec::new(), nodes };
    graph.add_store(spec, make_store(Bytes, Layout::Plain))
}
