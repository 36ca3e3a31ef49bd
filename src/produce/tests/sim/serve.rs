//! What simulated brokers answer, in bytes.
use super::cluster::{Brokers, addr};
use super::log::Planted;
use crate::wire::{Reader, Writer};

pub(super) const TOPIC: &str = "t";
pub(super) const TOPIC_ID: [u8; 16] = [7; 16];
const NOT_LEADER: i16 = 6;
const OUT_OF_RANGE: i16 = 1;
const FENCED: i16 = 74;
const UNKNOWN_EPOCH: i16 = 75;

/// What a request leads to.
pub(super) enum Handled {
    Answer(Vec<u8>),
    Produce(ProduceAsk),
    Fetch(FetchAsk),
}

/// Which request is answered.
#[derive(Clone, Copy, Debug)]
struct Head {
    version: i16,
    correlation: i32,
}

/// The offset behind a batch and its own, or an error code.
pub(super) type Written = Result<(i64, i64), i16>;

/// Batches that were written and are to be acknowledged.
#[derive(Debug)]
pub(super) struct ProduceAsk {
    head: Head,
    node: i32,
    /// Partition, the leader's epoch, and the offset behind the batch with its own, or an error.
    batches: Vec<(i32, i32, Written)>,
}

/// A fetch.
#[derive(Debug)]
pub(super) struct FetchAsk {
    head: Head,
    pub(super) max_wait_ms: i32,
    max_bytes: usize,
    /// Partition, the leader's epoch, offset, epoch of the last batch, limit.
    partitions: Vec<(i32, i32, i64, i32, usize)>,
}

pub(super) fn handle(brokers: &mut Brokers, node: i32, frame: &[u8]) -> Handled {
    let mut request = Reader::new(frame, false);
    let (api, version) = (request.i16().unwrap(), request.i16().unwrap());
    let head = Head { version, correlation: request.i32().unwrap() };
    request.nullable_string().unwrap();
    let flexible = match api {
        0 => version >= 9,
        1 => version >= 12,
        3 => version >= 9,
        22 => version >= 2,
        23 => version >= 4,
        _ => false,
    };
    request.set_flexible(flexible);
    request.skip_tags().unwrap();
    match api {
        18 => Handled::Answer(api_versions(brokers, head)),
        3 => Handled::Answer(metadata(brokers, head)),
        22 => Handled::Answer(identity(brokers, head)),
        23 => Handled::Answer(epochs(brokers, node, head, request)),
        0 => Handled::Produce(produce(brokers, node, head, request)),
        1 => Handled::Fetch(fetch(head, request)),
        other => panic!("api {other}"),
    }
}

/// An answer with its length in front. `header`: with the tags that a flexible answer's header has.
fn answer(head: Head, flexible: bool, header: bool, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512 << 10);
    let mut out = Writer::new(&mut bytes, flexible);
    out.i32(0);
    out.i32(head.correlation);
    if header {
        out.no_tags();
    }
    write(&mut out);
    out.check().unwrap();
    let len = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&len.to_be_bytes());
    bytes.shrink_to_fit();
    bytes
}

fn api_versions(brokers: &Brokers, head: Head) -> Vec<u8> {
    let make = &brokers.make;
    let known = head.version <= make.api_versions;
    let apis = [
        (0, 3, make.produce),
        (1, 4, make.fetch),
        (3, 0, make.metadata),
        (18, 0, make.api_versions),
        (22, 0, 4),
        (23, 0, 4),
    ];
    answer(head, known && head.version >= 3, false, |out| {
        out.i16(if known { 0 } else { 35 });
        out.array_len(apis.len());
        for (api, low, high) in apis {
            (out.i16(api), out.i16(low), out.i16(high), out.no_tags());
        }
        if known && head.version >= 1 {
            out.i32(0);
        }
        out.no_tags();
    })
}

fn metadata(brokers: &Brokers, head: Head) -> Vec<u8> {
    let v = head.version;
    answer(head, v >= 9, true, |out| {
        out.i32(0);
        out.array_len(brokers.make.nodes as usize);
        for node in 1..=brokers.make.nodes {
            let addr = addr(node);
            (out.i32(node), out.string(&addr.ip().to_string()), out.i32(addr.port().into()));
            (out.nullable_string(None), out.no_tags());
        }
        (out.nullable_string(Some("sim")), out.i32(1));
        out.array_len(1);
        (out.i16(0), out.string(TOPIC));
        if v >= 10 {
            out.raw(&TOPIC_ID);
        }
        (out.bool(false), out.array_len(brokers.logs.len()));
        for (index, log) in (0..).zip(&brokers.logs) {
            (out.i16(0), out.i32(index), out.i32(log.leader), out.i32(log.epoch));
            (out.array_len(0), out.array_len(0), out.array_len(0), out.no_tags());
        }
        (out.i32(0), out.no_tags());
        if (8..=10).contains(&v) {
            out.i32(0);
        }
        out.no_tags();
    })
}

