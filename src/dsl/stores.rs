//! Stores for processors: how they are declared.
use super::builder::StreamsBuilder;
use crate::base::id::StoreId;
use crate::codec::Codec;
use crate::node::{KeyValueStore, SessionStore, WindowStore, make_store};
use crate::store::kind::{Layout, StoreKind};
use crate::topology::{Graph, StoreSpec};
use std::fmt;
use std::time::Duration;

/// Kinds of stores for processors. As in Kafka Streams they are not cached unless [`StoreBuilder::caching`] says so,
/// and have a changelog unless [`StoreBuilder::logging`] says no.
///
/// # Java
/// `org.apache.kafka.streams.state.Stores`.
///
/// ```
/// use plimsoll::prelude::*;
/// use plimsoll::testing::Driver;
///
/// /// Forwards a record only when its key has not had that value before.
/// struct Latest {
///     seen: KeyValueStore<Utf8, Utf8>,
/// }
/// impl Processor for Latest {
///     type KIn = Utf8;
///     type VIn = Utf8;
///     type KOut = Utf8;
///     type VOut = Utf8;
///     fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
///         let seen = cx.store(&self.seen)?;
///         if seen.with(record.key, |value| value == Some(record.value))? {
///             return Ok(());
///         }
///         seen.put(record.key, record.value)?;
///         cx.forward(record)
///     }
/// }
///
/// let builder = StreamsBuilder::new();
/// let seen = builder.add_state_store(Stores::key_value("seen", Utf8, Utf8));
/// let how = Processing::new().stores(&[&seen]);
/// builder
///     .stream("in", Consumed::with(Utf8, Utf8))
///     .process_with(Utf8, Utf8, move || Latest { seen: seen.clone() }, how)
///     .to("out");
///
/// let driver = Driver::new(&builder.build().unwrap())?;
/// let input = driver.input("in", Utf8, Utf8);
/// for value in ["a", "a", "b"] {
///     input.pipe("k", value)?;
/// }
/// let told = driver.output("out", Utf8, Utf8).read_pairs()?;
/// assert_eq!(told, [("k".to_owned(), "a".to_owned()), ("k".to_owned(), "b".to_owned())]);
/// # Ok::<(), plimsoll::testing::DriverError>(())
/// ```
///
/// While a store is open, nothing can be forwarded: it might be changed below.
///
/// ```compile_fail,E0502
/// # use plimsoll::prelude::*;
/// # struct Latest { seen: KeyValueStore<Utf8, Utf8> }
/// # impl Processor for Latest {
/// #     type KIn = Utf8;
/// #     type VIn = Utf8;
/// #     type KOut = Utf8;
/// #     type VOut = Utf8;
/// fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
///     let seen = cx.store(&self.seen)?;
///     cx.forward(record)?;
///     seen.put(record.key, record.value)
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stores;

type MakeHandle<K, V, H> = fn(StoreId, &str, K, V) -> H;

impl Stores {
    /// A key-value store whose rows are values alone.
    ///
    /// # Null
    /// A null value deletes; a null key is an error.
    /// # Late
    /// Times do not matter.
    /// # Stores
    /// Itself, with its changelog; its records have the timestamp of the record at work.
    /// # Java
    /// `Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), …)`.
    pub fn key_value<K: Codec, V: Codec>(name: &str, key: K, value: V) -> StoreBuilder<K, V, KeyValueStore<K, V>> {
        StoreBuilder::new(name, Layout::Plain.into(), key, value, KeyValueStore::new)
    }

    /// A key-value store that keeps a timestamp with each value, as those of tables do.
    ///
    /// # Null
    /// A null value deletes; a null key is an error.
    /// # Late
    /// Times do not matter.
    /// # Stores
    /// Itself, with its changelog; its records have the values' timestamps.
    /// # Java
    /// `Stores.timestampedKeyValueStoreBuilder(Stores.persistentTimestampedKeyValueStore(name), …)`.
    pub fn timestamped_key_value<K: Codec, V: Codec>(
        name: &str,
        key: K,
        value: V,
    ) -> StoreBuilder<K, V, KeyValueStore<K, V>> {
        StoreBuilder::new(name, Layout::Timestamped.into(), key, value, KeyValueStore::new)
    }

