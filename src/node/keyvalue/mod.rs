//! A store, wired: overlay, codec and backend together. One class for all kinds; what a key means is its user's
//! business.
//!
//! Owns the overlay of one store on one thread, for all its partitions. Invariant: an entry goes dirty → forwarded and
//! changelogged (pending) → backend (clean); nothing else reaches the backend. Bound: the overlay's limit. A change
//! that finds the store full drops clean entries, then forwards its oldest dirty ones, then writes pending ones to the
//! backend before the commit, as Kafka Streams' record cache does. Called by the operators of `node::ops` and, through
//! [`StateStore`](super::StateStore), by the thread.
//!
//! Bytes: a key is the partition (4 bytes, big-endian) and the store's key as Kafka has it; a row of the backend lies
//! and looks as its [`StoreKind`] says; a changelog record carries the plain value, the timestamp is the record's.
mod change;
mod evict;
mod face;
mod scan;
mod select;
mod sweep;
#[cfg(test)]
mod tests;
mod time;
mod version;
mod versions;

use super::cx::Cx;
use super::fault::{Fault, FaultCell, Flow, Parked};
use super::per_task::PerTask;
use super::wiring::{MadeStore, MakeStore, Wiring, WiringError};
use crate::base::id::StoreId;
use crate::codec::{Codec, Scratch, Side};
use crate::node::topic::TopicName;
use crate::store::backend::Backend;
use crate::store::batch::StoreBatch;
use crate::store::error::StoreError;
use crate::store::kind::{Layout, Rows, SEGMENT_BYTES, StoreKind, TIMESTAMP_BYTES};
use crate::store::offset::PREFIX_BYTES;
use crate::store::overlay::Overlay;
use crate::store::overlay::core::State;
pub(crate) use change::Entry;
pub(crate) use scan::Visit;
pub(crate) use select::Keys;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use sweep::Sweep;
use time::Times;
pub(crate) use version::Version;
pub(crate) use versions::{Put, Versions, make_versioned};

/// The timestamp of a row that has none.
pub(crate) const NO_TIMESTAMP: i64 = -1;

/// A wired store.
pub(crate) struct KeyValue<V: Codec> {
    id: StoreId,
    codec: V,
    kind: StoreKind,
    cached: bool,
    logged: bool,
    overlay: RefCell<Overlay<V::Owned>>,
    backend: Arc<dyn Backend>,
    spill: Rc<RefCell<StoreBatch>>,
    /// What the backend read.
    read: RefCell<Vec<u8>>,
    /// A value on its way to the changelog or the backend.
    encoded: RefCell<Scratch>,
    /// The bounds of a scan, kept for the next.
    bounds: RefCell<[Vec<u8>; 2]>,
    /// A key as it lies in the backend, where that differs.
    row_key: RefCell<Vec<u8>>,
    /// The stream time of each partition, where rows expire.
    times: Option<PerTask<Times>>,
    /// Of versions that are no part of the history.
    sweeps: RefCell<Vec<Sweep>>,
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
    fn new(codec: V, kind: StoreKind, wiring: &mut Wiring<'_>, id: StoreId) -> Result<Self, WiringError> {
        let part = wiring.store_part(id)?;
        let settings = wiring.settings();
        let changelog = TopicName::Changelog(part.name.clone());
        let keeps_old = part.writer.is_some_and(|writer| wiring.sends_old(writer));
        Ok(Self {
            id,
            codec: wiring.with_place(&changelog, Side::Value, |place| codec.bind(place)),
            kind,
            // Versions are never cached, in Kafka Streams neither.
            cached: part.cached && kind.history().is_none(),
            logged: part.logged,
            overlay: RefCell::new(Overlay::new(settings.overlay_bytes_per_store, keeps_old, V::weight)),
            backend: Arc::clone(&settings.backend),
            spill: Rc::clone(&settings.spill),
            read: RefCell::default(),
            encoded: RefCell::new(Scratch::with_limit(settings.record_bytes)),
            bounds: RefCell::default(),
            row_key: RefCell::default(),
            times: (kind.retention().is_some() || kind.history().is_some()).then(|| PerTask::new(wiring)),
            sweeps: RefCell::default(),
        })
    }

    /// Whether forwards wait for the commit.
    pub(crate) fn is_cached(&self) -> bool {
        self.cached
    }

    pub(crate) fn store_id(&self) -> StoreId {
        self.id
    }

