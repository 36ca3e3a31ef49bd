//! The reading half of a case: by the library while the fault strikes, by librdkafka afterwards.
//!
//! The next record of a partition carries the next number. Without transactions its offset is that number, too.
use crate::run::{PATIENCE, Run};
use crate::support::oracle;
use crate::{Bench, Case};
use plimsoll::testing::wire::{Client, Reader, ReaderOptions, SILENCE};
use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What is due next in each partition.
struct Due {
    /// Number of the next record, and the least offset it may have.
    next: Vec<(i64, i64)>,
    exact: bool,
    total: u64,
}

impl Due {
    fn new(case: &Case) -> Self {
        let next = vec![(0, 0); case.partitions.unsigned_abs() as usize];
        Self { next, exact: !case.transactional, total: 0 }
    }

    fn take(&mut self, partition: usize, value: Option<&[u8]>, offset: i64) -> Result<(), String> {
        let number = value.and_then(|value| value.first_chunk()).map_or(-1, |bytes| i64::from_be_bytes(*bytes));
        let (due, least) = self.next[partition];
        if number != due || offset < least || (self.exact && offset != least) {
            return Err(format!("{number} at offset {offset} of {partition}, not {due} at {least}"));
        }
        self.next[partition] = (due + 1, offset + 1);
        self.total += 1;
        Ok(())
    }
}

/// Reads while the fault strikes; answers how long nothing came at most.
pub fn read(bootstrap: &str, case: &Case, run: &Run) -> Result<Duration, String> {
    let client = Client::new(bootstrap)?;
    let options = ReaderOptions {
        read_committed: case.transactional,
        frame_bytes: case.frame_bytes,
        request_timeout_ms: case.request_timeout_ms,
        ..ReaderOptions::default()
    };
    let mut reader = Reader::new(&client, &options)?;
    for partition in 0..case.partitions {
        reader.add(&run.topic, partition, 0)?;
    }
    let (mut due, mut wrong) = (Due::new(case), None);
    let (mut heard, mut longest, mut told) = (Instant::now(), Duration::ZERO, false);
    while due.total < run.records {
        let before = due.total;
        reader.turn(20, &mut |partition, seen| {
            if let Err(why) = due.take(partition, seen.value, seen.offset) {
                wrong.get_or_insert(why);
            }
        })?;
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        run.read.store(due.total, Ordering::Release);
        let (now, awaited) = (Instant::now(), run.written.load(Ordering::Acquire) > due.total);
        longest = longest.max(now - heard);
        if due.total > before || !awaited {
            (heard, told) = (now, false);
        }
        if now - heard > SILENCE && !told {
            told = true;
            println!("nothing is read: {}", reader.describe());
        }
        if run.failed.load(Ordering::Acquire) || now - heard > PATIENCE {
            return Err(format!("{} of {} records read", due.total, run.records));
        }
    }
    Ok(longest)
}

/// What the log really holds.
pub fn oracle_reads(bench: &Bench, case: &Case, run: &Run) -> Result<(), String> {
    let level = if case.transactional { "read_committed" } else { "read_uncommitted" };
    let settings = [("fetch.wait.max.ms", "20"), ("isolation.level", level)];
    let consumer = oracle::consumer(&bench.bootstrap(), "wire-faults", &settings);
    let mut list = TopicPartitionList::new();
    for partition in 0..case.partitions {
        list.add_partition_offset(&run.topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&list).map_err(|e| e.to_string())?;
    let mut due = Due::new(case);
    let mut left = case.partitions;
    let mut deadline = Instant::now() + PATIENCE;
    while left > 0 {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                let taken = due.take(message.partition() as usize, message.payload(), message.offset());
                taken.map_err(|why| format!("librdkafka reads {why}"))?;
                deadline = Instant::now() + PATIENCE;
            }
            Some(Err(KafkaError::PartitionEOF(_))) => left -= 1,
            Some(Err(error)) => eprintln!("librdkafka: {error}"),
            None if Instant::now() > deadline => return Err("librdkafka comes to no end".to_owned()),
            None => {}
        }
    }
    if due.total != run.records {
        return Err(format!("librdkafka reads {} records", due.total));
    }
    let Some(group) = &run.group else { return Ok(()) };
    let committed = oracle::committed(&bench.bootstrap(), group, &run.topic, 1);
    let wanted = [Some((run.records.cast_signed(), String::new()))];
    if committed == wanted { Ok(()) } else { Err(format!("the group has committed {committed:?}")) }
}
