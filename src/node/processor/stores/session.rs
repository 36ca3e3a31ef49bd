//! Session stores.
use super::Opened;
use super::handle::{Connect, OpenerBox, StoreHandle, StoresOf, store_handle};
use super::window::{SpanRows, user};
use crate::base::id::StoreId;
use crate::codec::Codec;
use crate::node::Cx;
use crate::node::keyvalue::Keys;
use crate::node::processor::{Processed, ProcessorError};
use crate::store::backend::Order;
use std::any::Any;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Behind a key: the session's end and its start.
fn behind(start: i64, end: i64) -> [u8; 16] {
    let mut bytes = [0; 16];
    let (first, second) = bytes.split_at_mut(8);
    first.copy_from_slice(&end.to_be_bytes());
    second.copy_from_slice(&start.to_be_bytes());
    bytes
}

store_handle!(
    /// A session store: the handle that [`StreamsBuilder::add_state_store`](crate::StreamsBuilder::add_state_store)
    /// answers, to be given to processors.
    SessionStore,
    SessionView
);

/// A session store, opened for a step. Sessions older than the retention are not there any more.
///
/// # Java
/// `SessionStore`.
pub struct SessionView<'c, K: Codec, V: Codec> {
    opened: &'c Rc<Opened<K, V>>,
    cx: Cx<'c>,
}

impl<K: Codec, V: Codec> SessionView<'_, K, V> {
    /// Sets the value of a session of a key, from start to end in milliseconds since the epoch; a null deletes it.
    ///
    /// # Errors
    /// The store or its changelog failed; the key is null; it is too large.
    pub fn put(&self, key: K::View<'_>, start: i64, end: i64, value: V::View<'_>) -> Processed {
        let (opened, cx) = (self.opened, &self.cx);
        let at = cx.source.timestamp;
        opened.with_key(cx, key, &behind(start, end), |key| opened.write(cx, key, Some(value), at))
    }

    /// Deletes a session.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn remove(&self, key: K::View<'_>, start: i64, end: i64) -> Processed {
        let (opened, cx) = (self.opened, &self.cx);
        opened.with_key(cx, key, &behind(start, end), |key| opened.write(cx, key, None, cx.source.timestamp))
    }

    /// The value of a session.
    ///
    /// # Errors
    /// The store failed, or has a value of another schema.
    pub fn fetch_session(&self, key: K::View<'_>, start: i64, end: i64) -> Result<Option<V::Owned>, ProcessorError> {
        let mut rows = self.find_sessions(key, end, start)?;
        while let Some((_, from, to, value)) = rows.next_span() {
            if (from, to) == (start, end) {
                return Ok(Some(V::own(value)));
            }
        }
        Ok(None)
    }

    /// All sessions of a key.
    ///
    /// # Errors
    /// As [`fetch_session`](Self::fetch_session); or the rows are more than a megabyte.
    pub fn fetch(&self, key: K::View<'_>) -> Result<SpanRows<K, V>, ProcessorError> {
        self.find_sessions(key, 0, i64::MAX)
    }

    /// The sessions of a key that end then or later and start then or earlier.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    pub fn find_sessions(
        &self,
        key: K::View<'_>,
        earliest_end: i64,
        latest_start: i64,
    ) -> Result<SpanRows<K, V>, ProcessorError> {
        let mut rows = SpanRows::default();
        self.opened.with_key(&self.cx, key, &[], |key| {
            let keys = Keys::One(user(key, 0));
            rows.sessions(self.opened, &self.cx, keys, [earliest_end, latest_start], Order::Forward)
        })?;
        Ok(rows)
    }
}
