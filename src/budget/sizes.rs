//! Sizes of the pools that fit the rows: what rooms above build their buffers with.
//!
//! Pure. Invariant: count x size of each pool is at most its row. Sizes of buffers are powers of two, which are size
//! classes of the allocator, so that a buffer takes exactly its size.
use super::table::{
    MAX_BATCH_BYTES, MAX_FRAME_BYTES, MAX_ITERATORS, MAX_OPEN_FILES, MIN_BATCH_BYTES, MIN_FRAME_BYTES,
    RESTORE_FIXED_BYTES, RESTORE_FRAMES, STORE_BATCH_BYTES,
};
use super::{Demand, Row, RowId};
use crate::base::limits::{MAX_IN_FLIGHT, MIN_FRAMES};
use crate::base::text::Bytes;
use std::fmt;

/// Ready sizes, in bytes unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    /// One frame of a stream thread or of the restore thread.
    pub(crate) frame_bytes: usize,
    /// Frames of each stream thread, a number.
    pub(crate) frames_per_thread: usize,
    /// The process's one larger buffer.
    pub(crate) oversize_bytes: usize,
    /// One frame of the restore thread.
    pub(crate) restore_frame_bytes: usize,
    /// Frames of the restore thread, a number; 0 where nothing is restored.
    pub(crate) restore_frames: usize,
    /// Limit of the bump arenas of one thread.
    pub(crate) arena_bytes: usize,
    /// One batch of the producer: also the largest record that can be written.
    pub(crate) batch_bytes: usize,
    /// Batches of each thread, a number.
    pub(crate) batches_per_thread: usize,
    /// Weight that the overlay of one thread may hold; the row keeps an eighth for the allocator's rounding and for
    /// indexes that grow, and 256 KiB a thread for half-used pages.
    pub(crate) overlay_bytes_per_thread: usize,
    /// Weight of all global tables.
    pub(crate) global_table_bytes: usize,
    /// Limit of all memtables together; an eighth stays for the allocator's rounding.
    pub(crate) memtable_bytes: usize,
    /// Capacity of the block cache; an eighth stays for the allocator's rounding.
    pub(crate) block_cache_bytes: usize,
    /// Readahead of one input of a compaction.
    pub(crate) compaction_readahead_bytes: usize,
    /// Files that RocksDB keeps open, a number.
    pub(crate) max_open_files: usize,
    /// Iterators open at a time, a number.
    pub(crate) max_iterators: usize,
    /// Store batch of one thread, touched at start.
    pub(crate) store_batch_bytes: usize,
}

impl Sizes {
    pub(super) fn new(demand: &Demand, rows: &[Row]) -> Self {
        let row = |id: RowId| rows.iter().find(|row| row.id == id).map_or(0, |row| row.bytes);
        let threads = u64::from(demand.threads.max(1));
        let frames = row(RowId::Frames) / threads;
        let frame = power_within(frames / FRAMES_AIM, MIN_FRAME_BYTES, MAX_FRAME_BYTES);
        let restore = row(RowId::Restore).saturating_sub(RESTORE_FIXED_BYTES);
        let restore_frame = restore / RESTORE_FRAMES;
        let restore_frame = power_within(restore_frame, MIN_FRAME_BYTES, MAX_FRAME_BYTES);
        let batches = row(RowId::Batches) / threads;
        // More buffers than partitions written to, so that each partition can have one under construction.
        let wanted = u64::from(demand.outputs) + MAX_IN_FLIGHT as u64 + 1;
        let batch = batches / wanted.max(MIN_BATCHES);
        let batch = power_within(batch, MIN_BATCH_BYTES, MAX_BATCH_BYTES);
        Self {
            frame_bytes: size(frame),
            frames_per_thread: size(frames / frame).max(MIN_FRAMES),
            oversize_bytes: size(row(RowId::OversizeFrame)),
            restore_frame_bytes: size(restore_frame),
            restore_frames: size(restore / restore_frame),
            arena_bytes: size(arena(row(RowId::Arenas) / threads)),
            batch_bytes: size(batch),
            batches_per_thread: size(batches / batch),
            overlay_bytes_per_thread: size(overlay(row(RowId::Overlay), threads)),
            global_table_bytes: size(rounded_off(row(RowId::GlobalTables))),
            memtable_bytes: size(rounded_off(row(RowId::Memtables))),
            block_cache_bytes: size(rounded_off(row(RowId::BlockCache))),
            compaction_readahead_bytes: size(power_within(row(RowId::Compaction) / 32, 32 << 10, 256 << 10)),
            max_open_files: size(MAX_OPEN_FILES),
            max_iterators: size(MAX_ITERATORS),
            store_batch_bytes: size(STORE_BATCH_BYTES),
        }
    }
}

/// Frames a thread is given before its frames grow.
const FRAMES_AIM: u64 = 6;
/// Batches a thread has at least before its batches grow.
const MIN_BATCHES: u64 = 16;

/// The arena in a share of the row: a block just beyond a size class takes the next one, and frames leave parts of
/// pages at their ends. Measured with frames of 512 KiB: 90 KiB for two threads.
fn arena(share: u64) -> u64 {
    share - (share / 8).min(96 << 10)
}

/// What one thread keeps of a module beside what is in use: half-used pages, pages on their way back,
/// and some 40 KiB of blocks in its cache. Measured for an overlay under constant eviction: 0.2 to 0.4 MiB, the eighth
/// included.
const HALF_USED_PAGES: u64 = 256 << 10;

/// The size class that a large block of `bytes` gets: four steps a doubling.
pub(super) fn size_class(bytes: u64) -> u64 {
    let below = 1u64 << bytes.saturating_sub(1).max(1).ilog2();
    bytes.next_multiple_of((below / 4).max(1))
}

/// What the allocator's size classes leave of a row made of many small objects.
fn rounded_off(row: u64) -> u64 {
    row - row / 8
}

/// What one thread's overlay may hold of the row.
fn overlay(row: u64, threads: u64) -> u64 {
    let half_used = (threads * HALF_USED_PAGES).min(row / 6);
    (rounded_off(row) - half_used) / threads
}

/// The largest power of two that is at most `bytes`, within two powers of two.
fn power_within(bytes: u64, least: u64, most: u64) -> u64 {
    let power = if bytes == 0 { 0 } else { 1u64 << bytes.ilog2() };
    power.clamp(least, most)
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |size: usize| Bytes(size as u64);
        write!(f, "each thread: {} frames of {}", self.frames_per_thread, bytes(self.frame_bytes))?;
        write!(f, ", {} batches of {}", self.batches_per_thread, bytes(self.batch_bytes))?;
        write!(f, ", arenas of {}", bytes(self.arena_bytes))?;
        writeln!(f, ", overlay of {}", bytes(self.overlay_bytes_per_thread))?;
        write!(f, "process: oversize frame {}", bytes(self.oversize_bytes))?;
        write!(f, ", {} restore frames of {}", self.restore_frames, bytes(self.restore_frame_bytes))?;
        write!(f, ", memtables {}, block cache {}", bytes(self.memtable_bytes), bytes(self.block_cache_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_are_jemallocs() {
        for (bytes, class) in [(16_384, 16_384), (16_385, 20_480), (1 << 20, 1 << 20), ((1 << 20) + 1, 1_310_720)] {
            assert_eq!(size_class(bytes), class);
        }
    }

    #[test]
    fn buffers_are_powers_of_two_within_their_bounds() {
        assert_eq!(power_within(0, 16, 64), 16);
        assert_eq!(power_within(63, 16, 64), 32);
        assert_eq!(power_within(1 << 40, 16, 64), 64);
    }
}
