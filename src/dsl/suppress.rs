//! Holding a table's updates back.
use super::ktable::KTable;
use super::windows::millis;
use crate::codec::{Change, Codec, Schema, Scratch, Windowed};
use crate::node::ops::{Suppress, SuppressBuffer, SuppressGetter, SuppressRule, WindowEnd, make_suppress_buffer};
use crate::node::{Make, MakeGetter, Wiring};
use crate::topology::{BuildError, NewNode, Port, StoreSpec, TableKind};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A bound of a buffer, without what happens when it is reached.
#[derive(Clone, Debug)]
struct Bounds {
    max_records: u64,
    max_bytes: u64,
    emits_early: bool,
    logged: bool,
    topic_configs: Vec<(String, String)>,
}

const NO_BOUND: Bounds =
    Bounds { max_records: u64::MAX, max_bytes: u64::MAX, emits_early: false, logged: true, topic_configs: Vec::new() };

/// How much a buffer of [`KTable::suppress`] may hold. When it is full, the updates that have waited longest go early.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let small = BufferConfig::max_records(1_000).with_max_bytes(1 << 20);
/// let strict = small.shut_down_when_full();
/// # let _ = strict;
/// ```
#[derive(Clone, Debug)]
pub struct BufferConfig(Bounds);

/// A buffer that never tells an update early: it is without bound, or a full one fails the task.
#[derive(Clone, Debug)]
pub struct StrictBufferConfig(Bounds);

impl BufferConfig {
    /// Waiting updates of at most so many keys, a partition.
    pub fn max_records(records: u64) -> Self {
        Self(Bounds { max_records: records, emits_early: true, ..NO_BOUND })
    }

    /// Waiting updates of at most so many bytes, a partition, as Kafka Streams counts them.
    pub fn max_bytes(bytes: u64) -> Self {
        Self(Bounds { max_bytes: bytes, emits_early: true, ..NO_BOUND })
    }

    /// As many as come; beyond 64 MiB a partition the task fails.
    pub fn unbounded() -> StrictBufferConfig {
        StrictBufferConfig(NO_BOUND)
    }

    /// And at most so many keys.
    #[must_use]
    pub fn with_max_records(mut self, records: u64) -> Self {
        self.0.max_records = records;
        self
    }

    /// And at most so many bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.0.max_bytes = bytes;
        self
    }

    /// A full buffer fails the task.
    pub fn shut_down_when_full(self) -> StrictBufferConfig {
        StrictBufferConfig(Bounds { emits_early: false, ..self.0 })
    }

    /// Without a changelog the buffer is lost with its disk.
    #[must_use]
    pub fn with_logging_disabled(mut self) -> Self {
        self.0.logged = false;
        self
    }
}

impl StrictBufferConfig {
    /// A full buffer tells the updates that have waited longest early.
    pub fn emit_early_when_full(self) -> BufferConfig {
        BufferConfig(Bounds { emits_early: true, ..self.0 })
    }

    /// Without a changelog the buffer is lost with its disk.
    #[must_use]
    pub fn with_logging_disabled(mut self) -> Self {
        self.0.logged = false;
        self
    }

    /// A setting of the changelog topic, over the library's own.
    #[must_use]
    pub fn topic_config(mut self, key: &str, value: &str) -> Self {
        self.0.topic_configs.push((key.to_owned(), value.to_owned()));
        self
    }
}

impl From<StrictBufferConfig> for BufferConfig {
    fn from(strict: StrictBufferConfig) -> Self {
        Self(strict.0)
    }
}

/// What [`KTable::suppress`] holds back.
pub struct Suppressed<K: Schema> {
    /// `None`: until the window closes.
    wait_ms: Option<i64>,
    end: Option<WindowEnd<K>>,
    bounds: Bounds,
    name: Option<String>,
}

impl<K: Schema> fmt::Debug for Suppressed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suppressed").field("wait_ms", &self.wait_ms).field("bounds", &self.bounds).finish()
    }
}

