//! Which partitions the next fetch from a broker asks for, and how much of each.
use super::broker::{Asked, FETCH_BY_NAME, FetchBroker, Phase, REQUEST_HEADER_BYTES, SILENT_MS};
use super::slot::{SlotState, Slots};
use super::{FetcherSettings, LinkFault, Slot};
use crate::arena::FramePool;
use crate::base::limits::{MAX_TOPIC_NAME, MIN_PARTITION_FETCH_BYTES};
use crate::net::NetError;
use crate::wire::TopicId;
use crate::wire::message::{ApiKey, FetchPosition, FetchRequest, FetchWriter, RequestHeader, TopicRef};

/// Longest wait of a fetch that leaves partitions out, in milliseconds: as soon as one of them is wanted again it must
/// not wait for a broker that has nothing else to send.
pub(super) const PARTIAL_WAIT_MS: i32 = 20;
/// Bytes of a response beside the records: for each partition, and before the first.
const ANSWER_BYTES: usize = 256;
const ANSWER_PARTITION_BYTES: usize = 96;
/// Bytes of a request for each partition.
const REQUEST_PARTITION_BYTES: usize = 48;
const REQUEST_TOPIC_BYTES: usize = 16 + MAX_TOPIC_NAME;
/// Of a topic whose id is not known.
const NO_ID: TopicId = [0; 16];

/// Bytes that a request for these partitions may take.
pub(super) fn request_bytes(settings: &FetcherSettings, topics: usize, partitions: usize) -> usize {
    // A topic is named once for each rank, and twice when the request begins in its middle.
    let runs = (3 * topics + 1).min(partitions);
    let names = settings.client_id.len() + settings.rack.len();
    REQUEST_HEADER_BYTES + names + runs * REQUEST_TOPIC_BYTES + partitions * REQUEST_PARTITION_BYTES
}

/// Bytes of a frame that are left for records when the answer tells about so many partitions of so many topics.
pub(super) fn records_bytes(frame_bytes: usize, partitions: usize) -> usize {
    let beside = ANSWER_BYTES + MAX_TOPIC_NAME + partitions * ANSWER_PARTITION_BYTES;
    frame_bytes.saturating_sub(beside).max(MIN_PARTITION_FETCH_BYTES as usize)
}

/// Sends the next fetch, if the broker leads something that is wanted now.
pub(super) fn send(
    broker: &mut FetchBroker,
    slots: &Slots,
    pool: &FramePool,
    settings: &FetcherSettings,
    now_ms: i64,
) -> Result<(), LinkFault> {
    if broker.phase != Phase::Idle || broker.throttled_until > now_ms {
        return Ok(());
    }
    if !broker.link.may_send(now_ms)? {
        return Ok(()); // the login is renewed first
    }
    let left_out = choose(broker, slots, pool, now_ms);
    let Some(first) = broker.asked.first().and_then(|asked| slots.get(asked.slot)) else { return Ok(()) };
    // Ids tell a topic from a later one of the same name; but they must be known of all of them.
    let named = broker.asked.iter().any(|asked| slots.get(asked.slot).is_none_or(|state| state.topic_id == NO_ID));
    broker.asked_version = if named { broker.version.min(FETCH_BY_NAME) } else { broker.version };
    let total = total_bytes(first, broker.asked.len(), pool);
    let request = FetchRequest {
        max_wait_ms: if left_out { settings.max_wait_ms.min(PARTIAL_WAIT_MS) } else { settings.max_wait_ms },
        min_bytes: settings.min_bytes,
        max_bytes: clamp(total),
        read_committed: settings.read_committed,
        session_id: 0,
        session_epoch: -1,
    };
    let header = RequestHeader {
        api: ApiKey::Fetch,
        version: broker.asked_version,
        correlation_id: broker.link.begin()?,
        client_id: &settings.client_id,
    };
    let topics = runs(&broker.asked, slots);
    let share = (total / broker.asked.len()).max(MIN_PARTITION_FETCH_BYTES as usize).min(total);
    broker.link.reserve_stage(broker.request_bytes);
    let stage = broker.link.stage().ok_or(NetError::NotConnected)?;
    let mut writer = request.begin(stage, &header, topics);
    let by_id = broker.asked_version > FETCH_BY_NAME;
    write_partitions(&mut writer, &broker.asked, slots, &Shape { by_id, share, total });
    writer.finish(&settings.rack)?;
    broker.link.flush()?;
    broker.phase = Phase::Fetching;
    let answer_at = now_ms.saturating_add(settings.max_wait_ms.into());
    broker.deadline = answer_at.saturating_add(settings.request_timeout_ms);
    broker.look_up_at = answer_at.saturating_add(SILENT_MS);
    Ok(())
}

