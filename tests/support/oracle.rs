//! librdkafka's own clients as the oracle: what tests write, read and administer independently of the engine.
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

const PATIENCE: Duration = Duration::from_secs(30);

/// A record as written or as read.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Rec {
    pub partition: i32,
    /// Set by reading.
    pub offset: i64,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Rec {
    /// A record without headers.
    pub fn new(partition: i32, timestamp: i64, key: &str, value: &str) -> Self {
        let (key, value) = (Some(key.as_bytes().to_vec()), Some(value.as_bytes().to_vec()));
        Self { partition, timestamp, key, value, ..Self::default() }
    }
}

/// Creates a topic with the brokers' replication factor and waits until it can be written.
pub fn create_topic(bootstrap: &str, topic: &str, partitions: i32, configs: &[(&str, &str)]) {
    create_topic_replicated(bootstrap, topic, partitions, -1, configs);
}

/// As [`create_topic`], with a replication factor (-1: the brokers' default).
pub fn create_topic_replicated(bootstrap: &str, topic: &str, partitions: i32, factor: i32, configs: &[(&str, &str)]) {
    create(bootstrap, NewTopic::new(topic, partitions, TopicReplication::Fixed(factor)), configs);
}

/// As [`create_topic`], with all partitions on these brokers, the first of which leads.
pub fn create_topic_on(bootstrap: &str, topic: &str, partitions: i32, replicas: &[i32], configs: &[(&str, &str)]) {
    let assignment = vec![replicas; partitions.unsigned_abs() as usize];
    create(bootstrap, NewTopic::new(topic, partitions, TopicReplication::Variable(&assignment)), configs);
}

fn create<'a>(bootstrap: &str, mut new: NewTopic<'a>, configs: &'a [(&str, &str)]) {
    let admin = admin(bootstrap);
    for (key, value) in configs {
        new = new.set(key, value);
    }
    let (topic, partitions) = (new.name, new.num_partitions);
    for result in block_on(admin.create_topics(&[new], &admin_options())).unwrap() {
        result.unwrap();
    }
    wait(&format!("leaders of {topic}"), || {
        let metadata = admin.inner().fetch_metadata(Some(topic), PATIENCE).ok()?;
        let found = metadata.topics().iter().find(|t| t.name() == topic && t.error().is_none())?;
        let led = found.partitions().iter().filter(|p| p.leader() >= 0 && p.error().is_none()).count();
        (i32::try_from(led) == Ok(partitions)).then_some(())
    });
}

/// Leader and number of replicas in sync of each of a topic's partitions, by any broker that answers.
pub fn leaders(bootstrap: &str, topic: &str) -> Option<Vec<(i32, usize)>> {
    let metadata = admin(bootstrap).inner().fetch_metadata(Some(topic), Duration::from_secs(2)).ok()?;
    let found = metadata.topics().iter().find(|t| t.name() == topic && t.error().is_none())?;
    Some(found.partitions().iter().map(|partition| (partition.leader(), partition.isr().len())).collect())
}

/// Deletes a topic and waits until it is gone.
pub fn delete_topic(bootstrap: &str, topic: &str) {
    let admin = admin(bootstrap);
    for result in block_on(admin.delete_topics(&[topic], &admin_options())).unwrap() {
        result.unwrap();
    }
}

/// A topic's partition count; `None` when it does not exist.
pub fn partitions(bootstrap: &str, topic: &str) -> Option<usize> {
    let metadata = admin(bootstrap).inner().fetch_metadata(Some(topic), PATIENCE).unwrap();
    let found = metadata.topics().iter().find(|t| t.name() == topic)?;
    found.error().is_none().then(|| found.partitions().len())
}

/// The value of one of a topic's settings.
pub fn topic_config(bootstrap: &str, topic: &str, name: &str) -> Option<String> {
    let admin = admin(bootstrap);
    let results = block_on(admin.describe_configs(&[ResourceSpecifier::Topic(topic)], &admin_options())).unwrap();
    results.into_iter().next()?.unwrap().get(name)?.value.clone()
}

/// Writes records in order and waits for their acknowledgement. `settings` are librdkafka's
/// (`compression.type`, `batch.num.messages`, …).
pub fn produce(bootstrap: &str, topic: &str, records: &[Rec], settings: &[(&str, &str)]) {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("enable.idempotence", "true").set("linger.ms", "5");
    for (key, value) in settings {
        config.set(*key, *value);
    }
    let producer: BaseProducer = config.create().unwrap();
    for record in records {
        loop {
            match producer.send(message(topic, record)) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => {
                    producer.poll(Duration::from_millis(10));
                }
                Err((error, _)) => panic!("{topic}: {error}"),
            }
        }
        producer.poll(Duration::ZERO);
    }
    producer.flush(PATIENCE * 2).unwrap();
}