impl<K: Schema> Suppressed<K> {
    /// Each update waits until the stream's time is so much later; a later update of its key takes its place.
    pub fn until_time_limit(wait: Duration, buffer: impl Into<BufferConfig>) -> Self {
        Self { wait_ms: Some(millis(wait)), end: None, bounds: buffer.into().0, name: None }
    }

    /// Names the node; the buffer is named after it.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
}

impl<K: Schema> Suppressed<Windowed<K>> {
    /// The final result of each window and nothing else, when no record can change it any more.
    pub fn until_window_closes(buffer: StrictBufferConfig) -> Self {
        Self { wait_ms: None, end: Some(|window| window.end), bounds: buffer.0, name: None }
    }
}

impl<K: Codec, V: Codec> KTable<K, V> {
    /// Holds updates back, so that only the last one of each key goes on.
    ///
    /// # Null
    /// A deletion waits as any update; final results of windows do not tell deletions.
    /// # Late
    /// Time is the highest timestamp of an update; nothing is dropped.
    /// # Stores
    /// A buffer in memory, with a changelog.
    /// # Java
    /// `KTable.suppress(suppressed)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("clicks", Consumed::with(Utf8, Bytes))
    ///     .group_by_key()
    ///     .windowed_by(TimeWindows::of_size_and_grace(Duration::from_secs(60), Duration::from_secs(5)))
    ///     .count(Materialized::new())
    ///     .suppress(Suppressed::until_window_closes(BufferConfig::unbounded()))
    ///     .to_stream()
    ///     .to("clicks-of-each-minute");
    /// # builder.build().unwrap();
    /// ```
    #[must_use]
    pub fn suppress(&self, suppressed: Suppressed<K>) -> Self {
        let Suppressed { wait_ms, end, bounds, name } = suppressed;
        let mut graph = self.shelf.borrow_mut();
        let (node_name, store_name) = match name {
            Some(name) => (name.clone(), format!("{name}-store")),
            None => (graph.names.processor("KTABLE-SUPPRESS-"), graph.names.store("KTABLE-SUPPRESS-")),
        };
        let wait_ms = wait_ms.or_else(|| graph.grace(self.at.0)).unwrap_or_else(|| {
            graph.refuse(BuildError::NotWindowed { name: node_name.clone() });
            0
        });
        if graph.is_versioned(self.at.0) {
            graph.refuse(BuildError::Versioned { what: "a table whose updates are suppressed" });
        }
        graph.want_old(self.at.0, true);
        let Bounds { max_records, max_bytes, emits_early, logged, topic_configs } = bounds;
        // Its changelog is written with the commit.
        let spec = StoreSpec { name: store_name, logged, cached: true, topic_configs, nodes: Vec::new() };
        let store = graph.add_store(spec, make_suppress_buffer());
        let rule = SuppressRule { wait_ms, max_records, max_bytes, emits_early };
        let codecs = (self.key.clone(), self.value.clone());
        let make: Make = {
            let codecs = codecs.clone();
            Box::new(move |w, id| {
                Ok(Wiring::made::<K, Change<V>>(Suppress::wire(w, id, codecs.clone(), rule, end, store)?))
            })
        };
        let stores = [store];
        let new = NewNode { name: node_name, parents: &[self.at], outputs: 1, stores: &stores, named_by: None, make };
        let node = graph.add(new);
        graph.add_table(node, TableKind::Suppressed { parent: self.at.0, buffer: store });
        graph.set_versioned(node, false);
        drop(graph);
        let parent = Arc::clone(&self.getter);
        let getter: MakeGetter<K, V> = Arc::new(move |w| {
            let scratch = RefCell::new(Scratch::with_limit(w.settings().record_bytes));
            let (key, value) = codecs.clone();
            let buffer = w.store::<Rc<SuppressBuffer>>(store)?;
            Ok(Rc::new(SuppressGetter { key, value, buffer, parent: parent(w)?, scratch }))
        });
        let (key, value) = (self.key.clone(), self.value.clone());
        Self { shelf: Rc::clone(&self.shelf), at: Port(node, 0), key, value, getter }
    }
}
