//! Whose memory it is, and that a read makes none.
use plimsoll_alloc::testing::allocations;
use plimsoll_alloc::{Module, committed_all, is_installed, live_all, purge, threads};

use super::tests::{A, KIB, MIB, fill, key, options, scene_passes, settings, value};
use super::*;

#[test]
fn a_read_allocates_nothing_from_memtable_and_from_cache() {
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
        assert_eq!((seen.calls(), seen.bytes), (0, 0), "{what}: {seen:?}");
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