/// The record as librdkafka sends it.
pub fn message<'a>(topic: &'a str, record: &'a Rec) -> BaseRecord<'a, [u8], [u8]> {
    let mut message = BaseRecord::<[u8], [u8]>::to(topic).partition(record.partition).timestamp(record.timestamp);
    if let Some(key) = &record.key {
        message = message.key(key);
    }
    if let Some(value) = &record.value {
        message = message.payload(value);
    }
    if !record.headers.is_empty() {
        let headers = OwnedHeaders::new_with_capacity(record.headers.len());
        message = message.headers(
            record
                .headers
                .iter()
                .fold(headers, |headers, (key, value)| headers.insert(Header { key, value: value.as_deref() })),
        );
    }
    message
}

/// Reads all records that the topic holds now, transactions' committed ones only, by partition and offset.
pub fn read_all(bootstrap: &str, topic: &str) -> Vec<Rec> {
    let consumer = consumer(bootstrap, "plimsoll-oracle", &[("isolation.level", "read_committed")]);
    let count = i32::try_from(partitions(bootstrap, topic).expect("the topic exists")).unwrap();
    let mut records = Vec::new();
    for partition in 0..count {
        let (_, end) = consumer.fetch_watermarks(topic, partition, PATIENCE).unwrap();
        read_partition(&consumer, topic, partition, end, &mut records);
    }
    records
}

fn read_partition(consumer: &BaseConsumer, topic: &str, partition: i32, end: i64, into: &mut Vec<Rec>) {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    consumer.assign(&list).unwrap();
    let deadline = Instant::now() + PATIENCE;
    // The end is known by position, not by the last record: markers take offsets too.
    loop {
        let position = consumer.position().unwrap().find_partition(topic, partition).map(|p| p.offset());
        if matches!(position, Some(Offset::Offset(at)) if at >= end) || end == 0 {
            break;
        }
        match consumer.poll(Duration::from_millis(50)) {
            Some(Ok(message)) => into.push(rec(&message, partition)),
            Some(Err(KafkaError::PartitionEOF(_))) => break,
            Some(Err(error)) => panic!("{topic}-{partition}: {error}"),
            None => assert!(Instant::now() < deadline, "{topic}-{partition} cannot be read to its end {end}"),
        }
    }
}

/// A record as librdkafka read it.
pub fn rec(message: &BorrowedMessage<'_>, partition: i32) -> Rec {
    Rec {
        partition,
        offset: message.offset(),
        timestamp: message.timestamp().to_millis().unwrap_or(-1),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: message.headers().map(owned_headers).unwrap_or_default(),
    }
}

fn owned_headers(headers: &rdkafka::message::BorrowedHeaders) -> Vec<(String, Option<Vec<u8>>)> {
    headers.iter().map(|h| (h.key.to_owned(), h.value.map(<[u8]>::to_vec))).collect()
}

/// First and next offset of a partition.
pub fn watermarks(bootstrap: &str, topic: &str, partition: i32) -> (i64, i64) {
    consumer(bootstrap, "plimsoll-oracle", &[]).fetch_watermarks(topic, partition, PATIENCE).unwrap()
}

/// Committed offset and metadata of each partition from 0; `None` where nothing is committed.
pub fn committed(bootstrap: &str, group: &str, topic: &str, partitions: i32) -> Vec<Option<(i64, String)>> {
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, 0, partitions - 1);
    let consumer = consumer(bootstrap, group, &[]);
    // A group that was just made has its coordinator a moment later.
    let found = wait("the group's coordinator", || consumer.committed_offsets(list.clone(), PATIENCE).ok());
    let offset = |partition| {
        let element = found.find_partition(topic, partition)?;
        let metadata = element.metadata().to_owned();
        if let Offset::Offset(at) = element.offset() { Some((at, metadata)) } else { None }
    };
    (0..partitions).map(offset).collect()
}

/// A consumer with these of librdkafka's settings.
pub fn consumer(bootstrap: &str, group: &str, settings: &[(&str, &str)]) -> BaseConsumer {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "earliest");
    for (key, value) in settings {
        config.set(*key, *value);
    }
    config.create().unwrap()
}

/// Waits until `probe` answers; panics after 30 s.
pub fn wait<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    wait_quietly(probe).unwrap_or_else(|| panic!("waited in vain for {what}"))
}

/// The same, but answers `None` after 30 s.
pub fn wait_quietly<T>(mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = probe();
        if found.is_some() || Instant::now() > deadline {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn admin(bootstrap: &str) -> AdminClient<DefaultClientContext> {
    ClientConfig::new().set("bootstrap.servers", bootstrap).create().unwrap()
}

fn admin_options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(PATIENCE)).operation_timeout(Some(PATIENCE))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs one of rdkafka's admin futures.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
