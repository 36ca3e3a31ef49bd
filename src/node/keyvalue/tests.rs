//! What a store answers, against ordered maps, while entries are evicted, committed and thrown away.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::arena::Arena;
use crate::base::id::{NodeId, SinkId, TaskId};
use crate::codec::Utf8;
use crate::node::wiring::{StorePart, WireSettings, Wired};
use crate::node::{LogBytes, OutBytes, Port};
use crate::store::backend::Order;
use crate::store::memory::MemoryBackend;
use std::collections::BTreeMap;

type Logged = (u32, Vec<u8>, Option<Vec<u8>>, i64);

#[derive(Default)]
struct Log(RefCell<Vec<Logged>>);

impl Port for Log {
    fn produce(&self, _: TaskId, _: SinkId, _: Option<u32>, _: &OutBytes<'_>) -> Flow {
        Ok(())
    }

    fn changelog(&self, _: StoreId, partition: u32, record: &LogBytes<'_>) -> Flow {
        let value = record.value.map(<[u8]>::to_vec);
        self.0.borrow_mut().push((partition, record.key.to_vec(), value, record.timestamp));
        Ok(())
    }

    fn dropped(&self, _: NodeId) {}
}

pub(super) struct Bench<V: Codec = Utf8> {
    pub(super) store: Rc<KeyValue<V>>,
    pub(super) wired: Wired,
    pub(super) backend: Arc<MemoryBackend>,
    log: Log,
    arena: Arena,
    fault: FaultCell,
}

impl Bench {
    pub(super) fn new(kind: StoreKind, cached: bool, overlay_bytes: usize) -> Self {
        Self::made(make_store(Utf8, kind), cached, overlay_bytes)
    }

    pub(super) fn put(&self, key: &[u8], value: Option<&str>, timestamp: i64) {
        self.store.put(&self.cx(0), key, value, timestamp).unwrap();
    }
}

impl<V: Codec> Bench<V> {
    pub(super) fn made(make: MakeStore, cached: bool, overlay_bytes: usize) -> Self {
        let backend = Arc::new(MemoryBackend::new());
        let settings = WireSettings {
            application_id: "app",
            backend: Arc::clone(&backend) as Arc<dyn Backend>,
            overlay_bytes_per_store: overlay_bytes,
            record_bytes: 1 << 16,
            emit_interval_ms: 0,
            spill: Rc::new(RefCell::new(StoreBatch::with_capacity(1 << 16))),
        };
        let part = StorePart { make, name: "s".to_owned(), cached, logged: true, writer: None };
        let (store, wired) = Wiring::store_alone(part, &settings).unwrap();
        Self { store, wired, backend, log: Log::default(), arena: Arena::new(4096), fault: FaultCell::new() }
    }

    pub(super) fn cx(&self, partition: u32) -> Cx<'_> {
        Cx::idle(&self.arena, TaskId { subtopology: 0, partition }, &self.log, &self.fault, 0)
    }

    fn drain(&self) {
        for (_, drain) in &self.wired.drains {
            while drain.drain_one(&self.cx(0)).unwrap() {}
        }
    }

    pub(super) fn commit(&self, partition: u32) {
        self.drain();
        let mut batch = StoreBatch::with_capacity(1 << 16);
        let face = &self.wired.stores[0];
        face.collect(partition, &mut batch).unwrap();
        self.backend.write(&batch).unwrap();
        face.written(partition);
        self.wired.committed(partition);
        face.expire(partition).unwrap();
    }

    pub(super) fn logged(&self) -> Vec<Logged> {
        self.log.0.take()
    }
}

