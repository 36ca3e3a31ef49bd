//! Writing Kafka's primitive types, big-endian, into a buffer of fixed capacity.
use super::error::{Result, WireError};
use super::message::RequestHeader;

/// Appends one request to a buffer and never beyond the buffer's capacity, so it never allocates. Writing on after
/// the capacity is reached only counts; [`Writer::finish`] then answers how many bytes the request takes, and leaves
/// the buffer as it was. That keeps encoders free of error handling at each field.
#[derive(Debug)]
pub(crate) struct Writer<'b> {
    buffer: &'b mut Vec<u8>,
    start: usize,
    flexible: bool,
    lost: usize,
    fault: Option<WireError>,
}

impl<'b> Writer<'b> {
    /// Writes behind what `buffer` holds, in the flexible or the classic form.
    pub(crate) fn new(buffer: &'b mut Vec<u8>, flexible: bool) -> Writer<'b> {
        let start = buffer.len();
        Writer { buffer, start, flexible, lost: 0, fault: None }
    }

    /// Begins a request: room for the frame's length, then the header of `header.version`.
    pub(crate) fn request(buffer: &'b mut Vec<u8>, header: &RequestHeader<'_>) -> Writer<'b> {
        let mut writer = Writer::new(buffer, false);
        writer.i32(0);
        writer.i16(header.api.code());
        writer.i16(header.version);
        writer.i32(header.correlation_id);
        writer.string(header.client_id); // never compact, by decision of KIP-482
        writer.flexible = header.api.is_flexible(header.version);
        writer.no_tags();
        writer
    }

    /// Bytes of this request so far.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len() - self.start + self.lost
    }

    /// Ends a request: writes the frame's length, which includes `outside` bytes that the caller sends between pieces
    /// of it, and answers the bytes of the whole frame with its length prefix.
    pub(crate) fn finish(mut self, outside: usize) -> Result<usize> {
        let frame = self.len() + outside;
        if self.fault.is_none() && frame > i32::MAX as usize {
            self.fault = Some(WireError::TooLong { what: "request" });
        }
        if let Err(error) = self.check() {
            self.buffer.truncate(self.start);
            return Err(error);
        }
        let prefix = self.buffer.get_mut(self.start..).and_then(|request| request.first_chunk_mut());
        if let Some(prefix) = prefix {
            *prefix = ((frame - 4) as u32).to_be_bytes();
        }
        Ok(frame)
    }

    /// Whether all that was written so far is in the buffer.
    pub(crate) fn check(&self) -> Result<()> {
        match (self.fault, self.lost) {
            (Some(fault), _) => Err(fault),
            (None, 0) => Ok(()),
            (None, _) => {
                Err(WireError::BufferFull { needed: self.len(), capacity: self.buffer.capacity() - self.start })
            }
        }
    }

    /// Remembers the first fault; [`Writer::finish`] answers it.
    #[cold]
    pub(crate) fn fail(&mut self, fault: WireError) {
        self.fault = self.fault.or(Some(fault));
    }

    /// Appends bytes as they are.
    #[inline]
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        if self.lost == 0 && bytes.len() <= self.buffer.capacity() - self.buffer.len() {
            self.buffer.extend_from_slice(bytes);
        } else {
            self.lost += bytes.len();
        }
    }

    /// One signed byte.
    pub(crate) fn i8(&mut self, value: i8) {
        self.raw(&value.to_be_bytes());
    }

    /// One byte: 1 for true.
    pub(crate) fn bool(&mut self, value: bool) {
        self.raw(&[u8::from(value)]);
    }

    /// Two bytes.
    pub(crate) fn i16(&mut self, value: i16) {
        self.raw(&value.to_be_bytes());
    }

    /// Four bytes.
    pub(crate) fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    /// Eight bytes.
    pub(crate) fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned variable-length integer.
    pub(crate) fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.raw(&[value as u8 | 0x80]);
            value >>= 7;
        }
        self.raw(&[value as u8]);
    }

    /// A length of at most `most`: classic by `classic`, flexible as one more.
    fn length(&mut self, length: usize, most: i32, what: &'static str, classic: impl FnOnce(&mut Self, i32)) {
        match i32::try_from(length).ok().filter(|length| *length <= most) {
            None => self.fail(WireError::TooLong { what }),
            Some(length) if self.flexible => self.uvarint(length as u32 + 1),
            Some(length) => classic(self, length),
        }
    }

    /// A string.
    pub(crate) fn string(&mut self, text: &str) {
        self.length(text.len(), i32::from(i16::MAX), "string", |writer, length| writer.i16(length as i16));
        self.raw(text.as_bytes());
    }

    /// A string that may be null.
    pub(crate) fn nullable_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None if self.flexible => self.uvarint(0),
            None => self.i16(-1),
        }
    }

    /// The length of bytes that the caller sends from elsewhere right behind this.
    pub(crate) fn bytes_length(&mut self, length: usize) {
        self.length(length, i32::MAX - 1, "byte string", Self::i32);
    }

    /// Bytes with their length.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes_length(bytes.len());
        self.raw(bytes);
    }

    /// The number of elements that follow.
    pub(crate) fn array_len(&mut self, count: usize) {
        self.length(count, i32::MAX - 1, "array", Self::i32);
    }

    /// A null array.
    pub(crate) fn null_array(&mut self) {
        match self.flexible {
            true => self.uvarint(0),
            false => self.i32(-1),
        }
    }

    /// The end of a structure without tagged fields; nothing in the classic form.
    pub(crate) fn no_tags(&mut self) {
        if self.flexible {
            self.uvarint(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_buffer_is_told_with_the_bytes_needed_and_left_as_it_was() {
        let mut buffer = Vec::with_capacity(16);
        buffer.extend_from_slice(b"before");
        let capacity = buffer.capacity() - 6;
        let mut writer = Writer::new(&mut buffer, false);
        for _ in 0..5 {
            writer.i64(1);
        }
        assert_eq!(writer.finish(0), Err(WireError::BufferFull { needed: 40, capacity }));
        assert_eq!(buffer, b"before");
        assert_eq!(buffer.capacity() - 6, capacity, "the buffer did not grow");
    }

    #[test]
    fn strings_too_long_for_their_length_field_are_refused() {
        let text = "x".repeat(40_000);
        let mut buffer = Vec::with_capacity(64 << 10);
        let mut writer = Writer::new(&mut buffer, true);
        writer.string(&text);
        assert_eq!(writer.finish(0), Err(WireError::TooLong { what: "string" }));
        assert!(buffer.is_empty());
    }

    #[test]
    fn the_frames_length_counts_what_is_sent_from_elsewhere() {
        let mut buffer = Vec::with_capacity(64);
        let mut writer = Writer::new(&mut buffer, false);
        writer.i32(0);
        writer.i16(5);
        assert_eq!(writer.finish(1000), Ok(1006));
        assert_eq!(buffer, [0, 0, 3, 0xea, 0, 5]);
    }
}
