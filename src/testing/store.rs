//! Looking into a store.
use super::error::DriverError;
use super::output::decode_owned;
use crate::base::id::StoreId;
use crate::codec::{Codec, Scratch};
use crate::store::backend::{Backend, Order};
use crate::store::memory::MemoryBackend;
use crate::store::offset::{PREFIX_BYTES, partition_end, partition_prefix};
use std::fmt;
use std::sync::Arc;

/// Bytes of the timestamp in front of a value.
const TIMESTAMP_BYTES: usize = 8;

/// A row of a store.
pub struct StoreRow<K: Codec, V: Codec> {
    /// The key.
    pub key: K::Owned,
    /// The value.
    pub value: V::Owned,
    /// The value's timestamp, milliseconds since the epoch.
    pub timestamp: i64,
}

impl<K: Codec, V: Codec> fmt::Debug for StoreRow<K, V>
where
    K::Owned: fmt::Debug,
    V::Owned: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreRow").field(&self.key).field(&self.value).field(&self.timestamp).finish()
    }
}

/// A store as of the last commit, made by [`Driver::store`](super::Driver::store).
pub struct StoreView<K, V> {
    pub(crate) backend: Arc<MemoryBackend>,
    pub(crate) store: StoreId,
    pub(crate) key: K,
    pub(crate) value: V,
}

impl<K, V> fmt::Debug for StoreView<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreView").field("store", &self.store).finish_non_exhaustive()
    }
}

impl<K: Codec, V: Codec> StoreView<K, V> {
    /// The value of a key.
    ///
    /// # Errors
    /// The store holds values of another schema.
    pub fn get(&self, key: K::View<'_>) -> Result<Option<V::Owned>, DriverError> {
        let mut scratch = Scratch::with_limit(usize::MAX);
        scratch.extend(&partition_prefix(0));
        self.key.encode(key, &mut scratch);
        let mut row = Vec::new();
        if !self.backend.get(self.store, scratch.bytes(), &mut row).map_err(internal)? {
            return Ok(None);
        }
        decode_owned(&self.value, row.get(TIMESTAMP_BYTES..)).map(Some).map_err(|error| codec("a value", error))
    }

    /// All rows, in the order of their keys' bytes.
    ///
    /// # Errors
    /// The store holds keys or values of another schema.
    pub fn rows(&self) -> Result<Vec<StoreRow<K, V>>, DriverError> {
        let mut rows = Ok(Vec::new());
        let mut visit = |key: &[u8], row: &[u8]| {
            match self.row(key, row) {
                Ok(row) => {
                    if let Ok(rows) = &mut rows {
                        rows.push(row);
                    }
                }
                Err(error) => rows = Err(error),
            }
            rows.is_ok()
        };
        self.backend
            .scan(self.store, &partition_prefix(0), &partition_end(0), Order::Forward, &mut visit)
            .map_err(internal)?;
        rows
    }

    fn row(&self, key: &[u8], row: &[u8]) -> Result<StoreRow<K, V>, DriverError> {
        let (timestamp, value) = row.split_first_chunk::<TIMESTAMP_BYTES>().unwrap_or((&[0; TIMESTAMP_BYTES], &[]));
        Ok(StoreRow {
            key: decode_owned(&self.key, key.get(PREFIX_BYTES..)).map_err(|error| codec("a key", error))?,
            value: decode_owned(&self.value, Some(value)).map_err(|error| codec("a value", error))?,
            timestamp: i64::from_be_bytes(*timestamp),
        })
    }
}

fn internal(error: crate::store::error::StoreError) -> DriverError {
    DriverError::Internal { reason: error.to_string() }
}

fn codec(what: &str, error: crate::codec::DecodeError) -> DriverError {
    DriverError::Codec { what: format!("{what} of the store"), reason: error.to_string() }
}