/// Chooses the partitions, those that need it most first. Answers whether one that may be wanted soon is left out.
fn choose(broker: &mut FetchBroker, slots: &Slots, pool: &FramePool, now_ms: i64) -> bool {
    let FetchBroker { id, slots: led, asked, first, isolate, epochs, .. } = broker;
    let (id, proves) = (*id, epochs.is_some());
    asked.clear();
    *first = if *first + 1 < led.len() { *first + 1 } else { 0 };
    let (before, from) = led.split_at(*first);
    // A partition that has just been sent to a replica is not asked for here any more.
    let here = |state: &&SlotState| state.source() == id && !(proves && state.unproven);
    let of = |slot: &Slot| slots.get(*slot).filter(here).map(|state| (*slot, state));
    let rotated = || from.iter().chain(before).filter_map(of);
    let ready = || rotated().filter(|(_, state)| state.is_ready(now_ms));
    let room = records_bytes(pool.frame_bytes(), 1);
    let urgent = |state: &SlotState| state.urgent;
    // Alone: what a waiting task needs when only the reserve is left, what needs the oversize buffer, or a suspect.
    let alone = if pool.free() == 0 { ready().find(|(_, state)| urgent(state)) } else { None };
    let alone = alone.or_else(|| ready().find(|(_, state)| state.need > room));
    let suspect = if *isolate > 0 { ready().next() } else { None };
    if let Some((slot, state)) = alone.or(suspect) {
        *isolate = isolate.saturating_sub(1);
        asked.push(Asked { slot, ask: state.ask });
        return led.len() > 1;
    }
    let mut all = true;
    let rank = |state: &SlotState| {
        if urgent(state) {
            0
        } else if state.need > 0 {
            1
        } else {
            2
        }
    };
    for wanted in 0..3 {
        for (slot, state) in rotated() {
            if !state.is_ready(now_ms) {
                all &= state.stopped;
            } else if rank(state) == wanted {
                asked.push(Asked { slot, ask: state.ask });
            }
        }
    }
    !all
}

/// Bytes of records in the whole answer: what fits a frame, or more for a single batch known to need it.
fn total_bytes(first: &SlotState, partitions: usize, pool: &FramePool) -> usize {
    let fits = records_bytes(pool.frame_bytes(), partitions);
    if partitions == 1 { fits.max(first.need) } else { fits }
}

/// How the partitions of a request are written.
struct Shape {
    /// Topics by id, not by name.
    by_id: bool,
    /// Bytes for each partition.
    share: usize,
    /// Bytes for all.
    total: usize,
}

fn write_partitions(writer: &mut FetchWriter<'_>, asked: &[Asked], slots: &Slots, shape: &Shape) {
    let mut rest = asked;
    while let Some(topic) = rest.first().and_then(|a| topic_of(a.slot, slots)) {
        let end = rest.iter().position(|a| topic_of(a.slot, slots) != Some(topic)).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        let id = run.first().and_then(|a| slots.get(a.slot)).map_or(NO_ID, |state| state.topic_id);
        let named = TopicRef::Name(slots.topic(topic));
        writer.topic(if shape.by_id { TopicRef::Id(id) } else { named }, run.len());
        for state in run.iter().filter_map(|a| slots.get(a.slot)) {
            writer.partition(&FetchPosition {
                partition: state.partition,
                current_leader_epoch: state.leader_epoch,
                offset: state.fetch_offset,
                last_fetched_epoch: state.last_epoch,
                max_bytes: clamp(shape.share.max(state.need).min(shape.total)),
            });
        }
        rest = behind;
    }
}

/// Topics as the request lists them: each run of neighbours of one topic is one.
fn runs(asked: &[Asked], slots: &Slots) -> usize {
    let changes = asked.windows(2).filter(|w| topic_of(w[0].slot, slots) != topic_of(w[1].slot, slots));
    usize::from(!asked.is_empty()) + changes.count()
}

fn topic_of(slot: Slot, slots: &Slots) -> Option<usize> {
    slots.get(slot).map(|state| state.topic)
}

fn clamp(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}
