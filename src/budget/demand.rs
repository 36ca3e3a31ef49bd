//! What an application needs, in numbers: the only input of the plan.
use super::{Line, process};

/// Everything the plan depends on. Counts are for **one process that holds every task**, so that no task is refused
/// later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Demand {
    pub(crate) line: Line,
    pub(crate) machine: Machine,
    /// Stream threads.
    pub(crate) threads: u32,
    /// Tasks of the application over all subtopologies.
    pub(crate) tasks: u32,
    /// Nodes of the topology; each thread wires them once.
    pub(crate) nodes: u32,
    /// Input partitions of all tasks, repartition topics included.
    pub(crate) inputs: u32,
    /// Partitions written to: sinks, repartition topics and changelogs.
    pub(crate) outputs: u32,
    /// Stores with entries in the overlay (all but global ones).
    pub(crate) stores: u32,
    /// Stores kept in RocksDB: one column family each.
    pub(crate) families: u32,
    /// Whether anything is restored from changelogs or followed by the restore thread.
    pub(crate) restores: bool,
    /// Global tables kept in memory.
    pub(crate) global_tables: u32,
    /// Brokers of the cluster.
    pub(crate) brokers: u32,
    /// Whether connections are encrypted.
    pub(crate) tls: bool,
    /// Largest record batch that an input topic accepts (`max.message.bytes`), in bytes.
    pub(crate) max_message_bytes: u32,
    /// What one thread's codec needs to compress the largest batch, beside its output.
    pub(crate) compression_bytes: u64,
}

/// What the machine itself says, measured once at start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Machine {
    /// Mapped size of the program and its libraries, data and bss included, in bytes.
    pub(crate) program_bytes: u64,
}

impl Machine {
    /// Measures this process.
    pub(crate) fn measure() -> Self {
        Self { program_bytes: process::program_bytes().unwrap_or(Self::USUAL.program_bytes) }
    }

    /// A word count built for release: for tests, and for systems without `/proc`.
    pub(crate) const USUAL: Self = Self { program_bytes: 14 << 20 };
}

impl Demand {
    /// Word count with two threads over topics of four partitions: what tests and the documented lowest line refer to.
    #[cfg(test)]
    pub(crate) fn word_count(line: Line) -> Self {
        Self {
            line,
            machine: Machine::USUAL,
            threads: 2,
            tasks: 8,
            nodes: 8,
            inputs: 8,
            outputs: 12,
            stores: 1,
            families: 1,
            restores: true,
            global_tables: 0,
            brokers: 1,
            tls: false,
            max_message_bytes: 1_048_588,
            compression_bytes: 0,
        }
    }

    /// Threads of the process: stream threads, the engine's own, librdkafka's and RocksDB's.
    pub(crate) fn all_threads(&self) -> u64 {
        // Host's main thread, control, governor, the allocator's background thread.
        const ENGINE: u64 = 4;
        // librdkafka: its main thread, the bootstrap broker, the coordinator's and the internal one.
        const HANDLE: u64 = 4;
        // RocksDB: one for flushes, one for compactions, one timer.
        const ROCKSDB: u64 = 3;
        let stores = if self.families > 0 { ROCKSDB } else { 0 };
        u64::from(self.threads) + ENGINE + u64::from(self.restores) + HANDLE + u64::from(self.brokers) + stores
    }
}
