//! Doors for this repository's benches, behind the feature `bench`: not a part of the library's interface, and it may
//! change at any time.
//!
//! Owns what a stream thread owns around its nodes and its overlay, without sockets. Bound: the overlay's limit. Called
//! by `benches/engine.rs` only.
use crate::arena::Arena;
use crate::base::id::{NodeId, SinkId, StoreId, TaskId};
use crate::node::{
    Cx, FaultCell, Flow, LogBytes, OutBytes, Port, RawRecord, RecordContext, Source, WireSettings, Wired,
};
use crate::store::batch::StoreBatch;
use crate::store::memory::MemoryBackend;
use crate::store::overlay::Overlay;
use crate::store::overlay::core::{Stamp, State};
use crate::topology::Topology;
use crate::wire::RawHeaders;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Records between two resets of the arena, as in a turn.
const TURN: u32 = 1_024;
/// As the plan gives.
const ARENA_BYTES: usize = 1 << 20;
const RECORD_BYTES: usize = 1 << 20;
const TOPIC: &str = "input";

/// Takes records and counts them.
#[derive(Default)]
struct Counter {
    records: Cell<u64>,
    bytes: Cell<u64>,
}

impl Counter {
    fn add(&self, key: Option<&[u8]>, value: Option<&[u8]>) {
        let len = key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len);
        self.records.set(self.records.get() + 1);
        self.bytes.set(self.bytes.get() + len as u64);
    }
}

impl Port for Counter {
    fn produce(&self, _: TaskId, _: SinkId, _: Option<u32>, record: &OutBytes<'_>) -> Flow {
        self.add(record.key, record.value);
        Ok(())
    }

    fn changelog(&self, _: StoreId, _: u32, record: &LogBytes<'_>) -> Flow {
        self.add(Some(record.key), record.value);
        Ok(())
    }

    fn dropped(&self, _: NodeId) {}
}

/// The nodes of a topology's first subtopology, fed without driver or sockets.
pub struct Step {
    wired: Wired,
    source: Rc<dyn Source>,
    port: Counter,
    arena: Arena,
    fault: FaultCell,
    fed: u32,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").finish_non_exhaustive()
    }
}

impl Step {
    /// Wires the nodes, with state in memory; `None` for a topology without sources.
    pub fn new(topology: &Topology, overlay_bytes: usize) -> Option<Self> {
        let settings = WireSettings {
            application_id: "bench",
            backend: Arc::new(MemoryBackend::new()),
            overlay_bytes_per_store: overlay_bytes,
            record_bytes: RECORD_BYTES,
            emit_interval_ms: 0,
            spill: Rc::new(RefCell::new(StoreBatch::with_capacity(RECORD_BYTES))),
        };
        let wired = topology.wire(0, &settings).ok()?;
        let source = Rc::clone(&wired.sources.first()?.1);
        let (port, arena, fault) = (Counter::default(), Arena::new(ARENA_BYTES), FaultCell::new());
        Some(Self { wired, source, port, arena, fault, fed: 0 })
    }

    /// One record through the nodes; false when it failed.
    pub fn feed(&mut self, key: &[u8], value: &[u8]) -> bool {
        let (timestamp, offset, headers) = (1_700_000_000_000, i64::from(self.fed), RawHeaders::EMPTY);
        let mut cx = Cx::idle(&self.arena, TaskId { subtopology: 0, partition: 0 }, &self.port, &self.fault, timestamp);
        cx.source = RecordContext { topic: TOPIC, partition: 0, offset, timestamp, headers };
        let record = RawRecord { key: Some(key), value: Some(value), timestamp };
        let done = self.source.feed(&cx, &record).is_ok();
        self.fed = self.fed.wrapping_add(1);
        if self.fed.is_multiple_of(TURN) {
            self.arena.reset();
        }
        done
    }

    /// Forwards everything dirty, as a commit does; answers how many records have left so far.
    pub fn drain(&mut self) -> u64 {
        let cx = Cx::idle(&self.arena, TaskId { subtopology: 0, partition: 0 }, &self.port, &self.fault, 0);
        for (_, drain) in &self.wired.drains {
            while drain.drain_one(&cx) == Ok(true) {}
        }
        self.arena.reset();
        self.port.records.get()
    }
}

/// An overlay of counts.
pub struct Counts(Overlay<i64>);

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counts").finish()
    }
}

impl Counts {
    /// Empty, for at most so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Overlay::new(bytes, false, |_| 0))
    }

    /// Adds one to a key's count. A key that is not there is put in; clean entries go while there is no room.
    pub fn add(&mut self, key: &[u8]) -> i64 {
        let found = self.0.core().find(key);
        let slot = found.unwrap_or_else(|| {
            while self.0.core().is_over(self.0.core().growth(key.len())) && self.0.evict_clean() {}
            self.0.insert(key)
        });
        let count = self.0.update(slot, |count| {
            let next = count.unwrap_or(0) + 1;
            *count = Some(next);
            next
        });
        let stamp = Stamp { topic: TOPIC, offset: 0, timestamp: 0, headers: RawHeaders::EMPTY.as_bytes() };
        self.0.core_mut().set_dirty(slot, &stamp, found.is_some());
        count
    }

    /// As [`Counts::add`], as if it were committed at once.
    pub fn add_clean(&mut self, key: &[u8]) -> i64 {
        let count = self.add(key);
        if let Some(slot) = self.0.core().find(key) {
            self.0.core_mut().set_state(slot, State::Clean);
        }
        count
    }

    /// Bytes of everything.
    pub fn bytes(&self) -> usize {
        self.0.core().footprint()
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.0.core().len()
    }
}
