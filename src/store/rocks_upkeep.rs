//! What the owning thread does for the database between its other work: the governor's wishes, and flushes of old data.
//!
//! The governor's levers only leave a wish in an atomic; [`Upkeep::turn`] grants it on the thread that owns the
//! database (the restore thread), for both flushing and resizing a cache allocate and wait.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::error::StoreError;
use super::rocks::{FLUSH_AGE_MS, RocksBackend};
use crate::budget::{Level, Lever, Rung};

/// How often data that is old enough to be flushed is looked for, in milliseconds.
const LOOK_MS: i64 = 30_000;
/// The block cache never shrinks below this.
const LEAST_CACHE_BYTES: u64 = 1 << 20;

/// Wishes of the governor, not granted yet.
#[derive(Debug, Default)]
struct Wishes {
    flush: AtomicBool,
    /// 0: the planned cache; 1: three quarters; 2: half.
    shrink: AtomicU8,
}

/// One lever of the governor over the database.
struct RocksLever {
    rung: Rung,
    wishes: Arc<Wishes>,
}

impl Lever for RocksLever {
    fn rung(&self) -> Rung {
        self.rung
    }

    fn pull(&mut self, level: Level) {
        match self.rung {
            Rung::ShrinkBlockCache => {
                let step = if level == Level::Full { 2 } else { 1 };
                self.wishes.shrink.store(step, Ordering::Relaxed);
            }
            _ => self.wishes.flush.store(true, Ordering::Relaxed),
        }
    }

    fn undo(&mut self) {
        match self.rung {
            Rung::ShrinkBlockCache => self.wishes.shrink.store(0, Ordering::Relaxed),
            _ => self.wishes.flush.store(false, Ordering::Relaxed),
        }
    }
}

/// Cares for one database. Owned by one thread.
#[derive(Debug)]
pub(crate) struct Upkeep {
    backend: Arc<RocksBackend>,
    wishes: Arc<Wishes>,
    shrunk: u8,
    looked_ms: i64,
}

impl Upkeep {
    pub(crate) fn new(backend: Arc<RocksBackend>) -> Self {
        Self { backend, wishes: Arc::default(), shrunk: 0, looked_ms: 0 }
    }

    /// The levers to give to the governor.
    pub(crate) fn levers(&self) -> Vec<Box<dyn Lever>> {
        let lever = |rung| Box::new(RocksLever { rung, wishes: self.wishes.clone() }) as Box<dyn Lever>;
        vec![lever(Rung::FlushMemtables), lever(Rung::ShrinkBlockCache)]
    }

    /// Opens the database again after it has stopped; see [`RocksBackend::reopen`].
    pub(crate) fn reopen(&self, empty: bool) -> Result<(), StoreError> {
        self.backend.reopen(empty)
    }

    /// Grants what is wished and flushes what is old; to be called every few milliseconds up to a second, with the
    /// monotonic clock. Never waits for a flush. A [`StoreError::BackgroundError`] means: stop the tasks, reopen,
    /// restore.
    pub(crate) fn turn(&mut self, now_ms: i64) -> Result<(), StoreError> {
        self.backend.check()?;
        if self.wishes.flush.swap(false, Ordering::Relaxed) {
            self.backend.flush_largest()?;
        }
        let shrink = self.wishes.shrink.load(Ordering::Relaxed);
        if shrink != self.shrunk {
            let planned = self.backend.options().cache_bytes;
            let bytes = planned - planned / 4 * u64::from(shrink);
            self.backend.set_cache_bytes(bytes.max(LEAST_CACHE_BYTES.min(planned)))?;
            self.shrunk = shrink;
        }
        if now_ms.saturating_sub(self.looked_ms) >= LOOK_MS {
            self.looked_ms = now_ms;
            // Looked for so often, nothing grows older than ten minutes.
            self.backend.flush_older_than(FLUSH_AGE_MS - 2 * LOOK_MS.unsigned_abs())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::rocks::tests::{A, MIB, fill, settings};
    use super::*;

    #[test]
    fn the_governors_wishes_are_granted_once_and_undone() {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = settings(directory.path(), 1);
        settings.options.cache_bytes = 4 * MIB;
        let backend = Arc::new(RocksBackend::open(settings).unwrap());
        let mut upkeep = Upkeep::new(backend.clone());
        let mut levers = upkeep.levers();
        let capacity = || backend.memory().unwrap().cache_capacity;
        fill(&*backend, A, 1, 500);
        upkeep.turn(0).unwrap();
        assert!(backend.memory().unwrap().memtables_active > 50_000);
        for lever in &mut levers {
            lever.pull(Level::Full);
        }
        upkeep.turn(1).unwrap();
        assert!(backend.memory().unwrap().memtables_active < 50_000);
        assert_eq!(capacity(), 2 * MIB);
        for lever in &mut levers {
            lever.undo();
        }
        upkeep.turn(2).unwrap();
        assert_eq!(capacity(), 4 * MIB);
    }
}
