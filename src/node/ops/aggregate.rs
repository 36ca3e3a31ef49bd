//! `aggregate`, `reduce` and `count`: a table's value changed in place by each record of its key.
use super::window_fold::WindowFold;
use crate::base::id::NodeId;
use crate::codec::{Change, Codec, Delta, Schema, Scratch, Side};
use crate::node::{Cx, Drain, Edge, Entry, Fault, Flow, Fn3, KeyValue, Node, Parked, Record};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// How a record changes the aggregate.
pub(crate) trait Fold<K: Schema, V: Schema, A: Codec> {
    fn fold<'x>(&self, key: K::View<'x>, value: V::View<'x>, aggregate: &mut Option<A::Owned>);
}

/// As `aggregate` does: an initial value, then the closure.
pub(crate) struct FromInit<I, F> {
    pub(crate) init: Arc<I>,
    pub(crate) f: Arc<F>,
}

impl<I, F> Clone for FromInit<I, F> {
    fn clone(&self) -> Self {
        Self { init: Arc::clone(&self.init), f: Arc::clone(&self.f) }
    }
}

impl<K: Schema, V: Schema, A: Codec, I, F> Fold<K, V, A> for FromInit<I, F>
where
    I: Fn() -> A::Owned,
    F: for<'x, 'm> Fn3<K::View<'x>, V::View<'x>, &'m mut A::Owned, ()>,
{
    #[inline]
    fn fold<'x>(&self, key: K::View<'x>, value: V::View<'x>, aggregate: &mut Option<A::Owned>) {
        (self.f)(key, value, aggregate.get_or_insert_with(|| (self.init)()));
    }
}

/// The node. Cached: an entry is dirty until the thread drains it or its room is needed. Not cached: it goes on at
/// once.
pub(crate) struct Aggregate<K, V, A: Codec, F> {
    pub(crate) node: NodeId,
    pub(crate) key: K,
    pub(crate) fold: F,
    pub(crate) store: Rc<KeyValue<A>>,
    /// Whether something below needs old values.
    pub(crate) sends_old: bool,
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) out: Edge<K, Change<A>>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Codec, V: Codec, A: Codec, F: WindowFold<K, V, A>> Node<K, V> for Aggregate<K, V, A, F> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        if K::is_null(r.key) || V::is_null(r.value) {
            cx.port.dropped(self.node);
            return Ok(());
        }
        let slot = self.slot(cx, r.key)?;
        let mut is_new = false;
        self.store.change(cx, slot, r.timestamp, |aggregate| {
            is_new = aggregate.is_none();
            self.fold.fold(r.key, r.value, aggregate);
        });
        if !self.store.is_cached() {
            self.store.take(slot);
            // Uncached, Kafka Streams tells what is below that a new key had the fold's first value.
            let first = if is_new && self.sends_old { self.fold.begin() } else { None };
            self.forward(cx, slot, first.as_ref())?;
        }
        self.store.keep_limit(cx, 0, &|slot| self.forward(cx, slot, None))
    }

    fn warm(&self, partition: u32, key: &[u8]) {
        // The key as a topic has it is nearly always as the store has it; if not, nothing is found.
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        scratch.extend(&partition.to_be_bytes());
        scratch.extend(key);
        self.store.warm(scratch.bytes());
    }

    fn warms(&self) -> bool {
        true
    }
}

impl<K: Codec, V, A: Codec, F> Aggregate<K, V, A, F> {
    fn slot(&self, cx: &Cx<'_>, key: K::View<'_>) -> Result<u32, Fault> {
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        scratch.extend(&cx.task.partition.to_be_bytes());
        self.key.encode(key, &mut scratch);
        scratch.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node: self.node, full }))?;
        self.store.slot(cx, scratch.bytes(), &|slot| self.forward(cx, slot, None))
    }

    fn forward(&self, cx: &Cx<'_>, slot: u32, first: Option<&A::Owned>) -> Flow {
        self.store.forward(cx, slot, |cx, entry: &Entry<'_, A>| {
            let key = self.key.decode(entry.key).map_err(|error| {
                let store = self.store.store_id();
                cx.fault.park(Fault::Store, Parked::Stored { store, side: Side::Key, error })
            })?;
            let old = match entry.old {
                Some(old) => Some(A::shorten(old)),
                None => first.map(|first| A::shorten(A::view(first))),
            };
            let value = Delta { new: entry.new.map(A::shorten), old };
            self.out.send(
                cx,
                &Record { key: K::lend(&key), value: Change::<A>::shorten(value), timestamp: entry.timestamp },
            )
        })
    }
}

impl<K: Codec, V: Codec, A: Codec, F: Fold<K, V, A>> Drain for Aggregate<K, V, A, F> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        let Some(slot) = self.store.pop_dirty() else { return Ok(false) };
        self.forward(cx, slot, None)?;
        Ok(true)
    }
}
