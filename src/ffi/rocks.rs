//! RocksDB behind the shim of `native/`, as safe calls: one database, a column family a store.
//!
//! Owns the native database; closed when dropped. Allocations inside a call go to the module Store, those of the block
//! cache to BlockCache, whichever thread makes them. RocksDB's own threads start inside `open` and are born into Store.
//! Called by `store::rocks` alone.
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

use plimsoll_alloc::{Module, scope};

#[cfg(test)]
pub(crate) use super::rocks_sys::DbMemory;
use super::rocks_sys::{self as sys, pl_allocator, pl_options, pl_slice, pl_status};
use crate::budget::Sizes;

/// Why a call failed. Codes, subcodes and severities are those of `rocksdb::Status`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct RocksError {
    pub(crate) kind: RocksErrorKind,
    /// RocksDB's severity: 2 hard, 3 fatal, 4 unrecoverable; below, the database goes on.
    pub(crate) severity: i32,
    pub(crate) message: String,
}

/// What the caller tells apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RocksErrorKind {
    Corruption,
    Io,
    /// No room in the memtables until the deadline.
    Stalled {
        used: u64,
        row: u64,
    },
    /// An option is not what was asked for; its name is the message.
    WrongOption {
        found: u64,
        expected: u64,
    },
    UnknownStore,
    Other,
}

const CORRUPTION: i32 = 2;
const IO_ERROR: i32 = 5;

struct Status(pl_status);

impl Status {
    fn new() -> Self {
        Self(pl_status { code: 0, subcode: 0, severity: 0, found: 0, expected: 0, message: [0; 256] })
    }

    fn error(&self) -> RocksError {
        let (found, expected) = (self.0.found, self.0.expected);
        let kind = match self.0.code {
            CORRUPTION => RocksErrorKind::Corruption,
            IO_ERROR => RocksErrorKind::Io,
            sys::PL_STALLED => RocksErrorKind::Stalled { used: found, row: expected },
            sys::PL_WRONG_OPTION => RocksErrorKind::WrongOption { found, expected },
            sys::PL_UNKNOWN_STORE => RocksErrorKind::UnknownStore,
            _ => RocksErrorKind::Other,
        };
        // SAFETY: the array is zeroed at first and the shim writes it with snprintf, so it holds a zero byte.
        let message = unsafe { CStr::from_ptr(self.0.message.as_ptr()) }.to_string_lossy().into_owned();
        RocksError { kind, severity: self.0.severity, message }
    }
}

fn slice(bytes: &[u8]) -> pl_slice {
    pl_slice { data: bytes.as_ptr().cast(), size: bytes.len() }
}

/// # Safety
/// A slice that the shim filled and whose bytes live, unchanged, for `'a`.
unsafe fn bytes<'a>(slice: pl_slice) -> &'a [u8] {
    if slice.size == 0 {
        return &[];
    }
    // SAFETY: the caller's promise; with a size the pointer is not null.
    unsafe { std::slice::from_raw_parts(slice.data.cast(), slice.size) }
}

extern "C" fn allocate_block(size: usize) -> *mut c_void {
    let _scope = scope(Module::BlockCache);
    // SAFETY: malloc may be called with any size.
    unsafe { libc::malloc(size) }
}

unsafe extern "C" fn free_block(block: *mut c_void) {
    // SAFETY: RocksDB frees each block of `allocate_block` once.
    unsafe { libc::free(block) };
}

unsafe extern "C" fn usable_block(block: *mut c_void, _requested: usize) -> usize {
    // SAFETY: a live block of `allocate_block`.
    unsafe { libc::malloc_usable_size(block) }
}

unsafe extern "C" fn inside_cache(call: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) {
    let _scope = scope(Module::BlockCache);
    // SAFETY: the shim's function with the argument made for it; it does not throw, for the cache allocates nothing
    // that the process could go on without.
    unsafe { call(argument) };
}

/// How to open a database. Sizes are in bytes and come from the plan.
#[derive(Clone, Debug)]
pub(crate) struct DbOptions {
    /// Capacity of the block cache.
    pub(crate) cache_bytes: u64,
    /// Bound of all memtables together.
    pub(crate) memtable_bytes: u64,
    /// Largest batch that will be written.
    pub(crate) batch_bytes: u64,
    /// Size of a table file.
    pub(crate) target_file_bytes: u64,
    /// Table files open at once.
    pub(crate) max_open_files: u16,
    /// Scans open at once.
    pub(crate) max_scans: u16,
    /// Readahead of one input of a compaction, and buffer of its output.
    pub(crate) compaction_buffer_bytes: u64,
    /// How long a write may wait for room in the memtables, in milliseconds.
    pub(crate) stall_deadline_ms: u64,
}

/// What the module of the block cache takes beside the cache: blocks that compactions and refused reads hold, thread
/// caches, pages on their way back. Measured: 0.7 to 1.3 MiB whatever the capacity.
const CACHE_MARGIN: u64 = 1 << 20;
/// Writes wait for flushes, which take a fraction of a second on a disk that works.
const STALL_DEADLINE_MS: u64 = 30_000;

