//! A key-value store with timestamps, wired: overlay, codec and backend together.
//!
//! Owns the overlay of one store on one thread, for all its partitions. Invariant: an entry goes dirty → forwarded and
//! changelogged (pending) → backend (clean); nothing else reaches the backend. Bound: the overlay's limit. A change
//! that finds the store full drops clean entries, then forwards its oldest dirty ones, then writes pending ones to the
//! backend before the commit, as Kafka Streams' record cache does. Called by the operators of `node::ops` and, through
//! [`StateStore`], by the thread.
//!
//! Bytes: a row of the backend is the value's timestamp (8 bytes, big-endian) and the value; a changelog record carries
//! the plain value, the timestamp is the record's. Both as Kafka Streams' timestamped key-value store.
use super::cx::Cx;
use super::fault::{Fault, FaultCell, Flow, Parked};
use super::state::{Collected, StateStore};
use super::wiring::{MadeStore, MakeStore, Wiring, WiringError};
use crate::base::id::{NodeId, StoreId, TaskId};
use crate::codec::{Codec, Scratch, Side};
use crate::node::record::RecordContext;
use crate::node::topic::TopicName;
use crate::store::backend::Backend;
use crate::store::batch::StoreBatch;
use crate::store::error::StoreError;
use crate::store::offset::PREFIX_BYTES;
use crate::store::overlay::Overlay;
use crate::store::overlay::core::{Stamp, State};
use crate::wire::RawHeaders;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes of a timestamp in front of a stored value.
const TIMESTAMP_BYTES: usize = 8;

/// A wired key-value store with timestamps.
pub(crate) struct KeyValue<V: Codec> {
    id: StoreId,
    codec: V,
    cached: bool,
    logged: bool,
    overlay: RefCell<Overlay<V::Owned>>,
    backend: Arc<dyn Backend>,
    spill: Rc<RefCell<StoreBatch>>,
    /// What the backend read.
    read: RefCell<Vec<u8>>,
    /// A value on its way to the changelog or the backend.
    encoded: RefCell<Scratch>,
}

/// Builds such stores.
pub(crate) fn make_key_value<V: Codec>(codec: V) -> MakeStore {
    Box::new(move |wiring, id| {
        let store = Rc::new(KeyValue::new(codec.clone(), wiring, id)?);
        Ok(MadeStore { typed: Box::new(Rc::clone(&store)), face: store })
    })
}

impl<V: Codec> KeyValue<V> {
    fn new(codec: V, wiring: &Wiring<'_>, id: StoreId) -> Result<Self, WiringError> {
        let part = wiring.store_part(id)?;
        let settings = wiring.settings();
        let changelog = TopicName::Changelog(part.name.clone());
        let keeps_old = part.writer.is_some_and(|writer| wiring.sends_old(writer));
        Ok(Self {
            id,
            codec: wiring.with_place(&changelog, Side::Value, |place| codec.bind(place)),
            cached: part.cached,
            logged: part.logged,
            overlay: RefCell::new(Overlay::new(settings.overlay_bytes_per_store, keeps_old, V::weight)),
            backend: Arc::clone(&settings.backend),
            spill: Rc::clone(&settings.spill),
            read: RefCell::default(),
            encoded: RefCell::new(Scratch::with_limit(settings.record_bytes)),
        })
    }

    /// Whether forwards wait for the commit.
    pub(crate) fn is_cached(&self) -> bool {
        self.cached
    }

    pub(crate) fn store_id(&self) -> StoreId {
        self.id
    }

