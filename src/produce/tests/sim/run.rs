//! One run: what the seed chooses, the client's turns, and what must hold at the end.
use super::cluster::{Brokers, Make, Shared, Todo, addr};
use super::log::Planted;
use super::serve::TOPIC;
use crate::arena::{FramePool, Oversize};
use crate::client::fetcher::Fetched;
use crate::client::{Fetcher, FetcherSettings, MetadataClient, MetadataSettings, SharedMetadata, Slot};
use crate::net::PollSet;
use crate::net::sim::{self, Installed, Weather};
use crate::produce::{AckSlot, AppendError, OutRecord, OutTopic, Producer, ProducerSettings};
use crate::wire::{BatchHeader, Compression, Decompressor, RawHeaders, RecordCursor};
use fastrand::Rng;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

const FRAME: usize = 64 << 10;
/// From this virtual time on nothing more goes wrong, in milliseconds.
const CALM_MS: i64 = 60_000;
/// By then everything must be over.
const END_MS: i64 = 400_000;

/// What a run, or all of them, went through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) seeds: u64,
    pub(super) turns: u64,
    pub(super) virtual_ms: u64,
    pub(super) records: u64,
    pub(super) moves: u64,
    pub(super) crashes: u64,
    pub(super) cut: u64,
    pub(super) duplicates: u64,
    pub(super) lost: u64,
    pub(super) retried: u64,
}

impl Report {
    pub(super) fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.turns += other.turns;
        self.virtual_ms += other.virtual_ms;
        self.records += other.records;
        self.moves += other.moves;
        self.crashes += other.crashes;
        self.cut += other.cut;
        self.duplicates += other.duplicates;
        self.lost += other.lost;
        self.retried += other.retried;
    }
}

struct Client {
    fetcher: Fetcher,
    producer: Producer,
    metadata: MetadataClient,
    polls: PollSet,
    out: OutTopic,
    acks: Vec<AckSlot>,
    slots: Vec<Slot>,
    /// Records of each partition that were appended, and that were read.
    appended: Vec<usize>,
    read: Vec<usize>,
}

struct Run {
    rng: Rng,
    brokers: Rc<RefCell<Brokers>>,
    client: Client,
    /// Records of each partition.
    records: usize,
    turns: u64,
    calm: bool,
    _network: Installed,
}

/// Runs a seed. An error tells what does not hold.
pub(super) fn run(seed: u64, planted: Option<Planted>) -> Result<Report, String> {
    let mut run = Run::new(seed, planted);
    while !run.is_over() {
        run.turn()?;
        if sim::now_ms() > END_MS {
            let Client { producer, fetcher, appended, read, .. } = &run.client;
            let (stats, trouble) = (producer.stats(), fetcher.trouble());
            return Err(format!("stuck: {appended:?} appended, {read:?} read, {stats:?}, {trouble:?}"));
        }
    }
    run.check()
}

/// The value of a record: its number and some bytes that follow from it.
fn value(partition: usize, number: usize) -> String {
    let fill = (number * 37 + partition * 11) % 180;
    format!("{partition}/{number}/{}", "abcdefghij".repeat(fill / 10))
}

fn weather(rng: &mut Rng) -> Weather {
    // Every third seed has calm weather but for one thing; the others have everything.
    let only = if rng.u8(0..3) == 0 { Some(rng.u8(0..4)) } else { None };
    let has = |what: u8| only.is_none_or(|only| only == what);
    Weather {
        delay_ms: if has(0) { *rng.choice(&[0, 1, 5, 40, 200]).unwrap() } else { 0 },
        breaks: if has(1) { *rng.choice(&[0, 100, 400]).unwrap() } else { 0 },
        break_bytes: *rng.choice(&[200, 5_000, 60_000]).unwrap(),
        silences: if has(2) { *rng.choice(&[0, 50, 200]).unwrap() } else { 0 },
        silent_ms: 9_000,
        read_bytes: if has(3) { *rng.choice(&[1, 7, 300, 4_096]).unwrap() } else { 4_096 },
        write_bytes: if has(3) { *rng.choice(&[1, 7, 300, 4_096]).unwrap() } else { 4_096 },
        blocks: if has(3) { *rng.choice(&[0, 20, 200]).unwrap() } else { 0 },
    }
}

