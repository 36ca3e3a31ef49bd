//! Small stand-ins for types of lower rooms that are still on their way; each goes when its room lands.

/// Headers of a record as they lie in the bytes: a varint count, then the headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawHeaders<'a>(&'a [u8]);

impl<'a> RawHeaders<'a> {
    /// No headers.
    pub(crate) const EMPTY: RawHeaders<'static> = RawHeaders(&[0]);

    /// Headers from their bytes, count included.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        (!bytes.is_empty()).then_some(Self(bytes))
    }

    /// The bytes, count included.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.0
    }
}
