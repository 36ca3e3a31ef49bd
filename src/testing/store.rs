//! Looking into a store.
use super::error::DriverError;
use super::output::decode_owned;
use crate::codec::{Codec, Scratch};
use crate::node::{FaultCell, StateStore};
use crate::store::offset::partition_prefix;
use std::fmt;
use std::rc::Rc;

/// A row of a store.
pub struct StoreRow<K: Codec, V: Codec> {
    /// The key.
    pub key: K::Owned,
    /// The value.
    pub value: V::Owned,
    /// The value's timestamp, milliseconds since the epoch; −1 in a store without timestamps.
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

/// A store, made by [`Driver::store`](super::Driver::store).
pub struct StoreView<K, V> {
    pub(crate) store: Rc<dyn StateStore>,
    pub(crate) key: K,
    pub(crate) value: V,
}

impl<K, V> fmt::Debug for StoreView<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreView").field("store", &self.store.id()).finish_non_exhaustive()
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
        let mut value = Scratch::with_limit(usize::MAX);
        let fault = FaultCell::new();
        let found = self.store.read(&fault, scratch.bytes(), &mut value).map_err(|_| failed(&fault))?;
        found.map(|_| decode_owned(&self.value, Some(value.bytes())).map_err(|e| codec("a value", e))).transpose()
    }

    /// All rows, in the order of their keys' bytes.
    ///
    /// # Errors
    /// The store holds keys or values of another schema.
    pub fn rows(&self) -> Result<Vec<StoreRow<K, V>>, DriverError> {
        let mut rows = Ok(Vec::new());
        let mut visit = |key: &[u8], value: &[u8], timestamp: i64| {
            match self.row(key, value, timestamp) {
                Ok(row) => {
                    if let Ok(rows) = &mut rows {
                        rows.push(row);
                    }
                }
                Err(error) => rows = Err(error),
            }
            rows.is_ok()
        };
        let fault = FaultCell::new();
        self.store.rows(&fault, 0, &mut visit).map_err(|_| failed(&fault))?;
        rows
    }

    fn row(&self, key: &[u8], value: &[u8], timestamp: i64) -> Result<StoreRow<K, V>, DriverError> {
        Ok(StoreRow {
            key: decode_owned(&self.key, Some(key)).map_err(|error| codec("a key", error))?,
            value: decode_owned(&self.value, Some(value)).map_err(|error| codec("a value", error))?,
            timestamp,
        })
    }
}

pub(super) fn failed(fault: &FaultCell) -> DriverError {
    let parked = fault.take().0;
    DriverError::Internal { reason: parked.map_or_else(String::new, |parked| parked.to_string()) }
}

pub(super) fn codec(what: &str, error: crate::codec::DecodeError) -> DriverError {
    DriverError::Codec { what: format!("{what} of the store"), reason: error.to_string() }
}
