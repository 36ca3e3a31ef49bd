//! Rows of the plan: one consumer of memory each.
use plimsoll_alloc::Module;
use std::fmt;

macro_rules! rows {
    ($($(#[$doc:meta])* $id:ident = $name:literal),+ $(,)?) => {
        /// Which consumer of memory a row is for.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum RowId { $($(#[$doc])* $id),+ }

        impl RowId {
            /// Every row, in the order of the plan's table.
            pub const ALL: &'static [RowId] = &[$(RowId::$id),+];

            /// Name in the plan's table and in errors.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(RowId::$id => $name),+ }
            }
        }
    };
}

rows! {
    /// The host and the user's own code.
    App = "app",
    /// Pages of the program and its libraries: code, data, bss.
    Program = "program",
    /// The allocator's own tables.
    AllocatorTables = "allocator tables",
    /// Stacks of all threads.
    Stacks = "stacks",
    /// The allocator's caches of each thread.
    ThreadCaches = "thread caches",
    /// Topology, wiring, tasks and counters.
    Engine = "engine",
    /// Sockets' own buffers and TLS.
    Connections = "connections",
    /// Pre-touched buffers that a commit needs.
    CommitReserve = "commit reserve",
    /// Answers of interactive queries.
    Queries = "queries",
    /// The librdkafka handle of the control plane.
    Control = "control plane",
    /// Fetch responses in pooled buffers.
    Frames = "frames",
    /// The process's one buffer for a response that is larger than a frame.
    OversizeFrame = "oversize frame",
    /// Bump arenas: what must outlive a frame.
    Arenas = "arenas",
    /// Contexts that decompress batches.
    Decompression = "decompression",
    /// Frames and contexts of the restore thread.
    Restore = "restore",
    /// Batches under construction or not yet acknowledged.
    Batches = "producer batches",
    /// Requests of the producers' connections, and what they note of topics and batches.
    Requests = "producer requests",
    /// Contexts that compress batches.
    Compression = "compression",
    /// Uncommitted and cached entries of stores.
    Overlay = "overlay",
    /// Global tables kept in memory.
    GlobalTables = "global tables",
    /// RocksDB's write buffers.
    Memtables = "memtables",
    /// RocksDB's cache of blocks, index and filter blocks included.
    BlockCache = "block cache",
    /// RocksDB's fixed part and that of each column family.
    RocksDb = "rocksdb",
    /// RocksDB's readers and metadata of open files.
    TableFiles = "table files",
    /// Buffers of flushes and compactions.
    Compaction = "compaction",
    /// Blocks pinned by iterators.
    Iterators = "iterators",
    /// What no other row can use: the line may be lowered by it.
    Spare = "spare",
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One consumer's share of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Row {
    /// Which one.
    pub id: RowId,
    /// Module of the allocator that it is measured in; `None` for memory outside of the heap.
    pub module: Option<Module>,
    /// Its formula in words.
    pub what: &'static str,
    /// Bytes that it may use.
    pub bytes: u64,
    /// Bytes that it cannot do without.
    pub floor: u64,
    /// What happens when it is full.
    pub when_full: &'static str,
}