fn make(rng: &mut Rng, planted: Option<Planted>) -> Make {
    Make {
        nodes: rng.i32(1..=3),
        partitions: rng.i32(1..=4),
        fetch: *rng.choice(&[11, 12, 13, 16, 17]).unwrap(),
        produce: *rng.choice(&[8, 9, 11]).unwrap(),
        metadata: *rng.choice(&[9, 11, 12]).unwrap(),
        api_versions: *rng.choice(&[2, 3, 4]).unwrap(),
        service_ms: *rng.choice(&[0, 1, 10, 60, 200]).unwrap(),
        throttle_ms: *rng.choice(&[0, 0, 0, 30]).unwrap(),
        planted,
    }
}

impl Run {
    fn new(seed: u64, planted: Option<Planted>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let (weather, make) = (weather(&mut rng), make(&mut rng, planted));
        let brokers = Rc::new(RefCell::new(Brokers::new(make.clone(), seed)));
        let network = sim::install(seed, weather, Box::new(Shared(Rc::clone(&brokers))));
        for _ in 0..rng.usize(0..16) {
            let todo = if rng.u8(0..3) == 0 { Todo::Crash(rng.i64(1..6_000)) } else { Todo::Move };
            let token = brokers.borrow_mut().note(todo);
            let at = rng.i64(0..4_000);
            sim::with(|network| network.start_timer(at, token));
        }
        let records = rng.usize(20..300);
        let client = Client::new(&mut rng, &make);
        Self { rng, brokers, client, records, turns: 0, calm: false, _network: network }
    }

    fn is_over(&self) -> bool {
        let all = |counts: &[usize]| counts.iter().all(|count| *count == self.records);
        all(&self.client.appended) && all(&self.client.read) && self.client.producer.is_flushed()
    }

    fn turn(&mut self) -> Result<(), String> {
        self.turns += 1;
        let now = sim::now_ms();
        if now >= CALM_MS && !std::mem::replace(&mut self.calm, true) {
            sim::with(|network| network.calm());
        }
        let client = &mut self.client;
        client.polls.clear();
        let due = client.metadata.prepare(&mut client.polls, now);
        let due = due.min(client.producer.prepare(&mut client.polls, now));
        let due = due.min(client.fetcher.prepare(&mut client.polls, now));
        // The application has something to write now and then.
        let wait = due.saturating_sub(now).clamp(0, 50);
        client.polls.wait(Some(Duration::from_millis(wait as u64))).map_err(|e| e.to_string())?;
        let now = sim::now_ms();
        client.metadata.process(&client.polls, now);
        client.producer.process(&client.polls, now);
        client.fetcher.process(&client.polls, now);
        client.take()?;
        self.append()
    }

    fn append(&mut self) -> Result<(), String> {
        let Client { producer, out, acks, appended, .. } = &mut self.client;
        for _ in 0..self.rng.usize(0..6) {
            let partition = self.rng.usize(0..appended.len());
            let number = appended[partition];
            if number == self.records {
                continue;
            }
            let value = value(partition, number);
            let record = OutRecord {
                timestamp: 1_700_000_000_000 + number as i64,
                key: None,
                value: Some(value.as_bytes()),
                headers: RawHeaders::EMPTY,
            };
            match producer.append(*out, partition as u32, &record, acks[partition]) {
                Ok(()) => appended[partition] += 1,
                Err(AppendError::Full | AppendError::NotReady) => break,
                Err(error) => return Err(format!("not written: {error}")),
            }
        }
        if appended.iter().all(|count| *count == self.records) || self.rng.u8(0..40) == 0 {
            producer.begin_flush();
        }
        Ok(())
    }

    /// Everything is written once and in order, and acknowledged.
    fn check(self) -> Result<Report, String> {
        let brokers = self.brokers.borrow();
        for (partition, log) in brokers.logs.iter().enumerate() {
            let mut decompressor = Decompressor::new().unwrap();
            let mut number = 0;
            for entry in &log.entries {
                for found in values(&entry.bytes, &mut decompressor) {
                    expect("written", partition, number, &found)?;
                    number += 1;
                }
            }
            if number != self.records {
                return Err(format!("written: {number} of {} records of partition {partition}", self.records));
            }
            let ack = self.client.producer.ack(self.client.acks[partition]);
            let last = self.records as i64 - 1;
            if (ack.outstanding, ack.error) != (0, None) || ack.highest > last {
                return Err(format!("acknowledged: {ack:?} of partition {partition}, last offset {last}"));
            }
        }
        let stats = self.client.producer.stats();
        Ok(Report {
            seeds: 1,
            turns: self.turns,
            virtual_ms: sim::now_ms() as u64,
            records: (self.records * brokers.logs.len()) as u64,
            moves: brokers.moves as u64,
            crashes: brokers.crashes as u64,
            cut: brokers.cut as u64,
            duplicates: brokers.duplicates as u64,
            lost: stats.lost,
            retried: stats.retried,
        })
    }
}

