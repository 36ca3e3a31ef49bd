//! A store, wired: overlay, codec and backend together. One class for all kinds; what a key means is its user's
//! business.
//!
//! Owns the overlay of one store on one thread, for all its partitions. Invariant: an entry goes dirty → forwarded and
//! changelogged (pending) → backend (clean); nothing else reaches the backend. Bound: the overlay's limit. A change
//! that finds the store full drops clean entries, then forwards its oldest dirty ones, then writes pending ones to the
//! backend before the commit, as Kafka Streams' record cache does. Called by the operators of `node::ops` and, through
//! [`StateStore`], by the thread.
//!
//! Bytes: a key is the partition (4 bytes, big-endian) and the store's key as Kafka has it; a row of the backend is as
//! its [`Layout`] says; a changelog record carries the plain value, the timestamp is the record's.
mod change;
mod evict;
mod face;
mod scan;

use super::cx::Cx;
use super::fault::{Fault, FaultCell, Flow, Parked};
use super::wiring::{MadeStore, MakeStore, Wiring, WiringError};
use crate::base::id::StoreId;
use crate::codec::{Codec, Scratch, Side};
use crate::node::topic::TopicName;
use crate::store::backend::Backend;
use crate::store::batch::StoreBatch;
use crate::store::error::StoreError;
use crate::store::kind::{Layout, StoreKind, TIMESTAMP_BYTES};
use crate::store::overlay::Overlay;
use crate::store::overlay::core::State;
pub(crate) use change::Entry;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The timestamp of a row that has none.
pub(crate) const NO_TIMESTAMP: i64 = -1;

/// A wired store.
pub(crate) struct KeyValue<V: Codec> {
    id: StoreId,
    codec: V,
    layout: Layout,
    cached: bool,
    logged: bool,
    overlay: RefCell<Overlay<V::Owned>>,
    backend: Arc<dyn Backend>,
    spill: Rc<RefCell<StoreBatch>>,
    /// What the backend read.
    read: RefCell<Vec<u8>>,
    /// A value on its way to the changelog or the backend.
    encoded: RefCell<Scratch>,
    /// Slots of a scan, kept for the next.
    found: RefCell<Vec<u32>>,
}

/// Builds key-value stores with timestamps.
pub(crate) fn make_key_value<V: Codec>(codec: V) -> MakeStore {
    make_store(codec, Layout::Timestamped)
}

/// Builds stores of a kind.
pub(crate) fn make_store<V: Codec>(codec: V, kind: impl Into<StoreKind>) -> MakeStore {
    let kind = kind.into();
    MakeStore {
        kind,
        make: Box::new(move |wiring, id| {
            let store = Rc::new(KeyValue::new(codec.clone(), kind, wiring, id)?);
            Ok(MadeStore { typed: Box::new(Rc::clone(&store)), drain: Rc::clone(&store) as _, face: store })
        }),
    }
}

impl<V: Codec> KeyValue<V> {
    fn new(codec: V, kind: StoreKind, wiring: &Wiring<'_>, id: StoreId) -> Result<Self, WiringError> {
        let part = wiring.store_part(id)?;
        let settings = wiring.settings();
        let changelog = TopicName::Changelog(part.name.clone());
        let keeps_old = part.writer.is_some_and(|writer| wiring.sends_old(writer));
        Ok(Self {
            id,
            codec: wiring.with_place(&changelog, Side::Value, |place| codec.bind(place)),
            layout: kind.layout,
            cached: part.cached,
            logged: part.logged,
            overlay: RefCell::new(Overlay::new(settings.overlay_bytes_per_store, keeps_old, V::weight)),
            backend: Arc::clone(&settings.backend),
            spill: Rc::clone(&settings.spill),
            read: RefCell::default(),
            encoded: RefCell::new(Scratch::with_limit(settings.record_bytes)),
            found: RefCell::default(),
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

    /// The slot of a key, read from the backend if it is not in the overlay. It has no value if the key has none.
    /// `forward` gets dirty entries that have to leave to make room.
    #[inline]
    pub(crate) fn slot(&self, cx: &Cx<'_>, key: &[u8], forward: &dyn Fn(u32) -> Flow) -> Result<u32, Fault> {
        if let Some(slot) = self.find(key) {
            return Ok(slot);
        }
        self.keep_limit(cx, key.len(), forward)?;
        self.load(cx, key)
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

    /// Timestamp and value of a row.
    fn split<'r>(&self, row: &'r [u8]) -> (i64, &'r [u8]) {
        match self.layout {
            Layout::Plain => (NO_TIMESTAMP, row),
            Layout::Timestamped => {
                let (timestamp, value) = row.split_first_chunk().unwrap_or((&[0; TIMESTAMP_BYTES], &[]));
                (i64::from_be_bytes(*timestamp), value)
            }
        }
    }

    fn decode_into(&self, overlay: &mut Overlay<V::Owned>, slot: u32, row: &[u8], fault: &FaultCell) -> Flow {
        let (timestamp, bytes) = self.split(row);
        match self.codec.decode(bytes) {
            Ok(out) => {
                overlay.update(slot, |value| *value = Some(V::own(V::lend(&out))));
                overlay.core_mut().set_timestamp(slot, timestamp);
                overlay.core_mut().set_state(slot, State::Clean);
                Ok(())
            }
            Err(error) => {
                overlay.release(slot);
                Err(fault.park(Fault::Store, Parked::Stored { store: self.id, side: Side::Value, error }))
            }
        }
    }

    /// Lends `f` the value of a key and its timestamp ([`NO_TIMESTAMP`] where the layout has none). Makes no entry; `f`
    /// may read this store, not change it.
    pub(crate) fn get<R>(
        &self,
        cx: &Cx<'_>,
        key: &[u8],
        f: impl FnOnce(Option<(V::View<'_>, i64)>) -> R,
    ) -> Result<R, Fault> {
        // In a scan or below a forward the overlay is being read: then the entry stays where it is in the order of use.
        if let Ok(mut overlay) = self.overlay.try_borrow_mut() {
            if let Some(slot) = overlay.core().find(key) {
                overlay.core_mut().touch(slot);
            }
        }
        let overlay = self.overlay.borrow();
        if let Some(slot) = overlay.core().find(key) {
            return Ok(f(overlay.value(slot).map(|value| (V::view(value), self.timestamp(&overlay, slot)))));
        }
        // Taken and put back: `f` may come here again.
        let mut read = self.read.take();
        let found = self.backend.get(self.id, key, &mut read).map_err(|error| self.park(cx.fault, error))?;
        if !found {
            *self.read.borrow_mut() = read;
            return Ok(f(None));
        }
        let (timestamp, bytes) = self.split(&read);
        let result = match self.codec.decode(bytes) {
            Ok(out) => Ok(f(Some((V::lend(&out), timestamp)))),
            Err(error) => Err(self.unreadable(cx.fault, error)),
        };
        *self.read.borrow_mut() = read;
        result
    }

    /// The timestamp of an entry as a reader sees it.
    fn timestamp(&self, overlay: &Overlay<V::Owned>, slot: u32) -> i64 {
        match self.layout {
            Layout::Plain => NO_TIMESTAMP,
            Layout::Timestamped => overlay.core().timestamp(slot),
        }
    }

    fn park(&self, cell: &FaultCell, error: StoreError) -> Fault {
        cell.park(Fault::Store, Parked::Store { store: self.id, error })
    }

    fn unreadable(&self, cell: &FaultCell, error: crate::codec::DecodeError) -> Fault {
        cell.park(Fault::Store, Parked::Stored { store: self.id, side: Side::Value, error })
    }
}
