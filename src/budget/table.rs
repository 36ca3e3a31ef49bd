//! The rows of the plan as a table: each row's floor, ceiling, weight and what happens when it is full.
//!
//! Owns every number of bytes that was measured or chosen for a row. Floors and ceilings are pure functions of the
//! demand. Called by `plan` alone.
use super::sizes::size_class;
use super::{Demand, RowId};
use crate::base::limits::{KIB, MIB, MIN_FRAMES, TLS_CONNECTION_BYTES};
use plimsoll_alloc::Module;

/// Least and most bytes of a frame; a larger response takes the oversize frame.
pub(super) const MIN_FRAME_BYTES: u64 = 256 * KIB;
pub(super) const MAX_FRAME_BYTES: u64 = MIB;
/// Least and most bytes of a producer batch.
pub(super) const MIN_BATCH_BYTES: u64 = 16 * KIB;
pub(crate) const MAX_BATCH_BYTES: u64 = MIB;
/// Frames of the restore thread.
pub(super) const RESTORE_FRAMES: u64 = MIN_FRAMES as u64;
/// Contexts of one thread that reads compressed batches: zstd 160 KiB, inflate 43 KiB, measured, rounded up.
pub(super) const DECOMPRESSION_BYTES: u64 = 256 * KIB;
/// What the restore thread has beside its frames: contexts, its store batch of 256 KiB, tables, half-used pages.
pub(super) const RESTORE_FIXED_BYTES: u64 = DECOMPRESSION_BYTES + STORE_BATCH_BYTES + 128 * KIB;
/// Requests and the answer of one of the producer's connections: 6 x 8 KiB and 32 KiB, and what they note of batches.
const REQUESTS_BYTES: u64 = 88 * KIB;
/// Least contexts of one thread that writes: none, lz4 and snappy need less.
const COMPRESSION_BYTES: u64 = 64 * KIB;
/// A thread's stack as touched: 28 to 40 KiB measured, 80 KiB on RocksDB's two; and Rust's stack for signals.
const STACK_BYTES: u64 = 56 * KIB;
/// One of the allocator's thread caches: 12 KiB measured, 19 KiB for a thread's own. The blocks in it are their
/// module's: see `sizes::HALF_USED_PAGES`.
const THREAD_CACHE_BYTES: u64 = 24 * KIB;
/// Modules other than its own that a stream thread and the restore thread allocate for.
const STREAM_FOREIGN: u64 = 5;
const RESTORE_FOREIGN: u64 = 3;
/// Foreign caches of the remaining threads together: control, main, RocksDB's two.
const OTHER_FOREIGN: u64 = 4;
/// A column family of RocksDB: 80 to 90 KiB resident, measured.
const FAMILY_BYTES: u64 = 90 * KIB;
/// Families that every database has: the default one and the scratch of a commit.
const FIXED_FAMILIES: u64 = 2;
/// Pre-touched buffer of one thread's store batch.
pub(super) const STORE_BATCH_BYTES: u64 = 256 * KIB;
/// A file of RocksDB kept open, with its reader: bounded by [`MAX_OPEN_FILES`].
const TABLE_FILE_BYTES: u64 = 8 * KIB;
/// Files that RocksDB keeps open.
pub(super) const MAX_OPEN_FILES: u64 = 64;
/// Iterators open at a time, each pinning up to two levels' blocks.
pub(super) const MAX_ITERATORS: u64 = 8;
const ITERATOR_BYTES: u64 = 32 * KIB;

/// One row before its bytes are known.
pub(super) struct Spec {
    pub(super) id: RowId,
    pub(super) module: Option<Module>,
    pub(super) what: &'static str,
    pub(super) when_full: &'static str,
    /// Bytes that it cannot do without.
    pub(super) floor: fn(&Demand) -> u64,
    /// Most bytes that it can use; never less than the floor counts.
    pub(super) ceiling: fn(&Demand) -> u64,
    /// Weight in dividing what is left above the floors.
    pub(super) weight: u64,
}

impl Spec {
    const fn fixed(
        id: RowId,
        module: Option<Module>,
        what: &'static str,
        when_full: &'static str,
        floor: fn(&Demand) -> u64,
    ) -> Self {
        Self { id, module, what, when_full, floor, ceiling: |_| 0, weight: 0 }
    }
}

fn threads(d: &Demand) -> u64 {
    u64::from(d.threads)
}

fn tls_bytes(d: &Demand) -> u64 {
    if d.tls { TLS_CONNECTION_BYTES } else { 0 }
}

fn if_any(count: u32, bytes: u64) -> u64 {
    if count > 0 { bytes } else { 0 }
}

const WITHIN: &str = "cannot be: fixed at start";

