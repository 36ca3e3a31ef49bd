//! Building a batch in place, in a buffer of the caller.
use super::header::{BATCH_HEADER_BYTES, CODEC_BITS, CRC_AT, CRC_FROM, LENGTH_END, MAGIC, TRANSACTIONAL_BIT};
use super::headers::RawHeaders;
use crate::wire::compress::Compressor;
use crate::wire::error::{Result, WireError};
use crate::wire::varint::{signed_len, write_signed};

/// Position of the producer's id; its epoch and the base sequence follow.
const STAMP_AT: usize = 43;

/// A record that the rest of the buffer cannot hold. When `needed` is at most the buffer's size, the record fits an
/// empty batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge {
    /// Bytes of a batch that holds this record alone.
    pub(crate) needed: usize,
}

/// What identifies a batch to the broker: the idempotent producer and the place of the batch in its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// From InitProducerId; -1 without idempotence.
    pub(crate) producer_id: i64,
    /// From InitProducerId; -1 without idempotence.
    pub(crate) producer_epoch: i16,
    /// Sequence of the first record in its partition; -1 without idempotence.
    pub(crate) base_sequence: i32,
    /// Whether the batch belongs to a transaction.
    pub(crate) transactional: bool,
}

impl Stamp {
    /// No idempotence.
    #[allow(dead_code)] // for tests and the plan
    pub(crate) const NONE: Stamp =
        Stamp { producer_id: -1, producer_epoch: -1, base_sequence: -1, transactional: false };
}

/// State of a batch under construction, apart from its bytes. The same buffer must be given to every call until
/// [`BatchBuilder::clear`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchBuilder {
    pub(super) len: usize,
    pub(super) count: u32,
    pub(super) base_timestamp: i64,
    pub(super) max_timestamp: i64,
}

/// Lengths of a record's fields as they will be encoded.
struct Layout {
    timestamp_delta: i64,
    offset_delta: i64,
    body: usize,
    total: usize,
}

impl Layout {
    #[inline(always)]
    fn of(
        timestamp_delta: i64,
        offset_delta: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: RawHeaders<'_>,
    ) -> Layout {
        let field = |bytes: Option<&[u8]>| bytes.map_or(1, |bytes| signed_len(bytes.len() as i64) + bytes.len());
        let fixed = 1 + signed_len(timestamp_delta) + signed_len(offset_delta);
        let body = (fixed + field(key)).saturating_add(field(value)).saturating_add(headers.as_bytes().len());
        let total = body.saturating_add(signed_len(i64::try_from(body).unwrap_or(i64::MAX)));
        Layout { timestamp_delta, offset_delta, body, total }
    }
}

impl BatchBuilder {
    /// An empty batch.
    pub(crate) const fn new() -> BatchBuilder {
        BatchBuilder { len: 0, count: 0, base_timestamp: 0, max_timestamp: 0 }
    }

    /// Bytes of the batch so far with its header; 0 while it is empty. After sealing, the bytes to send.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Records in the batch.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Whether there is no record in it.
    #[allow(dead_code)] // for tests and the plan
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Starts over, for another batch.
    pub(crate) fn clear(&mut self) {
        *self = BatchBuilder::new();
    }

    /// Appends a record. When `buf` has no room for it nothing is changed, and the answer says what an empty batch
    /// would need.
    #[inline(always)]
    pub(crate) fn append(
        &mut self,
        buf: &mut [u8],
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: RawHeaders<'_>,
    ) -> std::result::Result<(), TooLarge> {
        let first = self.count == 0;
        let base_timestamp = if first { timestamp } else { self.base_timestamp };
        let start = if first { BATCH_HEADER_BYTES } else { self.len };
        let timestamp_delta = timestamp.wrapping_sub(base_timestamp);
        let layout = Layout::of(timestamp_delta, i64::from(self.count), key, value, headers);
        let end = start.saturating_add(layout.total);
        let written = match buf.get_mut(start..end) {
            Some(room) if end <= i32::MAX as usize => write_record(room, &layout, key, value, headers),
            _ => None,
        };
        if written.is_none() {
            return Err(too_large(key, value, headers));
        }
        self.base_timestamp = base_timestamp;
        self.max_timestamp = if first { timestamp } else { self.max_timestamp.max(timestamp) };
        self.len = end;
        self.count += 1;
        Ok(())
    }

