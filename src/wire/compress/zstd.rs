//! Zstandard by the reference implementation, in one call straight into the destination. A frame's window then is the
//! destination itself: no window buffer is allocated, whatever size the frame asks for, so the memory of a frame is
//! bounded by the limit alone.
use zstd_safe::{CCtx, CParameter, DCtx, get_error_name};

use crate::wire::error::{Result, WireError};

/// `ZSTD_error_frameParameter_windowTooLarge` and `ZSTD_error_dstSize_tooSmall`: stable by the library's promise.
/// Error results are these, negated.
const WINDOW_TOO_LARGE: usize = 16;
const TOO_SMALL: usize = 70;

/// Writes sections as one frame each, in one call into a buffer of its own.
///
/// The context is sized by the level and the largest section, and made whole at the start. The library makes it anew,
/// smaller, when 128 sections in a row need less than a third of it, and again when a large one comes: the one
/// allocation that writing can cost, never beyond [`Encoder::context_bytes`].
pub(super) struct Encoder {
    context: CCtx<'static>,
    out: Box<[u8]>,
}

impl Encoder {
    /// An encoder of sections of at most `max_section` bytes.
    pub(super) fn new(level: i32, max_section: usize) -> Result<Encoder> {
        let no_context = WireError::NoContext { codec: "zstd" };
        let mut context = CCtx::try_create().ok_or(no_context)?;
        context.set_parameter(CParameter::CompressionLevel(level)).map_err(|_| no_context)?;
        let mut out = vec![0; max_section].into_boxed_slice();
        let sample = vec![0; max_section];
        context.compress2(&mut out[..], &sample).map_err(|_| no_context)?;
        Ok(Encoder { context, out })
    }

    /// Bytes of the context, measured by making one for the moment.
    pub(super) fn context_bytes(level: i32, max_section: usize) -> usize {
        Self::new(level, max_section).map_or(0, |encoder| encoder.context.sizeof())
    }

    /// The zstd form of `section`, if it is smaller.
    pub(super) fn encode(&mut self, section: &[u8]) -> Option<&[u8]> {
        if section.len() > self.out.len() {
            return None;
        }
        let room = self.out.get_mut(..section.len().checked_sub(1)?)?;
        let len = self.context.compress2(room, section).ok()?;
        self.out.get(..len)
    }

    /// Bytes that the context holds now.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.context.sizeof()
    }
}

/// The context, reused.
pub(super) struct Decoder {
    context: DCtx<'static>,
}

impl Decoder {
    /// Bytes it holds at most: tables and a literal buffer.
    #[allow(dead_code)] // for tests and the plan
    pub(super) const BYTES: usize = 256 << 10;

    pub(super) fn new() -> Result<Decoder> {
        let context = DCtx::try_create().ok_or(WireError::NoContext { codec: "zstd" })?;
        Ok(Decoder { context })
    }

    /// Decodes all frames of `src`, one behind the other.
    pub(super) fn decode(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize> {
        let limit = dst.len();
        if src.is_empty() {
            return Err(bad("no frame")); // for the library that is a valid sequence of frames
        }
        self.context.decompress(dst, src).map_err(|result| match result.wrapping_neg() {
            TOO_SMALL => WireError::OutputTooLarge { limit },
            WINDOW_TOO_LARGE => bad("the window is larger than the format's implementation allows"),
            _ => bad(get_error_name(result)),
        })
    }

    /// Bytes that the context holds now.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.context.sizeof()
    }
}

fn bad(what: &'static str) -> WireError {
    WireError::BadCompression { codec: "zstd", what }
}
