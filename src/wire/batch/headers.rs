//! Record headers, kept as the bytes they have in the batch.
use crate::wire::error::{Result, WireError};
use crate::wire::varint::{read_signed, signed_len, write_signed};

/// The headers of a record, undecoded: their count and what follows, exactly as in a record, so that passing them on
/// is one copy. The bytes are known to be well-formed: a record with malformed headers is refused when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawHeaders<'a>(&'a [u8]);

/// One header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header<'a> {
    /// Its key: UTF-8 by convention, which brokers do not check.
    pub(crate) key: &'a [u8],
    /// Its value.
    pub(crate) value: Option<&'a [u8]>,
}

impl<'a> RawHeaders<'a> {
    /// No headers.
    pub(crate) const EMPTY: RawHeaders<'static> = RawHeaders(&[0]);

    /// Checks the bytes behind a record's value, all of which must be headers.
    #[inline]
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<RawHeaders<'a>> {
        match bytes {
            [0] => Some(RawHeaders(bytes)),
            _ => RawHeaders::parse_some(bytes),
        }
    }

    /// Of bytes that were checked before.
    #[inline]
    pub(super) fn known(bytes: &'a [u8]) -> RawHeaders<'a> {
        RawHeaders(bytes)
    }

    fn parse_some(bytes: &'a [u8]) -> Option<RawHeaders<'a>> {
        let mut at = 0;
        for _ in 0..u32::try_from(read_signed(bytes, &mut at)?).ok()? {
            read_header(bytes, &mut at)?;
        }
        (at == bytes.len()).then_some(RawHeaders(bytes))
    }

    /// Writes `headers` behind what `into` holds and answers their form in a record. Grows `into` when it has no room.
    pub(crate) fn write<'b>(headers: &[Header<'_>], into: &'b mut Vec<u8>) -> Result<RawHeaders<'b>> {
        let start = into.len();
        if headers.len() > i32::MAX as usize {
            return Err(WireError::TooLong { what: "list of record headers" });
        }
        put_length(into, headers.len() as i64);
        for header in headers {
            if let Err(error) = Self::append(*header, into) {
                into.truncate(start);
                return Err(error);
            }
        }
        Ok(RawHeaders(into.get(start..).unwrap_or(&[0])))
    }

    /// Writes one header behind what `into` holds, without a count.
    pub(crate) fn append(header: Header<'_>, into: &mut Vec<u8>) -> Result<()> {
        for part in [Some(header.key), header.value] {
            match part {
                Some(bytes) if bytes.len() > i32::MAX as usize => {
                    return Err(WireError::TooLong { what: "record header" });
                }
                Some(bytes) => {
                    put_length(into, bytes.len() as i64);
                    into.extend_from_slice(bytes);
                }
                None => put_length(into, -1),
            }
        }
        Ok(())
    }

    /// Writes a count so that it ends where the headers begin, `front` bytes into the buffer; answers where it begins.
    pub(crate) fn count_before(into: &mut [u8], front: usize, count: u32) -> usize {
        let start = front.saturating_sub(signed_len(i64::from(count)));
        if let Some(room) = into.get_mut(start..front) {
            write_signed(room, i64::from(count));
        }
        start
    }

    /// The bytes, with the count in front.
    pub(crate) fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether there are none.
    #[allow(dead_code)] // for tests and the plan
    pub(crate) fn is_empty(self) -> bool {
        self.0 == [0]
    }

    /// The headers in their order; keys may repeat.
    pub(crate) fn iter(self) -> Headers<'a> {
        let mut at = 0;
        let left = read_signed(self.0, &mut at).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        Headers { bytes: self.0, at, left }
    }
}

impl<'a> IntoIterator for RawHeaders<'a> {
    type Item = Header<'a>;
    type IntoIter = Headers<'a>;

    fn into_iter(self) -> Headers<'a> {
        self.iter()
    }
}

/// Iterates the headers of one record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u32,
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        self.left = self.left.checked_sub(1)?;
        read_header(self.bytes, &mut self.at)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

fn read_header<'a>(bytes: &'a [u8], at: &mut usize) -> Option<Header<'a>> {
    let key = read_bytes(bytes, at)??;
    Some(Header { key, value: read_bytes(bytes, at)? })
}

/// Bytes with a signed length in front; a negative one means null. The outer `None`: they are not all there.
#[inline(always)]
pub(super) fn read_bytes<'a>(bytes: &'a [u8], at: &mut usize) -> Option<Option<&'a [u8]>> {
    let length = read_signed(bytes, at)?;
    if length < 0 {
        return Some(None);
    }
    let end = at.checked_add(usize::try_from(length).ok()?)?;
    let taken = bytes.get(*at..end)?;
    *at = end;
    Some(Some(taken))
}

fn put_length(into: &mut Vec<u8>, length: i64) {
    let mut bytes = [0; 10];
    write_signed(&mut bytes, length);
    into.extend_from_slice(bytes.get(..signed_len(length)).unwrap_or(&[]));
}
