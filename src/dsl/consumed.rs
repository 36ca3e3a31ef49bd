//! How a topic is read.
use crate::codec::{Codec, Unread};
use crate::topology::{OffsetReset, TimestampPolicy};

/// How a topic is read: the schemas of its keys and values, where to begin, whose time counts.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// // Keys may be null, values may not.
/// let orders = builder.stream("orders", Consumed::with(Opt(Utf8), Bytes).reset(OffsetReset::Earliest));
/// // The key is not read at all.
/// let lines = builder.stream("lines", Consumed::values(Utf8).named("line-source"));
/// # orders.to("a"); lines.for_each(|_, _| ());
/// # builder.build().unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Consumed<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) name: Option<String>,
    pub(crate) reset: Option<OffsetReset>,
    pub(crate) timestamps: TimestampPolicy,
}

impl<K, V> Consumed<K, V> {
    fn new(key: K, value: V) -> Self {
        Self { key, value, name: None, reset: None, timestamps: TimestampPolicy::default() }
    }

    /// Names the source node.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Where to begin when no offset is committed; the application's `auto.offset.reset` otherwise.
    #[must_use]
    pub fn reset(mut self, reset: OffsetReset) -> Self {
        self.reset = Some(reset);
        self
    }

    /// What to do with timestamps that are negative, or whether to use the wall clock.
    #[must_use]
    pub fn timestamps(mut self, policy: TimestampPolicy) -> Self {
        self.timestamps = policy;
        self
    }
}

impl<K: Codec, V: Codec> Consumed<K, V> {
    /// Key and value by these codecs. A null needs [`Opt`](crate::Opt); otherwise the record goes to the
    /// deserialization handler.
    pub fn with(key: K, value: V) -> Self {
        Self::new(key, value)
    }
}

impl<V: Codec> Consumed<Unread, V> {
    /// Only the value; the key is not read and may be anything.
    pub fn values(value: V) -> Self {
        Self::new(Unread, value)
    }
}
