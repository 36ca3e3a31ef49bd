//! Kafka's protocol without input or output: bytes in, values out, and the other way round.
//!
//! Owns the encodings of requests, responses, record batches and compressed sections. Nothing here opens a socket,
//! reads a clock, panics on any input or allocates while records flow: what is read borrows the frame it was read
//! from, what is written goes into a buffer of the caller and never beyond its capacity, and the contexts of the
//! codecs are made once. Every length that comes from a peer is checked against the bytes that are there before it is
//! used.
//!
//! Callers: `client` (metadata, fetching) and `produce` (batches under construction); records are lent to all rooms
//! above.
#![allow(unused_imports)] // the room's face: some types are only named where they are written down
pub(crate) mod batch;
mod code;
pub(crate) mod compress;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub(crate) mod message;
mod partition;
mod reader;
mod varint;
#[cfg(test)]
mod vectors;
mod writer;

pub(crate) use batch::{
    BATCH_HEADER_BYTES, BatchBuilder, BatchHeader, Batches, ControlType, Header, Headers, RawHeaders, RecordCursor,
    RecordPlace, RecordView, Records, Rest, Stamp, TooLarge, restamp,
};
pub use code::ErrorCode;
pub use compress::Compression;
pub(crate) use compress::{Compressor, Decompressor};
pub use error::WireError;
pub(crate) use partition::{murmur2, partition_for};
pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

/// Identity of a topic across deletion and re-creation (KIP-516), 16 bytes as the broker sends them; all zero: unknown.
pub(crate) type TopicId = [u8; 16];
