//! The backend on disk against its contract, a full cache, full memtables, other sizes and background errors.
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::contract;
use super::*;

pub(in crate::store) const KIB: u64 = 1 << 10;
pub(in crate::store) const MIB: u64 = 1 << 20;
pub(in crate::store) const A: StoreId = StoreId(0);
const B: StoreId = StoreId(1);
pub(in crate::store) const ROWS: u32 = 3000;

pub(in crate::store) fn options() -> DbOptions {
    DbOptions {
        cache_bytes: MIB,
        memtable_bytes: 2 * MIB,
        batch_bytes: 256 * KIB,
        target_file_bytes: 64 * KIB,
        max_open_files: 64,
        max_scans: 8,
        compaction_buffer_bytes: 64 * KIB,
        stall_deadline_ms: 30_000,
    }
}

pub(in crate::store) fn settings(directory: &Path, stores: usize) -> RocksSettings {
    let stores = (0..stores).map(|i| (StoreId(i.try_into().unwrap()), format!("s{i}"))).collect();
    RocksSettings { directory: directory.to_owned(), stores, options: options() }
}

pub(in crate::store) fn open(directory: &Path) -> RocksBackend {
    RocksBackend::open(settings(directory, 2)).unwrap()
}

pub(in crate::store) fn key(partition: u32, i: u32) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&partition_prefix(partition));
    key[4..].copy_from_slice(&i.to_be_bytes());
    key
}

fn at(offset: i64) -> StoredOffset {
    StoredOffset { offset, topic_id: [1; 16], wall_ms: 2, stream_time: 3 }
}

/// Rows of 100 bytes in batches of 500, the offset in the last.
pub(in crate::store) fn fill(backend: &dyn Backend, store: StoreId, partition: u32, rows: u32) {
    let mut batch = StoreBatch::with_capacity(256 << 10);
    for i in 0..rows {
        batch.put(store, &key(partition, i), &value(i)).unwrap();
        if i % 500 == 499 {
            backend.write(&batch).unwrap();
            batch.clear();
        }
    }
    batch.set_offset(store, partition, &at(rows.into())).unwrap();
    backend.write(&batch).unwrap();
}

/// 100 bytes that do not compress away.
pub(in crate::store) fn value(i: u32) -> [u8; 100] {
    let mut state = u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::array::from_fn(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
}

pub(in crate::store) fn count(backend: &RocksBackend, store: StoreId, partition: u32) -> u32 {
    let mut rows = 0;
    backend
        .scan(
            store,
            &partition_prefix(partition),
            &partition_end(partition),
            Order::Forward,
            &mut |key, value_found| {
                let i = u32::from_be_bytes(key[4..].try_into().unwrap());
                assert_eq!(value_found, value(i));
                rows += 1;
                true
            },
        )
        .unwrap();
    rows
}

pub(in crate::store) fn offset(backend: &RocksBackend, partition: u32) -> Option<i64> {
    backend.offset(A, partition).unwrap().map(|stored| stored.offset)
}

#[test]
fn it_keeps_the_contract_of_a_backend() {
    for test in [
        contract::rows_and_offsets_are_written_together,
        contract::a_scan_is_bounded_ordered_and_a_snapshot,
        contract::a_dropped_partition_leaves_its_neighbours,
        contract::rows_without_an_offset_are_wiped_before_a_restore,
    ] {
        let directory = tempfile::tempdir().unwrap();
        test(&open(directory.path()));
    }
}

#[test]
fn reads_succeed_while_the_cache_is_full_of_pinned_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path(), 1);
    settings.options.cache_bytes = 256 * KIB;
    let backend = RocksBackend::open(settings).unwrap();
    fill(&backend, A, 1, 20_000);
    backend.flush(A).unwrap();
    backend
        .with(|db| {
            let mut pins = Vec::new();
            for i in (0..20_000).step_by(40) {
                let mut rows = db.rows(A.0, &key(1, i), &partition_end(1), false)?;
                assert_eq!(rows.next()?.map(|(found, _)| found.to_vec()), Some(key(1, i).to_vec()));
                pins.push(rows);
            }
            let pinned = db.memory();
            assert!(pinned.refused_inserts > 0, "the cache was never full: {pinned:?}");
            let mut into = Vec::new();
            for i in (0..20_000).step_by(301) {
                assert!(db.get(A.0, &key(1, i), &mut into)?, "{i}");
                assert_eq!(into, value(i));
            }
            let after = db.memory();
            assert!(after.refused_inserts > pinned.refused_inserts + 20, "{after:?}");
            // Scans that were refused hold their block beside the cache, counted in it; gets add nothing.
            assert!(after.cache_used <= pinned.cache_used + 16 * KIB, "{pinned:?} {after:?}");
            // Nor does a flush mind.
            let mut batch = StoreBatch::with_capacity(4096);
            batch.put(A, &key(2, 0), &value(0)).unwrap();
            db.write(batch.as_bytes())?;
            db.flush(A.0)?;
            assert_eq!(db.background_error(), None);
            Ok(())
        })
        .unwrap();
    assert_eq!(count(&backend, A, 1), 20_000);
}

