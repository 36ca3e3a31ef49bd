//! Against librdkafka's mock cluster and against Apache Kafka, read back by librdkafka's consumer.
use super::{Bench, settings};
use crate::client::metadata_thread::MetadataThread;
use crate::produce::{AckSlot, AppendError, Cause, OutRecord, OutTopic, ProducerSettings};
use crate::support;
use crate::support::broker::{Cluster, Options};
use crate::support::oracle::{self, Rec};
use crate::wire::{Compression, ErrorCode, Header, RawHeaders};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use std::time::{Duration, Instant};

impl Bench {
    fn write(&mut self, topic: OutTopic, rec: &Rec, slot: AckSlot) {
        let mut bytes = Vec::new();
        let headers: Vec<Header<'_>> =
            rec.headers.iter().map(|(k, v)| Header { key: k.as_bytes(), value: v.as_deref() }).collect();
        let headers = RawHeaders::write(&headers, &mut bytes).unwrap();
        let (key, value) = (rec.key.as_deref(), rec.value.as_deref());
        let record = OutRecord { timestamp: rec.timestamp, key, value, headers };
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            match self.producer.append(topic, rec.partition as u32, &record, slot) {
                Ok(()) => return,
                Err(AppendError::Full | AppendError::NotReady) => self.turn(50),
                Err(other) => panic!("{other}"),
            }
            assert!(Instant::now() < end, "stuck: {:#?}", self.producer);
        }
    }
}

/// Every shape of key, value and headers, over three partitions.
fn shapes(count: usize) -> Vec<Rec> {
    let shape = |n: usize| Rec {
        partition: (n % 3) as i32,
        offset: (n / 3) as i64,
        timestamp: 1_700_000_000_000 + (n as i64 * 37) % 1_000,
        key: (!n.is_multiple_of(4)).then(|| format!("key {}", n / 2).into_bytes()),
        value: (!n.is_multiple_of(7)).then(|| "value ".repeat(n % 23).into_bytes()),
        headers: match n % 5 {
            0 => vec![("trace".to_owned(), Some(vec![n as u8; 9])), ("none".to_owned(), None)],
            1 => vec![("empty".to_owned(), Some(Vec::new()))],
            _ => Vec::new(),
        },
    };
    (0..count).map(shape).collect()
}

fn by_partition(mut records: Vec<Rec>) -> Vec<Rec> {
    records.sort_by_key(|r| (r.partition, r.offset));
    records
}

#[track_caller]
fn same(got: &[Rec], expected: &[Rec]) {
    if let Some((got, expected)) = got.iter().zip(expected).find(|(a, b)| a != b) {
        panic!("read {got:?} where {expected:?} was written");
    }
    assert_eq!(got.len(), expected.len());
}

/// Writes all shapes and lets librdkafka read them.
fn round_trip(bootstrap: &str, topic: &str, wanted: ProducerSettings, count: usize) -> Bench {
    let control = MetadataThread::start(bootstrap).unwrap();
    let mut bench = Bench::new(wanted, &control.metadata);
    let out = bench.producer.topic(topic);
    let slot = bench.producer.ack_slot();
    let records = shapes(count);
    for record in &records {
        bench.write(out, record, slot);
    }
    bench.flush();
    let ack = bench.producer.ack(slot);
    assert_eq!((ack.highest, ack.outstanding, ack.error), (count as i64 / 3 - 1, 0, None));
    same(&oracle::read_all(bootstrap, topic), &by_partition(records));
    bench
}

fn with(batch_bytes: usize, batches: usize, compression: Compression) -> ProducerSettings {
    ProducerSettings { compression, ..settings(batch_bytes, batches) }
}

fn mock(brokers: i32) -> MockCluster<'static, DefaultProducerContext> {
    MockCluster::new(brokers).unwrap()
}

#[test]
fn the_mock_clusters_consumer_reads_what_was_written_byte_for_byte() {
    let cluster = mock(3);
    for (topic, codec) in super::flow::CODECS.map(|codec| (codec.name(), codec)) {
        cluster.create_topic(topic, 3, 3).unwrap();
        let bench = round_trip(&cluster.bootstrap_servers(), topic, with(4_096, 8, codec), 3_000);
        let stats = bench.producer.stats();
        assert!(stats.batches > 20 && stats.retried == 0, "{stats:?}");
    }
}

#[test]
fn errors_of_the_mock_cluster_are_survived_in_order() {
    let cluster = mock(3);
    cluster.create_topic("faults", 3, 3).unwrap();
    cluster.request_errors(
        RDKafkaApiKey::InitProducerId,
        &[
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
        ],
    );
    cluster.request_errors(
        RDKafkaApiKey::Produce,
        &[
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__TRANSPORT,
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_MSG,
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        ],
    );
    let bench = round_trip(&cluster.bootstrap_servers(), "faults", with(1_024, 8, Compression::None), 600);
    assert!(bench.producer.stats().retried >= 5, "{:?}", bench.producer.stats());
}