impl DbOptions {
    /// The sizes that fit the plan's rows.
    pub(crate) fn planned(sizes: &Sizes) -> Self {
        let bytes = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        let number = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let cache_bytes = bytes(sizes.block_cache_bytes);
        let cache_bytes = cache_bytes.saturating_sub(CACHE_MARGIN).max(cache_bytes / 2);
        Self {
            cache_bytes,
            memtable_bytes: bytes(sizes.memtable_bytes),
            batch_bytes: bytes(sizes.store_batch_bytes),
            // Index and filter of a file (some 2 % of it) must be a small part of the cache.
            target_file_bytes: (cache_bytes / 2).clamp(2 << 20, 8 << 20),
            max_open_files: number(sizes.max_open_files),
            max_scans: number(sizes.max_iterators),
            compaction_buffer_bytes: bytes(sizes.compaction_readahead_bytes),
            stall_deadline_ms: STALL_DEADLINE_MS,
        }
    }
}

/// Bytes written between two requests to the kernel to write them out.
const BYTES_PER_SYNC: u64 = 1 << 20;
/// One thread that flushes, one that compacts.
const BACKGROUND_JOBS: i32 = 2;

/// An open database.
#[derive(Debug)]
pub(crate) struct Db(NonNull<sys::pl_db>);

// SAFETY: RocksDB's DB may be used from any thread; the shim's own state is atomic or behind its mutex. Falsified by
// `store::rocks::tests::threads_read_while_others_write`.
unsafe impl Send for Db {}
// SAFETY: as above.
unsafe impl Sync for Db {}

impl Db {
    /// Opens or makes the database in this directory, with one family a name. Families of other names are dropped.
    pub(crate) fn open(path: &Path, families: &[String], options: &DbOptions) -> Result<Self, RocksError> {
        let _scope = scope(Module::Store);
        let names: Vec<pl_slice> = families.iter().map(|name| slice(name.as_bytes())).collect();
        let native = pl_options {
            path: slice(path.as_os_str().as_encoded_bytes()),
            cache_allocator: pl_allocator {
                allocate: allocate_block,
                deallocate: free_block,
                usable_size: usable_block,
                inside: inside_cache,
            },
            cache_bytes: options.cache_bytes,
            memtable_bytes: options.memtable_bytes,
            batch_bytes: options.batch_bytes,
            target_file_bytes: options.target_file_bytes,
            bytes_per_sync: BYTES_PER_SYNC,
            compaction_buffer_bytes: options.compaction_buffer_bytes,
            stall_deadline_ms: options.stall_deadline_ms,
            max_open_files: i32::from(options.max_open_files),
            max_background_jobs: BACKGROUND_JOBS,
        };
        let mut status = Status::new();
        // SAFETY: the pointers live through the call; the shim copies what it keeps.
        let db = unsafe { sys::pl_open(&native, names.as_ptr(), names.len(), &mut status.0) };
        NonNull::new(db).map(Self).ok_or_else(|| status.error())
    }