fn expect(what: &str, partition: usize, number: usize, found: &str) -> Result<(), String> {
    match found == value(partition, number) {
        true => Ok(()),
        false => Err(format!("{what}: {found:.12} where {partition}/{number} is due")),
    }
}

/// The values of a batch.
fn values(bytes: &[u8], decompressor: &mut Decompressor) -> Vec<String> {
    let header = BatchHeader::peek(bytes).unwrap().unwrap();
    let mut section = vec![0; FRAME];
    let codec = Compression::from_code(header.codec()).unwrap();
    let len = decompressor.decompress(codec, header.section(bytes).unwrap(), &mut section).unwrap();
    texts(&header, &section[..len]).into_iter().map(|(_, text)| text).collect()
}

/// Offsets and values of a section.
fn texts(header: &BatchHeader, section: &[u8]) -> Vec<(i64, String)> {
    let mut cursor = RecordCursor::new(header);
    let mut texts = Vec::new();
    while let Some(record) = cursor.next(section).unwrap() {
        texts.push((record.offset, String::from_utf8(record.value.unwrap().to_vec()).unwrap()));
    }
    texts
}

impl Client {
    fn new(rng: &mut Rng, make: &Make) -> Self {
        let shared = SharedMetadata::new();
        let request_timeout_ms = rng.i64(300..4_000);
        let bootstrap: Vec<String> = (1..=make.nodes).map(|node| addr(node).to_string()).collect();
        let metadata = MetadataSettings {
            request_timeout_ms,
            connect_timeout_ms: 2_000,
            retry_backoff_ms: 10,
            retry_backoff_max_ms: 200,
            ..MetadataSettings::new("sim", &bootstrap.join(","))
        };
        let mut settings = ProducerSettings {
            compression: *rng.choice(&[Compression::None, Compression::Lz4]).unwrap(),
            linger_ms: *rng.choice(&[0, 0, 5, 30]).unwrap(),
            delivery_timeout_ms: 10 * END_MS,
            topic_timeout_ms: 10 * END_MS,
            request_timeout_ms,
            retry_backoff_ms: 5,
            retry_backoff_max_ms: 100,
            ..ProducerSettings::new(rng.usize(400..2_000), rng.usize(3..12))
        };
        settings.client_id = "sim".to_owned();
        let fetching = FetcherSettings {
            client_id: "sim".to_owned(),
            max_wait_ms: rng.i32(10..500),
            request_timeout_ms,
            connect_timeout_ms: 2_000,
            reconnect_backoff_ms: 5,
            reconnect_backoff_max_ms: 100,
            retry_backoff_ms: 10,
            read_committed: rng.bool(),
            max_idle_ms: *rng.choice(&[200, 540_000]).unwrap(),
            ..FetcherSettings::default()
        };
        let pool = FramePool::new(rng.usize(3..6), FRAME, 1, Oversize::none());
        let mut fetcher = Fetcher::new(fetching, pool, shared.clone()).unwrap();
        let mut producer = Producer::new(settings, shared.clone(), sim::now_ms()).unwrap();
        let out = producer.topic(TOPIC);
        let partitions = make.partitions;
        Self {
            slots: (0..partitions).map(|p| fetcher.add(TOPIC, p, 0).unwrap()).collect(),
            acks: (0..partitions).map(|_| producer.ack_slot()).collect(),
            fetcher,
            producer,
            metadata: MetadataClient::new(metadata, shared),
            polls: PollSet::new().unwrap(),
            out,
            appended: vec![0; partitions as usize],
            read: vec![0; partitions as usize],
        }
    }

    /// Takes what has been fetched: the next records of their partitions, each once.
    fn take(&mut self) -> Result<(), String> {
        while let Some(next) = self.fetcher.next() {
            let batch = match next {
                Fetched::Batch(batch) => batch,
                Fetched::Fault { slot, fault } => return Err(format!("read: {slot:?} stands still: {fault}")),
            };
            let partition = self.slots.iter().position(|slot| *slot == batch.slot).unwrap();
            for (offset, text) in texts(&batch.header, self.fetcher.records_of(&batch)) {
                if offset < batch.skip_below {
                    continue;
                }
                expect("read", partition, self.read[partition], &text)?;
                self.read[partition] += 1;
            }
            self.fetcher.release(batch.frame);
        }
        Ok(())
    }
}
