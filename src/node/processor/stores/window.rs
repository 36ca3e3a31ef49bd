//! Window stores.
use super::Opened;
use super::handle::{Connect, OpenerBox, StoreHandle, StoresOf, store_handle};
use crate::base::id::StoreId;
use crate::codec::{Codec, Side};
use crate::node::keyvalue::Keys;
use crate::node::processor::{Processed, ProcessorError};
use crate::node::{Cx, Fault, Parked};
use crate::store::backend::Order;
use crate::store::kind::{session_parts, window_parts};
use crate::store::offset::PREFIX_BYTES;
use std::any::Any;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Behind a key: the window's start, and a number that is 0.
pub(super) fn behind(start: i64) -> [u8; 12] {
    let mut bytes = [0; 12];
    let (time, _) = bytes.split_at_mut(8);
    time.copy_from_slice(&start.to_be_bytes());
    bytes
}

store_handle!(
    /// A window store: the handle that [`StreamsBuilder::add_state_store`](crate::StreamsBuilder::add_state_store)
    /// answers, to be given to processors.
    WindowStore,
    WindowView
);

/// A window store, opened for a step. Rows older than the retention are not there any more.
///
/// # Java
/// `WindowStore`.
pub struct WindowView<'c, K: Codec, V: Codec> {
    opened: &'c Rc<Opened<K, V>>,
    cx: Cx<'c>,
}

impl<K: Codec, V: Codec> WindowView<'_, K, V> {
    /// Sets the value of a key in the window that starts then (milliseconds since the epoch); a null deletes it. What
    /// is older than the retention is not taken.
    ///
    /// # Errors
    /// The store or its changelog failed; the key is null; it is too large.
    pub fn put(&self, key: K::View<'_>, value: V::View<'_>, start: i64) -> Processed {
        let (opened, cx) = (self.opened, &self.cx);
        opened.with_key(cx, key, &behind(start), |key| opened.write(cx, key, Some(value), cx.source.timestamp))
    }

    /// The value of a key in the window that starts then.
    ///
    /// # Errors
    /// The store failed, or has a value of another schema.
    pub fn fetch(&self, key: K::View<'_>, start: i64) -> Result<Option<V::Owned>, ProcessorError> {
        let (opened, cx) = (self.opened, &self.cx);
        opened.with_key(cx, key, &behind(start), |key| {
            let mut found = None;
            let keys = Keys::One(user(key, 12));
            opened.store.fetch(cx.fault, cx.task.partition, keys, [start; 2], Order::Forward, &mut |_, value, _| {
                found = Some(V::own(value));
                Ok(false)
            })?;
            Ok(found)
        })
    }

    /// The windows of a key that start from then to then, both included.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch); or the rows are more than a megabyte.
    pub fn fetch_range(&self, key: K::View<'_>, from: i64, to: i64) -> Result<SpanRows<K, V>, ProcessorError> {
        self.of_key(key, [from, to], Order::Forward)
    }

    /// As [`fetch_range`](Self::fetch_range), the last first.
    ///
    /// # Errors
    /// As [`fetch_range`](Self::fetch_range).
    pub fn backward_fetch(&self, key: K::View<'_>, from: i64, to: i64) -> Result<SpanRows<K, V>, ProcessorError> {
        self.of_key(key, [from, to], Order::Reverse)
    }

    /// The windows of all keys that start from then to then, both included.
    ///
    /// # Errors
    /// As [`fetch_range`](Self::fetch_range).
    pub fn fetch_all(&self, from: i64, to: i64) -> Result<SpanRows<K, V>, ProcessorError> {
        let mut rows = SpanRows::default();
        rows.windows(self.opened, &self.cx, Keys::ALL, [from, to], Order::Forward).map_err(ProcessorError::below)?;
        Ok(rows)
    }

    /// All windows that the retention keeps.
    ///
    /// # Errors
    /// As [`fetch_range`](Self::fetch_range).
    pub fn all(&self) -> Result<SpanRows<K, V>, ProcessorError> {
        self.fetch_all(0, i64::MAX)
    }

    fn of_key(&self, key: K::View<'_>, times: [i64; 2], order: Order) -> Result<SpanRows<K, V>, ProcessorError> {
        let mut rows = SpanRows::default();
        self.opened.with_key(&self.cx, key, &[], |key| {
            rows.windows(self.opened, &self.cx, Keys::One(user(key, 0)), times, order)
        })?;
        Ok(rows)
    }
}

