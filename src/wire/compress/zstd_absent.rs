//! Zstandard where the data path does not run: nothing is decoded, and no C is compiled.
use crate::wire::error::{Result, WireError};

/// No context.
pub(super) struct Encoder;

impl Encoder {
    /// There is nobody to encode.
    pub(super) fn new(_level: i32, _max_section: usize) -> Result<Encoder> {
        Err(WireError::NoContext { codec: "zstd" })
    }

    /// Bytes of the context.
    pub(super) fn context_bytes(_level: i32, _max_section: usize) -> usize {
        0
    }

    /// Nothing is smaller.
    pub(super) fn encode(&mut self, _section: &[u8]) -> Option<&[u8]> {
        None
    }
}

/// No context.
pub(super) struct Decoder;

impl Decoder {
    /// Bytes it holds at most.
    pub(super) const BYTES: usize = 0;

    pub(super) fn new() -> Result<Decoder> {
        Ok(Decoder)
    }

    /// There is nobody to decode it.
    pub(super) fn decode(&mut self, _src: &[u8], _dst: &mut [u8]) -> Result<usize> {
        Err(WireError::NoContext { codec: "zstd" })
    }
}
