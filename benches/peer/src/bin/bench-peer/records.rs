//! The input: records of one size, keys drawn evenly, the same in every run.
use crate::support::oracle::create_topic;
use plimsoll_peer::Outcome;
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::fmt::Write as _;
use std::time::Duration;

/// What is in the input topic.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Shape {
    /// Records.
    #[arg(long, env = "RECORDS", default_value_t = 4_000_000)]
    pub(crate) records: u64,
    /// Bytes of a value.
    #[arg(long, env = "RECORD_BYTES", default_value_t = 100)]
    pub(crate) record_bytes: usize,
    /// Different keys.
    #[arg(long, env = "KEYS", default_value_t = 100_000)]
    pub(crate) keys: u64,
    /// Partitions of every topic.
    #[arg(long, env = "PARTITIONS", default_value_t = 4)]
    pub(crate) partitions: u32,
}

/// Creates a topic and fills it: key `user-` and eight digits, value of random bytes.
pub(crate) fn fill(bootstrap: &str, topic: &str, shape: &Shape, compression: &str) -> Outcome<()> {
    create_topic(bootstrap, topic, i32::try_from(shape.partitions)?, &[]);
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("partitioner", "murmur2_random")
        .set("enable.idempotence", "true")
        .set("compression.type", compression)
        .set("linger.ms", "20")
        .set("batch.size", "262144")
        .set("queue.buffering.max.kbytes", "65536")
        .create()?;
    let mut random = fastrand::Rng::with_seed(42);
    let mut value = vec![0; shape.record_bytes];
    random.fill(&mut value);
    let mut key = String::new();
    for sent in 0..shape.records {
        key.clear();
        write!(key, "user-{:08}", random.u64(..shape.keys.max(1)))?;
        let mut record = BaseRecord::to(topic).key(key.as_str()).payload(value.as_slice());
        while let Err((error, refused)) = producer.send(record) {
            if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
                return Err(error.into());
            }
            producer.poll(Duration::from_millis(10));
            record = refused;
        }
        if sent % 1_024 == 0 {
            producer.poll(Duration::ZERO);
        }
    }
    producer.flush(Duration::from_secs(60))?;
    Ok(())
}
