//! Looking up a table's values, keeping them and sending its updates: what all nodes of tables share.
//!
//! Owns nothing but buffers. Invariant: an update goes into the store before anything below sees it. Bound: a key's
//! bytes in a [`Scratch`]. Called by the `table_*` operators and the joins in which a table takes part.
use super::cx::Cx;
use super::edge::{Drain, Edge};
use super::fault::{Fault, Flow, Parked};
use super::keyvalue::{Entry, KeyValue};
use super::record::Record;
use super::wiring::{Wiring, WiringError};
use crate::base::id::{NodeId, StoreId};
use crate::codec::{Change, Codec, Delta, Schema, Scratch, Side};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Gets a table's value and its timestamp, or that there is none.
pub(crate) type Found<'f, V> = &'f mut dyn for<'a> FnMut(Option<(<V as Schema>::View<'a>, i64)>) -> Flow;

/// Looks up values of a table: in its store, or computed from another table's.
pub(crate) trait Getter<K: Schema, V: Schema> {
    /// Lends the value of a key.
    fn get(&self, cx: &Cx<'_>, key: K::View<'_>, found: Found<'_, V>) -> Flow;

    /// Lends the value that a key had at a time, where versions are kept; else as [`get`](Self::get).
    fn get_at(&self, cx: &Cx<'_>, key: K::View<'_>, _at: i64, found: Found<'_, V>) -> Flow {
        self.get(cx, key, found)
    }
}

/// Makes a getter when a thread is wired.
pub(crate) type MakeGetter<K, V> =
    Arc<dyn Fn(&mut Wiring<'_>) -> Result<Rc<dyn Getter<K, V>>, WiringError> + Send + Sync>;

/// Partition and key as a store has them.
pub(crate) fn store_key<K: Codec>(cx: &Cx<'_>, node: NodeId, codec: &K, key: K::View<'_>, out: &mut Scratch) -> Flow {
    out.clear();
    out.extend(&cx.task.partition.to_be_bytes());
    codec.encode(key, out);
    out.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node, full }))
}

/// Looks up in a store.
pub(crate) struct StoreGetter<K, V: Codec> {
    key: K,
    store: Rc<KeyValue<V>>,
    scratch: RefCell<Scratch>,
}

impl<K: Codec, V: Codec> StoreGetter<K, V> {
    pub(crate) fn wire(w: &mut Wiring<'_>, key: &K, store: StoreId) -> Result<Rc<dyn Getter<K, V>>, WiringError> {
        let scratch = RefCell::new(Scratch::with_limit(w.settings().record_bytes));
        Ok(Rc::new(Self { key: key.clone(), store: w.store::<Rc<KeyValue<V>>>(store)?, scratch }))
    }
}

impl<K: Codec, V: Codec> Getter<K, V> for StoreGetter<K, V> {
    fn get(&self, cx: &Cx<'_>, key: K::View<'_>, found: Found<'_, V>) -> Flow {
        let mut scratch = self.scratch.borrow_mut();
        store_key(cx, NodeId(u16::MAX), &self.key, key, &mut scratch)?;
        scratch.extend(self.store.key_end());
        self.store.get(cx, scratch.bytes(), found)?
    }
}

/// A table's node behind its own computation: the store if it is kept, and the edge.
pub(crate) struct TableOut<K, V: Codec> {
    pub(crate) node: NodeId,
    key: K,
    store: Option<Rc<KeyValue<V>>>,
    scratch: RefCell<Scratch>,
    pub(crate) sends_old: bool,
    out: Edge<K, Change<V>>,
}

impl<K: Codec, V: Codec> TableOut<K, V> {
    pub(crate) fn wire(w: &mut Wiring<'_>, node: NodeId, key: &K, store: Option<StoreId>) -> Result<Self, WiringError> {
        Ok(Self {
            node,
            key: key.clone(),
            store: store.map(|store| w.store::<Rc<KeyValue<V>>>(store)).transpose()?,
            scratch: RefCell::new(Scratch::with_limit(w.settings().record_bytes)),
            sends_old: w.sends_old(node),
            out: w.edge::<K, Change<V>>(node, 0)?,
        })
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.store.is_some()
    }

    /// Whether forwards wait for the commit.
    pub(crate) fn is_cached(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.is_cached())
    }

    /// Whether the store has a value of the key.
    pub(crate) fn has(&self, cx: &Cx<'_>, key: K::View<'_>) -> Result<bool, Fault> {
        let Some(store) = &self.store else { return Ok(false) };
        let mut scratch = self.scratch.borrow_mut();
        store_key(cx, self.node, &self.key, key, &mut scratch)?;
        store.get(cx, scratch.bytes(), |found| found.is_some())
    }

    /// Keeps an update and sends it on: at once, or with the commit when it is cached. Where it is kept, the old value
    /// is the store's own.
    pub(crate) fn update<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        let (new, timestamp) = (r.value.new.filter(|view| !V::is_null(*view)), r.timestamp);
        if self.store.is_none() {
            let old = if self.sends_old { r.value.old } else { None };
            return self.out.send(cx, &Record { key: r.key, value: Delta { new, old }, timestamp });
        }
        self.change(
            cx,
            r.key,
            |_| timestamp,
            |value| match (value.as_mut(), new) {
                (Some(value), Some(new)) => V::own_into(new, value),
                (_, new) => *value = new.map(V::own),
            },
        )
    }

    /// Changes the stored value in place and sends the update on. `stamp` makes the new timestamp of the old one.
    pub(crate) fn change(
        &self,
        cx: &Cx<'_>,
        key: K::View<'_>,
        stamp: impl FnOnce(Option<i64>) -> i64,
        apply: impl FnOnce(&mut Option<V::Owned>),
    ) -> Flow {
        let Some(store) = &self.store else { return Ok(()) };
        let forward = |slot| self.forward(cx, store, slot);
        let slot = {
            let mut scratch = self.scratch.borrow_mut();
            store_key(cx, self.node, &self.key, key, &mut scratch)?;
            store.slot(cx, scratch.bytes(), &forward)?
        };
        store.set(cx, slot, stamp(store.time_of(slot)), apply);
        if !store.is_cached() {
            store.take(slot);
            forward(slot)?;
        }
        store.keep_limit(cx, 0, &forward)
    }

    fn forward(&self, cx: &Cx<'_>, store: &KeyValue<V>, slot: u32) -> Flow {
        store.forward(cx, slot, |cx, entry: &Entry<'_, V>| {
            let key = self.key.decode(entry.key).map_err(|error| {
                let store = store.store_id();
                cx.fault.park(Fault::Store, Parked::Stored { store, side: Side::Key, error })
            })?;
            let value = Delta { new: entry.new, old: entry.old };
            self.out.send(
                cx,
                &Record { key: K::lend(&key), value: Change::<V>::shorten(value), timestamp: entry.timestamp },
            )
        })
    }
}

impl<K: Codec, V: Codec> Drain for TableOut<K, V> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        let Some(store) = &self.store else { return Ok(false) };
        let Some(slot) = store.pop_dirty() else { return Ok(false) };
        self.forward(cx, store, slot)?;
        Ok(true)
    }
}
