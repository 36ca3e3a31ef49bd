//! LZ4 frames: the frame is walked and built here, the blocks are `lz4_flex`'s. (Its own frame reader and writer
//! allocate by block and cannot be limited.) Format: `lz4_Frame_format.md` of the reference implementation.
use lz4_flex::block::{
    CompressTable, DecompressError, compress_into_with_table, decompress_into_with_dict, get_maximum_output_size,
};

use super::xxh32::xxh32;
use crate::wire::Reader;
use crate::wire::error::{Result, WireError};

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Version 1, independent blocks, no checksums but the header's, no content size: what Kafka's Java client writes.
const FLAGS: u8 = 0x60;
/// Blocks of at most 64 KiB.
const BLOCK_DESCRIPTOR: u8 = 0x40;
const BLOCK: usize = 64 << 10;
const HEADER: usize = 7;
/// How far back a block may refer to.
const WINDOW: usize = 64 << 10;
/// Set in a block's length when the block is stored as it is.
const STORED: u32 = 1 << 31;

/// Writes frames into a buffer of its own.
pub(super) struct Encoder {
    table: CompressTable,
    out: Box<[u8]>,
    max_section: usize,
}

impl Encoder {
    /// An encoder of sections of at most `max_section` bytes.
    pub(super) fn new(max_section: usize) -> Encoder {
        let out = vec![0; out_bytes(max_section)].into_boxed_slice();
        Encoder { table: CompressTable::large(), out, max_section }
    }

    /// Bytes it holds: the output and a table of 4,096 positions.
    pub(super) fn bytes(max_section: usize) -> usize {
        out_bytes(max_section) + (4096 * size_of::<u32>())
    }

    /// The frame of `section`, if it is smaller.
    pub(super) fn encode(&mut self, section: &[u8]) -> Option<&[u8]> {
        if section.len() > self.max_section {
            return None;
        }
        let header = [
            MAGIC[0],
            MAGIC[1],
            MAGIC[2],
            MAGIC[3],
            FLAGS,
            BLOCK_DESCRIPTOR,
            descriptor_check(&[FLAGS, BLOCK_DESCRIPTOR]),
        ];
        self.out.get_mut(..HEADER)?.copy_from_slice(&header);
        let mut at = HEADER;
        for block in section.chunks(BLOCK) {
            let (length, data) = self.out.get_mut(at..)?.split_first_chunk_mut::<4>()?;
            let (word, len) = match compress_into_with_table(block, data, &mut self.table) {
                Ok(len) if len < block.len() => (len as u32, len),
                _ => {
                    data.get_mut(..block.len())?.copy_from_slice(block);
                    (block.len() as u32 | STORED, block.len())
                }
            };
            *length = word.to_le_bytes();
            at += 4 + len;
        }
        if at + 4 >= section.len() {
            return None;
        }
        self.out.get_mut(at..at + 4)?.fill(0);
        self.out.get(..at + 4)
    }
}

/// A whole section that did not shrink, or a last block written as if it did not.
fn out_bytes(max_section: usize) -> usize {
    max_section + HEADER + 8 + get_maximum_output_size(BLOCK)
}

/// Decodes one frame; what follows its end is ignored, as Kafka's consumer does.
pub(super) fn decode(src: &[u8], dst: &mut [u8]) -> Result<usize> {
    let limit = dst.len();
    let mut reader = Reader::new(src, false);
    let flags = Flags::read(&mut reader)?;
    if flags.content_size.is_some_and(|size| size > limit as u64) {
        return Err(WireError::OutputTooLarge { limit });
    }
    let mut written = 0;
    loop {
        let word = u32::from_le_bytes(reader.array()?);
        if word == 0 {
            break;
        }
        let block = reader.take((word & !STORED) as usize)?;
        if flags.block_checksum && u32::from_le_bytes(reader.array()?) != xxh32(block) {
            return Err(bad("checksum of a block"));
        }
        let (done, room) = dst.split_at_mut(written);
        let window = if flags.linked { done.get(done.len().saturating_sub(WINDOW)..).unwrap_or(&[]) } else { &[] };
        written += match word & STORED {
            0 => decompress_into_with_dict(block, room, window).map_err(|error| refused(&error, limit))?,
            _ => {
                room.get_mut(..block.len()).ok_or(WireError::OutputTooLarge { limit })?.copy_from_slice(block);
                block.len()
            }
        };
    }
    let output = dst.get(..written).unwrap_or(&[]);
    if flags.content_checksum && u32::from_le_bytes(reader.array()?) != xxh32(output) {
        return Err(bad("checksum of the content"));
    }
    match flags.content_size {
        Some(size) if size != written as u64 => Err(bad("content size")),
        _ => Ok(written),
    }
}

/// What the header of a frame says.
struct Flags {
    linked: bool,
    block_checksum: bool,
    content_checksum: bool,
    content_size: Option<u64>,
}

impl Flags {
    fn read(reader: &mut Reader<'_>) -> Result<Flags> {
        if reader.array()? != MAGIC {
            return Err(bad("no frame header"));
        }
        let start = *reader;
        let [flags, block] = reader.array()?;
        if flags >> 6 != 1 || flags & 0x02 != 0 || block & 0x8f != 0 || block < 0x40 {
            return Err(bad("version or reserved bits of the header"));
        }
        if flags & 0x01 != 0 {
            return Err(bad("dictionaries are not used by kafka"));
        }
        let content_size = if flags & 0x08 != 0 { Some(u64::from_le_bytes(reader.array()?)) } else { None };
        let descriptor = start.clone().take(reader.at() - start.at())?;
        if reader.array()? != [descriptor_check(descriptor)] {
            return Err(bad("checksum of the header"));
        }
        Ok(Flags {
            linked: flags & 0x20 == 0,
            block_checksum: flags & 0x10 != 0,
            content_checksum: flags & 0x04 != 0,
            content_size,
        })
    }
}

#[cold]
fn refused(error: &DecompressError, limit: usize) -> WireError {
    match error {
        DecompressError::OutputTooSmall { .. } => WireError::OutputTooLarge { limit },
        _ => bad("invalid block"),
    }
}

fn bad(what: &'static str) -> WireError {
    WireError::BadCompression { codec: "lz4", what }
}

/// The checksum in a frame's header, over its descriptor.
fn descriptor_check(descriptor: &[u8]) -> u8 {
    (xxh32(descriptor) >> 8) as u8
}
