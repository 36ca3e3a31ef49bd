//! Which broker leads which partition, taken over from each new snapshot of the metadata.
use super::broker::{FetchBroker, Phase};
use super::request::request_bytes;
use super::slot::SlotState;
use super::{FetchFault, Fetcher};
use crate::base::limits::MAX_BROKERS;
use crate::client::{MetadataSnapshot, TopicInfo, TopicState};

impl Fetcher {
    /// Assigns partitions to brokers anew if there is news. Allocates only when there are more of either than before.
    pub(super) fn follow_leaders(&mut self, now_ms: i64) {
        if !self.regroup && self.seen == self.metadata.version() {
            return;
        }
        let snapshot = self.metadata.latest();
        (self.regroup, self.seen) = (false, snapshot.version);
        for broker in &mut self.brokers {
            broker.slots.clear();
        }
        let mut faults = Vec::new();
        let mut places = std::mem::take(&mut self.places);
        for (slot, state, topic) in self.slots.iter_mut() {
            let fault = match snapshot.topic(topic) {
                Some(info) => place(state, info, self.settings.missing_topic_ms, now_ms),
                None => None, // not asked for yet when this snapshot was taken
            };
            faults.extend(fault.map(|fault| (slot, fault)));
            if state.replica >= 0 && snapshot.broker(state.replica).is_none() {
                // The leader would name it again.
                state.retry_at = now_ms.saturating_add(state.backoff.failed());
                self.wake_at = self.wake_at.min(state.retry_at);
                self.metadata.request_refresh();
                state.leave_replica();
            } else if state.replica_until <= now_ms {
                state.leave_replica();
            }
            if state.replica >= 0 {
                self.replicas_until = self.replicas_until.min(state.replica_until);
            }
            places.push((state.topic, state.partition, slot, state.source()));
        }
        // Neighbours of one topic stand together in the request.
        places.sort_unstable();
        for (_, _, slot, leader) in places.drain(..) {
            if leader < 0 || snapshot.broker(leader).is_none() {
                continue;
            }
            match self.broker_at(leader) {
                Some(at) => self.brokers[at].slots.push(slot),
                None => faults.push((slot, FetchFault::TooManyBrokers { limit: MAX_BROKERS })),
            }
        }
        self.places = places;
        for (slot, fault) in faults {
            self.slots.stop(slot, fault);
        }
        self.settle(&snapshot);
    }

    /// Gives connections their addresses and room, and ends those that lead nothing any more.
    fn settle(&mut self, snapshot: &MetadataSnapshot) {
        for broker in &mut self.brokers {
            let moved = snapshot.broker(broker.id).is_some_and(|known| broker.set_addrs(known));
            if (moved || broker.slots.is_empty()) && broker.phase != Phase::Down {
                if let Some(buf) = broker.hang_up() {
                    self.pool.put_back(buf);
                }
                if self.control_user == Some(broker.id) {
                    self.control_user = None;
                }
            }
            let topic = |slot| self.slots.get(slot).map(|state| state.topic);
            let mut topics = 0;
            let mut last = None;
            for slot in &broker.slots {
                topics += usize::from(topic(*slot) != last);
                last = topic(*slot);
            }
            broker.request_bytes = request_bytes(&self.settings, topics, broker.slots.len());
            broker.asked.reserve(broker.slots.len().saturating_sub(broker.asked.len()));
        }
    }

    /// Index of the connection to this broker. A new one takes the place of one that leads nothing.
    fn broker_at(&mut self, id: i32) -> Option<usize> {
        if let Some(at) = self.brokers.iter().position(|broker| broker.id == id) {
            return Some(at);
        }
        let new = FetchBroker::new(id, &self.settings);
        if self.brokers.len() < MAX_BROKERS {
            self.brokers.push(new);
            return Some(self.brokers.len() - 1);
        }
        let at = self.brokers.iter().position(|broker| broker.slots.is_empty() && broker.phase == Phase::Down)?;
        self.brokers[at] = new;
        Some(at)
    }
}

/// Takes over what a snapshot says about one partition.
fn place(state: &mut SlotState, info: &TopicInfo, patience_ms: i64, now_ms: i64) -> Option<FetchFault> {
    match info.state {
        TopicState::Known => state.missing_since = None,
        TopicState::Missing => {
            let since = *state.missing_since.get_or_insert(now_ms);
            let over = now_ms.saturating_sub(since) >= patience_ms;
            return over.then_some(FetchFault::UnknownTopic);
        }
        // Leaders stay as they were until the cluster says otherwise.
        TopicState::Failed(crate::wire::ErrorCode::TopicAuthorizationFailed) => return Some(FetchFault::Unauthorized),
        TopicState::Failed(_) => return None,
    }
    let anew = info.id != [0; 16] && state.topic_id != [0; 16] && state.topic_id != info.id;
    if anew {
        // Its epochs begin anew; where it is led is needed after the seek that follows.
        (state.leader, state.leader_epoch) = (-1, -1);
    }
    if info.id != [0; 16] {
        state.topic_id = info.id;
    }
    let fault = anew.then_some(FetchFault::TopicRecreated);
    let known = usize::try_from(state.partition).ok().and_then(|at| info.partitions.get(at));
    let Some(known) = known else {
        state.leader = -1;
        return fault;
    };
    // A broker that lags behind tells of an older leader; that is no news.
    let older = known.leader_epoch >= 0 && known.leader_epoch < state.leader_epoch;
    if !older && (known.leader, known.leader_epoch) != (state.leader, state.leader_epoch) {
        if known.leader != state.leader {
            state.ask = state.ask.wrapping_add(1);
        }
        state.leave_replica();
        // Whether the new leader has what the old one had is not said.
        state.unproven = state.last_epoch >= 0;
        (state.leader, state.leader_epoch) = (known.leader, known.leader_epoch);
        state.retry_at = now_ms;
    }
    fault
}
