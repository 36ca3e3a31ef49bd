//! What every backend must do, as tests that each backend's own tests call.
use super::backend::{Backend, Order};
use super::batch::StoreBatch;
use super::offset::{StoredOffset, offset_key, partition_end, partition_prefix};
use crate::base::id::StoreId;

const A: StoreId = StoreId(0);
const B: StoreId = StoreId(1);
const AT_7: StoredOffset = StoredOffset { offset: 7, topic_id: [9; 16], wall_ms: 1_700_000_000_000, stream_time: 55 };

fn key(partition: u32, rest: &str) -> Vec<u8> {
    [&partition_prefix(partition), rest.as_bytes()].concat()
}

fn value(backend: &dyn Backend, store: StoreId, key: &[u8]) -> Option<Vec<u8>> {
    let mut into = b"old".to_vec();
    backend.get(store, key, &mut into).unwrap().then_some(into)
}

fn rows(backend: &dyn Backend, store: StoreId, from: &[u8], to: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seen = Vec::new();
    backend
        .scan(store, from, to, Order::Forward, &mut |key, value| {
            seen.push((key.to_vec(), value.to_vec()));
            true
        })
        .unwrap();
    seen
}

pub(crate) fn rows_and_offsets_are_written_together(backend: &dyn Backend) {
    let mut batch = StoreBatch::with_capacity(4096);
    batch.put(A, &key(1, "a"), b"one").unwrap();
    batch.put(B, &key(1, "a"), b"other store").unwrap();
    batch.put(A, &key(1, "gone"), b"x").unwrap();
    batch.delete(A, &key(1, "gone")).unwrap();
    batch.put(A, &key(1, "empty"), b"").unwrap();
    batch.set_offset(A, 1, &AT_7).unwrap();
    assert_eq!(backend.offset(A, 1).unwrap(), None);
    backend.write(&batch).unwrap();
    assert_eq!(value(backend, A, &key(1, "a")).as_deref(), Some(b"one".as_slice()));
    assert_eq!(value(backend, B, &key(1, "a")).as_deref(), Some(b"other store".as_slice()));
    assert_eq!(value(backend, A, &key(1, "gone")), None);
    assert_eq!(value(backend, A, &key(1, "empty")).as_deref(), Some(b"".as_slice()));
    assert_eq!(value(backend, A, &key(2, "a")), None);
    assert_eq!(backend.offset(A, 1).unwrap(), Some(AT_7));
    assert_eq!((backend.offset(A, 0).unwrap(), backend.offset(B, 1).unwrap()), (None, None));
}

pub(crate) fn a_scan_is_bounded_ordered_and_a_snapshot(backend: &dyn Backend) {
    let mut batch = StoreBatch::with_capacity(4096);
    for name in ["c", "a", "b"] {
        batch.put(A, &key(1, name), name.as_bytes()).unwrap();
    }
    batch.put(A, &key(2, "a"), b"next partition").unwrap();
    batch.set_offset(A, 1, &AT_7).unwrap();
    backend.write(&batch).unwrap();
    let names = |from: &[u8], to: &[u8]| -> String {
        rows(backend, A, from, to).iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
    };
    assert_eq!(names(&partition_prefix(1), &partition_end(1)), "abc");
    assert_eq!(names(&key(1, "b"), &key(1, "c")), "b");
    assert_eq!(names(&key(1, "b"), &key(1, "b")), "");
    assert_eq!(names(&key(1, "c"), &key(1, "a")), "");
    let reverse = |from: &[u8], to: &[u8], most: usize| -> String {
        let mut seen = String::new();
        let mut visit = |_: &[u8], value: &[u8]| {
            seen.push_str(&String::from_utf8_lossy(value));
            seen.len() < most
        };
        backend.scan(A, from, to, Order::Reverse, &mut visit).unwrap();
        seen
    };
    assert_eq!(reverse(&partition_prefix(1), &partition_end(1), 9), "cba");
    assert_eq!(reverse(&partition_prefix(1), &partition_end(1), 2), "cb");
    assert_eq!(reverse(&key(1, "a"), &key(1, "c"), 9), "ba");
    assert_eq!(reverse(&key(1, "aa"), &key(1, "bb"), 9), "b");
    let mut seen = 0;
    backend
        .scan(A, &partition_prefix(1), &partition_end(1), Order::Forward, &mut |_, _| {
            seen += 1;
            batch.clear();
            batch.put(A, &key(1, "bb"), b"late").unwrap();
            backend.write(&batch).unwrap();
            true
        })
        .unwrap();
    assert_eq!(seen, 3);
    seen = 0;
    backend
        .scan(A, &partition_prefix(1), &partition_end(1), Order::Forward, &mut |_, _| {
            seen += 1;
            seen < 2
        })
        .unwrap();
    assert_eq!(seen, 2);
}

pub(crate) fn a_dropped_partition_leaves_its_neighbours(backend: &dyn Backend) {
    let mut batch = StoreBatch::with_capacity(4096);
    for partition in 0..3 {
        batch.put(A, &key(partition, "k"), b"v").unwrap();
        batch.set_offset(A, partition, &AT_7).unwrap();
    }
    backend.write(&batch).unwrap();
    backend.drop_partition(A, 1).unwrap();
    assert_eq!(value(backend, A, &key(0, "k")).as_deref(), Some(b"v".as_slice()));
    assert_eq!(value(backend, A, &key(1, "k")), None);
    assert_eq!(value(backend, A, &key(2, "k")).as_deref(), Some(b"v".as_slice()));
    assert_eq!(backend.offset(A, 0).unwrap(), Some(AT_7));
    assert_eq!(backend.offset(A, 1).unwrap(), None);
    assert_eq!(backend.offset(A, 2).unwrap(), Some(AT_7));
    assert_eq!(rows(backend, A, &offset_key(0), &offset_key(9)).len(), 2);
}

pub(crate) fn rows_without_an_offset_are_wiped_before_a_restore(backend: &dyn Backend) {
    let mut batch = StoreBatch::with_capacity(4096);
    batch.put(A, &key(4, "stray"), b"v").unwrap();
    batch.put(A, &key(5, "kept"), b"v").unwrap();
    batch.set_offset(A, 5, &AT_7).unwrap();
    backend.write(&batch).unwrap();
    assert_eq!(backend.begin_restore(A, 4).unwrap(), None);
    assert_eq!(backend.begin_restore(A, 5).unwrap(), Some(AT_7));
    assert_eq!(backend.begin_restore(A, 6).unwrap(), None);
    assert_eq!(value(backend, A, &key(4, "stray")), None);
    assert_eq!(value(backend, A, &key(5, "kept")).as_deref(), Some(b"v".as_slice()));
}