impl Bench {
    fn scan(&self, from: &[u8], to: &[u8], order: Order, most: usize) -> Vec<(Vec<u8>, String, i64)> {
        let mut seen = Vec::new();
        let visit = &mut |key: &[u8], value: &str, timestamp: i64| {
            let again = [&0u32.to_be_bytes()[..], key].concat();
            let same = |found: Option<(&str, i64)>| found.map(|(value, _)| value.to_owned());
            assert_eq!(self.store.get(&self.cx(0), &again, same).unwrap().as_deref(), Some(value));
            seen.push((key.to_vec(), value.to_owned(), timestamp));
            Ok(seen.len() < most)
        };
        self.store.scan(&self.cx(0), from, to, order, visit).unwrap();
        seen
    }
}

fn key(partition: u32, text: &str) -> Vec<u8> {
    [&partition.to_be_bytes()[..], text.as_bytes()].concat()
}

type Model = BTreeMap<Vec<u8>, (String, i64)>;

fn expect(model: &Model, from: &[u8], to: &[u8], order: Order, most: usize) -> Vec<(Vec<u8>, String, i64)> {
    let row = |(key, (value, time)): (&Vec<u8>, &(String, i64))| (key[4..].to_vec(), value.clone(), *time);
    let mut rows: Vec<_> = model.iter().filter(|(key, _)| (from..to).contains(&key.as_slice())).map(row).collect();
    if order == Order::Reverse {
        rows.reverse();
    }
    rows.truncate(most);
    rows
}

/// Long keys too, so that room in the slab is taken and given back.
fn random_key(random: &mut fastrand::Rng) -> Vec<u8> {
    let number = random.u32(..200);
    key(0, &format!("{number:03}{}", "x".repeat(if number.is_multiple_of(7) { 30 } else { 0 })))
}

fn random_rounds(cached: bool, overlay_bytes: usize, seed: u64) {
    let bench = Bench::new(Layout::Timestamped.into(), cached, overlay_bytes);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut model, mut committed) = (Model::new(), Model::new());
    for round in 0..4_000i64 {
        match random.u32(..100) {
            0..60 => {
                let key = random_key(&mut random);
                if random.u32(..4) == 0 {
                    bench.put(&key, None, round);
                    model.remove(&key);
                } else {
                    let value = format!("v{round}");
                    bench.put(&key, Some(&value), round);
                    model.insert(key, (value, round));
                }
            }
            60..64 => {
                bench.commit(0);
                committed.clone_from(&model);
            }
            64 if overlay_bytes > 1 << 18 => {
                bench.wired.aborted(0);
                model.clone_from(&committed);
            }
            65 => {
                bench.wired.stores[0].shed(random.usize(..10_000));
            }
            _ => {
                let (from, to) = (random_key(&mut random), random_key(&mut random));
                let order = if random.bool() { Order::Forward } else { Order::Reverse };
                let most = if random.bool() { usize::MAX } else { random.usize(1..20) };
                assert_eq!(bench.scan(&from, &to, order, most), expect(&model, &from, &to, order, most), "{round}");
            }
        }
    }
    assert!(model.len() > 50);
}

#[test]
fn scans_equal_an_ordered_map_whatever_was_evicted_committed_or_aborted() {
    random_rounds(true, 1 << 20, 1);
    random_rounds(false, 1 << 20, 2);
    random_rounds(true, 16 << 10, 3);
    random_rounds(false, 16 << 10, 4);
}

/// What the plan counts for a task, its share of the tables of all stores included.
const TASK_BYTES: usize = 4 << 10;

#[test]
fn a_thousand_idle_tasks_cost_five_stores_nothing_beyond_the_plans_row_for_tasks() {
    let stores: Vec<Bench> = (0..5).map(|_| Bench::new(Layout::Timestamped.into(), true, 1 << 20)).collect();
    let weight = |bench: &Bench| bench.wired.stores[0].weight();
    for bench in &stores {
        for partition in 0..1_000 {
            bench.store.put(&bench.cx(partition), &key(partition, "k"), Some("v"), 1).unwrap();
        }
        let full = weight(bench);
        for partition in 0..1_000 {
            bench.commit(partition);
        }
        bench.wired.stores[0].shed(usize::MAX);
        assert!(weight(bench) < full / 4, "{} of {full} bytes are left", weight(bench));
    }
    let idle: usize = stores.iter().map(weight).sum();
    assert!(idle < 1_000 * TASK_BYTES / 20, "{idle} bytes: within the 5 % of the plan's row");
}