    /// Finishes the batch: compresses the records if that makes them smaller, then writes the header and the
    /// checksum. Answers the bytes to send, `buf[..len]`, which are also [`BatchBuilder::len`] from now on. Nothing
    /// may be appended any more.
    pub(crate) fn seal(&mut self, buf: &mut [u8], stamp: &Stamp, compressor: &mut Compressor) -> Result<usize> {
        let what = "batch to seal: it has no records, or not this buffer";
        let malformed = WireError::Malformed { what, at: self.len };
        let section = match buf.get_mut(BATCH_HEADER_BYTES..self.len) {
            Some(section) if self.count > 0 => section,
            _ => return Err(malformed),
        };
        let mut attributes = if stamp.transactional { TRANSACTIONAL_BIT } else { 0 };
        if let Some(smaller) = compressor.compress(section)
            && let Some(room) = section.get_mut(..smaller.len())
        {
            room.copy_from_slice(smaller);
            self.len = BATCH_HEADER_BYTES + smaller.len();
            attributes |= i16::from(compressor.codec().code()) & CODEC_BITS;
        }
        let last = (self.count - 1).to_be_bytes();
        let mut header = [0; BATCH_HEADER_BYTES]; // base offset 0: the broker assigns it
        let mut at = 8;
        for field in [
            &((self.len - LENGTH_END) as u32).to_be_bytes()[..],
            &(-1_i32).to_be_bytes(), // leader epoch: the broker's
            &MAGIC.to_be_bytes(),
            &[0; 4], // checksum, below
            &attributes.to_be_bytes(),
            &last,
            &self.base_timestamp.to_be_bytes(),
            &self.max_timestamp.to_be_bytes(),
            &stamp.producer_id.to_be_bytes(),
            &stamp.producer_epoch.to_be_bytes(),
            &stamp.base_sequence.to_be_bytes(),
            &self.count.to_be_bytes(),
        ] {
            if let Some(room) = header.get_mut(at..at + field.len()) {
                room.copy_from_slice(field);
            }
            at += field.len();
        }
        let batch = buf.get_mut(..self.len).ok_or(malformed)?;
        if let Some(room) = batch.first_chunk_mut() {
            *room = header;
        }
        write_crc(batch);
        Ok(self.len)
    }
}

/// Gives a sealed batch another producer, epoch or sequence, as a new epoch after a lost sequence requires (KIP-360).
/// The flag of
/// `stamp` is ignored.
pub(crate) fn restamp(batch: &mut [u8], stamp: &Stamp) -> Result<()> {
    let truncated = WireError::Truncated { at: batch.len(), needed: BATCH_HEADER_BYTES.saturating_sub(batch.len()) };
    let header = batch.first_chunk_mut::<BATCH_HEADER_BYTES>().ok_or(truncated)?;
    header[STAMP_AT..STAMP_AT + 8].copy_from_slice(&stamp.producer_id.to_be_bytes());
    header[STAMP_AT + 8..STAMP_AT + 10].copy_from_slice(&stamp.producer_epoch.to_be_bytes());
    header[STAMP_AT + 10..STAMP_AT + 14].copy_from_slice(&stamp.base_sequence.to_be_bytes());
    write_crc(batch);
    Ok(())
}

/// `batch` is one whole batch.
fn write_crc(batch: &mut [u8]) {
    let crc = crc32c::crc32c(batch.get(CRC_FROM..).unwrap_or(&[]));
    if let Some(room) = batch.get_mut(CRC_AT..CRC_FROM) {
        room.copy_from_slice(&crc.to_be_bytes());
    }
}

#[inline(always)]
fn write_record(
    room: &mut [u8],
    layout: &Layout,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: RawHeaders<'_>,
) -> Option<()> {
    let mut rest = room;
    rest = put(rest, layout.body as i64)?;
    let (attributes, behind) = rest.split_first_mut()?;
    *attributes = 0;
    rest = put(behind, layout.timestamp_delta)?;
    rest = put(rest, layout.offset_delta)?;
    for field in [key, value] {
        match field {
            None => rest = put(rest, -1)?,
            Some(bytes) => {
                rest = put(rest, bytes.len() as i64)?;
                let (into, behind) = rest.split_at_mut_checked(bytes.len())?;
                into.copy_from_slice(bytes);
                rest = behind;
            }
        }
    }
    let headers = headers.as_bytes();
    rest.get_mut(..headers.len())?.copy_from_slice(headers);
    Some(())
}

#[inline(always)]
fn put(into: &mut [u8], value: i64) -> Option<&mut [u8]> {
    let len = write_signed(into, value)?;
    into.get_mut(len..)
}

#[cold]
fn too_large(key: Option<&[u8]>, value: Option<&[u8]>, headers: RawHeaders<'_>) -> TooLarge {
    TooLarge { needed: Layout::of(0, 0, key, value, headers).total.saturating_add(BATCH_HEADER_BYTES) }
}