/// Rows outside of the engine's pools: the process itself and fixed tables.
pub(super) static PROCESS: [Spec; 9] = [
    Spec {
        id: RowId::App,
        module: Some(Module::App),
        what: "user's setting, else 4 to 8 MiB",
        when_full: "other rows shrink to their floors, then an event names it",
        floor: |d| d.line.app.unwrap_or(4 * MIB),
        ceiling: |d| d.line.app.unwrap_or(8 * MIB),
        weight: 4,
    },
    Spec::fixed(
        RowId::Program,
        None,
        "mapped size of program and libraries, measured at start",
        "cannot be: pages are bounded by the files",
        |d| d.machine.program_bytes,
    ),
    Spec::fixed(RowId::AllocatorTables, None, "1 MiB + line / 128", "cannot be: grows with the line only", |d| {
        MIB + d.line.bytes / 128
    }),
    Spec::fixed(RowId::Stacks, None, "all threads x 56 KiB touched", WITHIN, |d| d.all_threads() * STACK_BYTES),
    Spec::fixed(
        RowId::ThreadCaches,
        Some(Module::App),
        "(all threads + foreign modules of each) x 24 KiB",
        "cannot be: threads are fixed at start",
        |d| {
            let restore = if d.restores { RESTORE_FOREIGN } else { 0 };
            (d.all_threads() + threads(d) * STREAM_FOREIGN + restore + OTHER_FOREIGN) * THREAD_CACHE_BYTES
        },
    ),
    Spec::fixed(
        RowId::Engine,
        Some(Module::Engine),
        "1 MiB + threads x (128 KiB + nodes x 1 KiB) + tasks x 4 KiB + partitions x 512 B",
        "a task is still taken: its tables are part of the sum",
        |d| {
            let partitions = u64::from(d.inputs) + u64::from(d.outputs);
            MIB + threads(d) * (128 * KIB + u64::from(d.nodes) * KIB) + u64::from(d.tasks) * 4 * KIB + partitions * 512
        },
    ),
    Spec::fixed(
        RowId::Connections,
        Some(Module::Engine),
        "(threads + 2) x brokers x 2 connections x (16 KiB, with TLS 96 KiB more)",
        "a connection more is refused by name",
        |d| (threads(d) + 2) * u64::from(d.brokers.max(1)) * 2 * (16 * KIB + tls_bytes(d)),
    ),
    Spec::fixed(
        RowId::CommitReserve,
        Some(Module::Engine),
        "threads x store batch of 256 KiB, touched at start",
        "the commit is written in slices",
        |d| threads(d) * STORE_BATCH_BYTES,
    ),
    Spec::fixed(
        RowId::Queries,
        Some(Module::Engine),
        "128 KiB of answers on their way",
        "a query waits or is refused",
        |_| 128 * KIB,
    ),
];

/// Rows of the part that consumes: `Memory::consumers` sets their sum.
pub(super) static CONSUMERS: [Spec; 6] = [
    Spec::fixed(
        RowId::Control,
        Some(Module::Consumer),
        "1 MiB + brokers x 128 KiB + input partitions x 2 KiB",
        "cannot be: it fetches nothing, its queues are set small",
        |d| MIB + u64::from(d.brokers) * 128 * KIB + u64::from(d.inputs) * 2 * KIB,
    ),
    Spec {
        id: RowId::Frames,
        module: Some(Module::Batch),
        what: "threads x frames (3 or more) x frame (256 KiB to 1 MiB)",
        when_full: "the response waits in the socket; fewer partitions are asked for, never fewer than one a task",
        floor: |d| threads(d) * MIN_FRAMES as u64 * MIN_FRAME_BYTES,
        ceiling: |d| threads(d) * 16 * MAX_FRAME_BYTES,
        weight: 10,
    },
    Spec::fixed(
        RowId::OversizeFrame,
        Some(Module::Batch),
        "largest max.message.bytes + 64 KiB in its size class, one a process",
        "the response waits until it is free; larger is an error that names it",
        |d| size_class(u64::from(d.max_message_bytes) + 64 * KIB),
    ),
    Spec {
        id: RowId::Arenas,
        module: Some(Module::Batch),
        what: "threads x arena (128 KiB to 2 MiB, an eighth or 96 KiB of it the allocator's)",
        when_full: "the thread works off what waits before it polls again",
        floor: |d| threads(d) * 128 * KIB,
        ceiling: |d| threads(d) * 2 * MIB,
        weight: 2,
    },
    Spec::fixed(RowId::Decompression, Some(Module::Batch), "threads x 256 KiB of contexts", WITHIN, |d| {
        threads(d) * DECOMPRESSION_BYTES
    }),
    Spec {
        id: RowId::Restore,
        module: Some(Module::Restore),
        what: "3 frames (256 KiB to 1 MiB) + 640 KiB of contexts, store batch and tables",
        when_full: "restoring waits: fewer partitions are asked for",
        floor: |d| if d.restores { RESTORE_FRAMES * MIN_FRAME_BYTES + RESTORE_FIXED_BYTES } else { 0 },
        ceiling: |d| if d.restores { RESTORE_FRAMES * MAX_FRAME_BYTES + RESTORE_FIXED_BYTES } else { 0 },
        weight: 2,
    },
];

