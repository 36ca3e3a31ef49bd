//! The buffer of `suppress`: a table's latest updates in the order of their buffer times.
//!
//! Owns the updates of all its partitions on one thread, in memory, and what of them is not in the changelog or the
//! backend. Invariant: the backend holds the buffer of the last commit, from which a partition is read when it is first
//! used and after an abort. Bound: what the user configured, and [`BUFFER_BYTES`] a partition. Called by `suppress`.
//!
//! Bytes: a row's key is the table's, its value that of the changelog record, see `suppress_value`.
use super::suppress_value::{self, Suppressed, Update, VERSION, bucket};
use crate::base::id::StoreId;
use crate::codec::{Scratch, Side};
use crate::node::state::{Collected, StateStore};
use crate::node::wiring::{MadeStore, MakeStore};
use crate::node::{Cx, Drain, Fault, FaultCell, Flow, LogBytes, NO_TIMESTAMP, Parked, RecordContext};
use crate::store::backend::{Backend, Order};
use crate::store::batch::StoreBatch;
use crate::store::error::StoreError;
use crate::store::kind::{Layout, StoreKind};
use crate::store::offset::{PREFIX_BYTES, partition_end, partition_prefix};
use crate::wire::RawHeaders;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Bytes, as Kafka Streams counts them, that the buffer of one partition may hold if the user set no bound.
pub(crate) const BUFFER_BYTES: u64 = 64 << 20;
/// Buckets of a new `HashSet` in Java.
const BUCKETS: u32 = 16;

type Key = Rc<[u8]>;

struct Held {
    /// As in the changelog.
    value: Vec<u8>,
    size: u64,
}

/// The buffer of one partition.
#[derive(Default)]
struct Part {
    times: HashMap<Key, i64>,
    sorted: BTreeMap<(i64, Key), Held>,
    bytes: u64,
    /// Keys that the changelog does not have as they are, in the order of their first change.
    dirty: Vec<Key>,
    buckets: u32,
    /// Keys that the backend does not have as they are.
    pending: BTreeSet<Key>,
    collected: BTreeSet<Key>,
}

impl Part {
    fn mark(&mut self, key: &Key) {
        if !self.dirty.contains(key) {
            self.dirty.push(Rc::clone(key));
            self.buckets = self.buckets.max(BUCKETS);
            while self.dirty.len() as u32 * 4 > self.buckets * 3 {
                self.buckets *= 2;
            }
        }
    }

    fn remove(&mut self, key: &Key, time: i64) -> Option<Held> {
        self.times.remove(key);
        let held = self.sorted.remove(&(time, Rc::clone(key)))?;
        self.bytes -= held.size;
        Some(held)
    }

    fn insert(&mut self, key: Key, time: i64, held: Held) {
        // A key keeps its place as long as it is in the buffer.
        let time = *self.times.entry(Rc::clone(&key)).or_insert(time);
        self.bytes += held.size;
        if let Some(before) = self.sorted.insert((time, key), held) {
            self.bytes -= before.size;
        }
    }

    fn find(&self, key: &[u8]) -> Option<&Held> {
        let (key, time) = self.times.get_key_value(key)?;
        self.sorted.get(&(*time, Rc::clone(key)))
    }
}

/// The wired buffer.
pub(crate) struct SuppressBuffer {
    id: StoreId,
    logged: bool,
    backend: Arc<dyn Backend>,
    parts: RefCell<BTreeMap<u32, Part>>,
    scratch: RefCell<Vec<u8>>,
}

/// Builds such buffers.
pub(crate) fn make_suppress_buffer() -> MakeStore {
    MakeStore {
        kind: StoreKind::from(Layout::Plain),
        make: Box::new(|wiring, id| {
            let logged = wiring.store_part(id)?.logged;
            let backend = Arc::clone(&wiring.settings().backend);
            let buffer =
                Rc::new(SuppressBuffer { id, logged, backend, parts: RefCell::default(), scratch: RefCell::default() });
            Ok(MadeStore { typed: Box::new(Rc::clone(&buffer)), drain: Rc::clone(&buffer) as _, face: buffer })
        }),
    }
}

