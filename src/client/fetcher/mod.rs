//! The consuming half of a thread's data path: asks brokers for partitions and lends their batches, frame by frame.
//!
//! Owns: one connection for each broker that leads one of its partitions (producing has its own: a broker serves one
//! request of a connection at a time, and a fetch may wait there for long), the thread's frame pool, and the
//! decompression contexts.
//!
//! Invariant: a position moves only over batches that are in the inbox or were handed out, so nothing is lost
//! whatever happens to a connection, and nothing is handed out twice between two seeks. Of one partition there is at
//! most one fetch on its way whose answer will be taken.
//!
//! Bound: received bytes live in the frame pool (and the process's one oversize buffer) and nowhere else. A frame is
//! taken only when the length of a response is known; when there is none the response waits in the socket, whose
//! buffer is fixed. In steady state nothing is allocated; partitions that are added and leaders that move allocate.
//!
//! A turn of the thread: [`Fetcher::prepare`], wait, [`Fetcher::process`], then [`Fetcher::next`] until it answers
//! `None`. Callers: stream threads and the restore thread.
mod broker;
mod deliver;
#[cfg(feature = "bench")]
mod describe;
mod fault;
mod leaders;
mod pending;
mod prove;
mod request;
mod response;
mod settings;
mod slot;
#[cfg(test)]
mod tests;
mod turn;

pub(crate) use broker::LinkFault;
pub(crate) use fault::{FetchFault, Fetched, FetchedBatch};
pub(crate) use settings::{FetcherError, FetcherSettings};
pub(crate) use slot::Slot;

use crate::arena::{FrameId, FramePool};
use crate::base::limits::{MIN_FRAMES, MIN_PARTITION_FETCH_BYTES};
use crate::client::SharedMetadata;
use crate::net::{Backoff, jitter_seed};
use crate::wire::Decompressor;
use broker::FetchBroker;
use pending::Inbox;
use slot::Slots;

/// Bytes of the buffer for answers that are not fetches: the versions a broker offers take about 600.
const CONTROL_FRAME_BYTES: usize = 8 << 10;

/// Fetches partitions for one thread.
#[derive(Debug)]
pub(crate) struct Fetcher {
    settings: FetcherSettings,
    pool: FramePool,
    metadata: SharedMetadata,
    /// Version of the metadata by which leaders were last assigned.
    seen: u64,
    /// Partitions were added or removed since.
    regroup: bool,
    slots: Slots,
    brokers: Vec<FetchBroker>,
    inbox: Inbox,
    /// The frame that batches are being decompressed into.
    target: Option<FrameId>,
    decompressor: Decompressor,
    /// References of frames in the caller's hands.
    handed: u32,
    /// Compressed batches have been seen: one frame more is needed to read them.
    compressed: bool,
    /// For answers that are not fetches, used by one broker at a time.
    control: Box<[u8]>,
    control_user: Option<i32>,
    /// Scratch of [`Self::follow_leaders`]: topic, partition, slot, leader.
    places: Vec<(usize, i32, Slot, i32)>,
    /// Next time at which a partition may be asked for again.
    wake_at: i64,
    /// When the first partition that is read from a replica asks its leader again.
    replicas_until: i64,
}

impl Fetcher {
    /// A fetcher without partitions, over a pool of at least three frames, one of them reserved.
    pub(crate) fn new(
        settings: FetcherSettings,
        pool: FramePool,
        metadata: SharedMetadata,
    ) -> Result<Self, FetcherError> {
        let (frames, reserved) = (pool.frames(), pool.reserved());
        if frames < MIN_FRAMES || reserved == 0 || frames - reserved < 2 {
            return Err(FetcherError::Frames { frames, reserved });
        }
        let needed = 2 * MIN_PARTITION_FETCH_BYTES as usize;
        if pool.frame_bytes() < needed {
            return Err(FetcherError::FrameBytes { frame_bytes: pool.frame_bytes(), needed });
        }
        let decompressor = {
            let _scope = plimsoll_alloc::scope(pool.module());
            Decompressor::new()?
        };
        Ok(Self {
            settings,
            pool,
            metadata,
            seen: 0,
            regroup: false,
            slots: Slots::default(),
            brokers: Vec::new(),
            inbox: Inbox::default(),
            target: None,
            decompressor,
            handed: 0,
            compressed: false,
            control: vec![0; CONTROL_FRAME_BYTES].into_boxed_slice(),
            control_user: None,
            places: Vec::new(),
            wake_at: i64::MAX,
            replicas_until: i64::MAX,
        })
    }

