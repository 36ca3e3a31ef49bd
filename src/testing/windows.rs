//! Looking into window and session stores.
use super::error::DriverError;
use super::output::decode_owned;
use super::store::{codec, failed};
use crate::codec::Codec;
use crate::node::{FaultCell, StateStore};
use crate::store::kind::{session_parts, window_parts};
use std::fmt;
use std::rc::Rc;

/// A row of a window store.
pub struct WindowRow<K: Codec, V: Codec> {
    /// The key.
    pub key: K::Owned,
    /// First millisecond of the window.
    pub start: i64,
    /// The value.
    pub value: V::Owned,
    /// The value's timestamp, milliseconds since the epoch; −1 in a store without timestamps.
    pub timestamp: i64,
}

/// A row of a session store.
pub struct SessionRow<K: Codec, V: Codec> {
    /// The key.
    pub key: K::Owned,
    /// First millisecond of the session.
    pub start: i64,
    /// Last millisecond of the session.
    pub end: i64,
    /// The value.
    pub value: V::Owned,
}

/// A window store, made by [`Driver::window_store`](super::Driver::window_store).
pub struct WindowStoreView<K, V> {
    pub(super) store: Rc<dyn StateStore>,
    pub(super) key: K,
    pub(super) value: V,
}

/// A session store, made by [`Driver::session_store`](super::Driver::session_store).
pub struct SessionStoreView<K, V> {
    pub(super) store: Rc<dyn StateStore>,
    pub(super) key: K,
    pub(super) value: V,
}

impl<K: Codec, V: Codec> WindowStoreView<K, V> {
    /// All rows, in the order of Kafka Streams' `WindowStore.all`.
    ///
    /// # Errors
    /// The store holds keys or values of another schema.
    pub fn rows(&self) -> Result<Vec<WindowRow<K, V>>, DriverError> {
        collect(&*self.store, |key, value, timestamp| {
            let (user, start, _) = window_parts(key);
            let (key, value) = pair(&self.key, &self.value, user, value)?;
            Ok(WindowRow { key, start, value, timestamp })
        })
    }
}

impl<K: Codec, V: Codec> SessionStoreView<K, V> {
    /// All rows, in the order of Kafka Streams' store.
    ///
    /// # Errors
    /// The store holds keys or values of another schema.
    pub fn rows(&self) -> Result<Vec<SessionRow<K, V>>, DriverError> {
        collect(&*self.store, |key, value, _| {
            let (user, start, end) = session_parts(key);
            let (key, value) = pair(&self.key, &self.value, user, value)?;
            Ok(SessionRow { key, start, end, value })
        })
    }
}

fn pair<K: Codec, V: Codec>(
    key: &K,
    value: &V,
    key_bytes: &[u8],
    bytes: &[u8],
) -> Result<(K::Owned, V::Owned), DriverError> {
    let owned = decode_owned(key, Some(key_bytes)).map_err(|error| codec("a key", error))?;
    Ok((owned, decode_owned(value, Some(bytes)).map_err(|error| codec("a value", error))?))
}

fn collect<R>(
    store: &dyn StateStore,
    row: impl Fn(&[u8], &[u8], i64) -> Result<R, DriverError>,
) -> Result<Vec<R>, DriverError> {
    let mut rows = Vec::new();
    let mut wrong = Ok(());
    let fault = FaultCell::new();
    let mut visit = |key: &[u8], value: &[u8], timestamp: i64| {
        match row(key, value, timestamp) {
            Ok(row) => rows.push(row),
            Err(error) => wrong = Err(error),
        }
        wrong.is_ok()
    };
    store.rows(&fault, 0, &mut visit).map_err(|_| failed(&fault))?;
    wrong.map(|()| rows)
}

impl<K, V> fmt::Debug for WindowStoreView<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowStoreView").field("store", &self.store.id()).finish_non_exhaustive()
    }
}

impl<K, V> fmt::Debug for SessionStoreView<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStoreView").field("store", &self.store.id()).finish_non_exhaustive()
    }
}

impl<K: Codec, V: Codec> fmt::Debug for WindowRow<K, V>
where
    K::Owned: fmt::Debug,
    V::Owned: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, start, value, timestamp } = self;
        f.debug_tuple("WindowRow").field(key).field(start).field(value).field(timestamp).finish()
    }
}

impl<K: Codec, V: Codec> fmt::Debug for SessionRow<K, V>
where
    K::Owned: fmt::Debug,
    V::Owned: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, start, end, value } = self;
        f.debug_tuple("SessionRow").field(key).field(start).field(end).field(value).finish()
    }
}