#[test]
fn memtables_of_thirty_stores_stay_within_their_row() {
    let directory = tempfile::tempdir().unwrap();
    let backend = RocksBackend::open(settings(directory.path(), 30)).unwrap();
    let done = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                most = most.max(backend.memory().unwrap().memtables);
                std::thread::yield_now();
            }
            most
        });
        let mut batch = StoreBatch::with_capacity(256 << 10);
        for round in 0..150 {
            batch.clear();
            for store in 0..30 {
                for i in 0..20 {
                    batch.put(StoreId(store), &key(1, round * 20 + i), &value(i)).unwrap();
                }
            }
            backend.write(&batch).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        watcher.join().unwrap()
    });
    let memory = backend.memory().unwrap();
    // 9.7 MB of rows went through 2 MiB.
    assert!(most > MIB && most <= 2 * MIB, "{most}");
    assert!(memory.waits > 0);
    assert!(backend.get(StoreId(29), &key(1, 2999), &mut Vec::new()).unwrap());
}

#[test]
fn one_record_larger_than_the_memtables_row_passes_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path(), 2);
    settings.options.memtable_bytes = 256 * KIB;
    let backend = RocksBackend::open(settings).unwrap();
    fill(&backend, B, 1, 500);
    let mut batch = StoreBatch::with_capacity(600 << 10);
    batch.put(A, &key(1, 0), &vec![7; 512 << 10]).unwrap();
    backend.write(&batch).unwrap();
    let mut into = Vec::new();
    assert!(backend.get(A, &key(1, 0), &mut into).unwrap());
    assert_eq!(into.len(), 512 << 10);
}

#[test]
fn a_write_that_finds_no_room_until_its_deadline_says_so_and_may_be_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path(), 1);
    settings.options.memtable_bytes = 256 * KIB;
    settings.options.stall_deadline_ms = 0;
    let backend = RocksBackend::open(settings).unwrap();
    let mut batch = StoreBatch::with_capacity(100 << 10);
    batch.put(A, &key(1, 0), &vec![7; 90 << 10]).unwrap();
    let mut stalled = 0;
    for _ in 0..50 {
        match backend.write(&batch) {
            Ok(()) => {}
            Err(StoreError::Stalled { row, used, .. }) => {
                assert!(row == 256 * KIB && used > row - 128 * KIB, "{used}");
                stalled += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!((1..50).contains(&stalled), "{stalled}");
    // The deadline is short, the flush is not: at last there is room.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while backend.write(&batch).is_err() {
        assert!(std::time::Instant::now() < patience, "no room for ever");
        std::thread::yield_now();
    }
}

#[test]
fn a_database_is_opened_again_with_other_sizes() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path());
    fill(&backend, A, 1, 700);
    drop(backend);
    let mut settings = settings(directory.path(), 2);
    settings.options = DbOptions {
        cache_bytes: 3 * MIB,
        memtable_bytes: MIB,
        batch_bytes: 64 * KIB,
        target_file_bytes: 128 * KIB,
        max_open_files: 32,
        max_scans: 1,
        compaction_buffer_bytes: 128 * KIB,
        stall_deadline_ms: 1_000,
    };
    let backend = RocksBackend::open(settings).unwrap();
    assert_eq!(count(&backend, A, 1), 700);
    assert_eq!(backend.memory().unwrap().cache_capacity, 3 * MIB);
    backend.set_cache_bytes(MIB).unwrap();
    assert_eq!(backend.memory().unwrap().cache_capacity, MIB);
}

