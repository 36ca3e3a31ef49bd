//! Takes a fetch response in by walking the headers of its batches: positions move on, so that the next fetch can
//! leave before any record is read.
use super::broker::{Asked, FetchBroker};
use super::pending::{Inbox, Pending};
use super::request::records_bytes;
use super::slot::{SlotState, Slots};
use super::{FetchFault, FetcherSettings, LinkFault};
use crate::arena::{FrameId, FramePool};
use crate::client::{Hint, SharedMetadata};
use crate::wire::ErrorCode;
use crate::wire::message::{FetchResponse, FetchedPartition, TopicRef};

/// What taking a response in needs to know.
pub(super) struct Surroundings<'a> {
    pub(super) settings: &'a FetcherSettings,
    pub(super) metadata: &'a SharedMetadata,
    pub(super) now_ms: i64,
    /// Largest buffer, in bytes.
    pub(super) row: usize,
    /// The frame is out of the reserve: only urgent partitions may stay in it.
    pub(super) reserved: bool,
}

/// Takes the response in `frame` in. Each entry added to the inbox holds a reference of the frame; the caller's own
/// stays the caller's.
pub(super) fn take(
    broker: &mut FetchBroker,
    slots: &mut Slots,
    inbox: &mut Inbox,
    pool: &mut FramePool,
    frame: FrameId,
    around: &Surroundings<'_>,
) -> Result<Outcome, LinkFault> {
    inbox.forget_aborted();
    let before = inbox.queue.len();
    let outcome = walk(broker, slots, inbox, pool.bytes(frame), frame, around);
    for _ in before..inbox.queue.len() {
        pool.retain(frame);
    }
    broker.asked.clear();
    outcome
}

/// What is to be done after a response.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// When the first partition that was refused is to be asked for again.
    pub(super) again_at: Option<i64>,
    /// A partition is to be read from another replica.
    pub(super) regroup: bool,
}

impl Outcome {
    /// A partition was refused: the same again after a pause, longer with each time.
    fn pause(&mut self, state: &mut SlotState, now_ms: i64) {
        state.retry_at = now_ms.saturating_add(state.backoff.failed());
        self.again_at = Some(self.again_at.map_or(state.retry_at, |at| at.min(state.retry_at)));
    }
}

fn walk(
    broker: &mut FetchBroker,
    slots: &mut Slots,
    inbox: &mut Inbox,
    bytes: &[u8],
    frame: FrameId,
    around: &Surroundings<'_>,
) -> Result<Outcome, LinkFault> {
    let retry_at = around.now_ms.saturating_add(around.settings.retry_backoff_ms.into());
    let mut outcome = Outcome::default();
    let mut response = FetchResponse::read(bytes, broker.asked_version)?;
    broker.throttle(response.throttle_ms, around.now_ms);
    if !response.error.is_none() {
        // Without a session this is the broker's trouble; it goes away or the connection does.
        broker.throttled_until = broker.throttled_until.max(retry_at);
        return Ok(outcome);
    }
    let mut at = 0;
    while let Some(answer) = response.next()? {
        let Some(asked) = find(&broker.asked, &mut at, &answer, slots) else { continue };
        let Some(state) = slots.get_mut(asked.slot).filter(|state| state.ask == asked.ask) else { continue };
        if around.reserved && !state.urgent {
            continue;
        }
        match take_partition(state, &answer, around) {
            Ok(None) => {}
            Ok(Some(taken)) => {
                let aborted = match around.settings.read_committed {
                    true => inbox.note_aborted(answer.aborted),
                    false => inbox.none_aborted(),
                };
                inbox.queue.push_back(Pending {
                    slot: asked.slot,
                    life: state.life,
                    frame,
                    bytes: answer.records_at..answer.records_at + taken.bytes,
                    first: answer.records_at,
                    skip_below: taken.skip_below,
                    reserved: around.reserved,
                    aborted,
                });
            }
            Err(Refusal::Fault(fault)) => slots.stop(asked.slot, fault),
            Err(Refusal::Retry) => outcome.pause(state, around.now_ms),
            Err(Refusal::Replica(id)) => {
                (state.replica, outcome.regroup) = (id, true);
                state.replica_until = around.now_ms.saturating_add(around.settings.replica_ms);
            }
            Err(Refusal::Leader) => outcome.regroup |= state.leave_replica(),
            Err(Refusal::Moved) => {
                outcome.pause(state, around.now_ms);
                outcome.regroup |= state.leave_replica();
                let (partition, topic) = (state.partition, state.topic);
                look_up(slots.topic(topic), partition, &answer, around.metadata);
            }
        }
    }
    Ok(outcome)
}

