//! Reservation before allocation: a bounded number of bytes that pools take from and give back to.
use super::Ledger;
use plimsoll_alloc::Module;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A part of a row. Taking fails when it is used up and nothing is ever clamped: giving back more than was taken is a
/// bug, which tests see as a panic. Shared by clones; counters are relaxed, because they order no other memory.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    module: Module,
    limit: AtomicU64,
    used: AtomicU64,
    peak: AtomicU64,
    denied: AtomicU64,
    ledger: Option<Arc<Ledger>>,
}

impl Share {
    /// A share of `limit` bytes whose refusals count for nothing else.
    pub(crate) fn new(module: Module, limit: u64) -> Self {
        Self::build(module, limit, None)
    }

    /// A share of `limit` bytes; the ledger counts its refusals for the report.
    pub(crate) fn in_ledger(module: Module, limit: u64, ledger: Arc<Ledger>) -> Self {
        Self::build(module, limit, Some(ledger))
    }

    fn build(module: Module, limit: u64, ledger: Option<Arc<Ledger>>) -> Self {
        let zero = || AtomicU64::new(0);
        let limit = AtomicU64::new(limit);
        Self { inner: Arc::new(Inner { module, limit, used: zero(), peak: zero(), denied: zero(), ledger }) }
    }

    /// Takes `bytes` if they fit under the limit. A refusal changes nothing but the count of refusals.
    #[must_use]
    pub(crate) fn try_grow(&self, bytes: u64) -> bool {
        let limit = self.inner.limit.load(Relaxed);
        let grown =
            self.inner.used.fetch_update(Relaxed, Relaxed, |used| used.checked_add(bytes).filter(|sum| *sum <= limit));
        match grown {
            Ok(before) => {
                self.inner.peak.fetch_max(before + bytes, Relaxed);
                true
            }
            Err(_) => {
                self.inner.denied.fetch_add(1, Relaxed);
                if let Some(ledger) = &self.inner.ledger {
                    ledger.count_denied(self.inner.module);
                }
                false
            }
        }
    }

    /// Gives `bytes` back.
    pub(crate) fn shrink(&self, bytes: u64) {
        let before = self.inner.used.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes given back, {before} were taken");
    }

    /// Changes the limit; what is used above it stays until it is given back.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.inner.limit.store(bytes, Relaxed);
    }

    /// Bytes taken now.
    pub(crate) fn used(&self) -> u64 {
        self.inner.used.load(Relaxed)
    }

    /// Bytes that may be taken.
    pub(crate) fn limit(&self) -> u64 {
        self.inner.limit.load(Relaxed)
    }

    /// Most bytes that were taken at a time.
    pub(crate) fn peak(&self) -> u64 {
        self.inner.peak.load(Relaxed)
    }

    /// Number of refusals.
    pub(crate) fn denied(&self) -> u64 {
        self.inner.denied.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_refuses_what_does_not_fit_and_keeps_its_counts() {
        let share = Share::new(Module::Cache, 100);
        assert!(share.try_grow(60));
        assert!(!share.try_grow(41));
        assert!(share.try_grow(40));
        share.shrink(100);
        assert_eq!((share.used(), share.peak(), share.denied()), (0, 100, 1));
        assert!(!share.try_grow(u64::MAX));
    }

    #[test]
    #[should_panic(expected = "given back")]
    #[cfg(debug_assertions)]
    fn giving_back_more_than_was_taken_is_a_bug() {
        let share = Share::new(Module::Cache, 100);
        assert!(share.try_grow(1));
        share.shrink(2);
    }

    #[test]
    fn threads_together_never_pass_the_limit() {
        let share = Share::new(Module::Batch, 1_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        if share.try_grow(7) {
                            assert!(share.used() <= 1_000);
                            share.shrink(7);
                        }
                    }
                });
            }
        });
        assert_eq!(share.used(), 0);
        assert!(share.peak() <= 1_000 && share.peak() >= 7);
    }

    #[test]
    fn refusals_are_counted_for_the_module_in_the_ledger() {
        let ledger = Arc::new(Ledger::default());
        let share = Share::in_ledger(Module::Producer, 1, ledger.clone());
        assert!(!share.try_grow(2));
        assert_eq!(ledger.denied(Module::Producer), 1);
        assert_eq!(ledger.denied(Module::Cache), 0);
    }
}
