//! Rows of a range: the overlay's entries over the backend's rows, in the order in which they lie.
use super::KeyValue;
use super::select::Keys;
use crate::codec::{Codec, Schema};
use crate::node::cx::Cx;
use crate::node::fault::{Fault, FaultCell, Flow};
use crate::store::backend::Order;
use crate::store::offset::{PREFIX_BYTES, partition_end, partition_prefix};
use crate::store::overlay::Overlay;
use crate::store::overlay::range::Range;

/// Looks at a row (the store's key without the partition, value, timestamp) and answers whether to go on.
pub(crate) type Visit<'v, V> = &'v mut dyn for<'a> FnMut(&'a [u8], <V as Schema>::View<'a>, i64) -> Result<bool, Fault>;

/// Where to look.
pub(super) struct Span<'s> {
    /// Of the overlay: keys as they lie, the end excluded.
    pub(super) entries: [&'s [u8]; 2],
    /// Of the backend: gives the next range, in order; false when there is none.
    pub(super) ranges: &'s mut dyn FnMut(&mut [Vec<u8>; 2]) -> bool,
    /// Whether a row is wanted, by its store's key; `true` for one of the overlay.
    pub(super) accepts: &'s dyn Fn(&[u8], bool) -> bool,
}

impl<V: Codec> KeyValue<V> {
    /// Visits the rows with `from` ≤ key < `to` (both with the partition) in this order, until the visitor answers
    /// false. The visitor may read this store, not change it.
    pub(crate) fn scan(&self, cx: &Cx<'_>, from: &[u8], to: &[u8], order: Order, visit: Visit<'_, V>) -> Flow {
        if from >= to {
            return Ok(());
        }
        if self.kind.retention().is_none() {
            let mut ranges = once(from, to);
            let span = Span { entries: [from, to], ranges: &mut ranges, accepts: &|_, _| true };
            return self.visit(cx.fault, span, order, visit);
        }
        // Rows lie in segments: all of the partition is looked through.
        let partition = from.first_chunk::<PREFIX_BYTES>().map_or(0, |prefix| u32::from_be_bytes(*prefix));
        let (begin, end) = (partition_prefix(partition), partition_end(partition));
        let oldest = self.oldest(cx.fault, partition)?;
        let rest = |key: &[u8]| key.get(PREFIX_BYTES..).map(<[u8]>::to_vec).unwrap_or_default();
        let (low, high) = (rest(from), rest(to));
        let has_high = to.starts_with(&begin);
        let accepts = |key: &[u8], is_entry: bool| {
            let is_seen = is_entry && self.cached || self.kind.time_of(key) >= oldest;
            is_seen && key >= low.as_slice() && (!has_high || key < high.as_slice())
        };
        let mut ranges = once(&begin, &end);
        self.visit(cx.fault, Span { entries: [&begin, &end], ranges: &mut ranges, accepts: &accepts }, order, visit)
    }

    /// Visits all rows of a partition.
    pub(crate) fn all(&self, fault: &FaultCell, partition: u32, order: Order, visit: Visit<'_, V>) -> Flow {
        if self.kind.retention().is_some() {
            return self.fetch(fault, partition, Keys::ALL, [0, i64::MAX], order, visit);
        }
        let (from, to) = (partition_prefix(partition), partition_end(partition));
        let mut ranges = once(&from, &to);
        let span = Span { entries: [&from, &to], ranges: &mut ranges, accepts: &|_, _| true };
        self.visit(fault, span, order, visit)
    }

    pub(super) fn visit(&self, fault: &FaultCell, span: Span<'_>, order: Order, visit: Visit<'_, V>) -> Flow {
        // Where somebody above is looking at the entries, the index has to wait for the next time.
        if let Ok(mut overlay) = self.overlay.try_borrow_mut() {
            overlay.core_mut().put_in_order();
        }
        let overlay = self.overlay.borrow();
        // Taken and put back: the visitor may come here again.
        let mut bounds = self.bounds.take();
        let entries = overlay.core().range(span.entries[0], span.entries[1], order);
        let accepts = span.accepts;
        let mut merge = Merge { store: self, overlay: &overlay, entries, order, accepts, visit };
        let mut ended = Ok(true);
        let mut read = Ok(());
        while read.is_ok() && ended == Ok(true) && (span.ranges)(&mut bounds) {
            let mut row = |key: &[u8], row: &[u8]| {
                ended = merge.row(fault, key, row);
                ended == Ok(true)
            };
            read = self.backend.scan(self.id, &bounds[0], &bounds[1], order, &mut row);
        }
        if read.is_ok() && ended == Ok(true) {
            ended = merge.rest();
        }
        *self.bounds.borrow_mut() = bounds;
        read.map_err(|error| self.park(fault, error))?;
        ended.map(drop)
    }
}

/// One range.
pub(super) fn once<'r>(from: &'r [u8], to: &'r [u8]) -> impl FnMut(&mut [Vec<u8>; 2]) -> bool + 'r {
    let mut is_given = false;
    move |bounds| {
        for (bound, bytes) in bounds.iter_mut().zip([from, to]) {
            bound.clear();
            bound.extend_from_slice(bytes);
        }
        !std::mem::replace(&mut is_given, true)
    }
}

struct Merge<'m, 'v, V: Codec> {
    store: &'m KeyValue<V>,
    overlay: &'m Overlay<V::Owned>,
    /// The overlay's entries that have not been visited.
    entries: Range<'m>,
    order: Order,
    accepts: &'m dyn Fn(&[u8], bool) -> bool,
    visit: Visit<'v, V>,
}

impl<V: Codec> Merge<'_, '_, V> {
    /// A row of the backend: visited behind the entries that come before it, unless there is an entry for its key.
    fn row(&mut self, fault: &FaultCell, key: &[u8], row: &[u8]) -> Result<bool, Fault> {
        let user = key.get(self.store.lead()..).unwrap_or_default();
        if !(self.accepts)(user, false) {
            return Ok(true);
        }
        while let Some(slot) = self.entries.slot() {
            let entry = self.overlay.core().key(slot);
            let is_before = if self.order == Order::Forward { entry < key } else { entry > key };
            if entry != key && !is_before {
                break;
            }
            self.entries.step();
            let goes_on = self.entry(slot)?;
            if !goes_on || !is_before {
                return Ok(goes_on);
            }
        }
        let (timestamp, bytes) = self.store.split(row);
        match self.store.codec.decode(bytes) {
            Ok(out) => (self.visit)(user, V::lend(&out), timestamp),
            Err(error) => Err(self.store.unreadable(fault, error)),
        }
    }

    fn rest(&mut self) -> Result<bool, Fault> {
        while let Some(slot) = self.entries.slot() {
            self.entries.step();
            if !self.entry(slot)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An entry without a value hides its key.
    fn entry(&mut self, slot: u32) -> Result<bool, Fault> {
        let Some(value) = self.overlay.value(slot) else { return Ok(true) };
        let key = self.overlay.core().key(slot).get(self.store.lead()..).unwrap_or_default();
        if !(self.accepts)(key, true) {
            return Ok(true);
        }
        (self.visit)(key, V::view(value), self.store.timestamp(self.overlay, slot))
    }
}
