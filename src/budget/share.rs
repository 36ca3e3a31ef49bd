//! Reservation before allocation: what a pool takes of its module's rows before it asks the allocator for a byte.
use super::Ledger;
use plimsoll_alloc::Module;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A module's rows have no room for a pool: the plan and what is built from it do not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes more do not fit the rows of module {module}: {used} of {limit} are taken")]
pub(crate) struct NoRoom {
    module: Module,
    bytes: u64,
    used: u64,
    limit: u64,
}

/// The rows of every module as shares. Clones share them; counters are relaxed, because they order no other memory.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    ledger: Arc<Ledger>,
    used: Arc<[AtomicU64; Module::COUNT]>,
}

impl Shares {
    /// Shares as large as the ledger's rows, nothing taken; the ledger counts the refusals for the report.
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        Self { ledger, used: Arc::new(std::array::from_fn(|_| AtomicU64::new(0))) }
    }

    /// Where refusals are counted.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Takes `bytes` of a module's rows until the answer is dropped. A refusal changes nothing but the count of
    /// refusals.
    pub(crate) fn try_grow(&self, module: Module, bytes: u64) -> Result<Reserved, NoRoom> {
        let limit = self.ledger.row(module);
        let grown =
            self.of(module).fetch_update(Relaxed, Relaxed, |used| used.checked_add(bytes).filter(|sum| *sum <= limit));
        match grown {
            Ok(_) => Ok(Reserved { shares: self.clone(), module, bytes }),
            Err(used) => {
                self.ledger.count_denied(module, 1);
                Err(NoRoom { module, bytes, used, limit })
            }
        }
    }

    fn of(&self, module: Module) -> &AtomicU64 {
        &self.used[module as usize]
    }
}

/// Bytes that are taken; dropping them gives them back.
#[derive(Debug)]
pub(crate) struct Reserved {
    shares: Shares,
    module: Module,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.shares.of(self.module).fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Demand, Line, plan};

    fn shares() -> (Shares, u64) {
        let line = Line { bytes: 64 << 20, app: None, producers: None, consumers: None, tracked: true };
        let ledger = Arc::new(Ledger::new(&plan(&Demand::word_count(line)).unwrap()));
        let row = ledger.row(Module::Batch);
        (Shares::new(ledger), row)
    }

    #[test]
    fn a_share_refuses_what_does_not_fit_and_has_it_back_once_it_is_dropped() {
        let (shares, row) = shares();
        let first = shares.try_grow(Module::Batch, row - 10).unwrap();
        let refused = shares.try_grow(Module::Batch, 11).unwrap_err();
        assert_eq!(refused, NoRoom { module: Module::Batch, bytes: 11, used: row - 10, limit: row });
        let second = shares.try_grow(Module::Batch, 10).unwrap();
        assert!(shares.try_grow(Module::Batch, u64::MAX).is_err());
        drop((first, second));
        assert!(shares.try_grow(Module::Batch, row).is_ok());
    }

    #[test]
    fn refusals_are_counted_for_the_module_in_the_ledger() {
        let (shares, row) = shares();
        assert!(shares.try_grow(Module::Batch, row + 1).is_err());
        assert_eq!((shares.ledger().denied(Module::Batch), shares.ledger().denied(Module::Cache)), (1, 0));
    }

    #[test]
    fn threads_together_never_pass_the_limit() {
        let (shares, row) = shares();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        if let Ok(_taken) = shares.try_grow(Module::Batch, row / 3) {
                            assert!(shares.of(Module::Batch).load(Relaxed) <= row);
                        }
                    }
                });
            }
        });
        assert_eq!(shares.of(Module::Batch).load(Relaxed), 0);
        let _ = shares.try_grow(Module::Batch, row).unwrap();
    }
}
