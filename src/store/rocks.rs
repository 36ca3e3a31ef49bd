//! The backend on disk: one RocksDB a process, a column family per store, no write-ahead log (the changelog is the
//! log).
//!
//! Owns the state directory (its lock and the database in it). Invariant: a partition that has rows has an offset,
//! except while it is being dropped or restored, and a crash then leaves rows without an offset, never an offset
//! without its rows; such rows are deleted at open. Memory: memtables and block cache stay within the sizes of
//! [`RocksSettings`]; see `native/`.
//!
//! Families of stores that the topology no longer has are dropped at open: each would take memory that no plan counts,
//! and a store that comes back is restored from its changelog.
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::backend::{Backend, Order};
use super::batch::StoreBatch;
use super::error::{Severity, StoreError};
use super::offset::{OFFSET_VALUE_BYTES, StoredOffset, offset_key, partition_end, partition_prefix};
use super::rocks_lock::DirLock;
use super::rocks_scans::ScanSlots;
use crate::base::id::StoreId;
#[cfg(test)]
use crate::ffi::rocks::DbMemory;
use crate::ffi::rocks::{Db, DbOptions, RocksError, RocksErrorKind};

/// Where the database lies below the state directory.
const DATABASE: &str = "rocksdb";
/// In front of a store's name in its family's name, so that a store may be named "default".
const FAMILY: &str = "store.";
/// Data that lies unflushed for so long is flushed, so that little is restored after a crash.
pub(crate) const FLUSH_AGE_MS: u64 = 10 * 60 * 1000;

/// What to open, and with how much memory.
#[derive(Clone, Debug)]
pub(crate) struct RocksSettings {
    /// The application's own directory; made if it is missing.
    pub(crate) directory: PathBuf,
    /// Every persistent store of the topology.
    pub(crate) stores: Vec<(StoreId, String)>,
    /// Sizes from the plan.
    pub(crate) options: DbOptions,
}

impl RocksSettings {
    /// Names of families by store number; numbers without a persistent store stay empty.
    fn families(&self) -> Vec<String> {
        let count = self.stores.iter().map(|(id, _)| id.index() + 1).max().unwrap_or(0);
        let mut families = vec![String::new(); count];
        for (id, name) in &self.stores {
            if let Some(family) = families.get_mut(id.index()) {
                *family = format!("{FAMILY}{name}");
            }
        }
        families
    }
}

/// RocksDB as [`Backend`].
#[derive(Debug)]
pub(crate) struct RocksBackend {
    settings: RocksSettings,
    scans: ScanSlots,
    // Empty only while it is reopened, or when that failed. Shared by readers and writers, exclusive to reopening; a
    // scan takes its own handle, because its visitor may come back here.
    db: RwLock<Option<Arc<Db>>>,
    // Last, so that it is released when the database is closed.
    _lock: DirLock,
}

impl RocksBackend {
    /// Locks the state directory, opens the database in it and deletes rows that no offset vouches for.
    pub(crate) fn open(settings: RocksSettings) -> Result<Self, StoreError> {
        let lock = DirLock::acquire(&settings.directory)?;
        let db = open_database(&settings)?;
        let scans = ScanSlots::new(settings.options.max_scans.into());
        Ok(Self { settings, scans, db: RwLock::new(Some(Arc::new(db))), _lock: lock })
    }

    /// What it was opened with.
    pub(crate) fn options(&self) -> &DbOptions {
        &self.settings.options
    }

