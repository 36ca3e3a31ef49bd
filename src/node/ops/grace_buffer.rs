//! Records of a stream that wait until a versioned table knows all of their time: the buffer of a join with grace.
//!
//! Owns the bytes of Kafka Streams' time-ordered buffer: a key is 0, the record's time (8 bytes), its key and a number
//! (4 bytes); a value is the record's context, two values that are never there (-1), the record's value with its
//! length, and 8 zero bytes. Knows no types. Bound: a record stays until the stream's time is the grace period past it.
use crate::base::id::NodeId;
use crate::codec::{Bytes, Scratch};
use crate::node::{Cx, Fault, Flow, KeyValue, Parked, RecordContext};
use crate::store::backend::Order;
use crate::wire::{Header, RawHeaders};
use std::cell::RefCell;
use std::rc::Rc;

/// The prefix of keys that begin with the time.
const TIME_FIRST: u8 = 0;
/// Bytes of a number behind a key.
const NUMBER_BYTES: usize = 4;
/// Kafka Streams gives the buffer's changelog records no timestamp.
const NO_TIMESTAMP: i64 = -1;
/// The length of a value that is not there.
const NONE: [u8; 4] = (-1i32).to_be_bytes();
/// Bytes of keys that one pass collects before it deletes them.
const GONE_BYTES: usize = 16 << 10;
/// Headers of a record that are read without an allocation.
const FEW: usize = 16;

/// The buffer.
pub(crate) struct GraceBuffer {
    store: Rc<KeyValue<Bytes>>,
    key: RefCell<Scratch>,
    value: RefCell<Scratch>,
    element: RefCell<Scratch>,
    headers: RefCell<Vec<u8>>,
    gone: RefCell<Vec<u8>>,
}

/// Gets a record whose time has come: its context, key and value.
pub(crate) type Emit<'e> = &'e mut dyn FnMut(&RecordContext<'_>, &[u8], &[u8]) -> Flow;

impl GraceBuffer {
    pub(crate) fn new(store: Rc<KeyValue<Bytes>>, record_bytes: usize) -> Self {
        let scratch = || RefCell::new(Scratch::with_limit(record_bytes));
        let (headers, gone) = (RefCell::default(), RefCell::default());
        Self { store, key: scratch(), value: scratch(), element: scratch(), headers, gone }
    }

    pub(crate) fn store(&self) -> &KeyValue<Bytes> {
        &self.store
    }

    /// Keeps a record of this time; `number` tells those of one key and time apart.
    pub(crate) fn put(
        &self,
        cx: &Cx<'_>,
        node: NodeId,
        time: i64,
        number: u32,
        key: impl FnOnce(&mut Scratch),
        value: impl FnOnce(&mut Scratch),
    ) -> Flow {
        let mut row = self.key.borrow_mut();
        row.clear();
        row.extend(&cx.task.partition.to_be_bytes());
        row.push(TIME_FIRST);
        row.extend(&time.to_be_bytes());
        key(&mut row);
        row.extend(&number.to_be_bytes());
        let (mut element, mut out) = (self.element.borrow_mut(), self.value.borrow_mut());
        element.clear();
        value(&mut element);
        out.clear();
        write_context(&cx.source, &mut out);
        out.extend(&NONE);
        out.extend(&NONE);
        sized(element.bytes(), &mut out);
        out.extend(&[0; 8]);
        for scratch in [&*row, &*element, &*out] {
            scratch.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node, full }))?;
        }
        self.store.put(cx, row.bytes(), Some(out.bytes()), NO_TIMESTAMP)
    }

    /// Hands out the records up to this time, in its order, and forgets them.
    pub(crate) fn emit_until(&self, cx: &Cx<'_>, time: i64, emit: Emit<'_>) -> Flow {
        if time < 0 {
            return Ok(());
        }
        let bound = |time: i64| {
            let mut bound = [0; 13];
            let (partition, rest) = bound.split_at_mut(4);
            partition.copy_from_slice(&cx.task.partition.to_be_bytes());
            if let Some(to) = rest.get_mut(1..) {
                to.copy_from_slice(&time.to_be_bytes());
            }
            bound
        };
        let (from, to) = (bound(0), bound(time.saturating_add(1)));
        let (mut gone, mut headers) = (self.gone.borrow_mut(), self.headers.borrow_mut());
        loop {
            gone.clear();
            let mut more = false;
            self.store.scan(cx, &from, &to, Order::Forward, &mut |key, value, _| {
                if gone.len() > GONE_BYTES {
                    more = true;
                    return Ok(false);
                }
                if let Some((context, new)) = read(value, &mut headers) {
                    let user = key.get(9..key.len().saturating_sub(NUMBER_BYTES)).unwrap_or_default();
                    emit(&context, user, new)?;
                }
                sized_into(key, &mut gone);
                Ok(true)
            })?;
            let mut rest = Cursor(&gone);
            let mut row = self.key.borrow_mut();
            while let Some(key) = rest.sized() {
                row.clear();
                row.extend(&cx.task.partition.to_be_bytes());
                row.extend(key);
                self.store.put(cx, row.bytes(), None, NO_TIMESTAMP)?;
            }
            if !more {
                return Ok(());
            }
        }
    }
}

