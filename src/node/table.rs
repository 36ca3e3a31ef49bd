//! Looking up a table's values, keeping them and sending its updates: what all nodes of tables share.
//!
//! Owns nothing but buffers. Invariant: an update goes into the store before anything below sees it. Bound: a key's
//! bytes in a [`Scratch`]. Called by the `table_*` operators and the joins in which a table takes part.
use super::cx::Cx;
use super::edge::{Drain, Edge};
use super::fault::{Fault, Flow, Parked};
use super::history::History;
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

/// The store of a table.
enum Kept<V: Codec> {
    /// With the latest value of each key.
    Latest(Rc<KeyValue<V>>),
    /// With what it was before, too.
    History(Rc<History<V>>),
}

impl<V: Codec> Kept<V> {
    fn wire(w: &mut Wiring<'_>, store: StoreId) -> Result<Self, WiringError> {
        Ok(match w.store_part(store)?.make.kind.history() {
            Some(_) => Self::History(w.store::<Rc<History<V>>>(store)?),
            None => Self::Latest(w.store::<Rc<KeyValue<V>>>(store)?),
        })
    }

    /// What the store has behind the table's key.
    fn key_end(&self) -> &'static [u8] {
        match self {
            Self::Latest(store) => store.key_end(),
            Self::History(_) => &[],
        }
    }

    /// Lends `f` what a key has, or had at a time where that is known.
    fn get<R>(
        &self,
        cx: &Cx<'_>,
        key: &[u8],
        at: i64,
        f: impl FnOnce(Option<(V::View<'_>, i64)>) -> R,
    ) -> Result<R, Fault> {
        match self {
            Self::Latest(store) => store.get(cx, key, f),
            Self::History(history) => history.get_at(cx, key, at, f),
        }
    }
}

/// Looks up in a store.
pub(crate) struct StoreGetter<K, V: Codec> {
    key: K,
    store: Kept<V>,
    scratch: RefCell<Scratch>,
}

impl<K: Codec, V: Codec> StoreGetter<K, V> {
    pub(crate) fn wire(w: &mut Wiring<'_>, key: &K, store: StoreId) -> Result<Rc<dyn Getter<K, V>>, WiringError> {
        let scratch = RefCell::new(Scratch::with_limit(w.settings().record_bytes));
        Ok(Rc::new(Self { key: key.clone(), store: Kept::wire(w, store)?, scratch }))
    }
}

impl<K: Codec, V: Codec> Getter<K, V> for StoreGetter<K, V> {
    fn get(&self, cx: &Cx<'_>, key: K::View<'_>, found: Found<'_, V>) -> Flow {
        self.get_at(cx, key, i64::MAX, found)
    }

    fn get_at(&self, cx: &Cx<'_>, key: K::View<'_>, at: i64, found: Found<'_, V>) -> Flow {
        let mut scratch = self.scratch.borrow_mut();
        store_key(cx, NodeId(u16::MAX), &self.key, key, &mut scratch)?;
        scratch.extend(self.store.key_end());
        self.store.get(cx, scratch.bytes(), at, found)?
    }
}

/// A table's node behind its own computation: the store if it is kept, and the edge.
pub(crate) struct TableOut<K, V: Codec> {
    pub(crate) node: NodeId,
    key: K,
    store: Option<Kept<V>>,
    scratch: RefCell<Scratch>,
    pub(crate) sends_old: bool,
    out: Edge<K, Change<V>>,
}

impl<K: Codec, V: Codec> TableOut<K, V> {
    pub(crate) fn wire(w: &mut Wiring<'_>, node: NodeId, key: &K, store: Option<StoreId>) -> Result<Self, WiringError> {
        Ok(Self {
            node,
            key: key.clone(),
            store: store.map(|store| Kept::wire(w, store)).transpose()?,
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
        matches!(&self.store, Some(Kept::Latest(store)) if store.is_cached())
    }

    /// Whether the store has a value of the key.
    pub(crate) fn has(&self, cx: &Cx<'_>, key: K::View<'_>) -> Result<bool, Fault> {
        let Some(store) = &self.store else { return Ok(false) };
        let mut scratch = self.scratch.borrow_mut();
        store_key(cx, self.node, &self.key, key, &mut scratch)?;
        store.get(cx, scratch.bytes(), i64::MAX, |found| found.is_some())
    }

    /// Keeps an update and sends it on: at once, or with the commit when it is cached. Where it is kept, the old value
    /// is the store's own.
    pub(crate) fn update<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        let (new, timestamp) = (r.value.new.filter(|view| !V::is_null(*view)), r.timestamp);
        match &self.store {
            Some(Kept::Latest(_)) => {}
            Some(Kept::History(history)) => return self.put(cx, history, r.key, (new, timestamp)),
            None => {
                let old = if self.sends_old { r.value.old } else { None };
                return self.out.send(cx, &Record { key: r.key, value: Delta { new, old }, timestamp });
            }
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
        let store = match &self.store {
            Some(Kept::Latest(store)) => store,
            Some(Kept::History(history)) => return self.change_history(cx, history, key, stamp, apply),
            None => return Ok(()),
        };
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

    /// As [`change`](Self::change) of the latest version: the new one is another.
    fn change_history(
        &self,
        cx: &Cx<'_>,
        history: &History<V>,
        key: K::View<'_>,
        stamp: impl FnOnce(Option<i64>) -> i64,
        apply: impl FnOnce(&mut Option<V::Owned>),
    ) -> Flow {
        let (mut value, old_time) = {
            let mut scratch = self.scratch.borrow_mut();
            store_key(cx, self.node, &self.key, key, &mut scratch)?;
            history.get_at(cx, scratch.bytes(), i64::MAX, |found| {
                found.map_or((None, None), |(value, time)| (Some(V::own(value)), Some(time)))
            })?
        };
        apply(&mut value);
        let new = value.as_ref().map(V::view).filter(|view| !V::is_null(*view));
        self.put(cx, history, key, (new, stamp(old_time)))
    }

    /// Puts a version and sends it on, unless it is too old to be kept.
    fn put(&self, cx: &Cx<'_>, history: &History<V>, key: K::View<'_>, version: (Option<V::View<'_>>, i64)) -> Flow {
        let mut scratch = self.scratch.borrow_mut();
        store_key(cx, self.node, &self.key, key, &mut scratch)?;
        history.put(cx, self.node, scratch.bytes(), version, self.sends_old, |cx, old| {
            let value = Delta { new: version.0.map(V::shorten), old: old.map(V::shorten) };
            self.out.send(cx, &Record { key: K::shorten(key), value, timestamp: version.1 })
        })
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
        let Some(Kept::Latest(store)) = &self.store else { return Ok(false) };
        let Some(slot) = store.pop_dirty() else { return Ok(false) };
        self.forward(cx, store, slot)?;
        Ok(true)
    }
}
