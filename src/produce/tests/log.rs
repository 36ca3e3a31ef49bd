//! A partition's log as a scripted broker keeps it, with the rules of idempotence that Kafka's brokers have.
use crate::wire::{BatchHeader, Compression, Records};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Debug, Default)]
struct ProducerState {
    epoch: i16,
    next: i32,
    /// First sequence, count and offset of the last five batches.
    last: VecDeque<(i32, u32, i64)>,
}

/// One record as written.
pub(super) type Written = (i64, Option<Vec<u8>>, Option<Vec<u8>>);

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) records: Vec<Written>,
    producers: BTreeMap<i64, ProducerState>,
    pub(super) leader: i32,
    pub(super) leader_epoch: i32,
    pub(super) start: i64,
}

impl Log {
    pub(super) fn led_by(leader: i32) -> Self {
        Self { leader, leader_epoch: 1, ..Self::default() }
    }

    /// Expects this sequence next of every producer.
    pub(super) fn expect(&mut self, sequence: i32) {
        self.producers.values_mut().for_each(|p| p.next = sequence);
    }

    /// Takes a batch: an error code, or the offset it got. `keep`: whether its records are kept.
    pub(super) fn append(&mut self, header: &BatchHeader, batch: &[u8], keep: bool) -> (i16, i64) {
        let (epoch, sequence, count) = (header.producer_epoch, header.base_sequence, header.count);
        let fresh = !self.producers.contains_key(&header.producer_id);
        let producer = self.producers.entry(header.producer_id).or_default();
        if fresh {
            // A broker that does not know a producer takes any sequence.
            (producer.epoch, producer.next) = (epoch, sequence);
        }
        if epoch < producer.epoch {
            return (47, -1);
        }
        if epoch > producer.epoch {
            if sequence != 0 {
                return (45, -1);
            }
            *producer = ProducerState { epoch, ..ProducerState::default() };
        }
        if let Some((_, _, offset)) = producer.last.iter().find(|(s, c, _)| (*s, *c) == (sequence, count)) {
            return (0, *offset);
        }
        if sequence != producer.next {
            return (45, -1);
        }
        let offset = self.records.len() as i64;
        producer.next = ((i64::from(sequence) + i64::from(count)) & 0x7fff_ffff) as i32;
        producer.last.push_back((sequence, count, offset));
        if producer.last.len() > 5 {
            producer.last.pop_front();
        }
        if !keep {
            return (0, offset);
        }
        assert_eq!(header.codec(), Compression::None.code(), "the scripted brokers read batches without compression");
        let mut records = Records::new(header, header.section(batch).unwrap());
        while let Some(record) = records.next().unwrap() {
            let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
            self.records.push((record.timestamp, owned(record.key), owned(record.value)));
        }
        (0, offset)
    }
}
