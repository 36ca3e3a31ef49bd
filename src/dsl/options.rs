//! Optional parts of an operator: names, caching, partitions.
use crate::store::kind::StoreKind;
use crate::topology::{BuildError, Graph};
use std::time::Duration;

/// The name of a grouping: it names the repartition topic, and the node that selects the key.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("orders", Consumed::with(Utf8, Utf8))
///     .group_by_with(Utf8, |_, region| region, Grouped::named("by-region"))
///     .count(Materialized::named("counts"));
/// assert!(builder.build().unwrap().describe().contains("topic: by-region-repartition"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Grouped {
    pub(crate) name: Option<String>,
}

impl Grouped {
    /// A grouping of this name.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()) }
    }
}

/// How a sink is written.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder.stream("in", Consumed::with(Utf8, Utf8)).to_with("out", Produced::named("writer"));
/// assert!(builder.build().unwrap().describe().contains("Sink: writer (topic: out)"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Produced {
    pub(crate) name: Option<String>,
}

impl Produced {
    /// A sink node of this name.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()) }
    }
}

/// How a stream is repartitioned.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("in", Consumed::with(Utf8, Utf8))
///     .repartition(Repartitioned::with_partitions(12).named("wide"))
///     .to("out");
/// assert!(builder.build().unwrap().describe().contains("topics: [wide-repartition]"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Repartitioned {
    pub(crate) name: Option<String>,
    pub(crate) partitions: Option<u32>,
}

impl Repartitioned {
    /// As many partitions as the most partitioned topic that feeds the stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// So many partitions.
    pub fn with_partitions(partitions: u32) -> Self {
        Self { partitions: Some(partitions), ..Self::default() }
    }

    /// Names the topic: `<application id>-<name>-repartition`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
}

/// What has no versioned store.
pub(super) const STREAMS: &str = "the aggregation of a stream";

/// How a table's store is kept. By default it has a generated name, is cached and has a changelog.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("words", Consumed::with(Utf8, Utf8))
///     .group_by_key()
///     .count(Materialized::named("counts").caching(false).topic_config("min.insync.replicas", "2"))
///     .to_stream()
///     .to("counts");
/// # builder.build().unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Materialized {
    pub(crate) name: Option<String>,
    pub(crate) cached: bool,
    pub(crate) logged: bool,
    pub(crate) topic_configs: Vec<(String, String)>,
    /// `None`: the operator's own.
    pub(crate) retention: Option<Duration>,
    pub(crate) in_memory: bool,
    /// How far back a versioned store knows; `None`: it is not versioned.
    pub(crate) history: Option<Duration>,
}

impl Default for Materialized {
    fn default() -> Self {
        Self::new()
    }
}

impl Materialized {
    /// A store with a generated name.
    pub fn new() -> Self {
        let (topic_configs, retention, history) = (Vec::new(), None, None);
        Self { name: None, cached: true, logged: true, topic_configs, retention, in_memory: false, history }
    }

    /// A store of this name, which names its changelog too: `<application id>-<name>-changelog`.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::new() }
    }

    /// On (the default): updates of a key are forwarded and logged once per commit, or when their room is needed. Off:
    /// each at once.
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

    /// How long a windowed or session store keeps a window behind the highest time it has seen: at least the window and
    /// its grace, which is the default. Other stores keep everything.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Rows in memory, restored from the changelog when the task starts; by default they are on disk.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// A versioned store: it knows what each key was as far back as `history` before the highest time it has seen, so a
    /// stream is joined with what the table had at the record's time. An update out of order goes where it belongs in
    /// time; one that is older than the history is dropped and counted. It is never cached.
    ///
    /// For tables; of a stream's aggregation and of windows it is refused. In Java:
    /// `Materialized.as(Stores.persistentVersionedKeyValueStore(name, history))`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// let week = Materialized::named("prices").versioned(Duration::from_secs(7 * 24 * 3600));
    /// let prices = builder.table_with("prices", Consumed::with(Utf8, I64), week);
    /// let orders = builder.stream("orders", Consumed::with(Utf8, I64));
    /// // Each order at the price of its time.
    /// orders.join_table(&prices, I64, |amount, price| amount * price).to("totals");
    /// # builder.build().unwrap();
    /// ```
    #[must_use]
    pub fn versioned(mut self, history: Duration) -> Self {
        self.history = Some(history);
        self
    }

    /// Refuses a versioned store where there is none.
    pub(crate) fn check_unversioned(&self, graph: &mut Graph, what: &'static str) {
        if self.history.is_some() {
            graph.refuse(BuildError::Versioned { what });
        }
    }

    /// The store's kind: this one, with rows where these options want them.
    pub(crate) fn place(&self, kind: impl Into<StoreKind>) -> StoreKind {
        let kind = kind.into();
        if self.in_memory { kind.in_memory() } else { kind }
    }

    /// The retention in milliseconds, or the operator's own.
    pub(crate) fn retention_ms(&self, own: i64) -> i64 {
        self.retention.map_or(own, |given| i64::try_from(given.as_millis()).unwrap_or(i64::MAX))
    }

    /// A setting of the changelog topic, over the library's own.
    #[must_use]
    pub fn topic_config(mut self, key: &str, value: &str) -> Self {
        self.topic_configs.push((key.to_owned(), value.to_owned()));
        self
    }
}
