//! Whether a run's output is right: a wrong answer is not fast.
use crate::support::oracle::{consumer, watermarks};
use plimsoll_peer::Outcome;
use rdkafka::consumer::Consumer;
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Longest time without a record while reading.
const PATIENCE: Duration = Duration::from_secs(30);

/// Checks the output of a case: as many records as went in, or counts whose sum is that.
pub(crate) fn check(bootstrap: &str, case: &str, topic: &str, partitions: u32, records: u64) -> Outcome<()> {
    let partitions = i32::try_from(partitions)?;
    let ends = (0..partitions).map(|partition| watermarks(bootstrap, topic, partition).1);
    let written: i64 = ends.sum();
    let found = if case == "count" { sum_of_counts(bootstrap, topic, partitions, written)? } else { written };
    if u64::try_from(found) == Ok(records) {
        return Ok(());
    }
    Err(format!("{case}: {topic} should account for {records} records, not {found}").into())
}

/// Sum of the last count of each key.
fn sum_of_counts(bootstrap: &str, topic: &str, partitions: i32, written: i64) -> Outcome<i64> {
    let consumer = consumer(bootstrap, "bench-peer-check", &[]);
    let mut all = TopicPartitionList::new();
    for partition in 0..partitions {
        all.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&all)?;
    let mut counts: HashMap<Vec<u8>, i64> = HashMap::new();
    let (mut read, mut last) = (0, Instant::now());
    while read < written {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                let value = message.payload().and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
                let (Some(key), Some(value)) = (message.key(), value) else { return Err("not a count".into()) };
                match counts.get_mut(key) {
                    Some(count) => *count = i64::from_be_bytes(value),
                    None => drop(counts.insert(key.to_vec(), i64::from_be_bytes(value))),
                }
                (read, last) = (read + 1, Instant::now());
            }
            Some(Err(_)) | None if last.elapsed() > PATIENCE => return Err(format!("{topic} cannot be read").into()),
            _ => {}
        }
    }
    Ok(counts.values().sum())
}
