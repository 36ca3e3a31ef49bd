//! librdkafka.
use crate::script::{End, Part, Place, Read};
use crate::support::oracle::{self, Rec};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::producer::{BaseProducer, Producer as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Writes a part of a script.
pub fn write(bootstrap: &str, place: &Place, part: &Part, transactional_id: &str) -> Result<(), String> {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("enable.idempotence", "true")
        .set("linger.ms", "1")
        .set("compression.type", part.codec)
        .set("batch.size", part.batch_bytes.to_string());
    if part.transactional {
        config.set("transactional.id", transactional_id);
    }
    let producer: BaseProducer = config.create().map_err(text)?;
    if part.transactional {
        producer.init_transactions(PATIENCE).map_err(text)?;
    }
    for run in &part.runs {
        if part.transactional {
            producer.begin_transaction().map_err(text)?;
        }
        for record in &run.records {
            send(&producer, place, record)?;
        }
        producer.flush(PATIENCE).map_err(text)?;
        match run.end {
            End::Flushed => {}
            End::Committed => producer.commit_transaction(PATIENCE).map_err(text)?,
            End::Aborted => producer.abort_transaction(PATIENCE).map_err(text)?,
        }
    }
    Ok(())
}

fn send(producer: &BaseProducer, place: &Place, record: &Rec) -> Result<(), String> {
    let record = Rec { partition: place.partition, ..record.clone() };
    loop {
        match producer.send(oracle::message(&place.topic, &record)) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => {
                producer.poll(Duration::from_millis(10));
            }
            Err((error, _)) => return Err(text(error)),
        }
    }
}

/// Reads each place, all of one topic, to its end.
pub fn read(bootstrap: &str, committed: bool, places: &[(Place, i64)]) -> Result<Vec<Read>, String> {
    let level = if committed { "read_committed" } else { "read_uncommitted" };
    let consumer = oracle::consumer(bootstrap, "wire-diff", &[("isolation.level", level), ("fetch.wait.max.ms", "20")]);
    let mut list = TopicPartitionList::new();
    for (place, _) in places {
        list.add_partition_offset(&place.topic, place.partition, Offset::Offset(0)).map_err(text)?;
    }
    consumer.assign(&list).map_err(text)?;
    // Its position stays before markers, so the end is what it tells as such.
    let mut read: Vec<_> = places.iter().map(|_| Read { position: 0, records: Vec::new() }).collect();
    let mut left = places.len();
    let of = |partition| {
        places.iter().position(|(place, _)| place.partition == partition).ok_or("a record of another partition")
    };
    let deadline = Instant::now() + PATIENCE;
    while left > 0 {
        match consumer.poll(Duration::from_millis(20)) {
            Some(Ok(message)) => read[of(message.partition())?].records.push(oracle::rec(&message, 0)),
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                let at = of(partition)?;
                read[at].position = places[at].1;
                left -= 1;
            }
            Some(Err(error)) => return Err(text(error)),
            None if Instant::now() > deadline => return Err(format!("the end does not come: {places:?}")),
            None => {}
        }
    }
    Ok(read)
}

/// Waits until a partition's log ends at `end`: the markers of a transaction are written after it was committed.
pub fn wait_for_end(consumer: &BaseConsumer, place: &Place, end: i64) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, now) = consumer.fetch_watermarks(&place.topic, place.partition, PATIENCE).map_err(text)?;
        if now == end {
            return Ok(());
        }
        if now > end || Instant::now() > deadline {
            return Err(format!("the log ends at {now} and not at {end}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