/// Rows of the part that produces: `Memory::producers` sets their sum.
pub(super) static PRODUCERS: [Spec; 3] = [
    Spec {
        id: RowId::Batches,
        module: Some(Module::Producer),
        what: "threads x batches x batch (16 KiB to 1 MiB)",
        when_full: "the fullest batch leaves early, then the thread waits for an acknowledgement",
        floor: |d| threads(d) * 512 * KIB,
        ceiling: |d| threads(d) * (u64::from(d.outputs) + 16).max(32) * MAX_BATCH_BYTES / 4,
        weight: 8,
    },
    Spec::fixed(
        RowId::Requests,
        Some(Module::Producer),
        "threads x (64 KiB + brokers x 88 KiB + partitions written to x 256 B)",
        "cannot be: a connection has as many requests on their way as it has buffers",
        |d| threads(d) * (64 * KIB + u64::from(d.brokers) * REQUESTS_BYTES + u64::from(d.outputs) * 256),
    ),
    Spec::fixed(
        RowId::Compression,
        Some(Module::Producer),
        "threads x contexts of the codec, 64 KiB or more",
        WITHIN,
        |d| threads(d) * d.compression_bytes.max(COMPRESSION_BYTES),
    ),
];

/// Rows of the state.
pub(super) static STATE: [Spec; 8] = [
    Spec {
        id: RowId::Overlay,
        module: Some(Module::Cache),
        what: "share of the line over all threads and stores (1.5 MiB or more)",
        when_full: "clean entries go, then dirty ones are forwarded, then the commit comes early",
        floor: |d| if d.stores > 0 { (u64::from(d.stores) * threads(d) * 64 * KIB).max(MIB + MIB / 2) } else { 0 },
        ceiling: |d| if_any(d.stores, u64::MAX),
        weight: 48,
    },
    Spec {
        id: RowId::GlobalTables,
        module: Some(Module::Cache),
        what: "global tables x 1 MiB or more",
        when_full: "loading fails with an error that names it",
        floor: |d| u64::from(d.global_tables) * MIB,
        ceiling: |d| if_any(d.global_tables, u64::MAX),
        weight: 16,
    },
    Spec {
        id: RowId::Memtables,
        module: Some(Module::Store),
        what: "1 MiB + families x 128 KiB or more",
        when_full: "the largest are flushed before the next batch is written",
        floor: |d| if_any(d.families, MIB + u64::from(d.families) * 128 * KIB),
        ceiling: |d| if_any(d.families, 256 * MIB),
        weight: 8,
    },
    Spec {
        id: RowId::BlockCache,
        module: Some(Module::BlockCache),
        what: "share of the line (2 MiB or more), index and filter blocks included",
        when_full: "blocks not in use go; a read that finds none is not cached",
        // Half of it is what blocks take on their way: see `CACHE_MARGIN` of `ffi::rocks`.
        floor: |d| if_any(d.families, 2 * MIB),
        ceiling: |d| if_any(d.families, u64::MAX),
        weight: 12,
    },
    Spec::fixed(
        RowId::RocksDb,
        Some(Module::Store),
        "1.5 MiB + (families + 2) x 90 KiB",
        "cannot be: families are fixed by the topology",
        |d| if_any(d.families, MIB + MIB / 2 + (u64::from(d.families) + FIXED_FAMILIES) * FAMILY_BYTES),
    ),
    Spec::fixed(
        RowId::TableFiles,
        Some(Module::Store),
        "64 open files x 8 KiB",
        "the file used least recently is closed",
        |d| if_any(d.families, MAX_OPEN_FILES * TABLE_FILE_BYTES),
    ),
    Spec {
        id: RowId::Compaction,
        module: Some(Module::Store),
        what: "one job x (inputs x readahead + output) (1.5 to 6 MiB)",
        when_full: "cannot be: jobs and buffers are bounded",
        floor: |d| if_any(d.families, MIB + MIB / 2),
        ceiling: |d| if_any(d.families, 6 * MIB),
        weight: 3,
    },
    Spec::fixed(
        RowId::Iterators,
        Some(Module::Store),
        "8 open iterators x 32 KiB",
        "a further iterator is refused",
        |d| if_any(d.families, MAX_ITERATORS * ITERATOR_BYTES),
    ),
];

/// What nothing else can use.
pub(super) static SPARE: Spec = Spec::fixed(
    RowId::Spare,
    None,
    "what no other row can use",
    "cannot be: nothing uses it, the line may be lowered by it",
    |_| 0,
);
