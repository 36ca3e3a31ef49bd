//! The report of memory: measured bytes beside the rows.
use crate::base::text::Bytes;
use plimsoll_alloc::Module;
use std::fmt;

/// Memory of one module, in bytes unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ModuleMemory {
    /// The module.
    pub module: Module,
    /// Sum of its rows in the plan.
    pub row: u64,
    /// Bytes of its objects that are allocated.
    pub live: u64,
    /// Bytes that the allocator holds for it from the system: an upper bound of `resident`; this is what is held.
    pub committed: u64,
    /// Most of `committed` since the start.
    pub committed_peak: u64,
    /// Bytes of its pages in memory, as of the last scan (at most a second ago).
    pub resident: u64,
    /// Most of `resident` since the start.
    pub resident_peak: u64,
    /// How often a pool of it was refused, a number.
    pub denied: u64,
    /// Bytes it gave back under pressure.
    pub reclaimed: u64,
}

/// Memory of the process, module by module. Filled in place, without an allocation:
///
/// ```
/// let mut report = plimsoll::MemoryReport::default();
/// assert_eq!(report.modules.len(), plimsoll::Module::COUNT);
/// report.line = 64 << 20; // `App::memory(&mut report)` fills it
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryReport {
    /// The line, in bytes.
    pub line: u64,
    /// Whether the modules are measured; without the allocator only the plan and the process's size are known.
    pub tracked: bool,
    /// Resident bytes of the process.
    pub rss: u64,
    /// Most of `rss` that the governor saw.
    pub rss_peak: u64,
    /// Anonymous bytes of the process as the kernel counts them.
    pub anonymous: u64,
    /// Part of `anonymous`: the allocator's own tables.
    pub allocator: u64,
    /// Part of `anonymous`: stacks of all threads.
    pub stacks: u64,
    /// Part of `anonymous`: changed pages of files, zero-initialised data.
    pub data: u64,
    /// Resident pages of files (the program's code): beside `anonymous`.
    pub file: u64,
    /// `anonymous` less what modules, allocator tables, stacks and data explain, in bytes: close to 0.
    pub unexplained: i64,
    /// One entry a module, in the order of [`Module::ALL`].
    pub modules: [ModuleMemory; Module::COUNT],
}

impl MemoryReport {
    /// The entry of one module.
    #[must_use]
    pub fn module(&self, module: Module) -> &ModuleMemory {
        &self.modules[module as usize]
    }
}

impl Default for MemoryReport {
    fn default() -> Self {
        let modules = Module::ALL.map(|module| ModuleMemory {
            module,
            row: 0,
            live: 0,
            committed: 0,
            committed_peak: 0,
            resident: 0,
            resident_peak: 0,
            denied: 0,
            reclaimed: 0,
        });
        Self {
            line: 0,
            tracked: false,
            rss: 0,
            rss_peak: 0,
            anonymous: 0,
            allocator: 0,
            stacks: 0,
            data: 0,
            file: 0,
            unexplained: 0,
            modules,
        }
    }
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<11} {:>11} {:>11} {:>11} {:>11}", "module", "live", "resident", "peak", "row")?;
        for m in &self.modules {
            let (live, resident, peak, row) = (Bytes(m.live), Bytes(m.resident), Bytes(m.committed_peak), Bytes(m.row));
            writeln!(f, "{:<11} {live:>11} {resident:>11} {peak:>11} {row:>11}", m.module.name())?;
        }
        write!(f, "rss {} of a line of {}, peak {}", Bytes(self.rss), Bytes(self.line), Bytes(self.rss_peak))
    }
}
