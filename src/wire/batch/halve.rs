//! Halving a batch that a broker finds too large, within the buffer it lies in.
use super::builder::BatchBuilder;
use super::header::{BATCH_HEADER_BYTES, BatchHeader};
use crate::wire::compress::{Compression, decompress_own};
use crate::wire::error::{Result, WireError};
use crate::wire::varint::{read_signed, signed_len, write_signed};

/// The records behind the part of a batch that is sent first. They stay in the buffer, behind that part, which may be
/// sealed and compressed meanwhile: both only shorten it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    start: usize,
    end: usize,
    count: u32,
    base_timestamp: i64,
}

impl Rest {
    /// Where it begins: the part before it never had more bytes.
    pub(crate) fn start(&self) -> usize {
        self.start
    }
}

/// A record's fields up to its key.
struct Front {
    /// Where its attributes are.
    body: usize,
    timestamp_delta: i64,
    offset_delta: i64,
    /// Where its key's length is.
    key: usize,
    /// Where the next record is.
    end: usize,
}

fn front(buf: &[u8], at: usize) -> Result<Front> {
    let read = || {
        let mut at = at;
        let length = usize::try_from(read_signed(buf, &mut at)?).ok()?;
        let body = at;
        let end = body.checked_add(length).filter(|end| *end <= buf.len())?;
        at += 1; // attributes
        let timestamp_delta = read_signed(buf, &mut at)?;
        let offset_delta = read_signed(buf, &mut at)?;
        (at <= end).then_some(Front { body, timestamp_delta, offset_delta, key: at, end })
    };
    read().ok_or(WireError::Malformed { what: "record in a batch to halve", at })
}

impl BatchBuilder {
    /// Undoes the compression of a sealed batch that had at most `limit` bytes before. The rare broker that takes
    /// less than a batch makes this allocate a section for the moment.
    pub(crate) fn unseal(&mut self, buf: &mut [u8], limit: usize) -> Result<()> {
        let no_batch = WireError::Malformed { what: "sealed batch", at: 0 };
        let header = BatchHeader::peek(buf)?.ok_or(no_batch)?;
        let codec = Compression::from_code(header.codec())?;
        if codec == Compression::None {
            return Ok(());
        }
        let mut section = Vec::new();
        let most = limit.min(buf.len()).saturating_sub(BATCH_HEADER_BYTES);
        section.try_reserve_exact(most).map_err(|_| WireError::NoContext { codec: codec.name() })?;
        section.resize(most, 0);
        let len = decompress_own(codec, buf.get(BATCH_HEADER_BYTES..self.len).ok_or(no_batch)?, &mut section)?;
        let end = BATCH_HEADER_BYTES + len;
        let (to, from) = (buf.get_mut(BATCH_HEADER_BYTES..end), section.get(..len));
        to.zip(from).map(|(to, from)| to.copy_from_slice(from)).ok_or(no_batch)?;
        self.len = end;
        Ok(())
    }

    /// Cuts the batch, whose records must lie uncompressed in `buf`, behind its first `keep` records (at least one, and
    /// not all): from now on it is only these, not sealed. `rest` is what an earlier cut left behind them. Answers all
    /// that is behind the cut now.
    pub(crate) fn cut(&mut self, buf: &[u8], keep: u32, rest: Option<Rest>) -> Result<Rest> {
        let malformed = WireError::Malformed { what: "number of records to keep", at: keep as usize };
        let behind = self.count.checked_sub(keep).filter(|behind| keep > 0 && *behind > 0).ok_or(malformed)?;
        let mut at = BATCH_HEADER_BYTES;
        let mut max_timestamp = i64::MIN;
        for _ in 0..keep {
            let record = front(buf, at)?;
            max_timestamp = max_timestamp.max(self.base_timestamp.wrapping_add(record.timestamp_delta));
            at = record.end;
        }
        let whole = Rest { start: at, end: self.len, count: behind, base_timestamp: self.base_timestamp };
        let rest = match rest {
            // The earlier rest follows, perhaps behind bytes that compression freed.
            Some(earlier) => Rest { end: earlier.end, count: behind + earlier.count, ..whole },
            None => whole,
        };
        (self.len, self.count, self.max_timestamp) = (at, keep, max_timestamp);
        Ok(rest)
    }

