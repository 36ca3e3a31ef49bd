//! What can be wrong with bytes from a peer, or with a buffer offered for them.
use super::ErrorCode;

/// An input that cannot be decoded, or an output that has no room. Small, `Copy` and free of owned text, so that
/// making one allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end inside a structure.
    #[error("the bytes end inside a structure: {needed} more needed at byte {at}")]
    Truncated {
        /// Position in the frame or section at which more was expected.
        at: usize,
        /// Bytes missing there.
        needed: usize,
    },
    /// A length, count or field value that the format does not allow.
    #[error("malformed {what} at byte {at}")]
    Malformed {
        /// The field.
        what: &'static str,
        /// Position in the frame or section.
        at: usize,
    },
    /// A batch in the message format of Kafka before 0.11.
    #[error(
        "the batch at offset {offset} has message format {magic}, which is not supported: rewrite the topic with a \
         producer and broker of kafka 0.11 or later (message format 2)"
    )]
    OldMagic {
        /// The format's number: 0 or 1.
        magic: i8,
        /// Base offset of the batch.
        offset: i64,
    },
    /// The checksum of a batch does not match its bytes.
    #[error("the batch at offset {offset} is corrupt: crc-32c {got:#010x}, its header says {want:#010x}")]
    BadCrc {
        /// Base offset of the batch.
        offset: i64,
        /// The checksum in the header.
        want: u32,
        /// The checksum of the bytes.
        got: u32,
    },
    /// A codec number that Kafka has not assigned.
    #[error("compression codec {codec} is not known: use none, gzip, snappy, lz4 or zstd")]
    UnknownCodec {
        /// Low three bits of the batch's attributes.
        codec: u8,
    },
    /// A section that does not fit its buffer when decompressed.
    #[error(
        "a batch decompresses to more than {limit} bytes: raise the row of the frames, or lower the producers' \
         batch size"
    )]
    OutputTooLarge {
        /// Bytes of the buffer.
        limit: usize,
    },
    /// A section that its codec refuses.
    #[error("corrupt {codec} data: {what}")]
    BadCompression {
        /// Name of the codec.
        codec: &'static str,
        /// What was wrong.
        what: &'static str,
    },
    /// A context of a codec could not be made.
    #[error("no memory for the context of {codec}")]
    NoContext {
        /// Name of the codec.
        codec: &'static str,
    },
    /// A request larger than the buffer it is written into.
    #[error("the request takes {needed} bytes but its buffer has {capacity}")]
    BufferFull {
        /// Bytes of the whole request.
        needed: usize,
        /// Bytes of the buffer.
        capacity: usize,
    },
    /// A value that does not fit its field.
    #[error("{what} is too long for the protocol")]
    TooLong {
        /// The field.
        what: &'static str,
    },
    /// A broker that offers no version of an API that we speak.
    #[error(
        "the broker offers {api} in versions {lowest} to {highest}, which this library does not speak: use kafka 2.4 \
         or later"
    )]
    Unsupported {
        /// Name of the API.
        api: &'static str,
        /// Lowest version offered; above `highest` when the broker does not offer the API at all.
        lowest: i16,
        /// Highest version offered.
        highest: i16,
    },
    /// A broker of a release before 2.4.
    #[error(
        "the broker is older than kafka 2.4 (it offers Metadata up to version {metadata} only): upgrade it to kafka \
         2.4 or later"
    )]
    TooOld {
        /// Highest version of Metadata offered.
        metadata: i16,
    },
    /// An error code in a response where a result was expected.
    #[error("the broker answered {api} with {code}")]
    Broker {
        /// Name of the API.
        api: &'static str,
        /// The code.
        code: ErrorCode,
    },
}

/// The result of everything in this room.
pub(crate) type Result<T> = std::result::Result<T, WireError>;
