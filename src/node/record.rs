//! Records on their way: raw at the source, as views between nodes, as bytes when they leave.
use crate::codec::Schema;
use crate::wire::RawHeaders;

/// A record as the source node gets it: bytes that borrow the frame. Offset and headers are in the context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRecord<'a> {
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    /// Milliseconds since the epoch, as the timestamp extractor answered.
    pub(crate) timestamp: i64,
}

/// A record between two nodes. Its headers are in the context.
pub(crate) struct Record<'a, K: Schema, V: Schema> {
    pub(crate) key: K::View<'a>,
    pub(crate) value: V::View<'a>,
    /// Milliseconds since the epoch.
    pub(crate) timestamp: i64,
}

impl<K: Schema, V: Schema> Clone for Record<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Schema, V: Schema> Copy for Record<'_, K, V> {}

/// Where the record that a step works on came from, and its headers. A deferred forward carries its entry's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordContext<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: u32,
    pub(crate) offset: i64,
    /// Milliseconds since the epoch.
    pub(crate) timestamp: i64,
    pub(crate) headers: RawHeaders<'a>,
}

/// A record of a changelog. Kafka Streams writes headers into those of join windows only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogBytes<'a> {
    /// The store's key.
    pub(crate) key: &'a [u8],
    /// `None`: a tombstone.
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: RawHeaders<'a>,
    /// Milliseconds since the epoch.
    pub(crate) timestamp: i64,
}

impl<'a> LogBytes<'a> {
    /// As the record that leaves.
    pub(crate) fn out(&self) -> OutBytes<'a> {
        OutBytes { key: Some(self.key), value: self.value, headers: self.headers, timestamp: self.timestamp }
    }
}

/// A record as it leaves a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutBytes<'a> {
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: RawHeaders<'a>,
    /// Milliseconds since the epoch.
    pub(crate) timestamp: i64,
}
