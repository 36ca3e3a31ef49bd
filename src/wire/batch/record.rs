//! Reading records in place.
use super::header::BatchHeader;
use super::headers::{RawHeaders, read_bytes};
use crate::wire::error::{Result, WireError};
use crate::wire::varint::read_signed;

/// One record. Its slices lie in the section it was read from, which is why it is valid only as long as that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordView<'a> {
    /// Offset in its partition.
    pub(crate) offset: i64,
    /// Ms since the epoch; the producer's or, by the topic's setting, the broker's.
    pub(crate) timestamp: i64,
    /// The key.
    pub(crate) key: Option<&'a [u8]>,
    /// The value.
    pub(crate) value: Option<&'a [u8]>,
    /// The headers, undecoded.
    pub(crate) headers: RawHeaders<'a>,
}

/// A place among the records of a batch, apart from their bytes, so that it can be stored beside a frame's id. 32
/// bytes, `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordCursor {
    /// What record timestamps are relative to; with log-append time, their value.
    timestamp: i64,
    base_offset: i64,
    pos: u32,
    left: u32,
    last_offset_delta: i32,
    log_append: bool,
}

impl RecordCursor {
    /// Before the first record of the batch with `header`.
    pub(crate) fn new(header: &BatchHeader) -> RecordCursor {
        let log_append = header.is_log_append_time();
        RecordCursor {
            timestamp: if log_append { header.max_timestamp } else { header.base_timestamp },
            base_offset: header.base_offset,
            pos: 0,
            left: header.count,
            last_offset_delta: header.last_offset_delta,
            log_append,
        }
    }

    /// Records not read yet.
    pub(crate) fn left(&self) -> u32 {
        self.left
    }

    /// The next record of `section`, which must be the (decompressed) records section of the cursor's batch. After an
    /// error the cursor is at its end. Bytes behind the last record are an error, as they are for Kafka's consumer.
    #[inline(always)]
    pub(crate) fn next<'a>(&mut self, section: &'a [u8]) -> Result<Option<RecordView<'a>>> {
        if self.left == 0 {
            return self.end(section);
        }
        match self.parse(section) {
            Some(record) => {
                self.left -= 1;
                Ok(Some(record))
            }
            None => Err(self.fail(section)),
        }
    }

    #[inline(always)]
    fn parse<'a>(&mut self, section: &'a [u8]) -> Option<RecordView<'a>> {
        let mut at = self.pos as usize;
        let length = read_signed(section, &mut at)?;
        let end = at.checked_add(usize::try_from(length).ok()?)?;
        let next = u32::try_from(end).ok()?;
        let bytes = section.get(..end)?;
        at += 1; // attributes of a record: none is assigned
        let timestamp_delta = read_signed(bytes, &mut at)?;
        let offset_delta = read_signed(bytes, &mut at)?;
        if offset_delta < 0 || offset_delta > i64::from(self.last_offset_delta) {
            return None;
        }
        let key = read_bytes(bytes, &mut at)?;
        let value = read_bytes(bytes, &mut at)?;
        let headers = RawHeaders::parse(bytes.get(at..)?)?;
        self.pos = next;
        let timestamp = match self.log_append {
            true => self.timestamp,
            false => self.timestamp.wrapping_add(timestamp_delta), // as Java does
        };
        Some(RecordView { offset: self.base_offset.wrapping_add(offset_delta), timestamp, key, value, headers })
    }

    /// After the last record.
    #[inline]
    fn end<'a>(&mut self, section: &'a [u8]) -> Result<Option<RecordView<'a>>> {
        match self.pos as usize == section.len() || self.pos == u32::MAX {
            true => Ok(None),
            false => Err(self.fail(section)),
        }
    }

    /// Moves to the end; a second call of `next` then answers `None`.
    #[cold]
    fn fail(&mut self, section: &[u8]) -> WireError {
        let at = self.pos as usize;
        let what = if self.left == 0 && at < section.len() { "end of a batch" } else { "record" };
        self.left = 0;
        self.pos = u32::MAX;
        WireError::Malformed { what, at }
    }
}

/// Where a record lies in its section, apart from the bytes, so that it is looked at again without being parsed again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordPlace {
    offset: i64,
    timestamp: i64,
    key: Span,
    value: Span,
    headers: Span,
}

/// A part of a section.
#[derive(Clone, Copy, Debug)]
struct Span {
    at: u32,
    /// [`NULL`] where the record has none.
    len: u32,
}

const NULL: u32 = u32::MAX;

impl Span {
    #[inline]
    fn new(part: Option<&[u8]>, section: &[u8]) -> Self {
        let Some(part) = part else { return Self { at: 0, len: NULL } };
        // A section is a part of one frame and a record a part of it: both numbers fit.
        Self { at: part.as_ptr().addr().wrapping_sub(section.as_ptr().addr()) as u32, len: part.len() as u32 }
    }

    #[inline]
    fn of(self, section: &[u8]) -> Option<&[u8]> {
        if self.len == NULL { None } else { section.get(self.at as usize..)?.get(..self.len as usize) }
    }
}

impl RecordPlace {
    /// Of a record that was read from `section`.
    #[inline]
    pub(crate) fn new(record: &RecordView<'_>, section: &[u8]) -> Self {
        Self {
            offset: record.offset,
            timestamp: record.timestamp,
            key: Span::new(record.key, section),
            value: Span::new(record.value, section),
            headers: Span::new(Some(record.headers.as_bytes()), section),
        }
    }

    /// The record; `section` must be the one it was read from.
    #[inline]
    pub(crate) fn view<'a>(&self, section: &'a [u8]) -> RecordView<'a> {
        RecordView {
            offset: self.offset,
            timestamp: self.timestamp,
            key: self.key.of(section),
            value: self.value.of(section),
            headers: self.headers.of(section).map_or(RawHeaders::EMPTY, RawHeaders::known),
        }
    }
}

/// The records of one batch: a cursor together with the section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Records<'a> {
    section: &'a [u8],
    cursor: RecordCursor,
}

impl<'a> Records<'a> {
    /// Reads `section`, the decompressed records section of the batch with `header`.
    pub(crate) fn new(header: &BatchHeader, section: &'a [u8]) -> Records<'a> {
        Records { section, cursor: RecordCursor::new(header) }
    }

    /// Goes on where `cursor` stands.
    #[allow(dead_code)] // for tests and the plan
    pub(crate) fn resume(cursor: RecordCursor, section: &'a [u8]) -> Records<'a> {
        Records { section, cursor }
    }

    /// The next record.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<RecordView<'a>>> {
        self.cursor.next(self.section)
    }

    /// Where reading stands.
    #[allow(dead_code)] // for tests and the plan
    pub(crate) fn cursor(&self) -> RecordCursor {
        self.cursor
    }
}