    /// Names of the families that were dropped at open because no store has them any more.
    #[cfg(test)]
    pub(crate) fn dropped(&self) -> Vec<String> {
        let name = |i| {
            // SAFETY: an open database; the name lives as long as it does and is copied here.
            let name = unsafe { bytes(sys::pl_dropped(self.0.as_ptr(), i)) };
            (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
        };
        (0..).map_while(name).collect()
    }

    /// Replaces `into` by a value; false when there is none.
    pub(crate) fn get(&self, store: u16, key: &[u8], into: &mut Vec<u8>) -> Result<bool, RocksError> {
        into.clear();
        let mut status = Status::new();
        let mut value = slice(&[]);
        let found = {
            let _scope = scope(Module::Store);
            // SAFETY: an open database, a key that lives through the call, places for value and status.
            unsafe { sys::pl_get(self.0.as_ptr(), store, slice(key), &mut value, &mut status.0) }
        };
        if found != 1 {
            return if found == 0 { Ok(false) } else { Err(status.error()) };
        }
        // SAFETY: a found value lives until `pl_get_done` on this thread, which comes after the copy.
        into.extend_from_slice(unsafe { bytes(value) });
        let _scope = scope(Module::Store);
        // SAFETY: `value` is not used any more.
        unsafe { sys::pl_get_done() };
        Ok(true)
    }

    /// Applies the bytes of a batch, all or none.
    pub(crate) fn write(&self, operations: &[u8]) -> Result<(), RocksError> {
        // SAFETY: an open database; the shim checks the bytes and copies what it keeps.
        self.call(|db, status| unsafe { sys::pl_write(db, slice(operations), status) }).map(drop)
    }

    /// Flushes a store and waits for the end.
    pub(crate) fn flush(&self, store: u16) -> Result<(), RocksError> {
        // SAFETY: an open database.
        self.call(|db, status| unsafe { sys::pl_flush(db, store, status) }).map(drop)
    }

    /// Starts flushing stores whose oldest unflushed write is so old; returns how many.
    pub(crate) fn flush_older_than(&self, age_ms: u64) -> Result<usize, RocksError> {
        // SAFETY: an open database.
        self.call(|db, status| unsafe { sys::pl_flush_older_than(db, age_ms, status) })
    }

    /// Starts flushing the store with the largest memtable; false when all are empty.
    pub(crate) fn flush_largest(&self) -> Result<bool, RocksError> {
        // SAFETY: an open database.
        self.call(|db, status| unsafe { sys::pl_flush_largest(db, status) }).map(|started| started > 0)
    }

    /// Deletes files that lie wholly in the range.
    pub(crate) fn delete_files(&self, store: u16, from: &[u8], to: &[u8]) -> Result<(), RocksError> {
        // SAFETY: an open database and keys that live through the call.
        self.call(|db, status| unsafe { sys::pl_delete_files(db, store, slice(from), slice(to), status) }).map(drop)
    }

    /// Deletes the rows of the range by a tombstone.
    pub(crate) fn delete_range(&self, store: u16, from: &[u8], to: &[u8]) -> Result<(), RocksError> {
        // SAFETY: an open database and keys that live through the call.
        self.call(|db, status| unsafe { sys::pl_delete_range(db, store, slice(from), slice(to), status) }).map(drop)
    }

    /// Merges all files of a store.
    #[cfg(test)]
    pub(crate) fn compact(&self, store: u16) -> Result<(), RocksError> {
        // SAFETY: an open database.
        self.call(|db, status| unsafe { sys::pl_compact(db, store, status) }).map(drop)
    }

    /// Rows of `[from, to)` as they are now, in the order of their bytes or the other way round.
    pub(crate) fn rows(&self, store: u16, from: &[u8], to: &[u8], reverse: bool) -> Result<DbRows<'_>, RocksError> {
        let _scope = scope(Module::Store);
        let (from, to, reverse) = (slice(from), slice(to), c_int::from(reverse));
        let mut status = Status::new();
        // SAFETY: an open database; the shim copies both keys.
        let rows = unsafe { sys::pl_iterator_new(self.0.as_ptr(), store, from, to, reverse, &mut status.0) };
        NonNull::new(rows).map(|rows| DbRows { rows, _db: self }).ok_or_else(|| status.error())
    }

    #[cfg(test)]
    pub(crate) fn memory(&self) -> DbMemory {
        let mut memory = DbMemory::default();
        // SAFETY: an open database and a place to write to.
        unsafe { sys::pl_memory_usage(self.0.as_ptr(), &mut memory) };
        memory
    }

    /// Changes the capacity of the block cache; what does not fit any more is evicted.
    pub(crate) fn set_cache_bytes(&self, bytes: u64) {
        let _scope = scope(Module::Store);
        // SAFETY: an open database.
        unsafe { sys::pl_set_cache_bytes(self.0.as_ptr(), bytes) };
    }

    /// The background error that stopped the database, if one did.
    pub(crate) fn background_error(&self) -> Option<RocksError> {
        // SAFETY: an open database.
        self.call(|db, status| unsafe { sys::pl_background_error(db, status) }).err()
    }

    fn call(&self, call: impl FnOnce(*mut sys::pl_db, *mut pl_status) -> c_int) -> Result<usize, RocksError> {
        let _scope = scope(Module::Store);
        let mut status = Status::new();
        usize::try_from(call(self.0.as_ptr(), &mut status.0)).map_err(|_| status.error())
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        let _scope = scope(Module::Store);
        let mut status = Status::new();
        // SAFETY: closed once; rows borrow the database, so none is left. An error here loses nothing: what is not
        // flushed is in the changelogs.
        unsafe { sys::pl_close(self.0.as_ptr(), &mut status.0) };
    }
}

/// Key and value of a row.
type DbRow<'a> = (&'a [u8], &'a [u8]);

/// Rows of a range, in the order that was asked for, as they were when the range was opened.
#[derive(Debug)]
pub(crate) struct DbRows<'a> {
    rows: NonNull<sys::pl_iterator>,
    _db: &'a Db,
}

impl DbRows<'_> {
    /// The next row: key and value, valid until the next call.
    pub(crate) fn next(&mut self) -> Result<Option<DbRow<'_>>, RocksError> {
        let _scope = scope(Module::Store);
        let mut status = Status::new();
        let (mut key, mut value) = (slice(&[]), slice(&[]));
        // SAFETY: a live iterator and places for key, value and status.
        match unsafe { sys::pl_iterator_next(self.rows.as_ptr(), &mut key, &mut value, &mut status.0) } {
            // SAFETY: both live until the next call, which needs `self` mutably.
            1 => Ok(Some(unsafe { (bytes(key), bytes(value)) })),
            0 => Ok(None),
            _ => Err(status.error()),
        }
    }
}

impl Drop for DbRows<'_> {
    fn drop(&mut self) {
        let _scope = scope(Module::Store);
        // SAFETY: freed once, before the database, which it borrows.
        unsafe { sys::pl_iterator_free(self.rows.as_ptr()) };
    }
}