/// Families that went when the database was opened.
fn dropped(backend: &RocksBackend) -> Vec<String> {
    backend.with(|db| Ok(db.dropped())).unwrap()
}

#[test]
fn a_store_that_left_the_topology_is_dropped_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path());
    fill(&backend, A, 1, 5);
    fill(&backend, B, 1, 5);
    assert!(dropped(&backend).is_empty());
    drop(backend);
    // The store "s0" has another number now.
    let mut moved = settings(directory.path(), 1);
    moved.stores = vec![(StoreId(4), "s0".to_owned())];
    let backend = RocksBackend::open(moved).unwrap();
    assert_eq!(dropped(&backend), ["store.s1"]);
    assert_eq!(count(&backend, StoreId(4), 1), 5);
    let unknown = backend.get(A, &key(1, 0), &mut Vec::new()).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "store number 0 was not opened; every persistent store of the topology must be named at open"
    );
    drop(backend);
    let backend = open(directory.path());
    assert_eq!((count(&backend, A, 1), count(&backend, B, 1)), (5, 0));
}

#[test]
fn after_a_background_error_writes_are_refused_until_the_database_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path());
    fill(&backend, A, 1, 500);
    backend.check().unwrap();
    std::fs::remove_dir_all(directory.path().join(DATABASE)).unwrap();
    assert!(backend.flush(A).is_err());
    assert!(matches!(backend.check(), Err(StoreError::BackgroundError { .. })), "{:?}", backend.check());
    let mut batch = StoreBatch::with_capacity(1024);
    batch.put(A, &key(1, 0), b"refused").unwrap();
    assert!(matches!(backend.write(&batch), Err(StoreError::BackgroundError { .. })));
    // A scan that is still open keeps the database from being closed under it, and its visitor from waiting for ever.
    std::thread::scope(|scope| {
        let mut reopened = None;
        backend
            .scan(A, &partition_prefix(1), &partition_end(1), Order::Forward, &mut |_, _| {
                reopened = Some(scope.spawn(|| backend.reopen(false)));
                while backend.check().is_err_and(|error| matches!(error, StoreError::BackgroundError { .. })) {
                    std::thread::yield_now();
                }
                false
            })
            .unwrap();
        reopened.unwrap().join().unwrap().unwrap();
    });
    backend.check().unwrap();
    assert_eq!((offset(&backend, 1), count(&backend, A, 1)), (None, 0));
    fill(&backend, A, 1, 500);
    assert_eq!(offset(&backend, 1), Some(500));
}

#[test]
fn unflushed_data_is_flushed_when_it_is_old_enough_and_only_then() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path());
    assert_eq!(backend.flush_older_than(0).unwrap(), 0);
    fill(&backend, A, 1, 500);
    assert_eq!(backend.flush_older_than(FLUSH_AGE_MS).unwrap(), 0);
    assert_eq!(backend.flush_older_than(0).unwrap(), 1);
    assert_eq!(backend.flush_older_than(0).unwrap(), 0);
    fill(&backend, B, 1, 500);
    assert!(backend.flush_largest().unwrap());
    assert!(!backend.flush_largest().unwrap());
}

#[test]
fn threads_read_while_others_write() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path());
    fill(&backend, A, 0, 2_000);
    std::thread::scope(|scope| {
        for partition in 1..3 {
            let backend = &backend;
            scope.spawn(move || fill(backend, A, partition, 2_000));
            scope.spawn(move || {
                let mut into = Vec::new();
                for i in 0..2_000 {
                    assert!(backend.get(A, &key(0, i), &mut into).unwrap());
                    assert_eq!(into, value(i));
                }
            });
        }
    });
    for partition in 0..3 {
        assert_eq!(count(&backend, A, partition), 2_000);
    }
}
