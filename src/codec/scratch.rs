//! The buffer that encoders write into: reused, and bounded.
use std::fmt;
use std::io;

/// More bytes were encoded than the buffer may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{needed} bytes encoded, but a record may have {limit}")]
pub(crate) struct ScratchFull {
    /// Bytes that were encoded.
    pub(crate) needed: usize,
    /// Bytes that the buffer may hold.
    pub(crate) limit: usize,
}

/// Where [`Codec::encode`](super::Codec::encode) writes. It grows to its limit and never beyond: what is appended then
/// is counted but not kept, and the record is refused as too large by whoever encoded it.
///
/// ```
/// use plimsoll::prelude::*;
/// use std::fmt::Write as _;
///
/// let mut out = Scratch::with_limit(8);
/// out.push(b'#');
/// write!(out, "{}", 42).unwrap();
/// assert_eq!(out.bytes(), b"#42");
/// out.extend(b"far too long");
/// assert!(out.is_over());
/// ```
#[derive(Debug)]
pub struct Scratch {
    bytes: Vec<u8>,
    limit: usize,
    /// Bytes asked for, kept or not, since the last clear.
    asked: usize,
}

impl Scratch {
    /// An empty buffer that will hold at most so many bytes. Nothing is allocated yet.
    pub fn with_limit(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, asked: 0 }
    }

    /// Appends one byte.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.extend(&[byte]);
    }

    /// Appends bytes.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        self.asked = self.asked.saturating_add(bytes.len());
        if self.asked <= self.limit {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Counts bytes that are not kept because they lie elsewhere.
    #[inline]
    pub(crate) fn count(&mut self, bytes: usize) {
        self.asked = self.asked.saturating_add(bytes);
    }

    /// Puts bytes in front of what was written from `at` on.
    pub(crate) fn insert(&mut self, at: usize, bytes: &[u8]) {
        self.extend(bytes);
        if !self.is_over()
            && let Some(behind) = self.bytes.get_mut(at..)
        {
            behind.rotate_right(bytes.len());
        }
    }

    /// What was kept.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of bytes kept.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether more was written than the limit.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.asked > self.limit
    }

    /// How many bytes more it would keep.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.bytes.len())
    }

    /// Forgets what was written, keeps the buffer.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.asked = 0;
    }

    /// Makes the record be refused: its value has no bytes.
    pub fn refuse(&mut self) {
        self.asked = usize::MAX;
    }

    /// That everything written was kept.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), ScratchFull> {
        if self.is_over() { Err(ScratchFull { needed: self.asked, limit: self.limit }) } else { Ok(()) }
    }
}

impl io::Write for Scratch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Write for Scratch {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.extend(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_never_grows_beyond_its_limit_and_says_what_was_needed() {
        let mut out = Scratch::with_limit(4);
        out.extend(b"abc");
        assert_eq!(out.check(), Ok(()));
        out.extend(b"de");
        out.push(b'f');
        assert_eq!(out.bytes(), b"abc");
        assert_eq!(out.check(), Err(ScratchFull { needed: 6, limit: 4 }));
        out.clear();
        out.extend(b"abcd");
        assert_eq!((out.check(), out.bytes()), (Ok(()), &b"abcd"[..]));
    }
}
