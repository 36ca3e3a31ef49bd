//! The fixed part of a batch, and walking the batches of a fetch response without touching their records.
use crate::wire::Reader;
use crate::wire::error::{Result, WireError};

/// Bytes before the records section.
pub(crate) const BATCH_HEADER_BYTES: usize = 61;
/// Bytes before the first byte that the length field counts: base offset and the length itself.
pub(super) const LENGTH_END: usize = 12;
/// Position of the format number, which is the same in every format.
pub(super) const MAGIC_AT: usize = 16;
/// Position of the checksum; it covers everything behind itself.
pub(super) const CRC_AT: usize = 17;
/// First byte that the checksum covers.
pub(super) const CRC_FROM: usize = 21;
/// The format that this library reads and writes.
pub(super) const MAGIC: i8 = 2;

pub(super) const CODEC_BITS: i16 = 0x07;
pub(super) const LOG_APPEND_BIT: i16 = 0x08;
pub(super) const TRANSACTIONAL_BIT: i16 = 0x10;
pub(super) const CONTROL_BIT: i16 = 0x20;

/// The header of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    /// Offset of the first record, also when compaction has removed it.
    pub(crate) base_offset: i64,
    /// Bytes of the whole batch with its header.
    pub(crate) size: usize,
    /// Epoch of the leader that appended the batch; -1 unknown.
    pub(crate) leader_epoch: i32,
    /// CRC-32C of everything behind this field.
    pub(crate) crc: u32,
    /// Codec and flags.
    pub(crate) attributes: i16,
    /// Offset of the last record less the base offset; compaction leaves it as it was.
    pub(crate) last_offset_delta: i32,
    /// What the timestamps of the records are relative to, in ms.
    pub(crate) base_timestamp: i64,
    /// The largest timestamp, in ms; with log-append time the timestamp of every record.
    pub(crate) max_timestamp: i64,
    /// Producer of an idempotent or transactional batch; -1 otherwise.
    pub(crate) producer_id: i64,
    /// Epoch of that producer; -1 otherwise.
    pub(crate) producer_epoch: i16,
    /// Sequence of the first record; -1 otherwise.
    pub(crate) base_sequence: i32,
    /// Records in the batch; compaction may leave none.
    pub(crate) count: u32,
}

impl BatchHeader {
    /// The header of the batch at the start of `bytes`; `None` when fewer bytes than a header are there (a broker may
    /// cut the last batch of a partition anywhere). The batch itself may be cut still: compare `size`.
    pub(crate) fn peek(bytes: &[u8]) -> Result<Option<BatchHeader>> {
        let mut reader = Reader::new(bytes, false);
        let Some(magic) = bytes.get(MAGIC_AT) else { return Ok(None) };
        let base_offset = reader.i64()?;
        let length = reader.i32()?;
        if *magic as i8 != MAGIC {
            return Err(match magic {
                0 | 1 => WireError::OldMagic { magic: *magic as i8, offset: base_offset },
                _ => WireError::Malformed { what: "message format number", at: MAGIC_AT },
            });
        }
        if bytes.len() < BATCH_HEADER_BYTES {
            return Ok(None);
        }
        let size = usize::try_from(length).ok().and_then(|length| length.checked_add(LENGTH_END));
        let size = size.filter(|size| *size >= BATCH_HEADER_BYTES).ok_or_else(|| reader.malformed("batch length"))?;
        let leader_epoch = reader.i32()?;
        reader.i8()?; // the format, above
        let header = BatchHeader {
            base_offset,
            size,
            leader_epoch,
            crc: reader.u32()?,
            attributes: reader.i16()?,
            last_offset_delta: reader.i32()?,
            base_timestamp: reader.i64()?,
            max_timestamp: reader.i64()?,
            producer_id: reader.i64()?,
            producer_epoch: reader.i16()?,
            base_sequence: reader.i32()?,
            count: u32::try_from(reader.i32()?).map_err(|_| reader.malformed("record count"))?,
        };
        let last = header.base_offset.checked_add(i64::from(header.last_offset_delta));
        match header.base_offset >= 0 && header.last_offset_delta >= 0 && last.is_some_and(|last| last < i64::MAX) {
            true => Ok(Some(header)),
            false => Err(reader.malformed("batch offsets")),
        }
    }

    /// Offset of the first record that a batch behind this one can have.
    pub(crate) fn next_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta)).saturating_add(1)
    }

    /// Number of the compression codec, 0 to 7; `Compression::from_code` names it.
    pub(crate) fn codec(&self) -> u8 {
        (self.attributes & CODEC_BITS) as u8
    }

    /// Whether every record has the broker's append time, which is `max_timestamp`.
    pub(crate) fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_BIT != 0
    }

    /// Whether the batch is part of a transaction.
    pub(crate) fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_BIT != 0
    }

    /// Whether the batch holds a marker for clients ([`super::ControlType`]) and no user's records.
    pub(crate) fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// Compares the checksum with the bytes of the batch, which start at its header; bytes behind the batch are
    /// ignored.
    pub(crate) fn check_crc(&self, batch: &[u8]) -> Result<()> {
        let Some(covered) = batch.get(CRC_FROM..self.size) else {
            return Err(WireError::Truncated { at: batch.len(), needed: self.size.saturating_sub(batch.len()) });
        };
        match crc32c::crc32c(covered) {
            got if got == self.crc => Ok(()),
            got => Err(WireError::BadCrc { offset: self.base_offset, want: self.crc, got }),
        }
    }

    /// The records section, as it is in the batch: compressed unless [`BatchHeader::codec`] is 0.
    pub(crate) fn section<'a>(&self, batch: &'a [u8]) -> Result<&'a [u8]> {
        let needed = self.size.saturating_sub(batch.len());
        batch.get(BATCH_HEADER_BYTES..self.size).ok_or(WireError::Truncated { at: batch.len(), needed })
    }
}

/// Walks the batches in the records of one partition of a fetch response, by their headers alone. The last one may be
/// cut: it is left out, and [`Batches::incomplete`] answers its size, so that a batch larger than the fetch limit is
/// noticed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batches<'a> {
    bytes: &'a [u8],
    at: usize,
    incomplete: Option<usize>,
}

impl<'a> Batches<'a> {
    /// Walks `records`.
    pub(crate) fn new(records: &'a [u8]) -> Batches<'a> {
        Batches { bytes: records, at: 0, incomplete: None }
    }

    /// The next whole batch: its header and all its bytes.
    pub(crate) fn next(&mut self) -> Result<Option<(BatchHeader, &'a [u8])>> {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        let Some(header) = BatchHeader::peek(rest)? else {
            self.incomplete = (!rest.is_empty()).then_some(BATCH_HEADER_BYTES.max(rest.len() + 1));
            return Ok(None);
        };
        let Some(batch) = rest.get(..header.size) else {
            self.incomplete = Some(header.size);
            return Ok(None);
        };
        self.at += header.size;
        Ok(Some((header, batch)))
    }

    /// Position behind the last batch answered, from the start of the records.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Once [`Batches::next`] has answered `None`: bytes of the cut batch at the end (at least those of a header,
    /// when not even the header is whole), or `None` when nothing is cut.
    pub(crate) fn incomplete(&self) -> Option<usize> {
        self.incomplete
    }
}