    /// Closes and opens the database again, after a background error. What was not flushed is gone: every task must go
    /// on from the offsets that are stored now. Waits for open scans; meanwhile all other calls fail.
    /// With `empty` its files are deleted in between, so that damaged ones are not opened again.
    pub(crate) fn reopen(&self, empty: bool) -> Result<(), StoreError> {
        let mut old = self.db.write().unwrap_or_else(PoisonError::into_inner).take();
        let deadline = Instant::now() + Duration::from_millis(self.settings.options.stall_deadline_ms);
        while let Some(shared) = old {
            old = Arc::try_unwrap(shared).err();
            if old.is_some() && Instant::now() > deadline {
                *self.db.write().unwrap_or_else(PoisonError::into_inner) = old;
                return Err(StoreError::Io {
                    message: "a scan is still open, so the database stays as it is".to_owned(),
                });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if empty {
            remove_database(&self.settings.directory)?;
        }
        let new = Arc::new(open_database(&self.settings)?);
        *self.db.write().unwrap_or_else(PoisonError::into_inner) = Some(new);
        Ok(())
    }

    /// The background error that stopped the database, if one did: then [`reopen`](Self::reopen) and restore.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.with(|db| db.background_error().map_or(Ok(()), Err))
    }

    /// Starts flushing every store that has had unflushed data for `age_ms`. The owning thread calls it now and then
    /// with [`FLUSH_AGE_MS`]. Returns how many stores.
    pub(crate) fn flush_older_than(&self, age_ms: u64) -> Result<usize, StoreError> {
        self.with(|db| db.flush_older_than(age_ms))
    }

    /// Starts flushing the store with the largest memtable: a lever of the governor. False when nothing is left to
    /// flush.
    pub(crate) fn flush_largest(&self) -> Result<bool, StoreError> {
        self.with(Db::flush_largest)
    }

    /// Flushes one store and waits for the end.
    #[cfg(test)]
    pub(crate) fn flush(&self, store: StoreId) -> Result<(), StoreError> {
        self.with(|db| db.flush(store.0))
    }

    /// Changes the capacity of the block cache: a lever of the governor.
    pub(crate) fn set_cache_bytes(&self, bytes: u64) -> Result<(), StoreError> {
        self.with(|db| {
            db.set_cache_bytes(bytes);
            Ok(())
        })
    }

    /// Memory of the database as RocksDB counts it.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> Result<DbMemory, StoreError> {
        self.with(|db| Ok(db.memory()))
    }

    fn with<T>(&self, call: impl FnOnce(&Db) -> Result<T, RocksError>) -> Result<T, StoreError> {
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
        let db = db.as_ref().ok_or_else(not_open)?;
        call(db).map_err(|error| self.error(error))
    }

    fn error(&self, error: RocksError) -> StoreError {
        store_error(error, self.settings.options.stall_deadline_ms)
    }
}

impl Backend for RocksBackend {
    fn get(&self, store: StoreId, key: &[u8], into: &mut Vec<u8>) -> Result<bool, StoreError> {
        self.with(|db| db.get(store.0, key, into))
    }

    fn write(&self, batch: &StoreBatch) -> Result<(), StoreError> {
        self.with(|db| db.write(batch.as_bytes()))
    }

    fn offset(&self, store: StoreId, partition: u32) -> Result<Option<StoredOffset>, StoreError> {
        let mut bytes = Vec::with_capacity(OFFSET_VALUE_BYTES);
        let found = self.with(|db| db.get(store.0, &offset_key(partition), &mut bytes))?;
        found.then(|| StoredOffset::decode(&bytes)).transpose()
    }

    fn drop_partition(&self, store: StoreId, partition: u32) -> Result<(), StoreError> {
        self.with(|db| drop_partition(db, store.0, partition))
    }

    fn delete_range(&self, store: StoreId, from: &[u8], to: &[u8]) -> Result<(), StoreError> {
        self.with(|db| {
            db.delete_files(store.0, from, to)?;
            db.delete_range(store.0, from, to)
        })
    }

