//! What each module used, at most used, was refused and gave back: the numbers behind the report.
//!
//! Owns one set of relaxed counters a module. Written by the governor (committed, resident, live, peaks), by shares
//! (refusals) and by rooms that give back. Read by the report without a lock or a system call. Bound: fixed.
use super::{MemoryReport, ModuleMemory, Plan};
use plimsoll_alloc::{Module, RssIdentity};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// One set of counters a module, and those of the process.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    modules: [Account; Module::COUNT],
    line: AtomicU64,
    rss: AtomicU64,
    rss_peak: AtomicU64,
    anonymous: AtomicU64,
    allocator: AtomicU64,
    stacks: AtomicU64,
    data: AtomicU64,
    file: AtomicU64,
    unexplained: AtomicI64,
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

    /// Counts refusals.
    pub(crate) fn count_denied(&self, module: Module, refusals: u64) {
        self.of(module).denied.fetch_add(refusals, Relaxed);
    }

    /// Counts bytes that a room gave back because it was asked to.
    pub(crate) fn count_reclaimed(&self, module: Module, bytes: u64) {
        self.of(module).reclaimed.fetch_add(bytes, Relaxed);
    }

    /// Number of refusals of a module.
    #[cfg(test)]
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

    /// Takes over the resident size of the process.
    pub(super) fn set_rss(&self, rss: u64) {
        self.rss.store(rss, Relaxed);
        self.rss_peak.fetch_max(rss, Relaxed);
    }

    /// Takes over a scan: resident bytes of each module and the parts of the process's memory; once a second.
    pub(super) fn set_identity(&self, identity: &RssIdentity) {
        for (account, bytes) in self.modules.iter().zip(&identity.windows) {
            account.resident.store(*bytes, Relaxed);
            account.resident_peak.fetch_max(*bytes, Relaxed);
        }
        self.anonymous.store(identity.anonymous, Relaxed);
        self.allocator.store(identity.allocator, Relaxed);
        self.stacks.store(identity.stacks, Relaxed);
        self.data.store(identity.data, Relaxed);
        self.file.store(identity.file, Relaxed);
        self.unexplained.store(identity.unexplained(), Relaxed);
    }

    /// Fills the caller's buffer. Allocates nothing and waits for nothing.
    pub(crate) fn fill(&self, report: &mut MemoryReport) {
        report.line = self.line.load(Relaxed);
        report.tracked = self.tracked.load(Relaxed);
        report.rss = self.rss.load(Relaxed);
        report.rss_peak = self.rss_peak.load(Relaxed);
        report.anonymous = self.anonymous.load(Relaxed);
        report.allocator = self.allocator.load(Relaxed);
        report.stacks = self.stacks.load(Relaxed);
        report.data = self.data.load(Relaxed);
        report.file = self.file.load(Relaxed);
        report.unexplained = self.unexplained.load(Relaxed);
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
        ledger.set_live(&only_cache(200));
        ledger.count_denied(Module::Cache, 1);
        ledger.count_reclaimed(Module::Cache, 600);
        ledger.set_rss(5_000);
        let mut identity = RssIdentity::default();
        identity.windows = only_cache(250);
        (identity.anonymous, identity.stacks, identity.data, identity.allocator) = (4_000, 700, 50, 3_100);
        ledger.set_identity(&identity);
        let mut report = MemoryReport::default();
        ledger.fill(&mut report);
        let cache = report.module(Module::Cache);
        assert_eq!((cache.committed, cache.committed_peak, cache.resident, cache.live), (300, 900, 250, 200));
        assert_eq!((cache.denied, cache.reclaimed), (1, 600));
        assert_eq!((report.rss, report.stacks, report.unexplained), (5_000, 700, -100));
    }
}
