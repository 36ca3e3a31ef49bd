//! What each module used, at most used, was refused and gave back: the numbers behind the report.
//!
//! Owns one set of relaxed counters a module. Written by the governor (committed, resident, live, peaks), by shares
//! (refusals) and by rooms that give back. Read by the report without a lock or a system call. Bound: fixed.
use super::{MemoryReport, ModuleMemory, Plan};
use plimsoll_alloc::Module;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// One set of counters a module, and those of the process.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    modules: [Account; Module::COUNT],
    line: AtomicU64,
    rss: AtomicU64,
    rss_peak: AtomicU64,
    anonymous: AtomicU64,
    explained: AtomicU64,
    tracked: AtomicBool,
}

#[derive(Debug, Default)]
struct Account {
    row: AtomicU64,
    live: AtomicU64,
    committed: AtomicU64,
    committed_peak: AtomicU64,
    resident: AtomicU64,
    resident_peak: AtomicU64,
    denied: AtomicU64,
    reclaimed: AtomicU64,
}

impl Ledger {
    /// A ledger with the rows of this plan.
    pub(crate) fn new(plan: &Plan) -> Self {
        let ledger = Self::default();
        ledger.line.store(plan.line(), Relaxed);
        ledger.tracked.store(plan.is_tracked(), Relaxed);
        for module in Module::ALL {
            ledger.of(module).row.store(plan.module_bytes(module), Relaxed);
        }
        ledger
    }

    fn of(&self, module: Module) -> &Account {
        &self.modules[module as usize]
    }

    /// Counts one refusal.
    pub(crate) fn count_denied(&self, module: Module) {
        self.of(module).denied.fetch_add(1, Relaxed);
    }

    /// Counts bytes that a room gave back because it was asked to.
    pub(crate) fn count_reclaimed(&self, module: Module, bytes: u64) {
        self.of(module).reclaimed.fetch_add(bytes, Relaxed);
    }

    /// Number of refusals of a module.
    pub(crate) fn denied(&self, module: Module) -> u64 {
        self.of(module).denied.load(Relaxed)
    }

    /// Sum of the rows of a module, in bytes.
    pub(crate) fn row(&self, module: Module) -> u64 {
        self.of(module).row.load(Relaxed)
    }

    /// Takes over committed bytes; every tick.
    pub(super) fn set_committed(&self, committed: &[u64; Module::COUNT]) {
        for (account, bytes) in self.modules.iter().zip(committed) {
            account.committed.store(*bytes, Relaxed);
            account.committed_peak.fetch_max(*bytes, Relaxed);
        }
    }

    /// Takes over live bytes; a few times a second.
    pub(super) fn set_live(&self, live: &[u64; Module::COUNT]) {
        for (account, bytes) in self.modules.iter().zip(live) {
            account.live.store(*bytes, Relaxed);
        }
    }

    /// Takes over resident bytes; at most once a second.
    pub(super) fn set_resident(&self, resident: &[u64; Module::COUNT]) {
        for (account, bytes) in self.modules.iter().zip(resident) {
            account.resident.store(*bytes, Relaxed);
            account.resident_peak.fetch_max(*bytes, Relaxed);
        }
    }

    /// Takes over the resident size of the process.
    pub(super) fn set_rss(&self, rss: u64) {
        self.rss.store(rss, Relaxed);
        self.rss_peak.fetch_max(rss, Relaxed);
    }

    /// Takes over the identity: anonymous bytes as the kernel counts them, and as the allocator and stacks explain
    /// them.
    pub(super) fn set_identity(&self, anonymous: u64, explained: u64) {
        self.anonymous.store(anonymous, Relaxed);
        self.explained.store(explained, Relaxed);
    }

    /// Fills the caller's buffer. Allocates nothing and waits for nothing.
    pub(crate) fn fill(&self, report: &mut MemoryReport) {
        let (anonymous, explained) = (self.anonymous.load(Relaxed), self.explained.load(Relaxed));
        report.line = self.line.load(Relaxed);
        report.tracked = self.tracked.load(Relaxed);
        report.rss = self.rss.load(Relaxed);
        report.rss_peak = self.rss_peak.load(Relaxed);
        report.anonymous = anonymous;
        report.unexplained = i64::try_from(i128::from(anonymous) - i128::from(explained)).unwrap_or(i64::MAX);
        for (module, account) in Module::ALL.into_iter().zip(&self.modules) {
            report.modules[module as usize] = ModuleMemory {
                module,
                row: account.row.load(Relaxed),
                live: account.live.load(Relaxed),
                committed: account.committed.load(Relaxed),
                committed_peak: account.committed_peak.load(Relaxed),
                resident: account.resident.load(Relaxed),
                resident_peak: account.resident_peak.load(Relaxed),
                denied: account.denied.load(Relaxed),
                reclaimed: account.reclaimed.load(Relaxed),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_shows_what_was_counted_and_keeps_peaks() {
        let ledger = Ledger::default();
        let mut committed = [0; Module::COUNT];
        committed[Module::Cache as usize] = 900;
        ledger.set_committed(&committed);
        committed[Module::Cache as usize] = 300;
        ledger.set_committed(&committed);
        let only_cache = |bytes| Module::ALL.map(|module| if module == Module::Cache { bytes } else { 0 });
        ledger.set_resident(&only_cache(250));
        ledger.set_live(&only_cache(200));
        ledger.count_denied(Module::Cache);
        ledger.count_reclaimed(Module::Cache, 600);
        ledger.set_rss(5_000);
        ledger.set_identity(4_000, 4_100);
        let mut report = MemoryReport::default();
        ledger.fill(&mut report);
        let cache = report.module(Module::Cache);
        assert_eq!((cache.committed, cache.committed_peak, cache.resident, cache.live), (300, 900, 250, 200));
        assert_eq!((cache.denied, cache.reclaimed), (1, 600));
        assert_eq!((report.rss, report.unexplained), (5_000, -100));
    }
}
