//! Iterators over key-value stores.
use super::Opened;
use crate::codec::Codec;
use crate::node::processor::{Context, Processor, ProcessorError};
use crate::node::{Cx, Fault, Parked};
use crate::store::backend::Order;
use crate::store::offset::{PREFIX_BYTES, partition_end, partition_prefix};
use std::fmt;
use std::rc::Rc;

/// Rows that are read at once, at most.
const CHUNK_ROWS: usize = 64;
/// Bytes of rows after which no more are read at once.
const CHUNK_BYTES: usize = 16 << 10;
/// Key length, value length and timestamp in front of a row.
const HEAD: usize = 16;

/// Encoded rows that are still to be lent.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    at: usize,
}

impl Buffer {
    fn clear(&mut self) {
        self.bytes.clear();
        self.at = 0;
    }

    fn push(&mut self, key: &[u8], timestamp: i64, value: &[u8]) {
        for length in [key.len(), value.len()] {
            self.bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        }
        self.bytes.extend_from_slice(&timestamp.to_be_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    /// Key, value and timestamp of the next row.
    fn pop(&mut self) -> Option<(&[u8], &[u8], i64)> {
        let head = self.bytes.get(self.at..self.at + HEAD)?;
        let length = |from: usize| head.get(from..from + 4)?.first_chunk().map(|b| u32::from_be_bytes(*b) as usize);
        let (key, value) = (length(0)?, length(4)?);
        let timestamp = i64::from_be_bytes(*head.get(8..)?.first_chunk()?);
        let from = self.at + HEAD;
        self.at = from + key + value;
        Some((self.bytes.get(from..from + key)?, self.bytes.get(from + key..self.at)?, timestamp))
    }
}

/// Rows in a buffer, and the one that is lent.
pub(crate) struct Chunk<K: Codec, V: Codec> {
    rows: Buffer,
    key: Option<K::Owned>,
    value: Option<V::Owned>,
    /// The range that is left, with the partition.
    from: Vec<u8>,
    to: Vec<u8>,
}

impl<K: Codec, V: Codec> Default for Chunk<K, V> {
    fn default() -> Self {
        Self { rows: Buffer::default(), key: None, value: None, from: Vec::new(), to: Vec::new() }
    }
}

/// An iterator over rows of a store, as they were when it began. It borrows neither the store nor the context: while it
/// is open, records may be forwarded and the store changed. Dropping it closes it.
///
/// # Java
/// `KeyValueIterator`.
pub struct Rows<K: Codec, V: Codec> {
    opened: Rc<Opened<K, V>>,
    order: Order,
    begun: u64,
    chunk: Chunk<K, V>,
    /// Whether there is nothing behind the chunk.
    is_last: bool,
}

impl<K: Codec, V: Codec> fmt::Debug for Rows<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("order", &self.order).finish_non_exhaustive()
    }
}

impl<K: Codec, V: Codec> Rows<K, V> {
    /// Over `from` ≤ key < `to`, both with the partition.
    pub(super) fn new(opened: &Rc<Opened<K, V>>, from: &[u8], to: &[u8], order: Order) -> Self {
        let mut chunk = opened.spare.borrow_mut().pop().unwrap_or_default();
        chunk.rows.clear();
        for (bound, bytes) in [(&mut chunk.from, from), (&mut chunk.to, to)] {
            bound.clear();
            bound.extend_from_slice(bytes);
        }
        let begun = opened.watch.begin();
        Self { opened: Rc::clone(opened), order, begun, chunk, is_last: from >= to }
    }

    /// Over all rows of the task.
    pub(super) fn all(opened: &Rc<Opened<K, V>>, cx: &Cx<'_>, order: Order) -> Self {
        let partition = cx.task.partition;
        Self::new(opened, &partition_prefix(partition), &partition_end(partition), order)
    }

    /// The next row's key and value.
    ///
    /// # Errors
    /// The store failed, or has rows of other schemas.
    #[allow(clippy::type_complexity)]
    pub fn next<P: Processor>(
        &mut self,
        cx: &Context<'_, '_, P>,
    ) -> Result<Option<(K::View<'_>, V::View<'_>)>, ProcessorError> {
        Ok(self.next_with_timestamp(cx)?.map(|(key, value, _)| (key, value)))
    }

    /// As [`next`](Self::next), with the value's timestamp in milliseconds since the epoch; -1 in a store without
    /// timestamps.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[allow(clippy::type_complexity)]
    pub fn next_with_timestamp<P: Processor>(
        &mut self,
        cx: &Context<'_, '_, P>,
    ) -> Result<Option<(K::View<'_>, V::View<'_>, i64)>, ProcessorError> {
        self.advance(cx.cx()).map_err(ProcessorError::below)?.map_or(Ok(None), |timestamp| {
            let (key, value) = (self.chunk.key.as_ref(), self.chunk.value.as_ref());
            Ok(key.zip(value).map(|(key, value)| (K::view(key), V::view(value), timestamp)))
        })
    }