#[test]
fn a_change_that_nobody_forwards_is_logged_at_once_or_with_the_commit() {
    let plain = Bench::new(Layout::Plain.into(), false, 1 << 20);
    plain.put(&key(0, "a"), Some("1"), 5);
    plain.put(&key(0, "a"), None, 6);
    let value = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(plain.logged(), [(0, b"a".to_vec(), value("1"), 5), (0, b"a".to_vec(), None, 6)]);
    let cached = Bench::new(Layout::Timestamped.into(), true, 1 << 20);
    for (text, time) in [("a", 1), ("b", 2), ("a", 3)] {
        cached.put(&key(0, text), Some(text), time);
    }
    assert_eq!(cached.logged(), []);
    cached.commit(0);
    assert_eq!(cached.logged(), [(0, b"b".to_vec(), value("b"), 2), (0, b"a".to_vec(), value("a"), 3)]);
    let row = |bench: &Bench, text: &str| {
        let mut into = Vec::new();
        bench.backend.get(StoreId(0), &key(0, text), &mut into).unwrap().then_some(into)
    };
    assert_eq!(row(&cached, "a"), Some(b"\0\0\0\0\0\0\0\x03a".to_vec()));
    plain.put(&key(0, "c"), Some("3"), 7);
    plain.commit(0);
    assert_eq!((row(&plain, "a"), row(&plain, "c")), (None, Some(b"3".to_vec())));
    let time = plain.store.get(&plain.cx(0), &key(0, "c"), |found| found.map(|(_, time)| time)).unwrap();
    assert_eq!(time, Some(NO_TIMESTAMP), "a plain row has no timestamp, in memory neither");
}

/// Key, start and number in hex-free form.
fn window(text: &str, start: i64) -> Vec<u8> {
    [&0u32.to_be_bytes()[..], text.as_bytes(), &start.to_be_bytes(), &[0; 4]].concat()
}

fn fetch(bench: &Bench, keys: Keys<'_>, times: [i64; 2], order: Order) -> Vec<String> {
    let mut seen = Vec::new();
    let visit = &mut |key: &[u8], value: &str, _: i64| {
        let (user, start, _) = crate::store::kind::window_parts(key);
        assert_eq!(format!("{}{start}", String::from_utf8_lossy(user)), value);
        seen.push(value.to_owned());
        Ok(true)
    };
    bench.store.fetch(&bench.fault, 0, keys, times, order, visit).unwrap();
    seen
}

fn windows(cached: bool) -> Bench {
    let bench = Bench::new(StoreKind::window(100_000), cached, 1 << 20);
    for (text, start) in [("a", 0), ("b", 0), ("aa", 10), ("a", 70_000), ("a", 80_000), ("b", 130_000)] {
        bench.put(&window(text, start), Some(&format!("{text}{start}")), start);
    }
    bench
}

#[test]
fn windows_are_fetched_by_exact_key_and_by_segment_and_what_is_old_is_not_there() {
    for commits in [false, true] {
        let bench = windows(false);
        if commits {
            bench.commit(0);
        }
        // Stream time 130,000, retention 100,000: from 30,001 on. Segments of 60,000 ms.
        assert_eq!(fetch(&bench, Keys::One(b"a"), [0, i64::MAX], Order::Forward), ["a70000", "a80000"]);
        assert_eq!(fetch(&bench, Keys::One(b"a"), [0, i64::MAX], Order::Reverse), ["a80000", "a70000"]);
        assert_eq!(fetch(&bench, Keys::One(b"a"), [70_001, 80_000], Order::Forward), ["a80000"]);
        assert_eq!(fetch(&bench, Keys::One(b"a"), [0, 30_000], Order::Forward), [""; 0]);
        assert_eq!(fetch(&bench, Keys::ALL, [0, i64::MAX], Order::Forward), ["a70000", "a80000", "b130000"]);
        assert_eq!(fetch(&bench, Keys::Between(Some(b"b"), None), [0, i64::MAX], Order::Forward), ["b130000"]);
        let is_there = |text, start| bench.store.get(&bench.cx(0), &window(text, start), |v| v.is_some()).unwrap();
        assert_eq!([is_there("a", 0), is_there("a", 70_000), is_there("a", 80_000)], [false, true, true]);
    }
}

