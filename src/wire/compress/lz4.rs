//! LZ4 frames: the frame is walked and built here, the blocks are `lz4_flex`'s. (Its own frame reader and writer
//! allocate by block and cannot be limited.) Format: `lz4_Frame_format.md` of the reference implementation.
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use super::xxh32::xxh32;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Version 1, independent blocks, no checksums but the header's, no content size: what Kafka's Java client writes.
const FLAGS: u8 = 0x60;
/// Blocks of at most 64 KiB.
const BLOCK_DESCRIPTOR: u8 = 0x40;
const BLOCK: usize = 64 << 10;
const HEADER: usize = 7;
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
            if at + 4 >= section.len() {
                return None;
            }
        }
        self.out.get_mut(at..at + 4)?.fill(0);
        self.out.get(..at + 4)
    }
}

/// A whole section that did not shrink, or a last block written as if it did not.
fn out_bytes(max_section: usize) -> usize {
    max_section + HEADER + 8 + get_maximum_output_size(BLOCK)
}

/// The checksum in a frame's header, over its descriptor.
fn descriptor_check(descriptor: &[u8]) -> u8 {
    (xxh32(descriptor) >> 8) as u8
}
