//! The partitions of a fetcher.
use super::{FetchFault, FetcherError};
use crate::net::Backoff;
use crate::wire::TopicId;
use std::sync::Arc;

/// A partition of a fetcher. The number of a removed partition is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot(u32);

impl Slot {
    /// Dense number, from 0.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// A slot of a fetcher that a test stands in for.
    #[cfg(test)]
    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// Most partitions of one fetcher.
pub(crate) const MAX_PARTITIONS: usize = 16_384;

/// Everything about one partition. Offsets are -1 while unknown.
#[derive(Debug)]
pub(super) struct SlotState {
    /// False while the place is free.
    pub(super) used: bool,
    /// Index of the topic.
    pub(super) topic: usize,
    /// Number in its topic.
    pub(super) partition: i32,
    /// Identity of the topic when it was first seen; all zero before, or with older brokers.
    pub(super) topic_id: TopicId,
    /// Leader by the metadata last seen; -1 none.
    pub(super) leader: i32,
    /// Its epoch.
    pub(super) leader_epoch: i32,
    /// Replica to read from instead, as the leader wished (KIP-392); -1 none.
    pub(super) replica: i32,
    /// When the leader is asked again whether that is still its wish.
    pub(super) replica_until: i64,
    /// The leader changed: whether its log has what was read is to be asked (KIP-320), where fetches do not say it.
    pub(super) unproven: bool,
    /// Offset to ask for next.
    pub(super) fetch_offset: i64,
    /// Offset behind what was handed out or skipped.
    pub(super) position: i64,
    /// Leader epoch of the last batch received (KIP-320).
    pub(super) last_epoch: i32,
    /// What received batches must carry to be handed out; changes with a seek. Never goes back, so that a number used
    /// again is not mistaken.
    pub(super) life: u32,
    /// What an answer must carry to be taken; changes with a seek, another leader, or when received bytes were given
    /// up.
    pub(super) ask: u32,
    /// Whether the caller wants more.
    pub(super) demand: bool,
    /// Whether a task waits for just this partition and nothing of it has been received.
    pub(super) urgent: bool,
    /// The same, until something of it is handed out.
    pub(super) rush: bool,
    /// Stands still after a fault, until it is sought.
    pub(super) stopped: bool,
    /// The fault, until it is handed out.
    pub(super) fault: Option<FetchFault>,
    /// Not before this time.
    pub(super) retry_at: i64,
    /// Pauses after refusals.
    pub(super) backoff: Backoff,
    /// Since when the topic is missing.
    pub(super) missing_since: Option<i64>,
    /// Size of a batch that the last limit cut, 0 if none.
    pub(super) need: usize,
    /// First offset not committed to all replicas.
    pub(super) high_watermark: i64,
    /// First offset of an open transaction, or the high watermark.
    pub(super) last_stable: i64,
    /// First offset of the log.
    pub(super) log_start: i64,
}

impl SlotState {
    /// Whether it may be asked for at this time.
    pub(super) fn is_ready(&self, now_ms: i64) -> bool {
        self.used && self.demand && !self.stopped && self.retry_at <= now_ms
    }

    /// Id of the broker to read from; -1 none.
    pub(super) fn source(&self) -> i32 {
        if self.replica >= 0 { self.replica } else { self.leader }
    }

    /// Reads from the leader again. Answers whether that is news.
    pub(super) fn leave_replica(&mut self) -> bool {
        let was = std::mem::replace(&mut self.replica, -1);
        self.ask = self.ask.wrapping_add(u32::from(was >= 0));
        was >= 0
    }

    /// Goes to another offset, forgetting faults and what is on its way.
    pub(super) fn seek(&mut self, offset: i64) {
        self.life = self.life.wrapping_add(1);
        self.ask = self.ask.wrapping_add(1);
        (self.fetch_offset, self.position) = (offset, offset);
        (self.last_epoch, self.need, self.retry_at) = (-1, 0, 0);
        (self.stopped, self.fault, self.unproven) = (false, None, false);
    }
}

/// The partitions and topics of a fetcher, by number.
#[derive(Debug, Default)]
pub(super) struct Slots {
    states: Vec<SlotState>,
    free: Vec<Slot>,
    topics: Vec<Arc<str>>,
    /// There may be faults not handed out yet.
    faults: bool,
}

impl Slots {
    /// A new partition, which is wanted at once.
    pub(super) fn add(
        &mut self,
        topic: &str,
        partition: i32,
        offset: i64,
        backoff: Backoff,
    ) -> Result<Slot, FetcherError> {
        let topic = self.topic_index(topic);
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.grow()?,
        };
        let old = &self.states[slot.index()];
        let (life, ask) = (old.life.wrapping_add(1), old.ask.wrapping_add(1));
        let state = SlotState { used: true, demand: true, topic, partition, life, ask, backoff, ..Self::blank() };
        self.states[slot.index()] = state;
        self.states[slot.index()].seek(offset);
        Ok(slot)
    }

