//! The protocol allocates nothing while records flow: requests are written, responses visited, batches decompressed
//! (every codec), read, built, compressed and sealed, a thousand times over, and the thread's allocation counter
//! stands still. The counter also sees what the C code of the codecs allocates.
//!
//! The room `wire` is compiled into this test, because it is private to the library.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stdout)] // its own harness

#[path = "../src/wire/mod.rs"]
mod wire;

use wire::message::{
    ApiKey, FetchPosition, FetchRequest, FetchResponse, ProduceRequest, ProduceResponse, RequestHeader, TopicRef,
};
use wire::{
    BATCH_HEADER_BYTES, BatchBuilder, Batches, Compression, Compressor, Decompressor, RawHeaders, Records, Stamp,
};

plimsoll_alloc::install!();

/// Bytes that a vector of Apache Kafka's client has.
fn vector(name: &str) -> Vec<u8> {
    let text = include_str!("../src/wire/vectors/vectors.txt");
    let hex = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

struct Path {
    fetched: Vec<u8>,
    produced: Vec<u8>,
    batches: Vec<Vec<u8>>,
    request: Vec<u8>,
    section: Vec<u8>,
    batch: Vec<u8>,
    decompressor: Decompressor,
    compressor: Compressor,
}

impl Path {
    fn new() -> Path {
        Path {
            fetched: vector("response Fetch 12"),
            produced: vector("response Produce 10"),
            batches: ["none", "gzip", "snappy", "lz4", "zstd"]
                .iter()
                .flat_map(|codec| [format!("batch {codec}"), format!("large {codec}")])
                .filter(|name| name != "large none")
                .map(|name| vector(&name))
                .collect(),
            request: Vec::with_capacity(4096),
            section: vec![0; 256 << 10],
            batch: vec![0; 64 << 10],
            decompressor: Decompressor::new().unwrap(),
            compressor: Compressor::new(Compression::Lz4, 64 << 10).unwrap(),
        }
    }

    /// From a fetch to the answer of a produce request; answers the records that passed.
    fn once(&mut self) -> u32 {
        self.fetch();
        let mut response = FetchResponse::read(&self.fetched[4..], 12).unwrap();
        let mut records = 0;
        while let Some(partition) = response.next().unwrap() {
            records += pass(
                partition.records,
                &mut self.section,
                &mut self.decompressor,
                &mut self.batch,
                &mut self.compressor,
            );
        }
        response.endpoints().unwrap().for_each(drop);
        for batch in &self.batches {
            records += pass(batch, &mut self.section, &mut self.decompressor, &mut self.batch, &mut self.compressor);
        }
        self.produce();
        let mut response = ProduceResponse::read(&self.produced[4..], 10).unwrap();
        while let Some(partition) = response.next().unwrap() {
            partition.record_errors.for_each(drop);
        }
        assert_eq!(response.tail().unwrap().throttle_ms, 11);
        records
    }

    fn fetch(&mut self) {
        self.request.clear();
        let header = RequestHeader { api: ApiKey::Fetch, version: 12, correlation_id: 1, client_id: "c" };
        let request = FetchRequest {
            max_wait_ms: 500,
            min_bytes: 1,
            max_bytes: 1 << 20,
            read_committed: false,
            session_id: 0,
            session_epoch: -1,
        };
        let mut writer = request.begin(&mut self.request, &header, 1);
        writer.topic(TopicRef::Name("orders"), 20);
        for partition in 0..20 {
            writer.partition(&FetchPosition {
                partition,
                current_leader_epoch: 7,
                offset: 41,
                last_fetched_epoch: 6,
                max_bytes: 1 << 16,
            });
        }
        writer.finish("").unwrap();
    }

    fn produce(&mut self) {
        self.request.clear();
        let header = RequestHeader { api: ApiKey::Produce, version: 10, correlation_id: 2, client_id: "c" };
        let request = ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 30_000 };
        let mut writer = request.begin(&mut self.request, &header, 1);
        writer.topic(TopicRef::Name("orders"), 1);
        writer.partition(0, 1000);
        writer.finish().unwrap();
    }
}

/// Reads batches and writes their small records into another batch.
fn pass(
    bytes: &[u8],
    section: &mut [u8],
    decompressor: &mut Decompressor,
    into: &mut [u8],
    compressor: &mut Compressor,
) -> u32 {
    let (mut batches, mut count) = (Batches::new(bytes), 0);
    while let Some((header, batch)) = batches.next().unwrap() {
        header.check_crc(batch).unwrap();
        let codec = Compression::from_code(header.codec()).unwrap();
        let len = decompressor.decompress(codec, header.section(batch).unwrap(), section).unwrap();
        let mut records = Records::new(&header, &section[..len]);
        let mut builder = BatchBuilder::new();
        while let Some(record) = records.next().unwrap() {
            let value = record.value.map(|value| &value[..value.len().min(1000)]);
            builder.append(into, record.timestamp, record.key, value, record.headers).unwrap();
            assert!(record.headers.iter().count() <= 2);
        }
        count += builder.count();
        builder.seal(into, &Stamp::NONE, compressor).unwrap();
        assert!(builder.len() > BATCH_HEADER_BYTES);
    }
    count
}

fn main() {
    plimsoll_alloc::probe().expect("the allocator is installed");
    let mut path = Path::new();
    assert_eq!(path.once(), 30, "warm");
    let before = plimsoll_alloc::thread_allocated_bytes();
    let records = (0..1000).map(|_| path.once()).sum::<u32>();
    let allocated = plimsoll_alloc::thread_allocated_bytes() - before;
    println!("{records} records, {allocated} bytes allocated");
    assert_eq!((records, allocated), (30_000, 0));
    let before = plimsoll_alloc::thread_allocated_bytes();
    std::hint::black_box(Box::new(1_u8));
    assert!(plimsoll_alloc::thread_allocated_bytes() > before, "the counter sees one small allocation");
    assert_eq!(RawHeaders::EMPTY.as_bytes(), [0]);
}
