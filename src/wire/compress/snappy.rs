//! Snappy: a raw block, or the framing of snappy-java (a header of 16 bytes, then blocks with their length in front),
//! which is what Kafka's Java client writes.
use crate::wire::Reader;
use crate::wire::error::{Result, WireError};

/// Begins snappy-java's framing; version and lowest compatible version follow, four bytes each.
const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];

/// Decodes either form.
pub(super) fn decode(src: &[u8], dst: &mut [u8]) -> Result<usize> {
    if !src.starts_with(&MAGIC) {
        return block(src, dst, 0);
    }
    let mut reader = Reader::new(src, false);
    reader.take(MAGIC.len() + 8)?;
    let mut written = 0;
    while reader.left() > 0 {
        let length = usize::try_from(reader.i32()?).map_err(|_| bad("negative length of a block"))?;
        written += block(reader.take(length)?, dst, written)?;
    }
    Ok(written)
}

/// Decodes one block to `dst[at..]`. The size in its header is compared with the room before anything is decoded.
fn block(src: &[u8], dst: &mut [u8], at: usize) -> Result<usize> {
    let limit = dst.len();
    let into = dst.get_mut(at..).unwrap_or(&mut []);
    match snap::raw::Decoder::new().decompress(src, into) {
        Ok(written) => Ok(written),
        Err(snap::Error::BufferTooSmall { .. } | snap::Error::TooBig { .. }) => {
            Err(WireError::OutputTooLarge { limit })
        }
        Err(_) => Err(bad("invalid block")),
    }
}

fn bad(what: &'static str) -> WireError {
    WireError::BadCompression { codec: "snappy", what }
}
