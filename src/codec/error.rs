//! Why bytes were refused.

/// Why a codec refused bytes. `Copy` and without allocation, since a topic may hold many bad records.
///
/// ```
/// use plimsoll::prelude::*;
///
/// assert_eq!(I32.decode(b"abc"), Err(DecodeError::Length { expected: 4, found: 3 }));
/// assert_eq!(I32.decode(b"abc").unwrap_err().to_string(), "3 bytes where 4 are needed");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A null where the schema has none.
    #[error("null, which this schema does not have; wrap it in Opt, or do not read it")]
    Null,
    /// Not UTF-8.
    #[error("not utf-8 from byte {valid_up_to} on")]
    Utf8 {
        /// Number of bytes that are valid.
        valid_up_to: usize,
    },
    /// A fixed-size value of another size.
    #[error("{found} bytes where {expected} are needed")]
    Length {
        /// Bytes that the type has.
        expected: usize,
        /// Bytes that were there.
        found: usize,
    },
    /// What a codec of the user's own says.
    #[error("{0}")]
    Invalid(&'static str),
}