fn identity(brokers: &mut Brokers, head: Head) -> Vec<u8> {
    brokers.identities += 1;
    let id = 4_000 + brokers.identities;
    answer(head, head.version >= 2, true, |out| {
        (out.i32(0), out.i16(0), out.i64(id), out.i16(0), out.no_tags());
    })
}

fn epochs(brokers: &Brokers, node: i32, head: Head, mut request: Reader<'_>) -> Vec<u8> {
    request.i32().unwrap();
    let mut asked = Vec::new();
    for _ in 0..request.array_len().unwrap() {
        assert_eq!(request.string().unwrap(), TOPIC);
        for _ in 0..request.array_len().unwrap() {
            asked.push((request.i32().unwrap(), request.i32().unwrap(), request.i32().unwrap()));
            request.skip_tags().unwrap();
        }
        request.skip_tags().unwrap();
    }
    answer(head, head.version >= 4, true, |out| {
        (out.i32(0), out.array_len(1), out.string(TOPIC), out.array_len(asked.len()));
        for (partition, current, epoch) in &asked {
            let error = leader_error(brokers, node, *partition, *current);
            let log = &brokers.logs[*partition as usize];
            let (found, end) = log.end_of_epoch(*epoch).filter(|_| error == 0).unwrap_or((-1, -1));
            (out.i16(error), out.i32(*partition), out.i32(found), out.i64(end), out.no_tags());
        }
        (out.no_tags(), out.no_tags());
    })
}

/// What a node says of a partition and the leader's epoch that a client has.
fn leader_error(brokers: &Brokers, node: i32, partition: i32, epoch: i32) -> i16 {
    match &brokers.logs[partition as usize] {
        log if epoch >= 0 && epoch < log.epoch => FENCED,
        log if epoch > log.epoch => UNKNOWN_EPOCH,
        log if log.leader != node => NOT_LEADER,
        _ => 0,
    }
}

fn produce(brokers: &mut Brokers, node: i32, head: Head, mut request: Reader<'_>) -> ProduceAsk {
    request.nullable_string().unwrap();
    assert_eq!(request.i16().unwrap(), -1, "all replicas acknowledge");
    request.i32().unwrap();
    let mut ask = ProduceAsk { head, node, batches: Vec::new() };
    for _ in 0..request.array_len().unwrap() {
        assert_eq!(request.string().unwrap(), TOPIC);
        for _ in 0..request.array_len().unwrap() {
            let partition = request.i32().unwrap();
            let batch = request.nullable_bytes().unwrap().unwrap();
            let planted = brokers.make.planted;
            let log = &mut brokers.logs[partition as usize];
            let before = log.entries.len();
            let written = if log.leader == node { log.append(batch, planted) } else { Err(NOT_LEADER) };
            brokers.duplicates += usize::from(written.is_ok() && log.entries.len() == before);
            ask.batches.push((partition, log.epoch, written));
            request.skip_tags().unwrap();
        }
        request.skip_tags().unwrap();
    }
    ask
}

/// All replicas have what was written, unless the leader is another one by now.
pub(super) fn produced(brokers: &mut Brokers, ask: &ProduceAsk) -> Vec<u8> {
    let v = ask.head.version;
    let throttle_ms = brokers.rng.i32(0..=brokers.make.throttle_ms);
    answer(ask.head, v >= 9, true, |out| {
        (out.array_len(1), out.string(TOPIC), out.array_len(ask.batches.len()));
        for (partition, epoch, written) in &ask.batches {
            let log = &mut brokers.logs[*partition as usize];
            let (error, offset) = match written {
                Err(code) => (*code, -1),
                Ok(_) if (log.leader, log.epoch) != (ask.node, *epoch) => (NOT_LEADER, -1),
                Ok((next, base)) => {
                    log.high_watermark = log.high_watermark.max(*next);
                    (0, *base)
                }
            };
            (out.i32(*partition), out.i16(error), out.i64(offset), out.i64(-1));
            if v >= 5 {
                out.i64(0);
            }
            if v >= 8 {
                (out.array_len(0), out.nullable_string(None));
            }
            hint(out, error, log.leader, log.epoch, v >= 10, 0);
        }
        (out.no_tags(), out.i32(throttle_ms), out.no_tags());
    })
}

