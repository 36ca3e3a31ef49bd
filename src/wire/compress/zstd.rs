//! Zstandard by the reference implementation, in one call straight into the destination. A frame's window then is the
//! destination itself: no window buffer is allocated, whatever size the frame asks for, so the memory of a frame is
//! bounded by the limit alone.
use zstd_safe::{DCtx, get_error_name};

use crate::wire::error::{Result, WireError};

/// `ZSTD_error_frameParameter_windowTooLarge` and `ZSTD_error_dstSize_tooSmall`: stable by the library's promise.
/// Error results are these, negated.
const WINDOW_TOO_LARGE: usize = 16;
const TOO_SMALL: usize = 70;

/// The context, reused.
pub(super) struct Decoder {
    context: DCtx<'static>,
}

impl Decoder {
    /// Bytes it holds at most: tables and a literal buffer.
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
