//! Key-value stores.
use super::Opened;
use super::handle::{Connect, OpenerBox, StoreHandle, StoresOf, store_handle};
use super::rows::Rows;
use crate::base::id::StoreId;
use crate::codec::Codec;
use crate::node::processor::{Processed, ProcessorError};
use crate::node::{Cx, Fault, Parked};
use crate::store::backend::Order;
use crate::store::offset::{partition_end, partition_prefix};
use std::any::Any;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

store_handle!(
    /// A key-value store: the handle that [`StreamsBuilder::add_state_store`](crate::StreamsBuilder::add_state_store)
    /// answers, to be given to processors. [`Context::store`](crate::Context::store) opens it.
    KeyValueStore,
    KeyValueView
);

/// A key-value store, opened for a step. Whoever holds one cannot forward; let it go first.
///
/// # Java
/// `KeyValueStore`, `TimestampedKeyValueStore`.
pub struct KeyValueView<'c, K: Codec, V: Codec> {
    opened: &'c Rc<Opened<K, V>>,
    cx: Cx<'c>,
}

impl<K: Codec, V: Codec> KeyValueView<'_, K, V> {
    /// The value of a key, if it has one.
    ///
    /// # Errors
    /// The store failed, or has a value of another schema.
    pub fn get(&self, key: K::View<'_>) -> Result<Option<V::Owned>, ProcessorError> {
        self.with(key, |value| value.map(V::own))
    }

    /// The value of a key and its timestamp, milliseconds since the epoch; -1 in a store without timestamps.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_with_timestamp(&self, key: K::View<'_>) -> Result<Option<(V::Owned, i64)>, ProcessorError> {
        let read = |key: &[u8]| self.opened.read(&self.cx, key, |row| row.map(|(value, at)| (V::own(value), at)));
        self.opened.with_key(&self.cx, key, &[], read)
    }

    /// Lends the closure the value of a key: nothing is copied.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn with<R>(&self, key: K::View<'_>, f: impl FnOnce(Option<V::View<'_>>) -> R) -> Result<R, ProcessorError> {
        let read = |key: &[u8]| self.opened.read(&self.cx, key, |row| f(row.map(|(value, _)| value)));
        self.opened.with_key(&self.cx, key, &[], read)
    }

    /// Sets the value of a key; a null deletes it. A store with timestamps keeps that of the record at work.
    ///
    /// # Errors
    /// The store or its changelog failed; the key is null; it is too large.
    pub fn put(&self, key: K::View<'_>, value: V::View<'_>) -> Processed {
        self.put_at(key, value, self.cx.source.timestamp)
    }

    /// As [`put`](Self::put), with this timestamp, milliseconds since the epoch.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_at(&self, key: K::View<'_>, value: V::View<'_>, timestamp: i64) -> Processed {
        self.opened.with_key(&self.cx, key, &[], |key| self.opened.write(&self.cx, key, Some(value), timestamp))
    }

    /// Sets the value of a key that has none; answers the one it has.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_if_absent(&self, key: K::View<'_>, value: V::View<'_>) -> Result<Option<V::Owned>, ProcessorError> {
        let old = self.get(key)?;
        if old.is_none() {
            self.put(key, value)?;
        }
        Ok(old)
    }

    /// Sets several.
    ///
    /// # Errors
    /// As [`put`](Self::put); those before it are set.
    pub fn put_all<'v>(&self, rows: impl IntoIterator<Item = (K::View<'v>, V::View<'v>)>) -> Processed {
        rows.into_iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Deletes a key; answers the value that it had.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: K::View<'_>) -> Result<Option<V::Owned>, ProcessorError> {
        let (opened, cx) = (self.opened, &self.cx);
        opened.with_key(cx, key, &[], |key| {
            let old = opened.read(cx, key, |row| row.map(|(value, _)| V::own(value)))?;
            opened.write(cx, key, None, cx.source.timestamp)?;
            Ok(old)
        })
    }

    /// Rows from one key to another, both included, in the order of the keys' bytes. `None`: without an end.
    ///
    /// # Errors
    /// A key is too large.
    pub fn range(&self, from: Option<K::View<'_>>, to: Option<K::View<'_>>) -> Result<Rows<K, V>, ProcessorError> {
        self.rows(from, to, Order::Forward)
    }

    /// As [`range`](Self::range), the last first.
    ///
    /// # Errors
    /// A key is too large.
    pub fn reverse_range(
        &self,
        from: Option<K::View<'_>>,
        to: Option<K::View<'_>>,
    ) -> Result<Rows<K, V>, ProcessorError> {
        self.rows(from, to, Order::Reverse)
    }

    /// Rows whose keys' bytes begin with these.
    pub fn prefix_scan(&self, prefix: &[u8]) -> Rows<K, V> {
        let partition = self.cx.task.partition;
        let from = [&partition_prefix(partition)[..], prefix].concat();
        let mut to = from.clone();
        // The first key behind all that begin so.
        while let Some(last) = to.pop() {
            if last < u8::MAX {
                to.push(last + 1);
                break;
            }
        }
        Rows::new(self.opened, &from, &to, Order::Forward)
    }

    /// All rows of the task, in the order of the keys' bytes.
    pub fn all(&self) -> Rows<K, V> {
        Rows::all(self.opened, &self.cx, Order::Forward)
    }

    /// As [`all`](Self::all), the last first.
    pub fn reverse_all(&self) -> Rows<K, V> {
        Rows::all(self.opened, &self.cx, Order::Reverse)
    }

    /// The number of rows of the task: they are counted, as in Kafka Streams' stores in memory.
    ///
    /// # Errors
    /// The store failed.
    pub fn approximate_num_entries(&self) -> Result<u64, ProcessorError> {
        let (mut count, partition) = (0, self.cx.task.partition);
        let mut visit = |_: &[u8], _: V::View<'_>, _: i64| {
            count += 1;
            Ok(true)
        };
        self.opened.store.all(self.cx.fault, partition, Order::Forward, &mut visit).map_err(ProcessorError::below)?;
        Ok(count)
    }

    fn rows(
        &self,
        from: Option<K::View<'_>>,
        to: Option<K::View<'_>>,
        order: Order,
    ) -> Result<Rows<K, V>, ProcessorError> {
        let (opened, partition) = (self.opened, self.cx.task.partition);
        let mut bounds = opened.bounds.borrow_mut();
        let [low, high] = &mut *bounds;
        for (bound, key) in [(&mut *low, from.map(K::shorten)), (&mut *high, to.map(K::shorten))] {
            bound.clear();
            bound.extend(&partition_prefix(partition));
            if let Some(key) = key {
                opened.key.encode(key, bound);
            }
        }
        match to {
            // Included: up to the next key there can be.
            Some(_) => high.push(0),
            None => {
                high.clear();
                high.extend(&partition_end(partition));
            }
        }
        let full = low.check().and_then(|()| high.check());
        full.map_err(|full| {
            let fault = self.cx.fault.park(Fault::TooLarge, Parked::TooLarge { node: opened.node, full });
            ProcessorError::below(fault)
        })?;
        Ok(Rows::new(opened, low.bytes(), high.bytes(), order))
    }
}