    fn advance(&mut self, cx: &Cx<'_>) -> Result<Option<i64>, Fault> {
        if self.chunk.rows.at >= self.chunk.rows.bytes.len() && !self.is_last {
            self.fill(cx)?;
        }
        let opened = &self.opened;
        let (mut key, mut value) = (self.chunk.key.take(), self.chunk.value.take());
        let Some((key_bytes, value_bytes, timestamp)) = self.chunk.rows.pop() else { return Ok(None) };
        let unreadable = |side| {
            move |error| {
                let store = opened.store.store_id();
                cx.fault.park(Fault::Store, Parked::Stored { store, side, error })
            }
        };
        let out = opened.key.decode(key_bytes).map_err(unreadable(crate::codec::Side::Key))?;
        keep::<K>(K::lend(&out), &mut key);
        let out = opened.value.decode(value_bytes).map_err(unreadable(crate::codec::Side::Value))?;
        keep::<V>(V::lend(&out), &mut value);
        drop(out);
        (self.chunk.key, self.chunk.value) = (key, value);
        Ok(Some(timestamp))
    }

    /// Reads the next rows: the store's, but for those that were changed since the iterator began.
    fn fill(&mut self, cx: &Cx<'_>) -> Result<(), Fault> {
        let (opened, begun, order) = (Rc::clone(&self.opened), self.begun, self.order);
        let chunk = &mut self.chunk;
        chunk.rows.clear();
        let (from, to) = (chunk.from.clone(), chunk.to.clone());
        let mut gone = opened.watch.changed(&from, &to, begun);
        // Popped from the end.
        if order == Order::Forward {
            gone.reverse();
        }
        let prefix = partition_prefix(cx.task.partition);
        let (mut rows, mut last) = (0, Vec::new());
        let mut add = |chunk: &mut Chunk<K, V>, key: &[u8], timestamp: i64, value: &[u8]| {
            chunk.rows.push(key.get(PREFIX_BYTES..).unwrap_or_default(), timestamp, value);
            rows += 1;
            last.clear();
            last.extend_from_slice(key);
            rows < CHUNK_ROWS && chunk.rows.bytes.len() < CHUNK_BYTES
        };
        let mut is_full = false;
        let mut full_key = Vec::new();
        let mut scratch = crate::codec::Scratch::with_limit(opened.record_bytes);
        opened.store.scan(cx, &from, &to, order, &mut |key, value, timestamp| {
            full_key.clear();
            full_key.extend_from_slice(&prefix);
            full_key.extend_from_slice(key);
            while let Some(before) = gone.pop_if(|gone| is_before(gone, &full_key, order)) {
                if let Some(Some((timestamp, value))) = opened.watch.image(&before, begun)
                    && !add(chunk, &before, timestamp, &value)
                {
                    is_full = true;
                    return Ok(false);
                }
            }
            let goes_on = match opened.watch.image(&full_key, begun) {
                Some(None) => true,
                Some(Some((timestamp, value))) => {
                    gone.pop_if(|gone| *gone == full_key);
                    add(chunk, &full_key, timestamp, &value)
                }
                None => {
                    scratch.clear();
                    opened.value.encode(value, &mut scratch);
                    add(chunk, &full_key, timestamp, scratch.bytes())
                }
            };
            is_full = !goes_on;
            Ok(goes_on)
        })?;
        while let Some(before) = gone.pop().filter(|_| !is_full) {
            if let Some(Some((timestamp, value))) = opened.watch.image(&before, begun) {
                is_full = !add(chunk, &before, timestamp, &value);
            }
        }
        self.is_last = !is_full;
        match order {
            Order::Forward => {
                last.push(0);
                chunk.from = last;
            }
            Order::Reverse => chunk.to = last,
        }
        Ok(())
    }
}

fn is_before(a: &[u8], b: &[u8], order: Order) -> bool {
    if order == Order::Forward { a < b } else { a > b }
}

/// Puts a view into a slot whose buffers are used again.
fn keep<C: Codec>(view: C::View<'_>, slot: &mut Option<C::Owned>) {
    match slot {
        Some(slot) => C::own_into(view, slot),
        None => *slot = Some(C::own(view)),
    }
}

impl<K: Codec, V: Codec> Drop for Rows<K, V> {
    fn drop(&mut self) {
        self.opened.watch.end();
        self.opened.spare.borrow_mut().push(std::mem::take(&mut self.chunk));
    }
}
