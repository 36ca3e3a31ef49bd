//! Whether a new leader's log has what was read of the old one's (KIP-320), asked before the first fetch from it where
//! fetches do not tell it themselves: before version 12 of Fetch, that is before Kafka 2.7.
//!
//! Bound: [`AT_ONCE`] partitions a request, so that the answer fits the buffer for answers that are not fetches.
use super::broker::{Asked, FetchBroker, Phase, REQUEST_HEADER_BYTES};
use super::slot::{SlotState, Slots};
use super::{FetchFault, FetcherSettings, LinkFault};
use crate::base::limits::MAX_TOPIC_NAME;
use crate::client::SharedMetadata;
use crate::net::NetError;
use crate::wire::ErrorCode;
use crate::wire::message::{
    ApiKey, EpochEnd, EpochQuery, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, RequestHeader, TopicRef,
};

/// Partitions of one request: each of them may take 290 bytes of the answer.
const AT_ONCE: usize = 16;
/// Bytes of a request for each partition, which names its topic.
const QUERY_BYTES: usize = MAX_TOPIC_NAME + 32;

/// Asks where the epochs end that were last read of partitions with a new leader, if there are such.
pub(super) fn send(
    broker: &mut FetchBroker,
    slots: &Slots,
    settings: &FetcherSettings,
    now_ms: i64,
) -> Result<(), LinkFault> {
    let Some(version) = broker.epochs.filter(|_| broker.phase == Phase::Idle && broker.throttled_until <= now_ms)
    else {
        return Ok(());
    };
    broker.asked.clear();
    for slot in &broker.slots {
        let open = |state: &&SlotState| state.unproven && state.source() == broker.id && state.is_ready(now_ms);
        if let Some(state) = slots.get(*slot).filter(open)
            && broker.asked.len() < AT_ONCE
        {
            broker.asked.push(Asked { slot: *slot, ask: state.ask });
        }
    }
    if broker.asked.is_empty() {
        return Ok(());
    }
    let header = RequestHeader {
        api: ApiKey::OffsetForLeaderEpoch,
        version,
        correlation_id: broker.link.begin()?,
        client_id: &settings.client_id,
    };
    broker.link.reserve_stage(REQUEST_HEADER_BYTES + settings.client_id.len() + AT_ONCE * QUERY_BYTES);
    let stage = broker.link.stage().ok_or(NetError::NotConnected)?;
    let mut writer = OffsetForLeaderEpochRequest.begin(stage, &header, broker.asked.len());
    for state in broker.asked.iter().filter_map(|asked| slots.get(asked.slot)) {
        writer.topic(slots.topic(state.topic), 1);
        writer.partition(&EpochQuery {
            partition: state.partition,
            current_leader_epoch: state.leader_epoch,
            leader_epoch: state.last_epoch,
        });
    }
    writer.finish()?;
    broker.link.flush()?;
    broker.phase = Phase::Proving;
    broker.deadline = now_ms.saturating_add(settings.request_timeout_ms);
    Ok(())
}

/// Takes the answer. What it does not settle is asked again after a pause: when the first is due.
pub(super) fn take(
    broker: &mut FetchBroker,
    slots: &mut Slots,
    frame: &[u8],
    metadata: &SharedMetadata,
    now_ms: i64,
) -> Result<i64, LinkFault> {
    let version = broker.epochs.unwrap_or_default();
    broker.answered();
    let mut response = OffsetForLeaderEpochResponse::read(frame, version)?;
    broker.throttle(response.throttle_ms, now_ms);
    let mut again_at = i64::MAX;
    for asked in &broker.asked {
        if let Some(state) = slots.get_mut(asked.slot).filter(|state| state.ask == asked.ask) {
            state.retry_at = now_ms.saturating_add(state.backoff.failed());
            again_at = again_at.min(state.retry_at);
        }
    }
    while let Some(end) = response.next()? {
        let named = |asked: &&Asked| {
            slots.get(asked.slot).is_some_and(|state| {
                state.ask == asked.ask
                    && state.partition == end.partition
                    && end.topic == TopicRef::Name(slots.topic(state.topic))
            })
        };
        let Some(slot) = broker.asked.iter().find(named).map(|asked| asked.slot) else { continue };
        let Some(state) = slots.get_mut(slot) else { continue };
        if let Some(fault) = settle(state, &end, now_ms) {
            slots.stop(slot, fault);
        } else if end.error.needs_metadata() {
            metadata.request_refresh();
        }
    }
    broker.asked.clear();
    Ok(again_at)
}

/// What an answer means for a partition.
fn settle(state: &mut SlotState, end: &EpochEnd<'_>, now_ms: i64) -> Option<FetchFault> {
    match end.error {
        ErrorCode::None => {}
        ErrorCode::TopicAuthorizationFailed => return Some(FetchFault::Unauthorized),
        code if code.is_retriable() || code == ErrorCode::UnknownServerError => return None,
        code => return Some(FetchFault::Broker { code }),
    }
    let (offset, epoch, end_offset) = (state.fetch_offset, end.leader_epoch, end.end_offset);
    if epoch < 0 || end_offset < offset {
        return Some(FetchFault::Truncated { offset, epoch, end_offset });
    }
    (state.unproven, state.retry_at) = (false, now_ms);
    state.backoff.succeeded();
    None
}
