//! Reading Kafka's primitive types, big-endian, with every length checked.
use super::error::{Result, WireError};

/// A position in the bytes of one frame. It knows whether the message is flexible (KIP-482: compact lengths, tagged
/// fields) and reads strings, byte strings and array lengths in the form that goes with it. What it answers borrows
/// the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    flexible: bool,
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident: $type:ty),+ $(,)?) => { $(
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name(&mut self) -> Result<$type> {
            Ok(<$type>::from_be_bytes(self.array()?))
        }
    )+ };
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their start.
    pub(crate) fn new(bytes: &'a [u8], flexible: bool) -> Reader<'a> {
        Reader { bytes, at: 0, flexible }
    }

    /// Position of the next byte, from the start of the frame.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Bytes not read yet.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// From here on, the flexible or the classic form.
    pub(crate) fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    /// The error for a field that ends at the current position.
    #[cold]
    pub(crate) fn malformed(&self, what: &'static str) -> WireError {
        WireError::Malformed { what, at: self.at }
    }

    /// The next `count` bytes.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        match rest.get(..count) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => Err(WireError::Truncated { at: self.at, needed: count - rest.len() }),
        }
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.take(N)?.first_chunk() {
            Some(array) => Ok(*array),
            None => Err(self.malformed("field")),
        }
    }

    fixed! {
        /// One signed byte.
        i8: i8,
        /// Two bytes.
        i16: i16,
        /// Four bytes.
        i32: i32,
        /// Four bytes without sign.
        u32: u32,
        /// Eight bytes.
        i64: i64,
    }

    /// One byte; anything but 0 is true.
    pub(crate) fn bool(&mut self) -> Result<bool> {
        Ok(self.i8()? != 0)
    }

    /// An unsigned variable-length integer of at most five bytes.
    #[inline]
    pub(crate) fn uvarint(&mut self) -> Result<u32> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return match shift == 28 && byte > 0x0f {
                    true => Err(self.malformed("variable-length integer")),
                    false => Ok(value),
                };
            }
        }
        Err(self.malformed("variable-length integer"))
    }

    /// A length of the flexible form (one more than the length, 0 for null) or of the classic form (`classic`,
    /// negative for null).
    #[inline]
    fn length(&mut self, classic: impl FnOnce(&mut Self) -> Result<i32>) -> Result<Option<usize>> {
        match self.flexible {
            true => Ok(self.uvarint()?.checked_sub(1).map(|length| length as usize)),
            false => Ok(usize::try_from(classic(self)?).ok()),
        }
    }

    /// A string that may be null.
    pub(crate) fn nullable_string(&mut self) -> Result<Option<&'a str>> {
        let Some(length) = self.length(|r| r.i16().map(i32::from))? else { return Ok(None) };
        let at = self.at;
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map(Some).map_err(|_| WireError::Malformed { what: "utf-8 text", at })
    }

    /// A string; null is an error.
    pub(crate) fn string(&mut self) -> Result<&'a str> {
        self.nullable_string()?.ok_or_else(|| self.malformed("null string"))
    }

    /// Bytes that may be null (also the records of a partition).
    #[inline]
    pub(crate) fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>> {
        match self.length(Self::i32)? {
            Some(length) => self.take(length).map(Some),
            None => Ok(None),
        }
    }

    /// The number of elements that follow; null counts as none. A number larger than the bytes left is refused, so
    /// that a loop over it is bounded by the frame.
    #[inline]
    pub(crate) fn array_len(&mut self) -> Result<usize> {
        let count = self.length(Self::i32)?.unwrap_or(0);
        match count <= self.left() {
            true => Ok(count),
            false => Err(self.malformed("array length")),
        }
    }

    /// Hands every tagged field that follows to `visit`, as its number and a reader of its bytes alone. The classic
    /// form has none.
    #[inline]
    pub(crate) fn tags(&mut self, mut visit: impl FnMut(u32, Reader<'a>) -> Result<()>) -> Result<()> {
        if !self.flexible {
            return Ok(());
        }
        let count = self.uvarint()?;
        for _ in 0..count {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            visit(tag, Reader::new(self.take(size)?, true))?;
        }
        Ok(())
    }

    /// Skips the tagged fields that follow.
    #[inline]
    pub(crate) fn skip_tags(&mut self) -> Result<()> {
        self.tags(|_, _| Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classic_and_flexible_forms_are_told_apart() {
        let mut classic = Reader::new(&[0, 2, b'h', b'i', 0xff, 0xff, 0, 0, 0, 1, 7, 0xff, 0xff, 0xff, 0xff], false);
        assert_eq!(classic.string(), Ok("hi"));
        assert_eq!(classic.nullable_string(), Ok(None));
        assert_eq!(classic.nullable_bytes(), Ok(Some(&[7][..])));
        assert_eq!(classic.array_len(), Ok(0), "a null array has no elements");
        assert_eq!((classic.at(), classic.left()), (15, 0));

        let mut flexible = Reader::new(&[3, b'h', b'i', 0, 2, 7, 2, 5, 1, 9, 6, 0, 0], true);
        assert_eq!(flexible.string(), Ok("hi"));
        assert_eq!(flexible.nullable_string(), Ok(None));
        assert_eq!(flexible.nullable_bytes(), Ok(Some(&[7][..])));
        let mut seen = [(0, 0); 2];
        let mut count = 0;
        flexible
            .tags(|tag, field| {
                seen[count] = (tag, field.left());
                count += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!((count, seen), (2, [(5, 1), (6, 0)]));
        assert_eq!(flexible.left(), 1);
    }

    #[test]
    fn lengths_beyond_the_bytes_are_errors() {
        assert_eq!(Reader::new(&[0, 9, b'h'], false).string(), Err(WireError::Truncated { at: 2, needed: 8 }));
        assert_eq!(
            Reader::new(&[0xff, 0xff], false).string(),
            Err(WireError::Malformed { what: "null string", at: 2 })
        );
        assert_eq!(Reader::new(&[0, 1, 0xff], false).string(), Err(WireError::Malformed { what: "utf-8 text", at: 2 }));
        let huge = [0x7f, 0xff, 0xff, 0xff, 0];
        assert_eq!(Reader::new(&huge, false).array_len(), Err(WireError::Malformed { what: "array length", at: 4 }));
        assert_eq!(
            Reader::new(&[0xff; 6], true).uvarint(),
            Err(WireError::Malformed { what: "variable-length integer", at: 5 })
        );
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f], true).uvarint(), Ok(u32::MAX));
        assert_eq!(Reader::new(&[1, 2, 3], false).i32(), Err(WireError::Truncated { at: 0, needed: 1 }));
    }
}