    /// A window store: a value for each key and start of a window.
    ///
    /// # Null
    /// A null value deletes; a null key is an error.
    /// # Late
    /// What starts before the store's stream time less the retention is not kept.
    /// # Stores
    /// Itself, with its changelog; its records have the timestamp of the record at work.
    /// # Java
    /// `Stores.windowStoreBuilder(Stores.persistentWindowStore(name, retention, size, false), …)`.
    pub fn window<K: Codec, V: Codec>(
        name: &str,
        retention: Duration,
        key: K,
        value: V,
    ) -> StoreBuilder<K, V, WindowStore<K, V>> {
        StoreBuilder::new(name, StoreKind::plain_window(ms(retention)), key, value, WindowStore::new)
    }

    /// A session store: a value for each key, start and end of a session.
    ///
    /// # Null
    /// A null value deletes; a null key is an error.
    /// # Late
    /// What ends before the store's stream time less the retention is not kept.
    /// # Stores
    /// Itself, with its changelog; its records have the timestamp of the record at work.
    /// # Java
    /// `Stores.sessionStoreBuilder(Stores.persistentSessionStore(name, retention), …)`.
    pub fn session<K: Codec, V: Codec>(
        name: &str,
        retention: Duration,
        key: K,
        value: V,
    ) -> StoreBuilder<K, V, SessionStore<K, V>> {
        StoreBuilder::new(name, StoreKind::session(ms(retention)), key, value, SessionStore::new)
    }
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// A store as it is declared.
///
/// # Java
/// `org.apache.kafka.streams.state.StoreBuilder`.
#[derive(Clone)]
pub struct StoreBuilder<K, V, H> {
    name: String,
    kind: StoreKind,
    key: K,
    value: V,
    cached: bool,
    logged: bool,
    topic_configs: Vec<(String, String)>,
    handle: MakeHandle<K, V, H>,
}

impl<K, V, H> fmt::Debug for StoreBuilder<K, V, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreBuilder")
            .field("name", &self.name)
            .field("cached", &self.cached)
            .field("logged", &self.logged)
            .finish_non_exhaustive()
    }
}

impl<K, V, H> StoreBuilder<K, V, H> {
    fn new(name: &str, kind: StoreKind, key: K, value: V, handle: MakeHandle<K, V, H>) -> Self {
        let (name, topic_configs) = (name.to_owned(), Vec::new());
        Self { name, kind, key, value, cached: false, logged: true, topic_configs, handle }
    }

    /// On: changes of a key go to the changelog once per commit, or when their room is needed. Off (the default): each
    /// at once.
    #[must_use]
    pub fn caching(mut self, on: bool) -> Self {
        self.cached = on;
        self
    }

    /// Off: no changelog topic, and the store is lost with its disk.
    #[must_use]
    pub fn logging(mut self, on: bool) -> Self {
        self.logged = on;
        self
    }

    /// A setting of the changelog topic, over the library's own.
    #[must_use]
    pub fn topic_config(mut self, key: &str, value: &str) -> Self {
        self.topic_configs.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Adds it and answers its handle.
    pub(crate) fn declare(self, graph: &mut Graph) -> H
    where
        V: Codec,
    {
        let Self { name, kind, key, value, cached, logged, topic_configs, handle } = self;
        let spec = StoreSpec { name: name.clone(), logged, cached, topic_configs, nodes: Vec::new() };
        let id = graph.add_store(spec, make_store(value.clone(), kind));
        handle(id, &name, key, value)
    }

    /// Committed rows lie in memory, not on disk.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.kind = self.kind.in_memory();
        self
    }
}

impl StreamsBuilder {
    /// Declares a store. The handle connects it to processors, by [`Processing::stores`](crate::Processing::stores),
    /// and opens it there. A store that no processor is connected to is left out.
    ///
    /// # Null
    /// Does not apply.
    /// # Late
    /// Does not apply.
    /// # Stores
    /// This one.
    /// # Java
    /// `StreamsBuilder.addStateStore(builder)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let totals = builder.add_state_store(Stores::key_value("totals", Utf8, I64).caching(true));
    /// assert_eq!(totals.name(), "totals");
    /// ```
    pub fn add_state_store<K: Codec, V: Codec, H>(&self, store: StoreBuilder<K, V, H>) -> H {
        store.declare(&mut self.shelf.borrow_mut())
    }
}
