//! Memory for what a stream thread holds: pooled frames and bump arenas, both of module Batch.
//!
//! Owns: the buffers. Invariant: no buffer ever grows; a frame is used by the pool, by one writer, or by readers that
//! are counted. Bound: the plan's rows for frames, arenas and the process's one oversize buffer.
//! Called by: the fetcher (frames), tasks and nodes (arenas).
mod bump;
mod frame;
mod oversize;
mod prefetch;

pub(crate) use bump::Arena;
pub(crate) use frame::{FrameBuf, FrameId, FramePool};
pub(crate) use oversize::{Oversize, OversizeError};
pub(crate) use prefetch::prefetch;

/// Allocations until the guard is dropped belong to module Batch.
fn batch() -> plimsoll_alloc::Scope {
    plimsoll_alloc::scope(plimsoll_alloc::Module::Batch)
}