/// How full a partition's buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// Lowest buffer time; `None` if it is empty.
    pub(crate) first: Option<i64>,
}

impl SuppressBuffer {
    fn unreadable(&self, fault: &FaultCell) -> Fault {
        let error = crate::codec::DecodeError::Invalid("not a suppressed update of version 3");
        fault.park(Fault::Store, Parked::Stored { store: self.id, side: Side::Value, error })
    }

    /// Reads the partition from the backend if it is not here.
    fn load(&self, fault: &FaultCell, partition: u32) -> Flow {
        if self.parts.borrow().contains_key(&partition) {
            return Ok(());
        }
        let mut part = Part::default();
        let mut read = Ok(());
        let (from, to) = (partition_prefix(partition), partition_end(partition));
        let scanned = self.backend.scan(self.id, &from, &to, Order::Forward, &mut |key, value| {
            let key: Key = key.get(PREFIX_BYTES..).unwrap_or_default().into();
            match suppress_value::read(value) {
                Some(update) => {
                    let size = 8 + key.len() as u64 + update.size();
                    part.insert(key, update.time, Held { value: value.to_vec(), size });
                }
                None => read = Err(self.unreadable(fault)),
            }
            read.is_ok()
        });
        scanned.map_err(|error| fault.park(Fault::Store, Parked::Store { store: self.id, error }))?;
        read?;
        self.parts.borrow_mut().insert(partition, part);
        Ok(())
    }

    fn with<R>(&self, cx: &Cx<'_>, f: impl FnOnce(&mut Part) -> R) -> Result<R, Fault> {
        self.load(cx.fault, cx.task.partition)?;
        Ok(f(self.parts.borrow_mut().entry(cx.task.partition).or_default()))
    }

    /// Keeps an update in place of the one that is there; the value before the buffer stays.
    pub(crate) fn put(
        &self,
        cx: &Cx<'_>,
        key: &[u8],
        [old, new]: [Option<&[u8]>; 2],
        time: i64,
        timestamp: i64,
    ) -> Flow {
        self.with(cx, |part| {
            let mut value = self.scratch.take();
            let size = {
                let before = part.find(key).and_then(|held| suppress_value::read(&held.value));
                let (prior, kept) = before.map_or((old, time), |before| (before.prior, before.time));
                suppress_value::write(&cx.source, timestamp, &Update { prior, old, new, time: kept }, &mut value)
            };
            let key: Key = part.times.get_key_value(key).map_or_else(|| key.into(), |(key, _)| Rc::clone(key));
            part.mark(&key);
            let held = Held { value: value.clone(), size: 8 + key.len() as u64 + size };
            part.insert(key, time, held);
            *self.scratch.borrow_mut() = value;
        })
    }

    /// How full the buffer of the context's task is.
    pub(crate) fn fill(&self, cx: &Cx<'_>) -> Result<Fill, Fault> {
        self.with(cx, |part| Fill {
            records: part.times.len() as u64,
            bytes: part.bytes,
            first: part.sorted.keys().next().map(|(time, _)| *time),
        })
    }

    /// Takes the first update out and lends it with its key, in the context of its record.
    pub(crate) fn take_first(&self, cx: &Cx<'_>, emit: impl FnOnce(&Cx<'_>, &[u8], &Suppressed<'_>) -> Flow) -> Flow {
        let taken = self.with(cx, |part| {
            let (time, key) = part.sorted.keys().next().cloned()?;
            let held = part.remove(&key, time)?;
            part.mark(&key);
            Some((key, held))
        })?;
        let Some((key, held)) = taken else { return Ok(()) };
        let update = suppress_value::read(&held.value).ok_or_else(|| self.unreadable(cx.fault))?;
        let mut bytes = Vec::new();
        let headers = RawHeaders::write(&update.headers(), &mut bytes).unwrap_or(RawHeaders::EMPTY);
        let source = RecordContext {
            topic: update.topic,
            partition: update.partition,
            offset: update.offset,
            timestamp: update.timestamp,
            headers,
        };
        emit(&cx.at(cx.task, source), &key, &update)
    }

