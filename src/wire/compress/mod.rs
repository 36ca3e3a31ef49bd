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

/// Compresses the sections of a producer's batches.
pub(crate) struct Compressor {
    state: State,
}

enum State {
    None,
    Gzip(gzip::Encoder),
    Snappy(Box<snappy::Encoder>),
    Lz4(lz4::Encoder),
    Zstd(zstd::Encoder),
}

/// Kafka's default levels (`compression.gzip.level` -1 is zlib's 6).
const GZIP_LEVEL: i32 = 6;
const ZSTD_LEVEL: i32 = 3;

impl Compression {
    /// Levels that its writer takes; none for codecs without levels. lz4 is written by its fast algorithm, which
    /// Kafka's
    /// client names level 9.
    pub(crate) fn levels(self) -> Option<std::ops::RangeInclusive<i32>> {
        match self {
            Compression::None | Compression::Snappy => None,
            Compression::Gzip => Some(1..=9),
            Compression::Lz4 => Some(9..=9),
            Compression::Zstd => Some(-131_072..=22),
        }
    }
}

impl Compressor {
    /// A compressor of Kafka's default level for sections of at most `max_section` bytes. Allocates all it will ever
    /// need: [`Compressor::bytes`].
    #[allow(dead_code)] // for tests and the plan
    pub(crate) fn new(codec: Compression, max_section: usize) -> Result<Compressor> {
        Self::with_level(codec, None, max_section)
    }

    /// The same with a level, one of [`Compression::levels`]; `None`: Kafka's default.
    pub(crate) fn with_level(codec: Compression, level: Option<i32>, max_section: usize) -> Result<Compressor> {
        let state = match codec {
            Compression::None => State::None,
            Compression::Gzip => {
                let level = level.unwrap_or(GZIP_LEVEL).clamp(1, 9).unsigned_abs();
                State::Gzip(gzip::Encoder::new(level, max_section))
            }
            Compression::Snappy => State::Snappy(Box::new(snappy::Encoder::new(max_section))),
            Compression::Lz4 => State::Lz4(lz4::Encoder::new(max_section)),
            Compression::Zstd => State::Zstd(zstd::Encoder::new(level.unwrap_or(ZSTD_LEVEL), max_section)?),
        };
        Ok(Compressor { state })
    }

    /// Bytes that a compressor for sections of `max_section` bytes holds, for the plan: the output and
    /// [`Compressor::context_bytes`].
    #[allow(dead_code)] // for tests and the plan
    pub(crate) fn bytes(codec: Compression, level: Option<i32>, max_section: usize) -> usize {
        let out = match codec {
            Compression::None => 0,
            Compression::Gzip | Compression::Zstd => max_section,
            Compression::Snappy => snappy::Encoder::out_bytes(max_section),
            Compression::Lz4 => return lz4::Encoder::bytes(max_section),
        };
        out + Self::context_bytes(codec, level, max_section)
    }

    /// Bytes of it beside the output of a section's length: what a codec needs to work. Zstd's grow with its level and
    /// the section, and are measured by making a context for the moment.
    pub(crate) fn context_bytes(codec: Compression, level: Option<i32>, max_section: usize) -> usize {
        match codec {
            Compression::None => 0,
            Compression::Gzip => gzip::Encoder::BYTES,
            Compression::Snappy => snappy::Encoder::BYTES + snappy::Encoder::out_bytes(0),
            Compression::Lz4 => lz4::Encoder::bytes(0),
            Compression::Zstd => zstd::Encoder::context_bytes(level.unwrap_or(ZSTD_LEVEL), max_section),
        }
    }

    /// The codec it writes.
    pub(crate) fn codec(&self) -> Compression {
        match self.state {
            State::None => Compression::None,
            State::Gzip(_) => Compression::Gzip,
            State::Snappy(_) => Compression::Snappy,
            State::Lz4(_) => Compression::Lz4,
            State::Zstd(_) => Compression::Zstd,
        }
    }

    /// The compressed form of `section`, valid until the next call; `None` when that is not smaller than the section,
    /// or the section is larger than the compressor was made for.
    pub(crate) fn compress(&mut self, section: &[u8]) -> Option<&[u8]> {
        match &mut self.state {
            State::None => None,
            State::Gzip(encoder) => encoder.encode(section),
            State::Snappy(encoder) => encoder.encode(section),
            State::Lz4(encoder) => encoder.encode(section),
            State::Zstd(encoder) => encoder.encode(section),
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
    #[allow(dead_code)] // for tests and the plan
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

/// Decompresses what a [`Compressor`] wrote. Gzip and zstd make a context for the moment: this is for the rare batch
/// that
/// is taken apart again.
pub(crate) fn decompress_own(codec: Compression, src: &[u8], dst: &mut [u8]) -> Result<usize> {
    match codec {
        Compression::Lz4 => lz4::decode(src, dst),
        Compression::Snappy => snappy::decode(src, dst),
        other => Decompressor::new()?.decompress(other, src, dst),
    }
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").finish_non_exhaustive()
    }
}
