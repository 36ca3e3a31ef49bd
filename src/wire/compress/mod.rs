//! Compression of the records section of batches, with fixed memory.
//!
//! Everything a codec needs is made once, with its [`Compressor`] or [`Decompressor`]. Decompression goes into a
//! buffer of the caller, and its length is a hard limit: more is a typed error, never a larger buffer.
mod gzip;
mod lz4;
mod snappy;
#[cfg(test)]
mod tests;
mod xxh32;
#[cfg(target_os = "linux")]
mod zstd;
#[cfg(not(target_os = "linux"))]
#[path = "zstd_absent.rs"]
mod zstd;

use super::error::{Result, WireError};

/// The codec of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// Deflate in gzip's framing.
    Gzip,
    /// Snappy, raw or in the framing of snappy-java.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard frames.
    Zstd,
}

impl Compression {
    /// The codec with Kafka's number `code`.
    pub(crate) fn from_code(code: u8) -> Result<Compression> {
        match code {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Gzip),
            2 => Ok(Compression::Snappy),
            3 => Ok(Compression::Lz4),
            4 => Ok(Compression::Zstd),
            codec => Err(WireError::UnknownCodec { codec }),
        }
    }

    /// Kafka's number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Compression::None => 0,
            Compression::Gzip => 1,
            Compression::Snappy => 2,
            Compression::Lz4 => 3,
            Compression::Zstd => 4,
        }
    }

    /// Kafka's name, as in `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// Compresses the sections of a producer's batches. Writes none and lz4; gzip, snappy and zstd have their place in
/// [`Compressor::new`].
pub(crate) struct Compressor {
    state: State,
}

enum State {
    None,
    Lz4(lz4::Encoder),
}

impl Compressor {
    /// A compressor for sections of at most `max_section` bytes. Allocates all it will ever need:
    /// [`Compressor::bytes`].
    pub(crate) fn new(codec: Compression, max_section: usize) -> Result<Compressor> {
        let state = match codec {
            Compression::None => State::None,
            Compression::Lz4 => State::Lz4(lz4::Encoder::new(max_section)),
            other => return Err(WireError::UnknownCodec { codec: other.code() }),
        };
        Ok(Compressor { state })
    }

    /// Bytes that a compressor for `codec` and sections of `max_section` bytes holds, for the plan.
    pub(crate) fn bytes(codec: Compression, max_section: usize) -> usize {
        match codec {
            Compression::Lz4 => lz4::Encoder::bytes(max_section),
            _ => 0,
        }
    }

    /// The codec it writes.
    pub(crate) fn codec(&self) -> Compression {
        match self.state {
            State::None => Compression::None,
            State::Lz4(_) => Compression::Lz4,
        }
    }

    /// The compressed form of `section`, valid until the next call; `None` when that is not smaller than the section,
    /// or the section is larger than the compressor was made for.
    pub(crate) fn compress(&mut self, section: &[u8]) -> Option<&[u8]> {
        match &mut self.state {
            State::None => None,
            State::Lz4(encoder) => encoder.encode(section),
        }
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Compressor").field(&self.codec()).finish()
    }
}

/// Decompresses sections. Made once; holds the state of inflate and zstd's context ([`Decompressor::bytes`]) and
/// nothing that grows with the data.
pub(crate) struct Decompressor {
    gzip: gzip::Decoder,
    zstd: zstd::Decoder,
}

impl Decompressor {
    /// Allocates all it will ever need.
    pub(crate) fn new() -> Result<Decompressor> {
        Ok(Decompressor { gzip: gzip::Decoder::new(), zstd: zstd::Decoder::new()? })
    }

    /// Upper bound of the bytes that a decompressor holds, for the plan.
    pub(crate) const fn bytes() -> usize {
        gzip::Decoder::BYTES + zstd::Decoder::BYTES
    }

    /// Decompresses `src` into `dst` and answers the bytes written there. `dst.len()` is a hard limit: a section that
    /// needs more is [`WireError::OutputTooLarge`], found before or while decompressing, and `dst` then holds
    /// anything.
    pub(crate) fn decompress(&mut self, codec: Compression, src: &[u8], dst: &mut [u8]) -> Result<usize> {
        match codec {
            Compression::None => {
                let limit = dst.len();
                dst.get_mut(..src.len()).ok_or(WireError::OutputTooLarge { limit })?.copy_from_slice(src);
                Ok(src.len())
            }
            Compression::Gzip => self.gzip.decode(src, dst),
            Compression::Snappy => snappy::decode(src, dst),
            Compression::Lz4 => lz4::decode(src, dst),
            Compression::Zstd => self.zstd.decode(src, dst),
        }
    }
}

/// Decompresses what a [`Compressor`] wrote, without a context. The codecs that are only read are refused.
pub(crate) fn decompress_own(codec: Compression, src: &[u8], dst: &mut [u8]) -> Result<usize> {
    match codec {
        Compression::Lz4 => lz4::decode(src, dst),
        other => Err(WireError::UnknownCodec { codec: other.code() }),
    }
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").finish_non_exhaustive()
    }
}