    fn scan(
        &self,
        store: StoreId,
        from: &[u8],
        to: &[u8],
        order: Order,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        if from >= to {
            return Ok(());
        }
        let _slot = self.scans.take();
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(not_open)?;
        let mut rows = db.rows(store.0, from, to, order == Order::Reverse).map_err(|error| self.error(error))?;
        while let Some((key, value)) = rows.next().map_err(|error| self.error(error))? {
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }
}

fn not_open() -> StoreError {
    StoreError::Io { message: "the database is being reopened or could not be".to_owned() }
}

fn open_database(settings: &RocksSettings) -> Result<Db, StoreError> {
    let path = settings.directory.join(DATABASE);
    let open = Db::open(&path, &settings.families(), &settings.options).and_then(|db| {
        for (store, _) in &settings.stores {
            sweep(&db, store.0)?;
        }
        Ok(db)
    });
    open.map_err(|error| store_error(error, settings.options.stall_deadline_ms))
}

/// Deletes the database's files.
fn remove_database(directory: &Path) -> Result<(), StoreError> {
    match std::fs::remove_dir_all(directory.join(DATABASE)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::Io { message: error.to_string() })
        }
        _ => Ok(()),
    }
}

/// Deletes every partition that has rows but no offset: what a killed drop or first restore left.
fn sweep(db: &Db, store: u16) -> Result<(), RocksError> {
    let mut from = partition_prefix(0);
    let end = [0xff; 4];
    let mut offset = Vec::with_capacity(OFFSET_VALUE_BYTES);
    loop {
        let partition = match db.rows(store, &from, &end, false)?.next()? {
            Some((key, _)) => match key.first_chunk::<4>() {
                Some(prefix) => u32::from_be_bytes(*prefix),
                None => return Err(short_key(key.len())),
            },
            None => return Ok(()),
        };
        if !db.get(store, &offset_key(partition), &mut offset)? {
            delete_rows(db, store, partition)?;
        }
        from = partition_end(partition);
    }
}

fn short_key(len: usize) -> RocksError {
    let message = format!("a key of {len} bytes has no partition");
    RocksError { kind: RocksErrorKind::Corruption, severity: 0, message }
}

/// The offset goes first, and is on disk as gone before any row is: deleting files lasts at once, a tombstone only when
/// flushed.
fn drop_partition(db: &Db, store: u16, partition: u32) -> Result<(), RocksError> {
    let key = offset_key(partition);
    let mut stored = Vec::with_capacity(OFFSET_VALUE_BYTES);
    if db.get(store, &key, &mut stored)? {
        let mut batch = StoreBatch::with_capacity(64);
        // Always fits.
        let _ = batch.delete(StoreId(store), &key);
        step("drop-begun");
        db.write(batch.as_bytes())?;
        step("drop-offset-deleted");
        db.flush(store)?;
    }
    step("drop-offset-flushed");
    delete_rows(db, store, partition)
}

fn delete_rows(db: &Db, store: u16, partition: u32) -> Result<(), RocksError> {
    let (from, to) = (partition_prefix(partition), partition_end(partition));
    db.delete_files(store, &from, &to)?;
    step("drop-files-deleted");
    db.delete_range(store, &from, &to)?;
    step("drop-range-deleted");
    Ok(())
}

fn store_error(error: RocksError, deadline_ms: u64) -> StoreError {
    let message = error.message;
    let severity = match error.severity {
        2 => Some(Severity::Hard),
        3 => Some(Severity::Fatal),
        4.. => Some(Severity::Unrecoverable),
        _ => None,
    };
    if let Some(severity) = severity {
        return StoreError::BackgroundError { severity, message };
    }
    match error.kind {
        RocksErrorKind::Corruption => StoreError::Corrupt { message },
        RocksErrorKind::Stalled { used, row } => StoreError::Stalled { waited_ms: deadline_ms, used, row },
        RocksErrorKind::WrongOption { found, expected } => StoreError::Options { option: message, found, expected },
        RocksErrorKind::UnknownStore => StoreError::UnknownStore { message },
        RocksErrorKind::Io | RocksErrorKind::Other => StoreError::Io { message },
    }
}

/// A place where tests kill the process.
#[cfg(not(test))]
#[inline]
fn step(_name: &str) {}
#[cfg(test)]
use crash_tests::step;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
pub(super) mod tests;
