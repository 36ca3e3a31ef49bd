//! Records of a left or outer stream-stream join that have found no partner yet, by time, side and key.
//!
//! Owns the bytes of Kafka Streams' shared join store: a key is the time (8 bytes), the side (1: left) and the record's
//! key; a value is a list (1, the count, then length and bytes of each), its elements the side and the value. Knows no
//! types. Bound: rows stay until their window closes. Called by both sides of the join.
use crate::base::id::NodeId;
use crate::codec::{Bytes, Scratch};
use crate::node::{Cx, Fault, Flow, KeyValue, Parked};
use crate::store::backend::Order;
use crate::store::offset::{partition_end, partition_prefix};
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of keys that one pass of a sweep collects before it deletes them.
const GONE_BYTES: usize = 16 << 10;
/// Bytes in front of a list's elements: its form, and how many there are.
const LIST_HEAD: usize = 5;
/// The form of a list whose elements have different lengths.
const VARIABLE_SIZE: u8 = 1;
/// Bytes in front of a record's key: its time and side.
const KEY_HEAD: usize = 9;

/// The store, on one side of the join.
pub(crate) struct Unjoined {
    store: Rc<KeyValue<Bytes>>,
    key: RefCell<Scratch>,
    element: RefCell<Scratch>,
    list: RefCell<Scratch>,
    /// Keys to delete behind a pass.
    gone: RefCell<Vec<u8>>,
}

/// Looks at a row (time, whether it is of the left side, key, list). Answers whether it is done with; `None` ends the
/// sweep.
pub(crate) type Look<'v> = &'v mut dyn FnMut(i64, bool, &[u8], &[u8]) -> Result<Option<bool>, Fault>;

impl Unjoined {
    /// A list, as any record, has so many bytes at most.
    pub(crate) fn new(store: Rc<KeyValue<Bytes>>, record_bytes: usize) -> Self {
        let scratch = || RefCell::new(Scratch::with_limit(record_bytes));
        Self { store, key: scratch(), element: scratch(), list: scratch(), gone: RefCell::default() }
    }

    fn key_into(out: &mut Scratch, partition: u32, time: i64, is_left: bool, key: &[u8]) {
        out.clear();
        out.extend(&partition.to_be_bytes());
        out.extend(&time.to_be_bytes());
        out.push(u8::from(is_left));
        out.extend(key);
    }

    /// Forgets all records of this time, side and key: a partner came.
    pub(crate) fn take_out(&self, cx: &Cx<'_>, time: i64, is_left: bool, key: &[u8], now: i64) -> Flow {
        let mut row = self.key.borrow_mut();
        Self::key_into(&mut row, cx.task.partition, time, is_left, key);
        if self.store.get(cx, row.bytes(), |found| found.is_some())? {
            self.store.put(cx, row.bytes(), None, now)?;
        }
        Ok(())
    }

    /// Keeps a record, behind others of the same time and key.
    pub(crate) fn keep(
        &self,
        cx: &Cx<'_>,
        node: NodeId,
        time: i64,
        is_left: bool,
        key: &[u8],
        value: impl FnOnce(&mut Scratch),
    ) -> Flow {
        let mut row = self.key.borrow_mut();
        Self::key_into(&mut row, cx.task.partition, time, is_left, key);
        let (mut element, mut list) = (self.element.borrow_mut(), self.list.borrow_mut());
        element.clear();
        element.push(u8::from(is_left));
        value(&mut element);
        list.clear();
        self.store.get(cx, row.bytes(), |found| {
            let old = found.map(|(old, _)| old).filter(|old| old.len() >= LIST_HEAD);
            let count = old.and_then(|old| old.get(1..LIST_HEAD)?.first_chunk()).map_or(0, |n| u32::from_be_bytes(*n));
            list.push(VARIABLE_SIZE);
            list.extend(&count.saturating_add(1).to_be_bytes());
            list.extend(old.and_then(|old| old.get(LIST_HEAD..)).unwrap_or_default());
        })?;
        list.extend(&u32::try_from(element.len()).unwrap_or(u32::MAX).to_be_bytes());
        list.extend(element.bytes());
        for scratch in [&*row, &*element, &*list] {
            scratch.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node, full }))?;
        }
        self.store.put(cx, row.bytes(), Some(list.bytes()), time)
    }

    /// Looks through all rows by time, the left side's behind the right side's of the same time, and deletes those that
    /// are done with.
    pub(crate) fn sweep(&self, cx: &Cx<'_>, now: i64, look: Look<'_>) -> Flow {
        let (mut row, end) = (self.key.borrow_mut(), partition_end(cx.task.partition));
        row.clear();
        row.extend(&partition_prefix(cx.task.partition));
        let mut gone = self.gone.borrow_mut();
        loop {
            gone.clear();
            let mut more = false;
            let mut visit = |key: &[u8], list: &[u8], _: i64| {
                if gone.len() > GONE_BYTES {
                    more = true;
                    return Ok(false);
                }
                let (head, user) = key.split_at_checked(KEY_HEAD).unwrap_or((&[], &[]));
                let time = head.first_chunk().map_or(0, |time| i64::from_be_bytes(*time));
                let Some(done) = look(time, head.last() == Some(&1), user, list)? else { return Ok(false) };
                if done {
                    gone.extend_from_slice(&u32::try_from(key.len()).unwrap_or(u32::MAX).to_be_bytes());
                    gone.extend_from_slice(key);
                }
                Ok(true)
            };
            self.store.scan(cx, row.bytes(), &end, Order::Forward, &mut visit)?;
            let mut rest = gone.as_slice();
            while let Some((key, behind)) = prefixed(rest) {
                row.clear();
                row.extend(&cx.task.partition.to_be_bytes());
                row.extend(key);
                self.store.put(cx, row.bytes(), None, now)?;
                rest = behind;
            }
            if !more {
                return Ok(());
            }
        }
    }
}

/// Bytes with their length in front, and what follows.
fn prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

/// The values of a list, without their side.
pub(crate) fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list.get(LIST_HEAD..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (element, behind) = prefixed(rest)?;
        rest = behind;
        element.get(1..)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_javas() {
        let list = b"\x01\0\0\0\x02\0\0\0\x02\x01a\0\0\0\x03\x01bc";
        assert_eq!(elements(list).collect::<Vec<_>>(), [&b"a"[..], b"bc"]);
        assert_eq!(elements(b"\x01\0\0\0\0").count(), 0);
    }
}