fn sized(bytes: &[u8], out: &mut Scratch) {
    out.extend(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(bytes);
}

fn sized_into(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// As Java's `ProcessorRecordContext` writes itself.
fn write_context(context: &RecordContext<'_>, out: &mut Scratch) {
    out.extend(&context.timestamp.to_be_bytes());
    out.extend(&context.offset.to_be_bytes());
    sized(context.topic.as_bytes(), out);
    out.extend(&context.partition.to_be_bytes());
    let count = u32::try_from(context.headers.iter().count()).unwrap_or(u32::MAX);
    out.extend(&count.to_be_bytes());
    for header in context.headers.iter() {
        sized(header.key, out);
        match header.value {
            Some(value) => sized(value, out),
            None => out.extend(&NONE),
        }
    }
}

/// What is left to be read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn sized(&mut self) -> Option<&'a [u8]> {
        self.optional().flatten()
    }

    /// Bytes with their length in front; the inner `None` is the length -1.
    fn optional(&mut self) -> Option<Option<&'a [u8]>> {
        let length = i32::from_be_bytes(self.take()?);
        let Ok(length) = usize::try_from(length) else { return Some(None) };
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Some(bytes))
    }
}

/// The context and the value of a row; `headers` gets the headers as a record batch has them.
fn read<'a>(row: &'a [u8], headers: &'a mut Vec<u8>) -> Option<(RecordContext<'a>, &'a [u8])> {
    let mut row = Cursor(row);
    let (timestamp, offset) = (i64::from_be_bytes(row.take()?), i64::from_be_bytes(row.take()?));
    let topic = std::str::from_utf8(row.sized()?).ok()?;
    let (partition, count) = (u32::from_be_bytes(row.take()?), u32::from_be_bytes(row.take()?));
    let empty = Header { key: &[], value: None };
    let (mut few, mut many) = ([empty; FEW], Vec::new());
    let count = usize::try_from(count).ok()?;
    for at in 0..count {
        let header = Header { key: row.sized()?, value: row.optional()? };
        match few.get_mut(at) {
            Some(slot) if count <= FEW => *slot = header,
            _ => many.push(header),
        }
    }
    let read = if count <= FEW { few.get(..count)? } else { &many };
    headers.clear();
    let headers = if read.is_empty() { RawHeaders::EMPTY } else { RawHeaders::write(read, headers).ok()? };
    let _prior_and_old = (row.optional()?, row.optional()?);
    Some((RecordContext { topic, partition, offset, timestamp, headers }, row.sized()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_with_headers_is_javas_and_is_read_again() {
        let mut bytes = Vec::new();
        let headers = [Header { key: b"trace", value: Some(b"b") }, Header { key: b"n", value: None }];
        let headers = RawHeaders::write(&headers, &mut bytes).unwrap();
        let context = RecordContext { topic: "in", partition: 0, offset: 1, timestamp: 7, headers };
        let mut out = Scratch::with_limit(200);
        write_context(&context, &mut out);
        let expected = b"\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01\0\0\0\x02in\0\0\0\0\0\0\0\x02\0\0\0\x05trace\0\0\0\x01b\
            \0\0\0\x01n\xff\xff\xff\xff";
        assert_eq!(out.bytes(), expected);
        out.extend(b"\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x01y\0\0\0\0\0\0\0\0");
        let mut again = Vec::new();
        let (read, value) = read(out.bytes(), &mut again).unwrap();
        assert_eq!((read.topic, read.partition, read.offset, read.timestamp, value), ("in", 0, 1, 7, &b"y"[..]));
        assert_eq!(read.headers.as_bytes(), bytes);
    }
}
