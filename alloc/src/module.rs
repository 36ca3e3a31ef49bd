//! The owners of memory: nine modules, each with its own address window and jemalloc arena.

/// Who owns a block of memory.
///
/// Every allocation of the process belongs to exactly one module: the one its thread was working for
/// when it was made (see [`scope`](crate::scope) and [`bind_home`](crate::bind_home)). A block keeps its
/// owner until it is freed, whichever thread frees it and however often it is reallocated.
///
/// ```
/// use plimsoll_alloc::Module;
/// assert_eq!(Module::ALL.len(), Module::COUNT);
/// assert_eq!(Module::BlockCache.name(), "block cache");
/// assert_eq!(Module::from_index(3), Some(Module::Restore));
/// ```
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Module {
    /// The host program, user code, and whatever no other module claims.
    App = 0,
    /// The engine's own structures: topology, wiring, tasks, histograms, connections.
    Engine = 1,
    /// The control-plane handle of librdkafka.
    Consumer = 2,
    /// Frames of the restore thread.
    Restore = 3,
    /// Produce batches and compression.
    Producer = 4,
    /// Fetch frames, bump arenas, decompression.
    Batch = 5,
    /// Overlays: uncommitted and cached entries of stores, in-memory stores.
    Cache = 6,
    /// RocksDB except its block cache: memtables, table readers, compaction, iterators.
    Store = 7,
    /// RocksDB's block cache.
    BlockCache = 8,
}

impl Module {
    /// How many modules there are.
    pub const COUNT: usize = 9;

    /// All modules, in the order of their indexes.
    pub const ALL: [Self; Self::COUNT] = [
        Self::App,
        Self::Engine,
        Self::Consumer,
        Self::Restore,
        Self::Producer,
        Self::Batch,
        Self::Cache,
        Self::Store,
        Self::BlockCache,
    ];

    /// The module's position in [`Module::ALL`] and in every per-module array of this crate.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The module at `index`, `None` from [`Module::COUNT`] on.
    #[must_use]
    pub const fn from_index(index: usize) -> Option<Self> {
        if index < Self::COUNT { Some(Self::ALL[index]) } else { None }
    }

    /// The module's name in tables and reports, lower-case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Engine => "engine",
            Self::Consumer => "consumer",
            Self::Restore => "restore",
            Self::Producer => "producer",
            Self::Batch => "batch",
            Self::Cache => "cache",
            Self::Store => "store",
            Self::BlockCache => "block cache",
        }
    }
}

impl std::fmt::Display for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
