//! Declarations of `native/shim.h`, one for one.
#![allow(non_camel_case_types)]
use std::ffi::{c_char, c_int, c_void};
use std::marker::{PhantomData, PhantomPinned};

// Links RocksDB and what it compresses with.
use librocksdb_sys as _;

/// Codes above RocksDB's own.
pub(super) const PL_WRONG_OPTION: i32 = 101;
pub(super) const PL_STALLED: i32 = 102;
pub(super) const PL_UNKNOWN_STORE: i32 = 103;

#[repr(C)]
pub(super) struct pl_status {
    pub(super) code: i32,
    pub(super) subcode: i32,
    pub(super) severity: i32,
    pub(super) found: u64,
    pub(super) expected: u64,
    pub(super) message: [c_char; 256],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct pl_slice {
    pub(super) data: *const c_char,
    pub(super) size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct pl_allocator {
    pub(super) allocate: extern "C" fn(usize) -> *mut c_void,
    pub(super) deallocate: unsafe extern "C" fn(*mut c_void),
    pub(super) usable_size: unsafe extern "C" fn(*mut c_void, usize) -> usize,
    pub(super) inside: unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void),
}

#[repr(C)]
pub(super) struct pl_options {
    pub(super) path: pl_slice,
    pub(super) cache_allocator: pl_allocator,
    pub(super) cache_bytes: u64,
    pub(super) memtable_bytes: u64,
    pub(super) batch_bytes: u64,
    pub(super) target_file_bytes: u64,
    pub(super) bytes_per_sync: u64,
    pub(super) compaction_buffer_bytes: u64,
    pub(super) stall_deadline_ms: u64,
    pub(super) max_open_files: i32,
    pub(super) max_background_jobs: i32,
}

/// Memory of the database, in bytes unless said otherwise.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[cfg(test)]
pub(crate) struct DbMemory {
    /// All memtables, those being flushed and those pinned by a scan included.
    pub(crate) memtables: u64,
    /// Memtables that are written to.
    pub(crate) memtables_active: u64,
    pub(crate) cache_used: u64,
    pub(crate) cache_pinned: u64,
    pub(crate) cache_capacity: u64,
    /// RocksDB's estimate of what open tables hold outside the cache.
    pub(crate) table_readers: u64,
    /// Reads (count) that a cache full of pinned blocks turned away; each was repeated without the cache.
    pub(crate) refused_inserts: u64,
    /// Writes (count) that had to wait for room in the memtables.
    pub(crate) waits: u64,
}

#[repr(C)]
pub(super) struct pl_db {
    opaque: [u8; 0],
    not_movable: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub(super) struct pl_iterator {
    opaque: [u8; 0],
    not_movable: PhantomData<(*mut u8, PhantomPinned)>,
}

unsafe extern "C" {
    pub(super) fn pl_open(
        options: *const pl_options,
        stores: *const pl_slice,
        count: usize,
        status: *mut pl_status,
    ) -> *mut pl_db;
    pub(super) fn pl_close(db: *mut pl_db, status: *mut pl_status);
    #[cfg(test)]
    pub(super) fn pl_dropped(db: *const pl_db, i: usize) -> pl_slice;
    pub(super) fn pl_get(
        db: *mut pl_db,
        store: u16,
        key: pl_slice,
        value: *mut pl_slice,
        status: *mut pl_status,
    ) -> c_int;
    pub(super) fn pl_get_done();
    pub(super) fn pl_write(db: *mut pl_db, operations: pl_slice, status: *mut pl_status) -> c_int;
    pub(super) fn pl_iterator_new(
        db: *mut pl_db,
        store: u16,
        from: pl_slice,
        to: pl_slice,
        reverse: c_int,
        status: *mut pl_status,
    ) -> *mut pl_iterator;
    pub(super) fn pl_iterator_next(
        iterator: *mut pl_iterator,
        key: *mut pl_slice,
        value: *mut pl_slice,
        status: *mut pl_status,
    ) -> c_int;
    pub(super) fn pl_iterator_free(iterator: *mut pl_iterator);
    pub(super) fn pl_flush(db: *mut pl_db, store: u16, status: *mut pl_status) -> c_int;
    pub(super) fn pl_flush_older_than(db: *mut pl_db, age_ms: u64, status: *mut pl_status) -> c_int;
    pub(super) fn pl_flush_largest(db: *mut pl_db, status: *mut pl_status) -> c_int;
    pub(super) fn pl_delete_files(
        db: *mut pl_db,
        store: u16,
        from: pl_slice,
        to: pl_slice,
        status: *mut pl_status,
    ) -> c_int;
    pub(super) fn pl_delete_range(
        db: *mut pl_db,
        store: u16,
        from: pl_slice,
        to: pl_slice,
        status: *mut pl_status,
    ) -> c_int;
    #[cfg(test)]
    pub(super) fn pl_compact(db: *mut pl_db, store: u16, status: *mut pl_status) -> c_int;
    #[cfg(test)]
    pub(super) fn pl_memory_usage(db: *mut pl_db, memory: *mut DbMemory);
    pub(super) fn pl_set_cache_bytes(db: *mut pl_db, bytes: u64);
    pub(super) fn pl_background_error(db: *mut pl_db, status: *mut pl_status) -> c_int;
}
