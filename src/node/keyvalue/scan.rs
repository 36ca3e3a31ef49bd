//! Rows of a range: the overlay's entries over the backend's rows, in the order of their keys.
use super::KeyValue;
use crate::codec::Codec;
use crate::node::cx::Cx;
use crate::node::fault::{Fault, Flow};
use crate::store::backend::Order;
use crate::store::overlay::Overlay;

/// Looks at a row (key with the partition, value, timestamp) and answers whether to go on.
pub(crate) type Visit<'v, V> =
    &'v mut dyn for<'a> FnMut(&'a [u8], <V as crate::codec::Schema>::View<'a>, i64) -> Result<bool, Fault>;

impl<V: Codec> KeyValue<V> {
    /// Visits the rows with `from` ≤ key < `to` (partition included) in this order, until the visitor answers false.
    /// The visitor may read this store, not change it.
    pub(crate) fn scan(&self, cx: &Cx<'_>, from: &[u8], to: &[u8], order: Order, visit: Visit<'_, V>) -> Flow {
        if from >= to {
            return Ok(());
        }
        let overlay = self.overlay.borrow();
        // Taken and put back: the visitor may come here again.
        let mut slots = self.found.take();
        overlay.core().in_range(from, to, &mut slots);
        if order == Order::Reverse {
            slots.reverse();
        }
        let mut merge = Merge { store: self, overlay: &overlay, slots: &slots, order, visit };
        let mut ended = Ok(true);
        let mut row = |key: &[u8], row: &[u8]| {
            ended = merge.row(cx, key, row);
            matches!(ended, Ok(true))
        };
        let read = self.backend.scan(self.id, from, to, order, &mut row);
        if let (Ok(()), Ok(true)) = (&read, ended) {
            ended = merge.rest();
        }
        *self.found.borrow_mut() = slots;
        read.map_err(|error| self.park(cx.fault, error))?;
        ended.map(drop)
    }
}

struct Merge<'m, 'v, V: Codec> {
    store: &'m KeyValue<V>,
    overlay: &'m Overlay<V::Owned>,
    /// The overlay's entries that have not been visited.
    slots: &'m [u32],
    order: Order,
    visit: Visit<'v, V>,
}

impl<V: Codec> Merge<'_, '_, V> {
    /// A row of the backend: visited behind the entries that come before it, unless there is an entry for its key.
    fn row(&mut self, cx: &Cx<'_>, key: &[u8], row: &[u8]) -> Result<bool, Fault> {
        while let Some((&slot, rest)) = self.slots.split_first() {
            let entry = self.overlay.core().key(slot);
            let is_before = if self.order == Order::Forward { entry < key } else { entry > key };
            if entry != key && !is_before {
                break;
            }
            self.slots = rest;
            let goes_on = self.entry(slot)?;
            if !goes_on || !is_before {
                return Ok(goes_on);
            }
        }
        let (timestamp, bytes) = self.store.split(row);
        match self.store.codec.decode(bytes) {
            Ok(out) => (self.visit)(key, V::lend(&out), timestamp),
            Err(error) => Err(self.store.unreadable(cx.fault, error)),
        }
    }

    fn rest(&mut self) -> Result<bool, Fault> {
        while let Some((&slot, rest)) = self.slots.split_first() {
            self.slots = rest;
            if !self.entry(slot)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An entry without a value hides its key.
    fn entry(&mut self, slot: u32) -> Result<bool, Fault> {
        let Some(value) = self.overlay.value(slot) else { return Ok(true) };
        (self.visit)(self.overlay.core().key(slot), V::view(value), self.store.timestamp(self.overlay, slot))
    }
}
