//! The batch buffers: the producer's memory, and its back-pressure.
//!
//! Owns every buffer and what is known of the batch in it. Invariant: a buffer is free, under construction, or holds a
//! batch whose outcome is not known; it is given out again only when no request needs its bytes. Bound: the number and
//! size given at construction, plus one buffer for large records if asked for; nothing is allocated afterwards.
use super::ack::Shares;
use super::partition::PartitionId;
use super::topics::OutTopic;
use crate::wire::{BatchBuilder, ErrorCode, Rest, Stamp};

/// Names a buffer and the batch in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BatchId(u32);

/// Where a batch is between its first record and its outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// No batch.
    Free,
    /// Takes records.
    Open,
    /// Complete, to be sent (again).
    Ready,
    /// In a request that is not answered.
    Flying,
    /// In a request that is not answered, while its outcome was already told: the answer only frees the buffer.
    GivenUp,
}

/// One buffer and its batch.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) bytes: Box<[u8]>,
    pub(super) builder: BatchBuilder,
    pub(super) stage: Stage,
    pub(super) at: PartitionId,
    /// The batch behind it in its partition.
    pub(super) next: Option<BatchId>,
    /// Identity and sequence in its header. None: the header is not written yet.
    pub(super) stamp: Option<Stamp>,
    /// Whether the stamp must be replaced before it is sent again.
    pub(super) outdated: bool,
    /// When its first record came.
    pub(super) opened_ms: i64,
    /// When it fails if it is not acknowledged.
    pub(super) deadline_ms: i64,
    /// How often it was sent in vain.
    pub(super) attempts: u32,
    /// Whether an earlier attempt may have been written although that was not answered.
    pub(super) unclear: bool,
    /// The last error it was answered with.
    pub(super) last: ErrorCode,
    /// Whose records it holds.
    pub(super) shares: Shares,
    /// Records of it that were acknowledged as an earlier part, after it was halved.
    pub(super) done: u32,
    /// Records behind the part that `builder` describes, after it was halved.
    pub(super) rest: Option<Rest>,
}

impl Batch {
    fn new(bytes: usize) -> Result<Self, NoMemory> {
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(bytes).map_err(|_| NoMemory { bytes })?;
        buffer.resize(bytes, 0);
        Ok(Self {
            bytes: buffer.into_boxed_slice(),
            builder: BatchBuilder::new(),
            stage: Stage::Free,
            at: PartitionId { topic: OutTopic(0), partition: 0 },
            next: None,
            stamp: None,
            outdated: false,
            opened_ms: 0,
            deadline_ms: i64::MAX,
            attempts: 0,
            unclear: false,
            last: ErrorCode::None,
            shares: Shares::new(),
            done: 0,
            rest: None,
        })
    }

    /// Empties it for another partition's records.
    pub(super) fn open(&mut self, at: PartitionId, now_ms: i64, deadline_ms: i64) {
        self.builder.clear();
        self.stage = Stage::Open;
        self.at = at;
        self.next = None;
        self.stamp = None;
        self.outdated = false;
        self.opened_ms = now_ms;
        self.deadline_ms = deadline_ms;
        self.attempts = 0;
        self.unclear = false;
        self.last = ErrorCode::None;
        self.shares = Shares::new();
        self.done = 0;
        self.rest = None;
    }

    /// Whether it is sent in parts that share its buffer.
    pub(super) fn is_halved(&self) -> bool {
        self.rest.is_some()
    }
}

/// The system has no memory for a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory for a batch buffer of {bytes} bytes; lower the line or free memory of the machine")]
pub(crate) struct NoMemory {
    /// Bytes of the buffer.
    bytes: usize,
}

/// All buffers of one producer.
#[derive(Debug)]
pub(super) struct BatchPool {
    batches: Vec<Batch>,
    free: Vec<BatchId>,
    /// The buffer for large records, also in `batches`.
    oversize: Option<BatchId>,
}

impl BatchPool {
    /// `count` buffers of `bytes` (at least one), and one of `oversize` bytes if that is larger.
    pub(super) fn new(bytes: usize, count: usize, oversize: usize) -> Result<Self, NoMemory> {
        let count = count.clamp(1, u32::MAX as usize / 2);
        let mut batches = Vec::new();
        batches.try_reserve_exact(count + 1).map_err(|_| NoMemory { bytes })?;
        for _ in 0..count {
            batches.push(Batch::new(bytes)?);
        }
        // The last one first, so that the first buffers are used before the others are touched at all.
        let free = (0..count as u32).rev().map(BatchId).collect();
        let mut pool = Self { batches, free, oversize: None };
        if oversize > bytes {
            pool.batches.push(Batch::new(oversize)?);
            pool.oversize = Some(BatchId(count as u32));
        }
        Ok(pool)
    }

