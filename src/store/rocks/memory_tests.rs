//! Whose memory it is, and how little a read makes.
#![allow(clippy::print_stdout)]
use plimsoll_alloc::testing::allocations;
use plimsoll_alloc::{Module, committed_all, is_installed, live_all, purge, threads};

use super::crash_tests::scene_passes;
use super::tests::{A, KIB, MIB, fill, key, options, settings, value};
use super::*;

#[test]
fn a_read_from_memtable_or_cache_allocates_only_the_32_bytes_that_rocksdb_frees_at_once() {
    assert!(is_installed());
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path(), 2);
    settings.options.cache_bytes = 8 * MIB;
    let backend = RocksBackend::open(settings).unwrap();
    fill(&backend, A, 1, 2_000);
    let mut into = Vec::with_capacity(256);
    let mut read_all = |what: &str| {
        let mut pass = || {
            for i in 0..2_000 {
                assert!(backend.get(A, &key(1, i), &mut into).unwrap());
                assert_eq!(into, value(i));
            }
            assert!(!backend.get(A, &key(1, 99_999), &mut into).unwrap());
        };
        pass();
        let ((), seen) = allocations(pass);
        // RocksDB's own, at the start of each Get; whatever is more is ours.
        let reads = 2_001;
        assert_eq!((seen.calls(), seen.bytes, seen.freed), (reads, 32 * reads, 32 * reads), "{what}: {seen:?}");
    };
    read_all("memtable");
    backend.flush(A).unwrap();
    read_all("block cache");
}

/// A process of its own, so that no other test allocates meanwhile.
#[test]
fn memtables_and_blocks_move_their_modules_and_nothing_else() {
    scene_passes("modules");
}

pub(super) fn modules(directory: &std::path::Path) {
    let mut settings = settings(directory, 4);
    settings.options = DbOptions { cache_bytes: 8 * MIB, memtable_bytes: 8 * MIB, ..options() };
    let before = committed_all();
    let backend = RocksBackend::open(settings).unwrap();
    let grown = |from: [u64; Module::COUNT]| -> Vec<(Module, u64)> {
        let now = committed_all().into_iter().zip(from).map(|(now, then)| now.saturating_sub(then));
        Module::ALL.into_iter().zip(now).filter(|(_, bytes)| *bytes > 512 * KIB).collect()
    };
    purge(Module::Store);
    let opened = committed_all();
    println!("open: {:?}", grown(before));
    fill(&backend, A, 1, 20_000);
    let written = grown(opened);
    println!("written: {written:?}");
    assert!(matches!(written[..], [(Module::Store, bytes)] if bytes >= 2 * MIB), "{written:?}");
    backend.flush(A).unwrap();
    purge(Module::Store);
    let flushed = committed_all();
    let mut into = Vec::with_capacity(256);
    for i in 0..20_000 {
        assert!(backend.get(A, &key(1, i), &mut into).unwrap());
    }
    let read = grown(flushed);
    println!("read: {read:?} {:?}", backend.memory().unwrap());
    assert!(matches!(read[..], [(Module::BlockCache, bytes)] if bytes >= 2 * MIB), "{read:?}");
    // RocksDB's threads were born into Store: one that flushes, one that compacts, and its timer, which has no name.
    let all = threads();
    println!("{all:?}");
    let store = all.iter().filter(|(_, _, module)| *module == Module::Store);
    let named = store.clone().filter(|(_, name, _)| name.starts_with("rocksdb:"));
    assert_eq!((store.count(), named.count()), (3, 2), "{all:?}");
}

/// Prints what the plan counts on: RocksDB's base and each family, without data and with one flushed file each.
#[test]
#[ignore = "a measurement"]
fn what_rocksdb_costs_before_it_holds_anything() {
    scene_passes("fixed");
}

pub(super) fn fixed(directory: &std::path::Path) {
    let live = || -> u64 { live_all()[Module::Store.index()] };
    let both = || (live() / KIB, committed_all()[Module::Store.index()] / KIB);
    println!("nothing: {:?} KiB live, committed", both());
    for stores in [1, 2, 11, 31, 101] {
        let path = directory.join(stores.to_string());
        let backend = RocksBackend::open(settings(&path, stores)).unwrap();
        purge(Module::Store);
        println!("{stores} families, new: {:?} KiB", both());
        for i in 0..stores {
            let store = StoreId(i.try_into().unwrap());
            fill(&backend, store, 1, 100);
        }
        println!("{stores} families, 100 rows each: {:?} KiB {:?}", both(), backend.memory().unwrap());
        for i in 0..stores {
            backend.flush(StoreId(i.try_into().unwrap())).unwrap();
        }
        let mut into = Vec::new();
        for i in 0..stores {
            backend.get(StoreId(i.try_into().unwrap()), &key(1, 7), &mut into).unwrap();
        }
        purge(Module::Store);
        println!("{stores} families, one file each: {:?} KiB {:?}", both(), backend.memory().unwrap());
        drop(backend);
        purge(Module::Store);
        println!("{stores} closed: {:?} KiB", both());
    }
}

/// Prints the peaks of both modules under a load of random keys that flushes and compacts all the time.
#[test]
#[ignore = "a measurement"]
fn what_rocksdb_takes_under_load() {
    scene_passes("load");
}

pub(super) fn load(directory: &std::path::Path) {
    let (mut state, mut into, mut batch) = (7u64, Vec::new(), StoreBatch::with_capacity(256 << 10));
    let mut settings = settings(directory, 4);
    settings.options =
        DbOptions { cache_bytes: 16 * MIB, memtable_bytes: 4 * MIB, target_file_bytes: 8 * MIB, ..options() };
    let backend = RocksBackend::open(settings).unwrap();
    purge(Module::Store);
    println!("open: {} KiB", committed_all()[Module::Store.index()] / KIB);
    let (mut store, mut cache, mut used) = (0, 0, 0);
    let begin = std::time::Instant::now();
    let mut rows = 0;
    while begin.elapsed().as_secs() < 20 {
        batch.clear();
        loop {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let id = (state >> 40) as u32 % 1_000_000;
            if batch.put(StoreId((id % 4) as u16), &key(id % 8, id), &value(id)).is_err() {
                break;
            }
            rows += 1;
        }
        backend.write(&batch).unwrap();
        for i in 0..200 {
            let id = (state.rotate_left(i) >> 40) as u32 % 1_000_000;
            backend.get(StoreId((id % 4) as u16), &key(id % 8, id), &mut into).unwrap();
        }
        let now = committed_all();
        store = now[Module::Store.index()].max(store);
        cache = now[Module::BlockCache.index()].max(cache);
        used = backend.memory().unwrap().memtables.max(used);
    }
    println!(
        "{rows} rows; peaks: Store {} KiB, BlockCache {} KiB, memtables {} KiB",
        store / KIB,
        cache / KIB,
        used / KIB
    );
    println!("{:?}", backend.memory().unwrap());
    for i in 0..4 {
        backend.flush(StoreId(i)).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_secs(3));
    purge(Module::Store);
    purge(Module::BlockCache);
    let rest = |m: Module| (live_all()[m.index()] / KIB, committed_all()[m.index()] / KIB);
    println!(
        "at rest, KiB live and committed: Store {:?} BlockCache {:?}",
        rest(Module::Store),
        rest(Module::BlockCache)
    );
}