/// The user's key of a store's key with its partition.
pub(super) fn user(key: &[u8], suffix: usize) -> &[u8] {
    key.get(PREFIX_BYTES..key.len().saturating_sub(suffix)).unwrap_or_default()
}

/// Bytes of the rows that a fetch may give.
const ROWS_BYTES: usize = 1 << 20;

struct SpanRow<K: Codec, V: Codec> {
    key: K::Owned,
    start: i64,
    end: i64,
    value: V::Owned,
}

/// Rows of a window or session store, as they were when they were fetched. They borrow neither the store nor the
/// context: records may be forwarded and the store changed meanwhile.
///
/// # Java
/// `WindowStoreIterator`, `KeyValueIterator<Windowed<K>, V>`.
pub struct SpanRows<K: Codec, V: Codec> {
    rows: Vec<SpanRow<K, V>>,
    next: usize,
    bytes: usize,
}

impl<K: Codec, V: Codec> Default for SpanRows<K, V> {
    fn default() -> Self {
        Self { rows: Vec::new(), next: 0, bytes: 0 }
    }
}

impl<K: Codec, V: Codec> fmt::Debug for SpanRows<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanRows").field("left", &(self.rows.len() - self.next)).finish()
    }
}

impl<K: Codec, V: Codec> SpanRows<K, V> {
    /// The next row: key, start of its window or session, value.
    #[allow(clippy::should_implement_trait)] // it lends
    pub fn next(&mut self) -> Option<(K::View<'_>, i64, V::View<'_>)> {
        self.next_span().map(|(key, start, _, value)| (key, start, value))
    }

    /// The next row: key, start and end, value. Of a window the end is its start.
    pub fn next_span(&mut self) -> Option<(K::View<'_>, i64, i64, V::View<'_>)> {
        let row = self.rows.get(self.next)?;
        self.next += 1;
        Some((K::view(&row.key), row.start, row.end, V::view(&row.value)))
    }

    fn windows(
        &mut self,
        opened: &Opened<K, V>,
        cx: &Cx<'_>,
        keys: Keys<'_>,
        times: [i64; 2],
        order: Order,
    ) -> Result<(), Fault> {
        let mut visit = |key: &[u8], value: V::View<'_>, _: i64| {
            let (user, start, _) = window_parts(key);
            self.push(opened, cx, user, [start, start], value)
        };
        opened.store.fetch(cx.fault, cx.task.partition, keys, times, order, &mut visit)
    }

    pub(super) fn sessions(
        &mut self,
        opened: &Opened<K, V>,
        cx: &Cx<'_>,
        keys: Keys<'_>,
        ends_and_starts: [i64; 2],
        order: Order,
    ) -> Result<(), Fault> {
        let mut visit = |key: &[u8], value: V::View<'_>, _: i64| {
            let (user, start, end) = session_parts(key);
            self.push(opened, cx, user, [start, end], value)
        };
        opened.store.find_sessions(cx.fault, cx.task.partition, keys, ends_and_starts, order, &mut visit)
    }

    fn push(
        &mut self,
        opened: &Opened<K, V>,
        cx: &Cx<'_>,
        user: &[u8],
        [start, end]: [i64; 2],
        value: V::View<'_>,
    ) -> Result<bool, Fault> {
        let key = opened.key.decode(user).map_err(|error| {
            let store = opened.store.store_id();
            cx.fault.park(Fault::Store, Parked::Stored { store, side: Side::Key, error })
        })?;
        let value = V::own(value);
        self.bytes += size_of::<SpanRow<K, V>>() + user.len() + V::weight(&value);
        if self.bytes > ROWS_BYTES {
            let error = "a fetch gives more than 1 MiB; fetch a shorter time".into();
            return Err(cx.fault.park(Fault::User, Parked::User { node: opened.node, error }));
        }
        self.rows.push(SpanRow { key: K::own(K::lend(&key)), start, end, value });
        Ok(true)
    }
}