    /// What stands behind a key in the store that the key's codec does not write: a window's number, 0 where a key has
    /// one row a window.
    pub(crate) fn key_end(&self) -> &'static [u8] {
        if matches!(self.kind.rows, Rows::Window(_)) { &[0; 4] } else { &[] }
    }

    /// Lends `f` the key as it lies in the backend: with the segment's number behind the partition, if rows are in
    /// segments.
    #[inline]
    fn with_row<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> R {
        let Some(segment) = self.kind.segment_of(key) else { return f(key) };
        let (prefix, rest) = key.split_at_checked(PREFIX_BYTES).unwrap_or((key, &[]));
        let mut row = self.row_key.take();
        row.clear();
        row.extend_from_slice(prefix);
        row.extend_from_slice(&segment);
        row.extend_from_slice(rest);
        let result = f(&row);
        *self.row_key.borrow_mut() = row;
        result
    }

    /// Bytes in front of the store's key.
    fn lead(&self) -> usize {
        if self.kind.retention().is_some() { PREFIX_BYTES + SEGMENT_BYTES } else { PREFIX_BYTES }
    }

    /// The slot of a key in the overlay.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        self.with_row(key, |row| self.find_row(row))
    }

    #[inline]
    fn find_row(&self, row: &[u8]) -> Option<u32> {
        let mut overlay = self.overlay.borrow_mut();
        let slot = overlay.core().find(row)?;
        overlay.core_mut().touch(slot);
        Some(slot)
    }

    /// The slot of a key, read from the backend if it is not in the overlay. It has no value if the key has none.
    /// `forward` gets dirty entries that have to leave to make room.
    #[inline]
    pub(crate) fn slot(&self, cx: &Cx<'_>, key: &[u8], forward: &dyn Fn(u32) -> Flow) -> Result<u32, Fault> {
        let is_expired = self.is_expired(cx.fault, key)?;
        if let Some(slot) = self.find(key) {
            if is_expired && !self.cached {
                self.hide(slot);
            }
            return Ok(slot);
        }
        self.keep_limit(cx, key.len() + SEGMENT_BYTES, forward)?;
        if is_expired {
            return Ok(self.insert(key));
        }
        self.load(cx, key)
    }

    /// An entry for a key that has none, without a value.
    fn insert(&self, key: &[u8]) -> u32 {
        self.with_row(key, |row| self.overlay.borrow_mut().insert(row))
    }

    /// The row is older than the retention: to its reader it is not there.
    #[cold]
    fn hide(&self, slot: u32) {
        let mut overlay = self.overlay.borrow_mut();
        overlay.update(slot, |value| *value = None);
        overlay.core_mut().set_state(slot, State::Fresh);
    }

    /// Has the memory of a key's entry fetched, if it has one.
    #[inline]
    pub(crate) fn warm(&self, key: &[u8]) {
        self.with_row(key, |row| self.overlay.borrow().warm(row));
    }

    /// Reads a key that is not in the overlay from the backend and makes its slot, without a value if it has none.
    pub(crate) fn load(&self, cx: &Cx<'_>, key: &[u8]) -> Result<u32, Fault> {
        self.with_row(key, |row| self.load_row(cx, row))
    }

    fn load_row(&self, cx: &Cx<'_>, key: &[u8]) -> Result<u32, Fault> {
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
        match self.kind.layout {
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
        let is_expired = self.is_expired(cx.fault, key)?;
        self.with_row(key, |row| self.get_row(cx.fault, row, is_expired, f))
    }

    /// As [`get`](Self::get), of a row that may have expired and is not deleted yet.
    pub(crate) fn get_kept<R>(
        &self,
        cx: &Cx<'_>,
        key: &[u8],
        f: impl FnOnce(Option<(V::View<'_>, i64)>) -> R,
    ) -> Result<R, Fault> {
        self.with_row(key, |row| self.get_row(cx.fault, row, false, f))
    }

    fn get_row<R>(
        &self,
        fault: &FaultCell,
        key: &[u8],
        is_expired: bool,
        f: impl FnOnce(Option<(V::View<'_>, i64)>) -> R,
    ) -> Result<R, Fault> {
        // In a scan or below a forward the overlay is being read: then the entry stays where it is in the order of use.
        if let Ok(mut overlay) = self.overlay.try_borrow_mut()
            && let Some(slot) = overlay.core().find(key)
        {
            overlay.core_mut().touch(slot);
        }
        let overlay = self.overlay.borrow();
        if let Some(slot) = overlay.core().find(key).filter(|_| self.cached || !is_expired) {
            return Ok(f(overlay.value(slot).map(|value| (V::view(value), self.timestamp(&overlay, slot)))));
        }
        if is_expired {
            return Ok(f(None));
        }
        // Taken and put back: `f` may come here again.
        let mut read = self.read.take();
        let found = self.backend.get(self.id, key, &mut read).map_err(|error| self.park(fault, error))?;
        if !found {
            *self.read.borrow_mut() = read;
            return Ok(f(None));
        }
        let (timestamp, bytes) = self.split(&read);
        let result = match self.codec.decode(bytes) {
            Ok(out) => Ok(f(Some((V::lend(&out), timestamp)))),
            Err(error) => Err(self.unreadable(fault, error)),
        };
        *self.read.borrow_mut() = read;
        result
    }

    /// The timestamp of an entry as a reader sees it.
    fn timestamp(&self, overlay: &Overlay<V::Owned>, slot: u32) -> i64 {
        match self.kind.layout {
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