#[test]
fn leaders_of_the_mock_cluster_move_while_we_write() {
    let cluster = mock(3);
    cluster.create_topic("moving", 3, 3).unwrap();
    let bootstrap = cluster.bootstrap_servers();
    let control = MetadataThread::start(&bootstrap).unwrap();
    let mut bench = Bench::new(with(1_024, 8, Compression::None), &control.metadata);
    let out = bench.producer.topic("moving");
    let slot = bench.producer.ack_slot();
    let records = shapes(1_500);
    for (n, record) in records.iter().enumerate() {
        if n % 300 == 150 {
            for partition in 0..3 {
                cluster.partition_leader("moving", partition, Some(1 + (n as i32 / 300 + partition) % 3)).unwrap();
            }
        }
        bench.write(out, record, slot);
    }
    bench.flush();
    assert_eq!(bench.producer.ack(slot).error, None);
    same(&oracle::read_all(&bootstrap, "moving"), &by_partition(records));
}

#[test]
fn apache_kafka_takes_what_was_written_and_librdkafka_reads_it_byte_for_byte() {
    let Some(kafka) = support::kafka() else { return };
    for codec in super::flow::CODECS {
        let topic = kafka.unique("produced");
        oracle::create_topic(kafka.bootstrap(), &topic, 3, &[]);
        let bench = round_trip(kafka.bootstrap(), &topic, with(16 << 10, 8, codec), 9_000);
        let stats = bench.producer.stats();
        // A partition may be told of before its leader knows that it leads: one more attempt each.
        assert!(stats.batches > 10 && stats.retried <= 3 && stats.lost == 0, "{stats:?}");
    }
}

#[test]
fn apache_kafka_with_a_small_message_limit_gets_halved_batches() {
    let Some(kafka) = support::kafka() else { return };
    for codec in super::flow::CODECS {
        let topic = kafka.unique("halved");
        oracle::create_topic(kafka.bootstrap(), &topic, 3, &[("max.message.bytes", "700")]);
        let bench = round_trip(kafka.bootstrap(), &topic, with(16 << 10, 8, codec), 3_000);
        assert!(bench.producer.stats().halved > 3, "{:?}", bench.producer.stats());
    }
}

#[test]
fn apache_kafka_refuses_a_record_without_a_key_in_a_compacted_topic_and_the_slot_tells() {
    let Some(kafka) = support::kafka() else { return };
    let topic = kafka.unique("compacted");
    oracle::create_topic(kafka.bootstrap(), &topic, 3, &[("cleanup.policy", "compact")]);
    let control = MetadataThread::start(kafka.bootstrap()).unwrap();
    let mut bench = Bench::new(with(16 << 10, 8, Compression::None), &control.metadata);
    let out = bench.producer.topic(&topic);
    let (fine, refused) = (bench.producer.ack_slot(), bench.producer.ack_slot());
    bench.write(out, &Rec::new(0, 1, "k", "v"), fine);
    // So many that their errors exceed what is read of an answer.
    for count in [1, 3_000] {
        for _ in 0..count {
            let record = OutRecord { timestamp: 2, key: None, value: None, headers: RawHeaders::EMPTY };
            while bench.producer.append(out, 1, &record, refused) == Err(AppendError::Full) {
                bench.turn(50);
            }
        }
        bench.flush();
        let cause = bench.producer.ack(refused).error.unwrap().cause;
        match count {
            1 => assert_eq!(cause, Cause::Refused { code: ErrorCode::InvalidRecord }),
            _ => assert!(
                matches!(cause, Cause::AnswerTooLarge { .. } | Cause::Refused { code: ErrorCode::InvalidRecord }),
                "{cause}"
            ),
        }
        bench.producer.reset(refused);
    }
    let good = Rec::new(1, 3, "good", "again");
    bench.write(out, &good, refused);
    bench.flush();
    assert_eq!((bench.producer.ack(fine).error, bench.producer.ack(refused).error), (None, None));
    let read = oracle::read_all(kafka.bootstrap(), &topic);
    same(&read, &[Rec::new(0, 1, "k", "v"), good]);
}

#[test]
fn apache_kafka_killed_in_mid_run_has_everything_once_and_in_order() {
    let Some(cluster) = Cluster::start(&Options::default()) else { return };
    oracle::create_topic(cluster.bootstrap(), "killed", 3, &[]);
    let control = MetadataThread::start(cluster.bootstrap()).unwrap();
    let mut bench = Bench::new(with(4_096, 12, Compression::None), &control.metadata);
    let out = bench.producer.topic("killed");
    let slot = bench.producer.ack_slot();
    // Of today: a broker that restarts forgets a producer whose last records are older than
    // `producer.id.expiration.ms`, by their timestamps, and then takes a batch that is sent again a second time.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    let mut records = shapes(30_000);
    records.iter_mut().for_each(|record| record.timestamp += now - 1_700_000_001_000);
    for (n, record) in records.iter().enumerate() {
        match n {
            10_000 => cluster.kill(0),
            10_001 => cluster.restart(0),
            _ => {}
        }
        bench.write(out, record, slot);
    }
    bench.flush();
    let ack = bench.producer.ack(slot);
    assert_eq!((ack.highest, ack.error), (9_999, None));
    assert!(bench.producer.stats().retried > 0);
    same(&oracle::read_all(cluster.bootstrap(), "killed"), &by_partition(records));
}
