//! The log of a simulated partition: what Kafka's brokers accept, keep and show.
use crate::wire::BatchHeader;

/// A bug put into the brokers on purpose, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    /// Sequences are not looked at: a batch that is sent again is written again.
    AnySequence,
    /// With a broker that crashes, the last acknowledged batch goes too.
    LosesWritten,
    /// Fetches are answered with the batch in front once more now and then, under the offset asked for.
    RepeatsFetched,
}

/// A batch as it was written.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) base: i64,
    pub(super) next: i64,
    /// Epoch of the leader that wrote it.
    pub(super) epoch: i32,
    pub(super) header: BatchHeader,
    pub(super) bytes: Vec<u8>,
}

/// A partition.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) leader: i32,
    pub(super) epoch: i32,
    pub(super) entries: Vec<Entry>,
    /// What is below is on all replicas, and may be read.
    pub(super) high_watermark: i64,
}

const OUT_OF_ORDER: i16 = 45;
const OLD_EPOCH: i16 = 47;
/// Batches of a producer that a broker remembers.
const REMEMBERED: usize = 5;

impl Log {
    pub(super) fn new(leader: i32) -> Self {
        Self { leader, epoch: 1, entries: Vec::new(), high_watermark: 0 }
    }

    pub(super) fn end(&self) -> i64 {
        self.entries.last().map_or(0, |entry| entry.next)
    }

    /// Takes a batch: the offset behind it and its own, or an error code.
    pub(super) fn append(&mut self, bytes: &[u8], planted: Option<Planted>) -> Result<(i64, i64), i16> {
        let header = BatchHeader::peek(bytes).unwrap().unwrap();
        header.check_crc(bytes).unwrap();
        assert_eq!(header.size, bytes.len(), "one batch a partition");
        if planted != Some(Planted::AnySequence)
            && let Some((base, next)) = self.judge(&header)?
        {
            return Ok((next, base));
        }
        let (base, epoch) = (self.end(), self.epoch);
        let next = base + i64::from(header.last_offset_delta) + 1;
        let mut bytes = bytes.to_vec();
        // Neither is covered by the checksum.
        bytes[..8].copy_from_slice(&base.to_be_bytes());
        bytes[12..16].copy_from_slice(&epoch.to_be_bytes());
        self.entries.push(Entry { base, next, epoch, header, bytes });
        Ok((next, base))
    }

    /// Whether the batch is the next of its producer; where it is already, if it is one of the last.
    fn judge(&self, header: &BatchHeader) -> Result<Option<(i64, i64)>, i16> {
        let (id, epoch, sequence) = (header.producer_id, header.producer_epoch, header.base_sequence);
        let mut own = self.entries.iter().rev().filter(|entry| entry.header.producer_id == id).peekable();
        let Some(last) = own.peek() else {
            return if sequence == 0 { Ok(None) } else { Err(OUT_OF_ORDER) };
        };
        if epoch < last.header.producer_epoch {
            return Err(OLD_EPOCH);
        }
        if epoch > last.header.producer_epoch {
            return if sequence == 0 { Ok(None) } else { Err(OUT_OF_ORDER) };
        }
        let due = last.header.base_sequence.wrapping_add_unsigned(last.header.count) & i32::MAX;
        let same = |entry: &&Entry| {
            let known = &entry.header;
            (known.producer_epoch, known.base_sequence, known.count) == (epoch, sequence, header.count)
        };
        match own.take(REMEMBERED).find(same) {
            Some(entry) => Ok(Some((entry.base, entry.next))),
            None if sequence == due => Ok(None),
            None => Err(OUT_OF_ORDER),
        }
    }

    /// The leader has crashed before the others had everything: what is above the high watermark is gone.
    pub(super) fn truncate(&mut self, planted: Option<Planted>) {
        let mark = self.high_watermark;
        self.entries.retain(|entry| entry.next <= mark);
        if planted == Some(Planted::LosesWritten) {
            self.entries.pop();
            self.high_watermark = self.end();
        }
    }

    /// Another leader, under the next epoch.
    pub(super) fn move_to(&mut self, leader: i32) {
        (self.leader, self.epoch) = (leader, self.epoch + 1);
    }

    /// Bytes of the batches from `offset` on that may be read, up to `limit`, the last one cut, the first one whole in
    /// any case if `whole`.
    pub(super) fn read(&self, offset: i64, limit: usize, whole: bool) -> Vec<u8> {
        let mut bytes: Vec<u8> = Vec::new();
        for entry in &self.entries {
            if entry.next <= offset || entry.next > self.high_watermark {
                continue;
            }
            let room = if bytes.is_empty() && whole { usize::MAX } else { limit.saturating_sub(bytes.len()) };
            bytes.extend_from_slice(&entry.bytes[..entry.bytes.len().min(room)]);
            if bytes.len() >= limit {
                break;
            }
        }
        bytes
    }

    /// The largest epoch up to `epoch` that the log has, and where it ends; `None` when there is none.
    pub(super) fn end_of_epoch(&self, epoch: i32) -> Option<(i32, i64)> {
        if epoch == self.epoch {
            return Some((epoch, self.end()));
        }
        let last = self.entries.iter().rev().find(|entry| entry.epoch <= epoch)?;
        Some((last.epoch, last.next))
    }
}