    /// Makes the rest of a cut batch a batch of its own at the start of the buffer, not sealed, once the part before it
    /// is not needed any more. Its records are numbered from 0 again.
    pub(crate) fn resume(&mut self, buf: &mut [u8], rest: Rest) -> Result<()> {
        let (mut from, mut to) = (rest.start, BATCH_HEADER_BYTES);
        let mut max_timestamp = i64::MIN;
        for index in 0..rest.count {
            let record = front(buf, from)?;
            let behind = record.end - record.key;
            let timestamp = signed_len(record.timestamp_delta);
            let length = 1 + timestamp + signed_len(i64::from(index)) + behind;
            // A number of a record is never larger than it was, so no byte is written before it was read.
            let fits = i64::from(index) <= record.offset_delta && record.key - record.body >= length - behind;
            if !fits || to > from {
                return Err(WireError::Malformed { what: "record number in a batch to halve", at: from });
            }
            for value in [length as i64, 0, record.timestamp_delta, i64::from(index)] {
                let room = buf.get_mut(to..record.key).unwrap_or_default();
                to += write_signed(room, value).ok_or(WireError::Malformed { what: "batch to halve", at: to })?;
            }
            buf.copy_within(record.key..record.end, to);
            to += behind;
            from = record.end;
            max_timestamp = max_timestamp.max(rest.base_timestamp.wrapping_add(record.timestamp_delta));
        }
        self.len = to;
        self.count = rest.count;
        self.base_timestamp = rest.base_timestamp;
        self.max_timestamp = max_timestamp;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Batches, Compressor, RawHeaders, Records, Stamp};

    const STAMP: Stamp = Stamp { producer_id: 7, producer_epoch: 0, base_sequence: 0, transactional: false };

    type Seen = (i64, i64, Vec<u8>, Vec<u8>);

    fn fill(buf: &mut [u8], count: usize) -> (BatchBuilder, Vec<Seen>) {
        let mut builder = BatchBuilder::new();
        let mut expected = Vec::new();
        let headers = RawHeaders::parse(&[2, 2, b'h', 4, b'v', b'v']).unwrap();
        for n in 0..count {
            let (key, value) = (format!("key {n}"), "value ".repeat(n % 40));
            let timestamp = 1_000_000 + (n as i64 * 7_919) % 50_000 - 20_000;
            let headers = if n % 3 == 0 { headers } else { RawHeaders::EMPTY };
            builder.append(buf, timestamp, Some(key.as_bytes()), Some(value.as_bytes()), headers).unwrap();
            expected.push((n as i64, timestamp, key.into_bytes(), value.into_bytes()));
        }
        (builder, expected)
    }

    /// Reads the batch, whose first record is record `base` of the whole.
    fn read(batch: &[u8], base: i64, into: &mut Vec<Seen>) {
        let (header, bytes) = Batches::new(batch).next().unwrap().unwrap();
        header.check_crc(bytes).unwrap();
        let mut section = vec![0; 64 << 10];
        let packed = header.section(bytes).unwrap();
        let section = match Compression::from_code(header.codec()).unwrap() {
            Compression::None => packed,
            codec => {
                let len = decompress_own(codec, packed, &mut section).unwrap();
                &section[..len]
            }
        };
        let mut records = Records::new(&header, section);
        let mut max = i64::MIN;
        let mut count = 0;
        while let Some(record) = records.next().unwrap() {
            assert_eq!(record.offset, count);
            count += 1;
            max = max.max(record.timestamp);
            let (key, value) = (record.key.unwrap().to_vec(), record.value.unwrap().to_vec());
            assert_eq!(record.headers.is_empty(), (base + record.offset) % 3 != 0);
            into.push((base + record.offset, record.timestamp, key, value));
        }
        assert_eq!((header.max_timestamp, i64::from(header.count)), (max, count));
    }

    /// Halves until every part has one record, sealing and reading each part, and finds every record once.
    #[test]
    fn a_batch_halved_to_single_records_keeps_every_record() {
        for codec in [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
            let mut buf = vec![0; 40_000];
            let mut compressor = Compressor::new(codec, 40_000).unwrap();
            let (mut builder, expected) = fill(&mut buf, 300);
            builder.seal(&mut buf, &STAMP, &mut compressor).unwrap();
            let (mut got, mut base, mut rest) = (Vec::new(), 0, None::<Rest>);
            loop {
                if builder.count() > 1 {
                    let limit = rest.map_or(buf.len(), |r| r.start());
                    builder.unseal(&mut buf, limit).unwrap();
                    rest = Some(builder.cut(&buf, builder.count().div_ceil(2), rest).unwrap());
                    builder.seal(&mut buf, &STAMP, &mut compressor).unwrap();
                    continue;
                }
                read(&buf[..builder.len()], base, &mut got);
                base += i64::from(builder.count());
                let Some(behind) = rest.take() else { break };
                builder.resume(&mut buf, behind).unwrap();
                builder.seal(&mut buf, &STAMP, &mut compressor).unwrap();
            }
            assert_eq!(got, expected, "{codec:?}");
        }
    }

    #[test]
    fn cutting_at_the_ends_and_broken_bytes_are_refused() {
        let mut buf = vec![0; 4_000];
        let (mut builder, _) = fill(&mut buf, 3);
        assert!(builder.cut(&buf, 0, None).is_err());
        assert!(builder.cut(&buf, 3, None).is_err());
        buf[BATCH_HEADER_BYTES] = 0xff;
        buf[BATCH_HEADER_BYTES + 1] = 0xff;
        assert!(builder.cut(&buf, 2, None).is_err());
    }
}
