//! Records as processors see them.
use super::headers::Headers;
use crate::codec::Schema;
use std::fmt;

/// A record: what a processor takes and what it forwards.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let record: Record<'_, Utf8, I64> = Record::new("k", 1, 1_000);
/// let later: Record<'_, Utf8, Utf8> = record.with_value("one").with_timestamp(2_000);
/// assert_eq!((later.key, later.value, later.timestamp), ("k", "one", 2_000));
/// ```
pub struct Record<'a, K: Schema, V: Schema> {
    /// The key.
    pub key: K::View<'a>,
    /// The value.
    pub value: V::View<'a>,
    /// Milliseconds since the epoch.
    pub timestamp: i64,
    /// Its headers.
    pub headers: Headers<'a>,
}

impl<K: Schema, V: Schema> Clone for Record<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Schema, V: Schema> Copy for Record<'_, K, V> {}

impl<'a, K: Schema, V: Schema> Record<'a, K, V> {
    /// A record without headers; the timestamp in milliseconds since the epoch.
    pub fn new(key: K::View<'a>, value: V::View<'a>, timestamp: i64) -> Self {
        Self { key, value, timestamp, headers: Headers::EMPTY }
    }

    /// The same with another key.
    #[must_use]
    pub fn with_key<'s, J: Schema>(&self, key: J::View<'s>) -> Record<'s, J, V>
    where
        'a: 's,
    {
        let (value, timestamp, headers) = (V::shorten(self.value), self.timestamp, self.headers);
        Record { key, value, timestamp, headers }
    }

    /// The same with another value.
    #[must_use]
    pub fn with_value<'s, W: Schema>(&self, value: W::View<'s>) -> Record<'s, K, W>
    where
        'a: 's,
    {
        let (key, timestamp, headers) = (K::shorten(self.key), self.timestamp, self.headers);
        Record { key, value, timestamp, headers }
    }

    /// The same with another timestamp, milliseconds since the epoch.
    #[must_use]
    pub fn with_timestamp(self, timestamp: i64) -> Self {
        Self { timestamp, ..self }
    }

    /// The same with other headers.
    #[must_use]
    pub fn with_headers<'s>(&self, headers: Headers<'s>) -> Record<'s, K, V>
    where
        'a: 's,
    {
        Record { key: K::shorten(self.key), value: V::shorten(self.value), timestamp: self.timestamp, headers }
    }
}

impl<K: Schema, V: Schema> fmt::Debug for Record<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("timestamp", &self.timestamp)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// Where the record at work was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RecordMetadata<'a> {
    /// Topic, with its full name.
    pub topic: &'a str,
    /// Partition.
    pub partition: u32,
    /// Offset.
    pub offset: i64,
}
