//! Snappy: a raw block, or the framing of snappy-java (a header of 16 bytes, then blocks with their length in front),
//! which is what Kafka's Java client writes.
use crate::wire::Reader;
use crate::wire::error::{Result, WireError};

/// Begins snappy-java's framing; version and lowest compatible version follow, four bytes each.
const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];

/// Bytes in front of the blocks: the magic bytes and two versions, both 1.
const HEADER: usize = MAGIC.len() + 8;
/// Bytes of a block before compression, as snappy-java's.
const BLOCK: usize = 32 << 10;

/// Writes sections in snappy-java's framing, as Kafka's Java client does, into a buffer of its own.
pub(super) struct Encoder {
    encoder: snap::raw::Encoder,
    out: Box<[u8]>,
    max_section: usize,
}

impl Encoder {
    /// Bytes of the hash table, which is made once: 32 KiB, and 2 KiB for small blocks.
    pub(super) const BYTES: usize = 34 << 10;

    /// Bytes of the output: a whole section that did not shrink, or a last block written as if it did not.
    pub(super) fn out_bytes(max_section: usize) -> usize {
        max_section + HEADER + 4 + snap::raw::max_compress_len(BLOCK)
    }

    /// An encoder of sections of at most `max_section` bytes.
    pub(super) fn new(max_section: usize) -> Encoder {
        let mut encoder = snap::raw::Encoder::new();
        let mut out = vec![0; Self::out_bytes(max_section)].into_boxed_slice();
        // The first larger block makes the table: now, not when records flow.
        let _ = encoder.compress(&vec![0; BLOCK], &mut out);
        Encoder { encoder, out, max_section }
    }

    /// The snappy form of `section`, if it is smaller.
    pub(super) fn encode(&mut self, section: &[u8]) -> Option<&[u8]> {
        if section.len() > self.max_section {
            return None;
        }
        self.out.first_chunk_mut::<{ MAGIC.len() }>()?.copy_from_slice(&MAGIC);
        self.out.get_mut(MAGIC.len()..HEADER)?.copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1]);
        let mut at = HEADER;
        for block in section.chunks(BLOCK) {
            let (length, data) = self.out.get_mut(at..)?.split_first_chunk_mut::<4>()?;
            let len = self.encoder.compress(block, data).ok()?;
            *length = (len as u32).to_be_bytes();
            at += 4 + len;
        }
        if at < section.len() { self.out.get(..at) } else { None }
    }
}

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
