//! What a seed stands for: who writes which records into one partition, in which batches and transactions.
use crate::support::oracle::Rec;
use fastrand::Rng;

/// What a client writes with.
const CODECS: &[&str] = &["none", "gzip", "snappy", "lz4", "zstd"];
const HOUR_MS: i64 = 3_600_000;

/// What the partition's topic does to its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Nothing.
    Plain,
    /// The broker gives them their timestamps.
    Appended,
    /// The cleaner leaves the last one of each key.
    Compacted,
}

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Appended, Kind::Compacted];

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Ours,
    Librdkafka,
    Java,
}

/// How a run of records ends; the numbers are those that the Java peer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Flushed = 0,
    Committed = 1,
    Aborted = 2,
}

/// Records between two flushes, or of one transaction.
#[derive(Clone, Debug)]
pub struct Run {
    pub records: Vec<Rec>,
    pub end: End,
}

/// What one client writes.
#[derive(Clone, Debug)]
pub struct Part {
    pub who: Who,
    pub codec: &'static str,
    pub batch_bytes: usize,
    pub transactional: bool,
    pub runs: Vec<Run>,
}

/// All of a seed.
#[derive(Clone, Debug)]
pub struct Script {
    pub seed: u64,
    pub kind: Kind,
    pub parts: Vec<Part>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub topic: String,
    pub partition: i32,
}

/// What a client read of a partition, and where it stands then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub position: i64,
    pub records: Vec<Rec>,
}

impl Script {
    /// The script of a seed; timestamps lie before `now_ms`.
    pub fn of(seed: u64, now_ms: i64) -> Self {
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5EED);
        let kind = KINDS[[0, 0, 1, 2, 2][rng.usize(..5)]];
        // Each seed has every writer, in any order; so each is read by the other two.
        let mut writers = [Who::Ours, Who::Librdkafka, Who::Java];
        rng.shuffle(&mut writers);
        let parts = writers.into_iter().map(|who| part(&mut rng, who, kind, now_ms)).collect();
        Self { seed, kind, parts }
    }

    /// What must be read, were nothing compacted. Markers take offsets.
    pub fn expected(&self, committed: bool) -> Read {
        let (mut position, mut records) = (0, Vec::new());
        for run in self.parts.iter().flat_map(|part| &part.runs) {
            for record in &run.records {
                if !(committed && run.end == End::Aborted) {
                    records.push(Rec { offset: position, ..record.clone() });
                }
                position += 1;
            }
            position += run.marker();
        }
        Read { position, records }
    }
}

impl Part {
    /// Offsets that it takes.
    pub fn offsets(&self) -> i64 {
        self.runs.iter().map(|run| i64::try_from(run.records.len()).unwrap() + run.marker()).sum()
    }
}

impl Run {
    fn marker(&self) -> i64 {
        i64::from(self.end != End::Flushed && !self.records.is_empty())
    }
}

fn part(rng: &mut Rng, who: Who, kind: Kind, now_ms: i64) -> Part {
    let transactional = rng.bool();
    let runs = (0..rng.usize(1..4)).map(|_| run(rng, kind, transactional, now_ms)).collect();
    let batch_bytes = [512, 2_000, 16 << 10, 60 << 10][rng.usize(..4)];
    Part { who, codec: CODECS[rng.usize(..CODECS.len())], batch_bytes, transactional, runs }
}

fn run(rng: &mut Rng, kind: Kind, transactional: bool, now_ms: i64) -> Run {
    let count = match rng.u32(..10) {
        0 => 0,
        1..4 => rng.usize(1..4),
        4..9 => rng.usize(4..60),
        _ => rng.usize(60..400),
    };
    let mut room = 700_000;
    let records = (0..count).map(|_| record(rng, kind, &mut room, now_ms)).collect();
    let end = match transactional {
        false => End::Flushed,
        true if rng.u32(..3) == 0 => End::Aborted,
        true => End::Committed,
    };
    Run { records, end }
}

fn record(rng: &mut Rng, kind: Kind, room: &mut usize, now_ms: i64) -> Rec {
    let key = match kind {
        Kind::Compacted => Some(format!("key {}", rng.u32(..12)).into_bytes()),
        _ => part_of_record(rng, 300, &mut 1_000),
    };
    let most = if rng.u32(..60) == 0 { 300_000 } else { 3_000 };
    let value = part_of_record(rng, most, room);
    let headers = match rng.u32(..8) {
        0..4 => 0,
        4..7 => rng.usize(1..4),
        _ => rng.usize(4..60),
    };
    let headers = (0..headers).map(|_| (name(rng), part_of_record(rng, 200, &mut 10_000))).collect();
    // Times go back, too; a few are of long ago.
    let age = if rng.u32(..50) == 0 { rng.i64(0..10 * HOUR_MS) } else { rng.i64(0..60_000) };
    Rec { partition: 0, offset: 0, timestamp: now_ms - age, key, value, headers }
}

/// Null, empty, small, or of up to `most` bytes while there is `room`; easy, hard or impossible to compress.
fn part_of_record(rng: &mut Rng, most: usize, room: &mut usize) -> Option<Vec<u8>> {
    let len = match rng.u32(..10) {
        0 => return None,
        1 => 0,
        2..6 => rng.usize(..most.min(40)),
        _ => rng.usize(..=most),
    };
    let len = len.min(*room);
    *room -= len;
    let kinds = rng.u8(1..4);
    Some(
        (0..len)
            .map(|at| {
                if kinds == 1 {
                    (at % 7) as u8
                } else if kinds == 2 {
                    rng.u8(b'a'..b'e')
                } else {
                    rng.u8(..)
                }
            })
            .collect(),
    )
}

/// A header's name: empty, ASCII or beyond.
fn name(rng: &mut Rng) -> String {
    let alphabet = ['a', 'b', '-', 'ä', '雪', '🦀'];
    (0..rng.usize(..12)).map(|_| alphabet[rng.usize(..alphabet.len())]).collect()
}
