//! Headers of records, to read and to write.
use crate::wire::{Header, RawHeaders};
use std::fmt;

/// The headers of a record, in order; keys may repeat. A borrow that costs nothing to pass on.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let mut made = HeadersBuf::new();
/// made.push("trace", Some(b"7")).push("trace", Some(b"8")).push("flag", None);
/// let headers = made.headers();
/// assert_eq!(headers.last("trace"), Some(Some(&b"8"[..])));
/// assert_eq!(headers.last("flag"), Some(None));
/// assert_eq!(headers.last("none"), None);
/// assert_eq!(headers.iter().count(), 3);
/// assert!(Headers::EMPTY.is_empty());
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Headers<'a>(pub(super) RawHeaders<'a>);

impl Headers<'_> {
    /// No headers.
    pub const EMPTY: Headers<'static> = Headers(RawHeaders::EMPTY);
}

impl<'a> Headers<'a> {
    pub(crate) fn of(headers: RawHeaders<'a>) -> Self {
        Self(headers)
    }

    /// Keys and values. Keys are UTF-8 by convention, which nobody checks.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
        self.0.iter().map(|header| (header.key, header.value))
    }

    /// The value of the last header of this key.
    pub fn last(self, key: &str) -> Option<Option<&'a [u8]>> {
        self.0.iter().filter(|header| header.key == key.as_bytes()).last().map(|header| header.value)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(key, value)| (String::from_utf8_lossy(key), value))).finish()
    }
}

/// Room for the count in front of the headers: a varint of at most five bytes.
const FRONT: usize = 5;

/// Headers under construction. Keep one in the processor and [`clear`](Self::clear) it: then nothing is allocated.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let mut made = HeadersBuf::new();
/// made.extend(Headers::EMPTY).push("region", Some(b"eu"));
/// assert_eq!(made.headers().last("region"), Some(Some(&b"eu"[..])));
/// made.clear();
/// assert!(made.headers().is_empty());
/// ```
#[derive(Clone, Default)]
pub struct HeadersBuf {
    /// Empty, or the room in front and the headers.
    bytes: Vec<u8>,
    /// Where the count begins.
    start: usize,
    count: u32,
}

impl HeadersBuf {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all, keeps the buffer.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Appends a header. What a record cannot hold, 2 GiB, is left out.
    pub fn push(&mut self, key: &str, value: Option<&[u8]>) -> &mut Self {
        self.add(Header { key: key.as_bytes(), value });
        self
    }

    /// Appends all headers of a record.
    pub fn extend(&mut self, headers: Headers<'_>) -> &mut Self {
        headers.0.iter().for_each(|header| self.add(header));
        self
    }

    fn add(&mut self, header: Header<'_>) {
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&[0; FRONT]);
        }
        if RawHeaders::append(header, &mut self.bytes).is_ok() {
            self.count += 1;
            self.start = RawHeaders::count_before(&mut self.bytes, FRONT, self.count);
        }
    }

    /// What was made.
    pub fn headers(&self) -> Headers<'_> {
        let made = if self.count == 0 { None } else { self.bytes.get(self.start..) };
        Headers(made.and_then(RawHeaders::parse).unwrap_or(RawHeaders::EMPTY))
    }
}

impl fmt::Debug for HeadersBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.headers().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_a_record_at_any_count() {
        let mut made = HeadersBuf::new();
        for count in 1..=200 {
            made.push("k", Some(b"v"));
            assert_eq!(made.headers().iter().count(), count);
        }
        let mut expected = Vec::new();
        let all = vec![Header { key: b"k", value: Some(b"v") }; 200];
        RawHeaders::write(&all, &mut expected).unwrap();
        assert_eq!(made.headers().0.as_bytes(), expected);
    }
}
