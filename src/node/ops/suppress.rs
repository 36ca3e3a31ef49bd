//! `suppress`: a table's updates wait in a buffer, and only the last one of each key goes down.
use super::suppress_buffer::{BUFFER_BYTES, Fill, SuppressBuffer};
use crate::base::id::{NodeId, StoreId};
use crate::codec::{Change, Codec, Delta, Schema, Scratch, Side};
use crate::node::{Cx, Edge, Fault, Flow, Found, Getter, Node, Parked, PerTask, Record, Wiring, WiringError};
use std::cell::RefCell;
use std::rc::Rc;

/// The end of a key's window, milliseconds.
pub(crate) type WindowEnd<K> = for<'a> fn(<K as Schema>::View<'a>) -> i64;

/// How long updates wait, and how many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuppressRule {
    /// Milliseconds of stream time that an update waits behind its buffer time.
    pub(crate) wait_ms: i64,
    pub(crate) max_records: u64,
    pub(crate) max_bytes: u64,
    /// When full: the first updates go early, instead of an error.
    pub(crate) emits_early: bool,
}

impl SuppressRule {
    fn is_over(&self, fill: &Fill) -> bool {
        fill.records > self.max_records || fill.bytes > self.max_bytes.min(BUFFER_BYTES)
    }
}

/// The node.
pub(crate) struct Suppress<K: Schema, V> {
    pub(crate) node: NodeId,
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) rule: SuppressRule,
    /// Final results of windows: the buffer time is the window's end, and deletions of what was never told stay.
    pub(crate) end: Option<WindowEnd<K>>,
    pub(crate) buffer: Rc<SuppressBuffer>,
    /// Highest timestamp of an update.
    pub(crate) observed: PerTask<i64>,
    pub(crate) scratch: RefCell<[Scratch; 3]>,
    pub(crate) out: Edge<K, Change<V>>,
}

impl<K: Codec, V: Codec> Suppress<K, V> {
    pub(crate) fn wire(
        w: &mut Wiring<'_>,
        node: NodeId,
        (key, value): (K, V),
        rule: SuppressRule,
        end: Option<WindowEnd<K>>,
        store: StoreId,
    ) -> Result<Self, WiringError> {
        let limit = w.settings().record_bytes;
        Ok(Self {
            node,
            key,
            value,
            rule,
            end,
            buffer: w.store::<Rc<SuppressBuffer>>(store)?,
            observed: PerTask::with(w, -1),
            scratch: RefCell::new([(); 3].map(|()| Scratch::with_limit(limit))),
            out: w.edge(node, 0)?,
        })
    }

    fn put<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        let mut scratch = self.scratch.borrow_mut();
        let [key, old, new] = &mut *scratch;
        key.clear();
        self.key.encode(r.key, key);
        let values = [(r.value.old, old), (r.value.new, new)].map(|(value, out)| {
            out.clear();
            let value = value.filter(|value| !V::is_null(*value));
            if let Some(value) = value {
                self.value.encode(value, out);
            }
            (value.is_some(), &*out)
        });
        for part in [&*key, values[0].1, values[1].1] {
            let node = self.node;
            part.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node, full }))?;
        }
        let time = self.end.map_or(r.timestamp, |end| end(r.key));
        let values = values.map(|(is_some, out)| is_some.then_some(out.bytes()));
        self.buffer.put(cx, key.bytes(), values, time, r.timestamp)
    }

    fn emit(&self, cx: &Cx<'_>) -> Flow {
        self.buffer.take_first(cx, |cx, key, update| {
            if self.end.is_some() && update.new.is_none() {
                return Ok(());
            }
            let unreadable = |side, error| {
                let store = crate::node::StateStore::id(&*self.buffer);
                cx.fault.park(Fault::Store, Parked::Stored { store, side, error })
            };
            let key = self.key.decode(key).map_err(|error| unreadable(Side::Key, error))?;
            let [old, new] = [update.old, update.new].map(|bytes| bytes.map(|bytes| self.value.decode(bytes)));
            let old = old.transpose().map_err(|error| unreadable(Side::Value, error))?;
            let new = new.transpose().map_err(|error| unreadable(Side::Value, error))?;
            let value = Delta { new: new.as_ref().map(V::lend), old: old.as_ref().map(V::lend) };
            let timestamp = update.timestamp;
            self.out.send(cx, &Record { key: K::lend(&key), value, timestamp })
        })
    }
}

impl<K: Codec, V: Codec> Node<K, Change<V>> for Suppress<K, V> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        let observed = self.observed.get(cx.task.partition).max(r.timestamp);
        self.observed.set(cx.task.partition, observed);
        self.put(cx, r)?;
        let expiry = observed.saturating_sub(self.rule.wait_ms);
        while self.buffer.fill(cx)?.first.is_some_and(|first| first <= expiry) {
            self.emit(cx)?;
        }
        loop {
            let fill = self.buffer.fill(cx)?;
            if !self.rule.is_over(&fill) {
                return Ok(());
            }
            if !self.rule.emits_early {
                let node = self.node;
                return Err(cx.fault.park(Fault::TooLarge, Parked::BufferFull { node, fill }));
            }
            self.emit(cx)?;
        }
    }
}

/// Looks up in a suppressed table: what was told of a key that waits, else the table's own value.
pub(crate) struct SuppressGetter<K: Schema, V: Schema> {
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) buffer: Rc<SuppressBuffer>,
    pub(crate) parent: Rc<dyn Getter<K, V>>,
    pub(crate) scratch: RefCell<Scratch>,
}

impl<K: Codec, V: Codec> Getter<K, V> for SuppressGetter<K, V> {
    fn get(&self, cx: &Cx<'_>, key: K::View<'_>, found: Found<'_, V>) -> Flow {
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        self.key.encode(key, &mut scratch);
        let told = self.buffer.prior(cx, scratch.bytes(), |prior| {
            let Some(prior) = prior else { return found(None) };
            match self.value.decode(prior) {
                Ok(value) => found(Some((V::lend(&value), crate::node::NO_TIMESTAMP))),
                Err(error) => {
                    let store = crate::node::StateStore::id(&*self.buffer);
                    Err(cx.fault.park(Fault::Store, Parked::Stored { store, side: Side::Value, error }))
                }
            }
        })?;
        drop(scratch);
        told.unwrap_or_else(|| self.parent.get(cx, key, found))
    }
}