    /// Frees a partition's place.
    pub(super) fn remove(&mut self, slot: Slot) -> bool {
        let Some(state) = self.get_mut(slot) else { return false };
        state.seek(-1);
        (state.used, state.demand, state.leader, state.replica) = (false, false, -1, -1);
        (state.urgent, state.rush) = (false, false);
        self.free.push(slot);
        true
    }

    /// Lets a partition stand still with a fault. The first one counts.
    pub(super) fn stop(&mut self, slot: Slot, fault: FetchFault) {
        if self.get(slot).is_some_and(|state| !state.stopped) {
            self.stop_at_once(slot, fault);
        }
    }

    /// The same for what was found in received bytes: it lies before a fault that a later answer told of.
    pub(super) fn stop_at_once(&mut self, slot: Slot, fault: FetchFault) {
        if let Some(state) = self.get_mut(slot) {
            (state.stopped, state.fault) = (true, Some(fault));
            state.ask = state.ask.wrapping_add(1); // what is on its way lies behind the fault
            self.faults = true;
        }
    }

    /// The next fault to hand out, of a partition of which nothing that was received before it is `waiting` any more.
    pub(super) fn take_fault(&mut self, waiting: impl Fn(Slot) -> bool) -> Option<(Slot, FetchFault)> {
        if !self.faults {
            return None;
        }
        let mut left = false;
        for (slot, state, _) in self.iter_mut().filter(|(_, state, _)| state.fault.is_some()) {
            if !waiting(slot)
                && let Some(fault) = state.fault.take()
            {
                return Some((slot, fault));
            }
            left = true;
        }
        self.faults = left;
        None
    }

    /// A partition that is in use.
    pub(super) fn get(&self, slot: Slot) -> Option<&SlotState> {
        self.states.get(slot.index()).filter(|state| state.used)
    }

    /// A partition that is in use.
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut SlotState> {
        self.states.get_mut(slot.index()).filter(|state| state.used)
    }

    /// The partition in a place, if one is there.
    #[cfg(feature = "bench")]
    pub(super) fn at(&self, place: usize) -> Option<&SlotState> {
        self.states.get(place).filter(|state| state.used)
    }

    /// Name of a topic.
    pub(super) fn topic(&self, index: usize) -> &Arc<str> {
        &self.topics[index]
    }

    /// All partitions in use.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Slot, &mut SlotState, &Arc<str>)> {
        let topics = &self.topics;
        let used = (0u32..).zip(&mut self.states).filter(|(_, state)| state.used);
        used.map(|(i, state)| {
            let topic = &topics[state.topic];
            (Slot(i), state, topic)
        })
    }

    /// Number of places, free ones included.
    pub(super) fn places(&self) -> usize {
        self.states.len()
    }

    fn topic_index(&mut self, topic: &str) -> usize {
        // Cold, and a fetcher has few topics.
        self.topics.iter().position(|name| **name == *topic).unwrap_or_else(|| {
            self.topics.push(topic.into());
            self.topics.len() - 1
        })
    }

    fn grow(&mut self) -> Result<Slot, FetcherError> {
        let number = u32::try_from(self.states.len()).ok().filter(|n| (*n as usize) < MAX_PARTITIONS);
        let number = number.ok_or(FetcherError::TooMany { what: "partitions", limit: MAX_PARTITIONS })?;
        self.states.push(Self::blank());
        self.free.reserve(self.states.len()); // so that removing never allocates
        Ok(Slot(number))
    }

    fn blank() -> SlotState {
        SlotState {
            used: false,
            topic: 0,
            partition: -1,
            topic_id: [0; 16],
            leader: -1,
            leader_epoch: -1,
            replica: -1,
            replica_until: 0,
            unproven: false,
            fetch_offset: -1,
            position: -1,
            last_epoch: -1,
            life: 0,
            ask: 0,
            demand: false,
            urgent: false,
            rush: false,
            stopped: false,
            fault: None,
            retry_at: 0,
            backoff: Backoff::new(0, 0, 0),
            missing_since: None,
            need: 0,
            high_watermark: -1,
            last_stable: -1,
            log_start: -1,
        }
    }
}