    /// Adds a partition, to be read from `offset` on. It is wanted at once. Allocates.
    pub(crate) fn add(&mut self, topic: &str, partition: i32, offset: i64) -> Result<Slot, FetcherError> {
        self.metadata.want_topic(topic)?;
        let seed = jitter_seed() ^ partition.unsigned_abs().rotate_left(16);
        let backoff = Backoff::new(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms, seed);
        let slot = self.slots.add(topic, partition, offset, backoff)?;
        self.inbox.reserve(self.slots.places());
        self.regroup = true;
        Ok(slot)
    }

    /// Removes a partition and what was received of it. Batches handed out stay valid until released.
    pub(crate) fn remove(&mut self, slot: Slot) {
        if self.slots.remove(slot) {
            self.forget_received(slot);
            self.regroup = true;
        }
    }

    /// Goes to another offset: what was received and not handed out is dropped, a fault is over.
    pub(crate) fn seek(&mut self, slot: Slot, offset: i64) {
        if let Some(state) = self.slots.get_mut(slot) {
            state.seek(offset);
            self.forget_received(slot);
        }
    }

    /// Says whether more of a partition is wanted. What is on its way will still come: at most one frame a broker.
    pub(crate) fn demand(&mut self, slot: Slot, wanted: bool) {
        if let Some(state) = self.slots.get_mut(slot) {
            state.demand = wanted;
            state.urgent &= wanted;
            state.rush &= wanted;
        }
    }

    /// Says that a task can do nothing before it has a record of this partition, or knows that there is none. Such
    /// partitions come first, and when all other frames are taken, alone into the reserved one. Until something
    /// arrives.
    pub(crate) fn urgent(&mut self, slot: Slot) {
        if let Some(state) = self.slots.get_mut(slot) {
            state.demand = true;
            state.rush = true;
            state.urgent = !self.inbox.queue.iter().any(|pending| pending.slot == slot);
        }
    }

    /// The thread's frames, to read handed-out batches.
    pub(crate) fn pool(&self) -> &FramePool {
        &self.pool
    }

    /// Gives back one reference of a handed-out frame.
    pub(crate) fn release(&mut self, frame: FrameId) {
        self.pool.release(frame);
        debug_assert!(self.handed > 0, "a frame was released more often than it was handed out");
        self.handed = self.handed.saturating_sub(1);
    }

    /// Takes one more reference of a handed-out frame.
    #[allow(dead_code)] // for tests and proofs
    pub(crate) fn retain(&mut self, frame: FrameId) {
        self.pool.retain(frame);
        self.handed += 1;
    }

    /// Offset behind what was handed out of a partition, or skipped because it is not for users.
    pub(crate) fn position(&self, slot: Slot) -> i64 {
        self.slots.get(slot).map_or(-1, |state| state.position)
    }

    /// First offset that is not on all replicas yet, as last heard.
    pub(crate) fn high_watermark(&self, slot: Slot) -> Option<i64> {
        self.slots.get(slot).map(|state| state.high_watermark).filter(|offset| *offset >= 0)
    }

    /// First offset of an open transaction, or the high watermark, as last heard.
    #[allow(dead_code)] // for tests and proofs
    pub(crate) fn last_stable_offset(&self, slot: Slot) -> Option<i64> {
        self.slots.get(slot).map(|state| state.last_stable).filter(|offset| *offset >= 0)
    }

    /// First offset of the log, as last heard.
    #[allow(dead_code)] // for tests and proofs
    pub(crate) fn log_start_offset(&self, slot: Slot) -> Option<i64> {
        self.slots.get(slot).map(|state| state.log_start).filter(|offset| *offset >= 0)
    }

    /// Why the connection to a broker was last given up; `None` while all are well.
    #[allow(dead_code)] // for tests and proofs
    pub(crate) fn trouble(&self) -> Option<(i32, LinkFault)> {
        self.brokers.iter().find_map(|broker| broker.last_fault.map(|fault| (broker.id, fault)))
    }

    fn forget_received(&mut self, slot: Slot) {
        let pool = &mut self.pool;
        self.inbox.queue.retain(|pending| {
            let keep = pending.slot != slot;
            if !keep {
                pool.release(pending.frame);
            }
            keep
        });
        if self.inbox.queue.is_empty() {
            self.close_target();
        }
    }
}
