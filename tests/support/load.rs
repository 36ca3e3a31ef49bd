//! Many small records, written fast and read back: keys `key-000000` and up, values that begin with their key.
//!
//! A record has 100 bytes of key and value together and lies in partition `key % partitions`. Which key record `n` has
//! is a function of `n`, so the true counts are known without reading anything.
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::{ClientConfig, ClientContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a key.
pub const KEY_BYTES: usize = 10;
/// Bytes of a value.
pub const VALUE_BYTES: usize = 90;
const PATIENCE: Duration = Duration::from_secs(60);

/// In which order the keys come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// One after the other, again and again: the worst for a cache that does not hold all of them.
    InTurn,
    /// Each record has any of them, all equally likely; the same ones in every run.
    Random,
}

/// What a topic holds or is to hold.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub partitions: i32,
    pub keys: u64,
    pub records: u64,
    pub order: Order,
}

impl Load {
    /// The number of record `n`'s key.
    fn key_of(&self, n: u64) -> u64 {
        match self.order {
            Order::InTurn => n % self.keys,
            Order::Random => mixed(n) % self.keys,
        }
    }

    /// How many records each key has.
    pub fn counts(&self) -> Vec<i64> {
        let mut counts = vec![0; usize::try_from(self.keys).unwrap()];
        (0..self.records).for_each(|n| counts[usize::try_from(self.key_of(n)).unwrap()] += 1);
        counts
    }
}

/// A number that looks random (SplitMix64's output function).
fn mixed(n: u64) -> u64 {
    let z = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Counts records whose delivery failed.
struct Failures(Arc<AtomicU64>);

impl ClientContext for Failures {}

impl rdkafka::producer::ProducerContext for Failures {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &rdkafka::producer::DeliveryResult<'_>, (): ()) {
        if result.is_err() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes records `from..load.records`.
pub fn write(bootstrap: &str, topic: &str, load: Load, from: u64) {
    let failed = Arc::new(AtomicU64::new(0));
    let producer: ThreadedProducer<Failures> = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("linger.ms", "20")
        .set("batch.size", "262144")
        .set("enable.idempotence", "true")
        .set("queue.buffering.max.messages", "500000")
        .create_with_context(Failures(Arc::clone(&failed)))
        .unwrap();
    let mut value = [b'.'; VALUE_BYTES];
    for n in from..load.records {
        let number = load.key_of(n);
        let key = text_of(number);
        value[..KEY_BYTES].copy_from_slice(&key);
        let partition = i32::try_from(number % u64::from(load.partitions.unsigned_abs())).unwrap();
        let mut record = BaseRecord::to(topic).partition(partition).key(&key[..]).payload(&value[..]);
        loop {
            match producer.send(record) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    record = back;
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err((error, _)) => panic!("{topic}: {error}"),
            }
        }
    }
    producer.flush(PATIENCE).unwrap();
    assert_eq!(failed.load(Ordering::Relaxed), 0, "records could not be written to {topic}");
}

fn text_of(number: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"key-000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap();
        rest /= 10;
    }
    key
}

fn number_of(key: &[u8]) -> u64 {
    std::str::from_utf8(&key[4..]).unwrap().parse().unwrap()
}

/// Reads a topic of counts to its end: the last count of each key, and how many records were read.
pub fn last_counts(bootstrap: &str, topic: &str, load: Load) -> (Vec<i64>, u64) {
    let mut counts = vec![0; usize::try_from(load.keys).unwrap()];
    let mut records = 0;
    read(bootstrap, topic, load.partitions, |key, value| {
        counts[usize::try_from(number_of(key)).unwrap()] = i64::from_be_bytes(value.try_into().unwrap());
        records += 1;
    });
    (counts, records)
}

/// Reads a topic to its end: key and value of each record, every partition in its order.
pub fn read(bootstrap: &str, topic: &str, partitions: i32, mut see: impl FnMut(&[u8], &[u8])) {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "plimsoll-load")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("queued.max.messages.kbytes", "32768")
        .create()
        .unwrap();
    let mut all = TopicPartitionList::new();
    for partition in 0..partitions {
        all.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&all).unwrap();
    let (mut ends, deadline) = (0, Instant::now() + 4 * PATIENCE);
    while ends < partitions {
        assert!(Instant::now() < deadline, "{topic} cannot be read to its end");
        match consumer.poll(Duration::from_millis(200)) {
            Some(Ok(message)) => see(message.key().unwrap(), message.payload().unwrap()),
            Some(Err(KafkaError::PartitionEOF(_))) => ends += 1,
            Some(Err(error)) => panic!("{topic}: {error}"),
            None => {}
        }
    }
}