#[test]
fn a_cache_still_has_old_windows_as_kafka_streams_has_and_iterates_by_segment() {
    let bench = windows(true);
    let all = ["a0", "aa10", "b0", "a70000", "a80000", "b130000"];
    assert_eq!(fetch(&bench, Keys::ALL, [0, i64::MAX], Order::Forward), all);
    bench.commit(0);
    assert_eq!(fetch(&bench, Keys::ALL, [0, i64::MAX], Order::Forward), all);
    assert_eq!(fetch(&bench, Keys::One(b"a"), [0, 9], Order::Forward), ["a0"]);
    bench.wired.stores[0].shed(usize::MAX);
    assert_eq!(fetch(&bench, Keys::One(b"a"), [0, 9], Order::Forward), [""; 0], "the store itself has not");
}

#[test]
fn segments_that_the_committed_stream_time_has_left_are_deleted() {
    let bench = windows(false);
    bench.commit(0);
    let rows = |bench: &Bench| {
        let mut rows = 0;
        let (from, to) = (0u32.to_be_bytes(), 1u32.to_be_bytes());
        let mut count = |_: &[u8], _: &[u8]| {
            rows += 1;
            true
        };
        bench.backend.scan(StoreId(0), &from, &to, Order::Forward, &mut count).unwrap();
        rows
    };
    assert_eq!(rows(&bench), 6, "130,000 - 100,000 is in the first segment");
    bench.put(&window("c", 159_999), Some("c159999"), 0);
    bench.commit(0);
    assert_eq!(rows(&bench), 7);
    bench.put(&window("c", 160_000), Some("c160000"), 0);
    bench.commit(0);
    assert_eq!(rows(&bench), 5);
    bench.put(&window("c", 400_000), Some("c400000"), 0);
    bench.wired.aborted(0);
    assert_eq!(fetch(&bench, Keys::One(b"a"), [0, i64::MAX], Order::Forward), ["a70000", "a80000"], "undone");
}

#[test]
fn sessions_are_found_by_end_and_start() {
    let bench = Bench::new(StoreKind::session(100_000), false, 1 << 20);
    let session = |text: &str, start: i64, end: i64| {
        [&0u32.to_be_bytes()[..], text.as_bytes(), &end.to_be_bytes(), &start.to_be_bytes()].concat()
    };
    for (start, end) in [(0, 10), (20, 30), (25, 70_000), (80_000, 90_000)] {
        bench.put(&session("k", start, end), Some(&format!("{start}-{end}")), 0);
        bench.put(&session("kk", start, end), Some("other"), 0);
    }
    let find = |times: [i64; 2], order: Order| {
        let mut seen = Vec::new();
        let visit = &mut |_: &[u8], value: &str, _: i64| {
            seen.push(value.to_owned());
            Ok(true)
        };
        bench.store.find_sessions(&bench.fault, 0, Keys::One(b"k"), times, order, visit).unwrap();
        seen
    };
    for commits in [false, true] {
        if commits {
            bench.commit(0);
        }
        assert_eq!(find([0, i64::MAX], Order::Forward), ["0-10", "20-30", "25-70000", "80000-90000"]);
        assert_eq!(find([30, 25], Order::Forward), ["20-30", "25-70000"]);
        assert_eq!(find([30, 25], Order::Reverse), ["25-70000", "20-30"]);
        assert_eq!(find([90_001, i64::MAX], Order::Forward), [""; 0]);
    }
}