/// Whole batches of one partition.
struct Taken {
    bytes: usize,
    skip_below: i64,
}

enum Refusal {
    Fault(FetchFault),
    /// The same again, later.
    Retry,
    /// Somewhere else: metadata first.
    Moved,
    /// From this replica.
    Replica(i32),
    /// From the leader: the replica that was asked does not have it.
    Leader,
}

fn take_partition(
    state: &mut SlotState,
    answer: &FetchedPartition<'_>,
    around: &Surroundings<'_>,
) -> Result<Option<Taken>, Refusal> {
    refuse(state, answer)?;
    state.backoff.succeeded();
    if answer.preferred_replica >= 0 && answer.preferred_replica != state.source() {
        return Err(Refusal::Replica(answer.preferred_replica));
    }
    state.high_watermark = answer.high_watermark;
    state.last_stable = answer.last_stable_offset;
    state.log_start = answer.log_start_offset;
    let offset = state.fetch_offset;
    if let Some(end) = answer.diverging_epoch {
        let (epoch, end_offset) = (end.epoch, end.end_offset);
        return Err(Refusal::Fault(FetchFault::Truncated { offset, epoch, end_offset }));
    }
    let mut batches = answer.batches();
    loop {
        match batches.next() {
            Ok(Some((header, _))) => {
                state.fetch_offset = state.fetch_offset.max(header.next_offset());
                state.last_epoch = header.leader_epoch;
            }
            Ok(None) => break,
            // What is before it is handed out first; the next fetch then begins with it.
            Err(_) if batches.at() > 0 => break,
            Err(error) => return Err(Refusal::Fault(FetchFault::Undecodable { offset, error })),
        }
    }
    if batches.at() > 0 {
        (state.need, state.urgent) = (0, false);
        return Ok(Some(Taken { bytes: batches.at(), skip_below: offset }));
    }
    state.need = batches.incomplete().unwrap_or(0);
    if state.need > records_bytes(around.row, 1) {
        return Err(Refusal::Fault(FetchFault::TooLarge { offset, needed: state.need, row: around.row }));
    }
    Ok(None)
}

fn refuse(state: &SlotState, answer: &FetchedPartition<'_>) -> Result<(), Refusal> {
    let offset = state.fetch_offset;
    match answer.error {
        ErrorCode::None => Ok(()),
        // A replica may lag behind the leader.
        ErrorCode::OffsetOutOfRange if state.replica >= 0 => Err(Refusal::Leader),
        ErrorCode::OffsetOutOfRange => {
            Err(Refusal::Fault(FetchFault::OffsetOutOfRange { offset, log_start: answer.log_start_offset }))
        }
        ErrorCode::TopicAuthorizationFailed => Err(Refusal::Fault(FetchFault::Unauthorized)),
        code if code.needs_metadata() => Err(Refusal::Moved),
        // Kafka's own consumer tries on after the second, too.
        code if code.is_retriable() || code == ErrorCode::UnknownServerError => Err(Refusal::Retry),
        code => Err(Refusal::Fault(FetchFault::Broker { code })),
    }
}

/// Asks for newer metadata, and moves the leader at once when the broker told who it is.
fn look_up(topic: &str, partition: i32, answer: &FetchedPartition<'_>, metadata: &SharedMetadata) {
    match answer.current_leader {
        Some(now) => {
            metadata.hint(&Hint { topic, partition, leader: now.leader_id, leader_epoch: now.leader_epoch });
        }
        None => metadata.request_refresh(),
    }
}

/// The request for which this is the answer. Answers come in the order of the requests as a rule, so the search begins
/// behind the last hit.
fn find(asked: &[Asked], at: &mut usize, answer: &FetchedPartition<'_>, slots: &Slots) -> Option<Asked> {
    let is_topic = |state: &SlotState| match answer.topic {
        TopicRef::Name(name) => **slots.topic(state.topic) == *name,
        TopicRef::Id(id) => state.topic_id == id,
    };
    for i in 0..asked.len() {
        let place = (*at + i) % asked.len();
        let candidate = asked.get(place)?;
        let Some(state) = slots.get(candidate.slot) else { continue };
        if state.partition == answer.partition && is_topic(state) {
            *at = place + 1;
            return Some(*candidate);
        }
    }
    None
}