    /// The slot of a key in the overlay.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        let mut overlay = self.overlay.borrow_mut();
        let slot = overlay.core().find(key)?;
        overlay.core_mut().touch(slot);
        Some(slot)
    }

    /// Has the memory of a key's entry fetched, if it has one.
    #[inline]
    pub(crate) fn warm(&self, key: &[u8]) {
        self.overlay.borrow().warm(key);
    }

    /// Reads a key that is not in the overlay from the backend and makes its slot, without a value if it has none.
    pub(crate) fn load(&self, cx: &Cx<'_>, key: &[u8]) -> Result<u32, Fault> {
        let mut overlay = self.overlay.borrow_mut();
        let mut read = self.read.borrow_mut();
        let found = self.backend.get(self.id, key, &mut read).map_err(|error| self.park(cx.fault, error))?;
        let slot = overlay.insert(key);
        if found {
            self.decode_into(&mut overlay, slot, &read, cx.fault)?;
        }
        Ok(slot)
    }

    fn decode_into(&self, overlay: &mut Overlay<V::Owned>, slot: u32, row: &[u8], fault: &FaultCell) -> Flow {
        let (timestamp, bytes) = row.split_first_chunk::<TIMESTAMP_BYTES>().unwrap_or((&[0; TIMESTAMP_BYTES], &[]));
        match self.codec.decode(bytes) {
            Ok(out) => {
                overlay.update(slot, |value| *value = Some(V::own(V::lend(&out))));
                overlay.core_mut().set_timestamp(slot, i64::from_be_bytes(*timestamp));
                overlay.core_mut().set_state(slot, State::Clean);
                Ok(())
            }
            Err(error) => {
                overlay.release(slot);
                Err(fault.park(Fault::Store, Parked::Stored { store: self.id, side: Side::Value, error }))
            }
        }
    }

    fn park(&self, cell: &FaultCell, error: StoreError) -> Fault {
        cell.park(Fault::Store, Parked::Store { store: self.id, error })
    }

    /// Changes a value in place. The entry's timestamp is the highest of those that made the value. A null value is
    /// none.
    pub(crate) fn change(&self, cx: &Cx<'_>, slot: u32, timestamp: i64, apply: impl FnOnce(&mut Option<V::Owned>)) {
        let mut overlay = self.overlay.borrow_mut();
        let existed = overlay.value(slot).is_some();
        if overlay.keeps_old() && overlay.core().state(slot) != State::Dirty {
            overlay.update_old(slot, |now, old| match (now, old.as_mut()) {
                (Some(now), Some(old)) => V::own_into(V::view(now), old),
                (now, _) => *old = now.map(|now| V::own(V::view(now))),
            });
        }
        overlay.update(slot, |value| {
            apply(value);
            if value.as_ref().is_some_and(|value| V::is_null(V::view(value))) {
                *value = None;
            }
        });
        let core = overlay.core_mut();
        let timestamp = if existed { timestamp.max(core.timestamp(slot)) } else { timestamp };
        core.set_timestamp(slot, timestamp);
        let stamp = Stamp {
            topic: cx.source.topic,
            offset: cx.source.offset,
            timestamp: cx.source.timestamp,
            headers: cx.source.headers.as_bytes(),
        };
        core.set_dirty(slot, &stamp, existed);
    }

    /// Takes the oldest dirty entry to be forwarded; it is pending from now on.
    pub(crate) fn pop_dirty(&self) -> Option<u32> {
        let mut overlay = self.overlay.borrow_mut();
        let slot = overlay.core().oldest_dirty()?;
        overlay.core_mut().set_state(slot, State::Pending);
        Some(slot)
    }

    /// Takes this entry to be forwarded: caching is off.
    pub(crate) fn take(&self, slot: u32) {
        self.overlay.borrow_mut().core_mut().set_state(slot, State::Pending);
    }

    /// Writes an entry to the changelog and hands it, in its own context, to `forward`. A key that came and went since
    /// its last forward is skipped if caching is on, as in Kafka Streams.
    ///
    /// The overlay is borrowed meanwhile: what is below may read it, only the calling node changes it.
    pub(crate) fn forward(&self, cx: &Cx<'_>, slot: u32, forward: impl FnOnce(&Cx<'_>, &Entry<'_, V>) -> Flow) -> Flow {
        let overlay = self.overlay.borrow();
        let core = overlay.core();
        let value = overlay.value(slot);
        if self.cached && value.is_none() && !core.existed(slot) {
            return Ok(());
        }
        let (key, stamp, partition) = (core.key(slot), core.stamp_of(slot), core.partition(slot));
        // A tombstone in the changelog has the time of the record that made it; downstream, a cached one has too.
        let logged_at = if value.is_some() { core.timestamp(slot) } else { stamp.timestamp };
        let timestamp = if self.cached { logged_at } else { core.timestamp(slot) };
        let user_key = key.get(PREFIX_BYTES..).unwrap_or_default();
        cx.fault.at_partition(partition);
        if self.logged {
            self.changelog(cx, partition, user_key, value.map(V::view), logged_at)?;
        }
        let source = RecordContext {
            topic: stamp.topic,
            partition,
            offset: stamp.offset,
            timestamp: stamp.timestamp,
            headers: RawHeaders::parse(stamp.headers).unwrap_or(RawHeaders::EMPTY),
        };
        let entry = Entry { key: user_key, new: value.map(V::view), old: overlay.old(slot).map(V::view), timestamp };
        forward(&cx.at(TaskId { partition, ..cx.task }, source), &entry)
    }

    fn changelog(&self, cx: &Cx<'_>, partition: u32, key: &[u8], value: Option<V::View<'_>>, timestamp: i64) -> Flow {
        let Some(value) = value else { return cx.port.changelog(self.id, partition, key, None, timestamp) };
        let mut encoded = self.encoded.borrow_mut();
        encoded.clear();
        self.codec.encode(value, &mut encoded);
        encoded.check().map_err(|full| {
            let node = NodeId(u16::MAX);
            cx.fault.park(Fault::TooLarge, Parked::TooLarge { node, full })
        })?;
        cx.port.changelog(self.id, partition, key, Some(encoded.bytes()), timestamp)
    }

    /// Makes the store keep its limit, for an entry with a key of this length more (0: for what there is). Drops clean
    /// entries, then lets `forward` have dirty ones, then writes pending ones to the backend. What remains above the
    /// limit when nothing is left to evict is one record's.
    #[inline]
    pub(crate) fn keep_limit(&self, cx: &Cx<'_>, key_len: usize, forward: &dyn Fn(u32) -> Flow) -> Flow {
        loop {
            {
                let mut overlay = self.overlay.borrow_mut();
                let growth = if key_len == 0 { 0 } else { overlay.core().growth(key_len) };
                if !overlay.core().is_over(growth) {
                    return Ok(());
                }
                if overlay.evict_clean() {
                    continue;
                }
            }
            if let Some(slot) = self.pop_dirty() {
                forward(slot)?;
            } else if !self.spill().map_err(|error| self.park(cx.fault, error))? {
                return Ok(());
            }
        }
    }

    /// Writes pending entries of one partition to the backend before the commit; false when there are none.
    fn spill(&self) -> Result<bool, StoreError> {
        let Some(partition) = self.overlay.borrow().core().some_pending_partition() else { return Ok(false) };
        let mut batch = self.spill.borrow_mut();
        batch.clear();
        self.collect(partition, &mut batch)?;
        self.backend.write(&batch)?;
        self.written(partition);
        batch.clear();
        Ok(true)
    }
}

