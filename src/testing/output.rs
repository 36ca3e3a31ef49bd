//! Reading what the topology wrote.
use super::driver::Driver;
use super::error::DriverError;
use crate::codec::{Codec, Read, Side};
use crate::node::OutBytes;
use std::fmt;

/// A record as it was written to a topic.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RawOutput {
    /// The key's bytes.
    pub key: Option<Vec<u8>>,
    /// The value's bytes.
    pub value: Option<Vec<u8>>,
    /// Milliseconds since the epoch.
    pub timestamp: i64,
    /// Headers in order; keys that are not UTF-8 are shown with replacement characters.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl RawOutput {
    pub(crate) fn of(record: &OutBytes<'_>) -> Self {
        Self {
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            timestamp: record.timestamp,
            headers: record
                .headers
                .iter()
                .map(|h| (String::from_utf8_lossy(h.key).into_owned(), h.value.map(<[u8]>::to_vec)))
                .collect(),
        }
    }
}

/// A record of an output topic, decoded.
pub struct TestRecord<K: Codec, V: Codec> {
    /// The key; `None` for a null where the schema is an [`Opt`](crate::Opt).
    pub key: K::Owned,
    /// The value.
    pub value: V::Owned,
    /// Milliseconds since the epoch.
    pub timestamp: i64,
    /// Headers in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl<K: Codec, V: Codec> fmt::Debug for TestRecord<K, V>
where
    K::Owned: fmt::Debug,
    V::Owned: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, timestamp, headers } = self;
        f.debug_struct("TestRecord")
            .field("key", key)
            .field("value", value)
            .field("timestamp", timestamp)
            .field("headers", headers)
            .finish()
    }
}

/// A topic to read from, made by [`Driver::output`].
#[derive(Debug)]
pub struct OutputTopic<'d, K, V> {
    pub(crate) driver: &'d Driver,
    pub(crate) topic: String,
    pub(crate) key: K,
    pub(crate) value: V,
}

impl<K: Codec, V: Codec> OutputTopic<'_, K, V> {
    /// The next record that was written, `None` when all are read.
    ///
    /// # Errors
    /// It is not of these schemas.
    pub fn read(&self) -> Result<Option<TestRecord<K, V>>, DriverError> {
        let Some(raw) = self.driver.read_raw(&self.topic) else { return Ok(None) };
        Ok(Some(TestRecord {
            key: self.decode(&self.key, Side::Key, raw.key.as_deref())?,
            value: self.decode(&self.value, Side::Value, raw.value.as_deref())?,
            timestamp: raw.timestamp,
            headers: raw.headers,
        }))
    }

    /// All records not yet read, as keys and values.
    ///
    /// # Errors
    /// One is not of these schemas.
    #[allow(clippy::type_complexity)]
    pub fn read_pairs(&self) -> Result<Vec<(K::Owned, V::Owned)>, DriverError> {
        std::iter::from_fn(|| self.read().transpose()).map(|r| r.map(|r| (r.key, r.value))).collect()
    }

    fn decode<C: Codec>(&self, codec: &C, side: Side, bytes: Option<&[u8]>) -> Result<C::Owned, DriverError> {
        decode_owned(codec, bytes).map_err(|error| DriverError::Codec {
            what: format!("{side} of {}", self.topic),
            reason: error.to_string(),
        })
    }
}

/// Decodes into an owned value.
pub(crate) fn decode_owned<C: Codec>(codec: &C, bytes: Option<&[u8]>) -> Result<C::Owned, crate::codec::DecodeError> {
    let out = codec.read(bytes)?;
    Ok(C::own(C::lend(&out)))
}
