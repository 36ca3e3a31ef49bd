//! The seam that a stream thread drives: feed, drain, collect in slices, written, discard, shed.
use super::recorder::Recorder;
use crate::arena::Arena;
use crate::base::id::{StoreId, TaskId};
use crate::node::{Collected, Cx, FaultCell, RawRecord, StateStore, WireSettings, Wired};
use crate::prelude::*;
use crate::store::backend::Backend;
use crate::store::batch::StoreBatch;
use crate::store::memory::MemoryBackend;
use crate::topology::TopicName;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

struct Thread {
    wired: Wired,
    backend: Arc<MemoryBackend>,
    port: Recorder,
    fault: FaultCell,
    arena: Arena,
}

/// Counts the records of each key, with room for so many bytes.
fn thread(overlay_bytes: usize) -> Thread {
    let builder = StreamsBuilder::new();
    let grouped = builder.stream("in", Consumed::with(Utf8, Utf8)).group_by_key();
    grouped.count(Materialized::named("counts")).to_stream().to("out");
    let topology = builder.build().unwrap();
    let backend = Arc::new(MemoryBackend::new());
    let settings = WireSettings {
        application_id: "app",
        backend: Arc::clone(&backend) as Arc<dyn Backend>,
        overlay_bytes_per_store: overlay_bytes,
        record_bytes: 1 << 16,
        emit_interval_ms: 0,
        spill: Rc::new(RefCell::new(StoreBatch::with_capacity(1 << 16))),
    };
    let wired = topology.wire(0, &settings).unwrap();
    assert_eq!((wired.sources.len(), wired.drains.len(), wired.stores.len()), (1, 2, 1));
    let port = Recorder {
        sinks: vec![("out".to_owned(), None)],
        changelogs: vec![TopicName::Changelog("counts".to_owned()).full("app")],
        keep: true,
        ..Recorder::default()
    };
    Thread { wired, backend, port, fault: FaultCell::new(), arena: Arena::new(4096) }
}

impl Thread {
    fn cx(&self, partition: u32) -> Cx<'_> {
        Cx::idle(&self.arena, TaskId { subtopology: 0, partition }, &self.port, &self.fault, 0)
    }

    fn feed(&self, partition: u32, key: &str) {
        let (key, value) = (Some(key.as_bytes()), Some(&b"v"[..]));
        let record = RawRecord { key, value, timestamp: 7 };
        self.wired.sources[0].1.feed(&self.cx(partition), &record).unwrap();
    }

    /// The context's partition does not matter: each entry goes on in its own.
    fn drain(&self) {
        while self.wired.drains[0].1.drain_one(&self.cx(0)).unwrap() {}
    }

    fn store(&self) -> &dyn StateStore {
        self.wired.stores[0].as_ref()
    }

    fn stored(&self, partition: u32, key: &str) -> Option<Vec<u8>> {
        let mut row = Vec::new();
        let key = [&partition.to_be_bytes()[..], key.as_bytes()].concat();
        self.backend.get(StoreId(0), &key, &mut row).unwrap().then_some(row)
    }
}

#[test]
fn pending_entries_are_collected_in_slices_by_partition() {
    let thread = thread(1 << 20);
    for key in ["a", "b", "c", "d", "e"] {
        thread.feed(3, key);
    }
    thread.feed(4, "a");
    let mut batch = StoreBatch::with_capacity(2 * (11 + 5 + 16));
    assert_eq!(thread.store().collect(3, &mut batch).unwrap(), Collected { entries: 0, more: false }, "all are dirty");
    thread.drain();
    assert_eq!(thread.port.count.get(), 12, "six in the changelog, six in the sink");
    let mut slices = Vec::new();
    loop {
        batch.clear();
        let collected = thread.store().collect(3, &mut batch).unwrap();
        thread.backend.write(&batch).unwrap();
        thread.store().written(3);
        slices.push(collected.entries);
        if !collected.more {
            break;
        }
    }
    assert_eq!(slices, [2, 2, 1]);
    let row = [&7i64.to_be_bytes()[..], &1i64.to_be_bytes()].concat();
    assert_eq!((thread.stored(3, "e"), thread.stored(4, "a")), (Some(row), None));
}

#[test]
fn what_is_discarded_is_read_from_the_backend_again() {
    let thread = thread(1 << 20);
    thread.feed(3, "a");
    thread.drain();
    let mut batch = StoreBatch::with_capacity(4096);
    thread.store().collect(3, &mut batch).unwrap();
    thread.backend.write(&batch).unwrap();
    thread.store().written(3);
    for partition in [3, 3, 4] {
        thread.feed(partition, "a");
    }
    thread.store().discard(3);
    thread.feed(3, "a");
    thread.drain();
    let out = &thread.port.topics.borrow()["out"];
    let counts: Vec<_> =
        out.iter().map(|r| i64::from_be_bytes(r.value.as_deref().unwrap().try_into().unwrap())).collect();
    assert_eq!(counts, [1, 1, 2], "partition 4's, then one more than the one that was committed");
}

#[test]
fn only_clean_entries_are_shed() {
    let thread = thread(64 << 10);
    let fed = 200;
    // Longer than what a slot holds itself: slots are kept, the bytes of keys are given back.
    let key = |n: usize| format!("a-key-longer-than-a-slot-{n}");
    for n in 0..fed {
        thread.feed(0, &key(n));
    }
    assert!((16 << 10..48 << 10).contains(&thread.store().weight()), "{}", thread.store().weight());
    assert_eq!(thread.store().shed(usize::MAX), 0, "dirty entries stay");
    thread.drain();
    assert_eq!(thread.store().shed(usize::MAX), 0, "pending entries too");
    let mut batch = StoreBatch::with_capacity(1 << 20);
    assert_eq!(thread.store().collect(0, &mut batch).unwrap().entries, fed);
    thread.backend.write(&batch).unwrap();
    thread.store().written(0);
    let before = thread.store().weight();
    let freed = thread.store().shed(usize::MAX);
    assert!(freed > 0);
    assert_eq!(thread.store().weight(), before - freed);
    thread.feed(0, &key(0));
    thread.drain();
    let last = thread.port.topics.borrow()["out"].back().unwrap().value.clone();
    assert_eq!(last.as_deref(), Some(&2i64.to_be_bytes()[..]));
}

#[test]
fn entries_that_do_not_fit_are_written_early_even_one_above_the_limit() {
    let limit = 32 << 10;
    let thread = thread(limit);
    for n in 0..2_000 {
        thread.feed(0, &format!("key-{n}"));
        assert!(thread.store().weight() <= limit && !thread.store().needs_commit(), "entry {n}");
    }
    let first = thread.port.topics.borrow()["out"].front().map(|record| record.value.clone());
    assert_eq!(first, Some(Some(1i64.to_be_bytes().to_vec())), "the oldest went on before any commit");
    thread.feed(0, &"k".repeat(limit + 1));
    assert!(thread.store().weight() <= limit && !thread.store().needs_commit(), "it left at once");
    thread.feed(0, "key-0");
    thread.drain();
    let last = thread.port.topics.borrow()["out"].back().unwrap().value.clone();
    assert_eq!(last.as_deref(), Some(&2i64.to_be_bytes()[..]), "what was written early is read again");
}