    /// Bytes that such a pool holds, for the plan.
    #[allow(dead_code)] // for tests and the plan
    pub(super) fn bytes(bytes: usize, count: usize, oversize: usize) -> usize {
        let oversize = if oversize > bytes { oversize } else { 0 };
        count * bytes + oversize + (count + 1) * (size_of::<Batch>() + size_of::<BatchId>())
    }

    #[inline]
    pub(super) fn get(&self, id: BatchId) -> Option<&Batch> {
        self.batches.get(id.0 as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: BatchId) -> Option<&mut Batch> {
        self.batches.get_mut(id.0 as usize)
    }

    /// A free buffer.
    pub(super) fn take(&mut self) -> Option<BatchId> {
        self.free.pop()
    }

    /// The buffer for large records with its size, if there is one; and whether it is free.
    pub(super) fn oversize(&self) -> Option<(BatchId, usize, bool)> {
        let id = self.oversize?;
        let batch = self.get(id)?;
        Some((id, batch.bytes.len(), batch.stage == Stage::Free))
    }

    /// Gives a buffer back.
    pub(super) fn put_back(&mut self, id: BatchId) {
        let Some(batch) = self.batches.get_mut(id.0 as usize) else { return };
        batch.stage = Stage::Free;
        batch.builder.clear();
        if self.oversize != Some(id) {
            self.free.push(id);
        }
    }

    /// Buffers that are not free.
    pub(super) fn used(&self) -> usize {
        let oversize = self.oversize().is_some_and(|(_, _, free)| !free);
        self.batches.len() - usize::from(self.oversize.is_some()) - self.free.len() + usize::from(oversize)
    }

    /// Buffers there are, the one for large records included.
    pub(super) fn len(&self) -> usize {
        self.batches.len()
    }

    /// When every buffer is under construction, so that none will come back by itself: the fullest.
    pub(super) fn fullest_if_all_open(&self) -> Option<BatchId> {
        let mut fullest = None;
        let mut most = 0;
        for (index, batch) in self.batches.iter().enumerate() {
            match batch.stage {
                Stage::Open if batch.builder.len() > most => {
                    most = batch.builder.len();
                    fullest = Some(BatchId(index as u32));
                }
                Stage::Open | Stage::Free => {}
                Stage::Ready | Stage::Flying | Stage::GivenUp => return None,
            }
        }
        fullest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::RawHeaders;

    const AT: PartitionId = PartitionId { topic: OutTopic(0), partition: 0 };

    #[test]
    fn a_pool_gives_out_what_it_has_and_no_more() {
        let mut pool = BatchPool::new(128, 2, 1_024).unwrap();
        let (a, b) = (pool.take().unwrap(), pool.take().unwrap());
        assert_eq!((pool.take(), pool.used(), pool.len()), (None, 2, 3));
        let (large, size, free) = pool.oversize().unwrap();
        assert_eq!((size, free), (1_024, true));
        pool.get_mut(large).unwrap().open(AT, 0, 10);
        assert_eq!((pool.oversize().unwrap().2, pool.used()), (false, 3));
        for id in [large, a, b] {
            pool.put_back(id);
        }
        assert_eq!((pool.used(), pool.take(), pool.oversize().unwrap().2), (0, Some(b), true));
    }

    #[test]
    fn the_fullest_is_told_only_when_none_comes_back_by_itself() {
        let mut pool = BatchPool::new(256, 2, 0).unwrap();
        let ids = [pool.take().unwrap(), pool.take().unwrap()];
        for (id, value) in ids.iter().zip([&[7; 20][..], &[7; 90]]) {
            let batch = pool.get_mut(*id).unwrap();
            batch.open(AT, 0, 10);
            let Batch { builder, bytes, .. } = batch;
            builder.append(bytes, 1, None, Some(value), RawHeaders::EMPTY).unwrap();
        }
        assert_eq!(pool.fullest_if_all_open(), Some(ids[1]));
        pool.get_mut(ids[0]).unwrap().stage = Stage::Flying;
        assert_eq!(pool.fullest_if_all_open(), None);
    }
}
