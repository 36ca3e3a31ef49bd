//! Gzip (RFC 1952): the members' framing here, deflate by `flate2`, whose own gzip readers and writers allocate.
use flate2::{Compress, Crc, Decompress, FlushCompress, FlushDecompress, Status};

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

/// Header of the members written: no flags, no time, no name of a system, bare like that of Kafka's Java client.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0];
/// Checksum and size behind a member.
const TRAILER: usize = 8;

/// Writes sections as one member each, into a buffer of its own.
pub(super) struct Encoder {
    deflate: Compress,
    out: Box<[u8]>,
}

impl Encoder {
    /// Bytes of the state of deflate, whatever the level: measured, rounded up.
    pub(super) const BYTES: usize = 384 << 10;

    /// An encoder of sections of at most `max_section` bytes. `level`: 1 to 9.
    pub(super) fn new(level: u32, max_section: usize) -> Encoder {
        let deflate = Compress::new(flate2::Compression::new(level), false);
        Encoder { deflate, out: vec![0; max_section].into_boxed_slice() }
    }

    /// The gzip form of `section`, if it is smaller.
    pub(super) fn encode(&mut self, section: &[u8]) -> Option<&[u8]> {
        if section.len() > self.out.len() {
            return None;
        }
        // One byte less than the section, all told.
        let room = section.len().checked_sub(HEADER.len() + TRAILER + 1)?;
        let (header, rest) = self.out.split_first_chunk_mut::<{ HEADER.len() }>()?;
        *header = HEADER;
        self.deflate.reset();
        let status = self.deflate.compress(section, rest.get_mut(..room)?, FlushCompress::Finish);
        let Ok(Status::StreamEnd) = status else { return None };
        let len = usize::try_from(self.deflate.total_out()).ok()?;
        let mut sum = Crc::new();
        sum.update(section);
        let trailer = rest.get_mut(len..)?.first_chunk_mut::<TRAILER>()?;
        let (crc, size) = trailer.split_at_mut(4);
        crc.copy_from_slice(&sum.sum().to_le_bytes());
        size.copy_from_slice(&(section.len() as u32).to_le_bytes());
        self.out.get(..HEADER.len() + len + TRAILER)
    }
}

/// The state of inflate, reused.
pub(super) struct Decoder {
    inflate: Decompress,
}

impl Decoder {
    /// Bytes it holds at most: a window of 32 KiB and Huffman tables.
    #[allow(dead_code)] // for tests and the plan
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
