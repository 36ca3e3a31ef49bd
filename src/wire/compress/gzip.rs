//! Gzip (RFC 1952): the members' framing here, deflate by `flate2`, whose own gzip readers allocate.
use flate2::{Crc, Decompress, FlushDecompress, Status};

use crate::wire::Reader;
use crate::wire::error::{Result, WireError};

const MAGIC: [u8; 3] = [0x1f, 0x8b, 8]; // 8: deflate, the only method
const HEADER_CRC: u8 = 2;
const EXTRA: u8 = 4;
const NAME: u8 = 8;
const COMMENT: u8 = 16;
const RESERVED: u8 = 0xe0;

fn bad(what: &'static str) -> WireError {
    WireError::BadCompression { codec: "gzip", what }
}

/// The state of inflate, reused.
pub(super) struct Decoder {
    inflate: Decompress,
}

impl Decoder {
    /// Bytes it holds at most: a window of 32 KiB and Huffman tables.
    pub(super) const BYTES: usize = 48 << 10;

    pub(super) fn new() -> Decoder {
        Decoder { inflate: Decompress::new(false) }
    }

    /// Decodes all members of `src`, one behind the other.
    pub(super) fn decode(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize> {
        let mut reader = Reader::new(src, false);
        let mut written = 0;
        loop {
            skip_header(&mut reader)?;
            let body = reader.clone().take(reader.left())?;
            let into = dst.get_mut(written..).unwrap_or(&mut []);
            let room = into.len();
            self.inflate.reset(false);
            let status = self.inflate.decompress(body, into, FlushDecompress::Finish);
            let (read, wrote) = (self.inflate.total_in() as usize, self.inflate.total_out() as usize);
            match status {
                Ok(Status::StreamEnd) => {}
                Ok(_) if wrote >= room => return Err(WireError::OutputTooLarge { limit: dst.len() }),
                Ok(_) => return Err(bad("the deflate stream ends early")),
                Err(_) => return Err(bad("invalid deflate stream")),
            }
            reader.take(read)?;
            check_trailer(&mut reader, into.get(..wrote).unwrap_or(&[]))?;
            written += wrote;
            if reader.left() == 0 {
                return Ok(written);
            }
        }
    }
}

fn skip_header(reader: &mut Reader<'_>) -> Result<()> {
    if reader.array()? != MAGIC {
        return Err(bad("no gzip header"));
    }
    let [flags, _time @ .., _extra_flags, _system] = reader.array::<7>()?;
    if flags & RESERVED != 0 {
        return Err(bad("reserved flags are set"));
    }
    if flags & EXTRA != 0 {
        let length = u16::from_le_bytes(reader.array()?);
        reader.take(usize::from(length))?;
    }
    for field in [NAME, COMMENT] {
        if flags & field != 0 {
            while reader.array()? != [0] {}
        }
    }
    if flags & HEADER_CRC != 0 {
        reader.take(2)?;
    }
    Ok(())
}

fn check_trailer(reader: &mut Reader<'_>, output: &[u8]) -> Result<()> {
    let (crc, size) = (u32::from_le_bytes(reader.array()?), u32::from_le_bytes(reader.array()?));
    let mut sum = Crc::new();
    sum.update(output);
    match sum.sum() == crc && output.len() as u32 == size {
        true => Ok(()),
        false => Err(bad("checksum or size does not match")),
    }
}