/// The tags of a partition: who leads it (KIP-951), where the version has that, in field `tag`.
fn hint(out: &mut Writer<'_>, error: i16, leader: i32, epoch: i32, told: bool, tag: u32) {
    if told && (error == NOT_LEADER || error == FENCED) {
        (out.uvarint(1), out.uvarint(tag), out.uvarint(9), out.i32(leader), out.i32(epoch), out.no_tags());
    } else {
        out.no_tags();
    }
}

fn fetch(head: Head, mut request: Reader<'_>) -> FetchAsk {
    let v = head.version;
    if v < 15 {
        request.i32().unwrap();
    }
    let max_wait_ms = request.i32().unwrap();
    request.i32().unwrap();
    let max_bytes = request.i32().unwrap() as usize;
    (request.i8().unwrap(), request.i32().unwrap(), request.i32().unwrap());
    let mut partitions = Vec::new();
    for _ in 0..request.array_len().unwrap() {
        match v >= 13 {
            true => assert_eq!(request.array().unwrap(), TOPIC_ID),
            false => assert_eq!(request.string().unwrap(), TOPIC),
        }
        for _ in 0..request.array_len().unwrap() {
            let (partition, epoch) = (request.i32().unwrap(), request.i32().unwrap());
            let offset = request.i64().unwrap();
            let last_epoch = if v >= 12 { request.i32().unwrap() } else { -1 };
            request.i64().unwrap();
            partitions.push((partition, epoch, offset, last_epoch, request.i32().unwrap() as usize));
            request.skip_tags().unwrap();
        }
        request.skip_tags().unwrap();
    }
    FetchAsk { head, max_wait_ms, max_bytes, partitions }
}

pub(super) fn has_news(brokers: &Brokers, node: i32, ask: &FetchAsk) -> bool {
    ask.partitions.iter().any(|(partition, epoch, offset, ..)| {
        let log = &brokers.logs[*partition as usize];
        leader_error(brokers, node, *partition, *epoch) != 0 || log.high_watermark != *offset
    })
}

pub(super) fn fetched(brokers: &mut Brokers, node: i32, ask: &FetchAsk) -> Vec<u8> {
    let v = ask.head.version;
    let throttle_ms = brokers.rng.i32(0..=brokers.make.throttle_ms);
    let repeats = brokers.make.planted == Some(Planted::RepeatsFetched) && brokers.rng.u8(0..10) == 0;
    let (mut left, mut whole) = (ask.max_bytes, true);
    answer(ask.head, v >= 12, true, |out| {
        (out.i32(throttle_ms), out.i16(0), out.i32(0));
        (out.array_len(1), if v >= 13 { out.raw(&TOPIC_ID) } else { out.string(TOPIC) });
        out.array_len(ask.partitions.len());
        for (partition, epoch, offset, last_epoch, limit) in &ask.partitions {
            let log = &brokers.logs[*partition as usize];
            let mut error = leader_error(brokers, node, *partition, *epoch);
            if error == 0 && *offset > log.high_watermark {
                error = OUT_OF_RANGE;
            }
            let parted = match log.end_of_epoch(*last_epoch) {
                Some((_, end)) if error == 0 && *last_epoch >= 0 => end < *offset,
                _ => false,
            };
            assert!(!parted, "read: what was read was truncated");
            let mut records = Vec::new();
            if error == 0 {
                records = log.read(*offset, left.min(*limit), whole);
            }
            if repeats && *offset > 0 && !records.is_empty() {
                let again = log.entries.iter().find(|entry| entry.next == *offset).map(|entry| entry.bytes.clone());
                let mut again = again.unwrap_or_default();
                if let Some(base) = again.get_mut(..8) {
                    base.copy_from_slice(&offset.to_be_bytes());
                }
                records.splice(0..0, again);
            }
            whole &= records.is_empty();
            left = left.saturating_sub(records.len());
            let mark = log.high_watermark;
            (out.i32(*partition), out.i16(error), out.i64(mark), out.i64(mark), out.i64(0), out.array_len(0));
            if v >= 11 {
                out.i32(-1);
            }
            out.bytes(&records);
            hint(out, error, log.leader, log.epoch, v >= 12, 1);
        }
        (out.no_tags(), out.no_tags());
    })
}