    /// The value that what is below has of a key in the buffer; `None` if the key is not in it.
    pub(crate) fn prior<R>(
        &self,
        cx: &Cx<'_>,
        key: &[u8],
        f: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<Option<R>, Fault> {
        self.with(cx, |part| {
            let update = suppress_value::read(&part.find(key)?.value)?;
            Some(f(update.prior))
        })
    }
}

/// What the changelog does not have, in the order in which Java's set of keys gives it.
impl Drain for SuppressBuffer {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        let mut parts = self.parts.borrow_mut();
        let Some((partition, part)) = parts.iter_mut().find(|(_, part)| !part.dirty.is_empty()) else {
            return Ok(false);
        };
        let mut dirty = std::mem::take(&mut part.dirty);
        dirty.sort_by_key(|key| bucket(key, part.buckets));
        cx.fault.at_partition(*partition);
        for key in dirty.drain(..) {
            if self.logged {
                let value = part.find(&key).map(|held| held.value.as_slice());
                let headers = value.and_then(|_| RawHeaders::parse(VERSION)).unwrap_or(RawHeaders::EMPTY);
                let record = LogBytes { key: &key, value, headers, timestamp: NO_TIMESTAMP };
                cx.port.changelog(self.id, *partition, &record)?;
            }
            part.pending.insert(key);
        }
        part.dirty = dirty;
        Ok(true)
    }
}

impl StateStore for SuppressBuffer {
    fn id(&self) -> StoreId {
        self.id
    }

    fn kind(&self) -> StoreKind {
        StoreKind::from(Layout::Plain)
    }

    fn collect(&self, partition: u32, into: &mut StoreBatch) -> Result<Collected, StoreError> {
        let mut parts = self.parts.borrow_mut();
        let Some(part) = parts.get_mut(&partition) else { return Ok(Collected { entries: 0, more: false }) };
        let (prefix, mut entries) = (partition_prefix(partition), 0);
        while let Some(key) = part.pending.first().cloned() {
            let put = match part.find(&key) {
                Some(held) => into.put_parts(self.id, [&prefix, &key], [&held.value, &[]]),
                None => into.delete_parts(self.id, [&prefix, &key]),
            };
            match put {
                Ok(()) => entries += 1,
                Err(_) if !into.is_empty() => return Ok(Collected { entries, more: true }),
                Err(full) => return Err(full.into()),
            }
            part.pending.remove(&key);
            part.collected.insert(key);
        }
        Ok(Collected { entries, more: false })
    }

    fn written(&self, partition: u32) {
        if let Some(part) = self.parts.borrow_mut().get_mut(&partition) {
            part.collected.clear();
        }
    }

    fn discard(&self, partition: u32) {
        self.parts.borrow_mut().remove(&partition);
    }

    fn weight(&self) -> usize {
        let bytes: u64 = self.parts.borrow().values().map(|part| part.bytes).sum();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    fn shed(&self, _bytes: usize) -> usize {
        0
    }

    fn stream_time(&self, _partition: u32) -> Option<i64> {
        None
    }

    fn expire(&self, _partition: u32) -> Result<(), StoreError> {
        Ok(())
    }

    fn read(&self, fault: &FaultCell, key: &[u8], into: &mut Scratch) -> Result<Option<i64>, Fault> {
        let partition = key.first_chunk().map_or(0, |prefix| u32::from_be_bytes(*prefix));
        self.load(fault, partition)?;
        let parts = self.parts.borrow();
        let held = parts.get(&partition).and_then(|part| part.find(key.get(PREFIX_BYTES..)?));
        into.clear();
        Ok(held.map(|held| {
            into.extend(&held.value);
            NO_TIMESTAMP
        }))
    }

    fn rows(&self, fault: &FaultCell, partition: u32, visit: &mut dyn FnMut(&[u8], &[u8], i64) -> bool) -> Flow {
        self.load(fault, partition)?;
        for ((_, key), held) in self.parts.borrow().get(&partition).into_iter().flat_map(|part| &part.sorted) {
            if !visit(key, &held.value, NO_TIMESTAMP) {
                break;
            }
        }
        Ok(())
    }

    fn needs_commit(&self) -> bool {
        false
    }
}