/// An entry on its way down.
pub(crate) struct Entry<'a, V: Codec> {
    /// Without the partition.
    pub(crate) key: &'a [u8],
    pub(crate) new: Option<V::View<'a>>,
    pub(crate) old: Option<V::View<'a>>,
    pub(crate) timestamp: i64,
}

impl<V: Codec> StateStore for KeyValue<V> {
    fn id(&self) -> StoreId {
        self.id
    }

    fn collect(&self, partition: u32, into: &mut StoreBatch) -> Result<Collected, StoreError> {
        let mut overlay = self.overlay.borrow_mut();
        let mut encoded = self.encoded.borrow_mut();
        let mut entries = 0;
        while let Some(slot) = overlay.core().oldest_pending(partition) {
            let key = overlay.core().key(slot);
            let put = match overlay.value(slot) {
                None => into.delete(self.id, key),
                Some(value) => {
                    encoded.clear();
                    self.codec.encode(V::view(value), &mut encoded);
                    let timestamp = overlay.core().timestamp(slot).to_be_bytes();
                    into.put_parts(self.id, [key, &[]], [&timestamp, encoded.bytes()])
                }
            };
            match put {
                Ok(()) => entries += 1,
                Err(_) if !into.is_empty() => return Ok(Collected { entries, more: true }),
                Err(full) => {
                    return Err(full.into());
                }
            }
            overlay.core_mut().set_state(slot, State::Collected);
        }
        Ok(Collected { entries, more: false })
    }

    fn written(&self, partition: u32) {
        self.overlay.borrow_mut().written(partition);
    }

    fn discard(&self, partition: u32) {
        self.overlay.borrow_mut().discard(partition);
    }

    fn weight(&self) -> usize {
        self.overlay.borrow().core().footprint()
    }

    fn shed(&self, bytes: usize) -> usize {
        let mut overlay = self.overlay.borrow_mut();
        let before = overlay.core().footprint();
        let mut freed = 0;
        while freed < bytes && overlay.evict_clean() {
            freed = before - overlay.core().footprint();
        }
        freed
    }

    fn needs_commit(&self) -> bool {
        self.overlay.borrow().core().is_over(0)
    }
}
