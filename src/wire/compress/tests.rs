use std::io::Write as _;

use super::*;
use crate::wire::vectors::vector;

fn decoder() -> Decompressor {
    Decompressor::new().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
    let len = zstd_safe::compress(&mut out[..], bytes, 1).unwrap();
    out.truncate(len);
    out
}

fn snappy(bytes: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(bytes).unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(Compression::Lz4, bytes.len()).unwrap();
    compressor.compress(bytes).unwrap().to_vec()
}

/// A frame of lz4 whose flags, sizes and blocks are given; the header's checksum is right.
fn lz4_frame(flags: u8, size: Option<u64>, blocks: &[(u32, &[u8])], tail: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x04, 0x22, 0x4d, 0x18, flags, 0x40];
    frame.extend(size.iter().flat_map(|size| size.to_le_bytes()));
    frame.push((xxh32::xxh32(&frame[4..]) >> 8) as u8);
    for (stored, block) in blocks {
        frame.extend((block.len() as u32 | stored).to_le_bytes());
        frame.extend_from_slice(block);
        if flags & 0x10 != 0 {
            frame.extend(xxh32::xxh32(block).to_le_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend_from_slice(tail);
    frame
}

const STORED: u32 = 1 << 31;

#[test]
fn a_bomb_of_every_codec_ends_at_the_limit() {
    let bomb = vec![0_u8; 64 << 20];
    let mut framed = vec![0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
    let block = snappy(&bomb[..16 << 20]);
    for _ in 0..4 {
        framed.extend((block.len() as u32).to_be_bytes());
        framed.extend_from_slice(&block);
    }
    let bombs = [
        (Compression::Gzip, gzip(&bomb)),
        (Compression::Snappy, snappy(&bomb)),
        (Compression::Snappy, framed),
        (Compression::Lz4, lz4(&bomb)),
        (Compression::Zstd, zstd(&bomb)),
    ];
    let mut decoder = decoder();
    let held = decoder.zstd.held();
    let mut dst = vec![0; 20 << 20];
    for (codec, bytes) in bombs {
        let limit = dst.len();
        assert_eq!(decoder.decompress(codec, &bytes, &mut dst), Err(WireError::OutputTooLarge { limit }), "{codec:?}");
        let none = decoder.decompress(codec, &bytes, &mut []);
        assert_eq!(none, Err(WireError::OutputTooLarge { limit: 0 }), "{codec:?}");
    }
    assert_eq!(decoder.zstd.held(), held, "the context did not grow");
    assert!(held <= zstd::Decoder::BYTES);
}

#[test]
fn a_frame_that_asks_for_a_huge_window_costs_no_memory() {
    // Frame header: no content size, window descriptor of 2^31 bytes; one raw, last block of three bytes.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x19, 0x00, 0x00, b'a', b'b', b'c'];
    let mut decoder = decoder();
    let mut dst = [0; 3];
    let held = decoder.zstd.held();
    assert_eq!(decoder.decompress(Compression::Zstd, &frame, &mut dst), Ok(3));
    assert_eq!((&dst, decoder.zstd.held()), (b"abc", held));
    // And a window beyond the format's implementation is a typed error.
    let mut huge = frame;
    huge[5] = 0xb0;
    let refused = decoder.decompress(Compression::Zstd, &huge, &mut dst);
    assert!(
        matches!(refused, Err(WireError::BadCompression { codec: "zstd", what }) if what.contains("window")),
        "{refused:?}"
    );
}

#[test]
fn cut_or_changed_input_is_a_typed_error_and_the_next_one_is_read() {
    let text = b"the same words, the same words, the same words again and again".repeat(40);
    let inputs = [
        (Compression::Gzip, gzip(&text)),
        (Compression::Snappy, snappy(&text)),
        (Compression::Lz4, lz4(&text)),
        (Compression::Zstd, zstd(&text)),
    ];
    let mut decoder = decoder();
    let mut dst = vec![0; 8_000];
    for (codec, bytes) in inputs {
        for cut in 0..bytes.len() {
            assert!(decoder.decompress(codec, &bytes[..cut], &mut dst).is_err(), "{codec:?} cut at {cut}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            // Must not panic; may succeed where nothing is checked.
            let _ = decoder.decompress(codec, &changed, &mut dst);
        }
        let len = decoder.decompress(codec, &bytes, &mut dst).unwrap();
        assert_eq!(&dst[..len], &text[..], "{codec:?}");
    }
}

#[test]
fn lz4_frames_of_all_shapes_are_read() {
    let mut decoder = decoder();
    let mut dst = [0; 64];
    let mut read = |frame: &[u8]| decoder.decompress(Compression::Lz4, frame, &mut dst).map(|len| dst[..len].to_vec());
    let content = xxh32::xxh32(b"abcabc").to_le_bytes();
    // Stored blocks, block checksums, content size and checksum.
    let all = lz4_frame(0x7c, Some(6), &[(STORED, b"abc"), (STORED, b"abc")], &content);
    assert_eq!(read(&all), Ok(b"abcabc".to_vec()));
    // Linked blocks: the second is one match of 8 bytes, 3 back, into the first, then the 5 literals that must end a
    // block.
    let linked = [0x04, 3, 0, 0x50, b'v', b'w', b'x', b'y', b'z'];
    let frame = lz4_frame(0x40, None, &[(STORED, b"abc"), (0, &linked)], &[]);
    assert_eq!(read(&frame), Ok(b"abcabcabcabvwxyz".to_vec()));
    // The same match in a frame of independent blocks refers to nothing.
    let frame = lz4_frame(0x60, None, &[(STORED, b"abc"), (0, &linked)], &[]);
    assert_eq!(read(&frame), Err(WireError::BadCompression { codec: "lz4", what: "invalid block" }));
    let bad = |what| Err(WireError::BadCompression { codec: "lz4", what });
    assert_eq!(read(&lz4_frame(0x64, None, &[(STORED, b"abc")], &[0; 4])), bad("checksum of the content"));
    assert_eq!(read(&lz4_frame(0x68, Some(4), &[(STORED, b"abc")], &[])), bad("content size"));
    let mut frame = lz4_frame(0x70, None, &[(STORED, b"abc")], &[]);
    frame[11] ^= 1;
    assert_eq!(read(&frame), bad("checksum of a block"));
    let mut frame = lz4_frame(0x60, None, &[(STORED, b"abc")], &[]);
    frame[6] ^= 1;
    assert_eq!(read(&frame), bad("checksum of the header"));
    assert_eq!(read(&lz4_frame(0x61, None, &[], &[])), bad("dictionaries are not used by kafka"));
    assert_eq!(read(&lz4_frame(0xa0, None, &[], &[])), bad("version or reserved bits of the header"));
    assert_eq!(read(&lz4_frame(0x68, Some(u64::MAX), &[], &[])), Err(WireError::OutputTooLarge { limit: 64 }));
    assert_eq!(read(b"not lz4"), bad("no frame header"));
}

#[test]
fn gzip_members_and_optional_header_fields_are_read() {
    let mut decoder = decoder();
    let mut dst = [0; 64];
    let mut two = gzip(b"one ");
    two.extend(gzip(b"two"));
    assert_eq!(decoder.decompress(Compression::Gzip, &two, &mut dst), Ok(7));
    assert_eq!(&dst[..7], b"one two");
    let plain = gzip(b"x");
    let mut full = plain[..10].to_vec();
    full[3] = 0x1e; // extra field, name, comment, checksum of the header
    full.extend([3, 0, 1, 2, 3]);
    full.extend(b"name\0comment\0\x12\x34");
    full.extend_from_slice(&plain[10..]);
    assert_eq!(decoder.decompress(Compression::Gzip, &full, &mut dst), Ok(1));
    full[3] |= 0x20;
    let refused = decoder.decompress(Compression::Gzip, &full, &mut dst);
    assert_eq!(refused, Err(WireError::BadCompression { codec: "gzip", what: "reserved flags are set" }));
    let mut wrong = plain;
    let at = wrong.len() - 5;
    wrong[at] ^= 1;
    let refused = decoder.decompress(Compression::Gzip, &wrong, &mut dst);
    assert_eq!(refused, Err(WireError::BadCompression { codec: "gzip", what: "checksum or size does not match" }));
}

#[test]
fn our_frames_have_the_header_of_kafkas_client_and_nothing_grows() {
    let text = b"0123456789abcdef".repeat(12_500);
    let mut compressor = Compressor::new(Compression::Lz4, text.len()).unwrap();
    let frame = compressor.compress(&text).unwrap().to_vec();
    assert_eq!(frame[..7], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]);
    assert_eq!(frame[..7], vector("large lz4")[61..68]);
    assert_eq!(frame[frame.len() - 4..], [0; 4]);
    let mut dst = vec![0; text.len()];
    assert_eq!(decoder().decompress(Compression::Lz4, &frame, &mut dst), Ok(text.len()));
    assert_eq!(dst, text);
    assert!(compressor.compress(&[0; 300_000]).is_none(), "larger than it was made for");
    let mut rng = fastrand::Rng::with_seed(1);
    for len in [0, 1, 10, 65_535, 65_536, 65_537, 200_000] {
        let noise: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
        assert!(compressor.compress(&noise).is_none(), "{len} bytes of noise do not shrink");
        let half: Vec<u8> = noise.iter().enumerate().map(|(at, byte)| if at < len / 2 { *byte } else { 7 }).collect();
        if let Some(frame) = compressor.compress(&half) {
            assert!(frame.len() < len);
            let mut dst = vec![0; len];
            assert_eq!(decoder().decompress(Compression::Lz4, frame, &mut dst), Ok(len));
            assert_eq!(dst, half);
        } else {
            assert!(len <= 10);
        }
    }
}

#[test]
fn numbers_of_codecs() {
    assert_eq!(Compression::from_code(5), Err(WireError::UnknownCodec { codec: 5 }));
    assert_eq!(Compression::from_code(4), Ok(Compression::Zstd));
}

const WRITTEN: [Compression; 4] = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

#[test]
fn every_codec_reads_back_what_it_wrote_at_every_level_and_only_if_it_is_smaller() {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut decoder = decoder();
    for codec in WRITTEN {
        let levels: &[i32] = match codec {
            Compression::Gzip => &[1, 6, 9],
            Compression::Zstd => &[-5, 1, 3, 9],
            _ => &[9],
        };
        for level in levels {
            let mut compressor = Compressor::with_level(codec, Some(*level), 100_000).unwrap();
            assert_eq!(compressor.codec(), codec);
            for len in [0, 1, 10, 100, 32_767, 32_768, 32_769, 65_537, 100_000] {
                let lines = ["to be or not ", "that is the question ", "whether 'tis nobler ", "in the mind "];
                let words = std::iter::repeat_with(|| lines[rng.usize(..lines.len())]).flat_map(str::bytes);
                let words: Vec<u8> = words.take(len).collect();
                let noise: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
                assert!(compressor.compress(&noise).is_none(), "{codec:?} {level}: {len} bytes of noise shrink");
                let Some(packed) = compressor.compress(&words) else {
                    assert!(len <= 100, "{codec:?} {level}: {len} bytes of words do not shrink");
                    continue;
                };
                assert!(packed.len() < len);
                let (packed, mut dst) = (packed.to_vec(), vec![0; len]);
                assert_eq!(decoder.decompress(codec, &packed, &mut dst), Ok(len), "{codec:?} {level} {len}");
                assert_eq!(dst, words);
                dst.fill(0);
                assert_eq!(decompress_own(codec, &packed, &mut dst), Ok(len));
                assert_eq!(dst, words);
            }
            assert!(compressor.compress(&[0; 100_001]).is_none(), "larger than it was made for");
        }
    }
}

#[test]
fn a_compressor_holds_what_the_plan_says_and_writing_allocates_nothing() {
    use plimsoll_alloc::testing::allocations;
    assert!(plimsoll_alloc::is_installed(), "the gate counts nothing without the allocator");
    let text = b"the same words, the same words, the same words again and again ".repeat(1_000);
    for codec in WRITTEN {
        for max in [16 << 10, 64 << 10, 1 << 20] {
            let planned = Compressor::bytes(codec, None, max) as u64;
            let (mut compressor, seen) = allocations(|| Compressor::new(codec, max).unwrap());
            let held = seen.bytes - seen.freed;
            // The allocator rounds up to its size classes.
            assert!(held <= planned * 9 / 8, "{codec:?} {max}: {held} held, {planned} planned");
            assert!(held >= planned / 2, "{codec:?} {max}: {held} held, {planned} planned");
            let section = &text[..text.len().min(max)];
            let (packed, seen) = allocations(|| (0..20).filter(|_| compressor.compress(section).is_some()).count());
            assert_eq!((packed, seen.calls()), (20, 0), "{codec:?} {max}");
        }
    }
}

#[test]
fn zstd_never_holds_more_than_the_plan_says_whatever_sizes_come() {
    let text = b"the same words, the same words, the same words again and again ".repeat(1_000);
    for level in [1, 3, 9] {
        let most = zstd::Encoder::context_bytes(level, 60_000);
        let mut encoder = zstd::Encoder::new(level, 60_000).unwrap();
        for round in 0..3 {
            (0..200).for_each(|_| assert!(encoder.encode(&text[..500]).is_some()));
            assert!(encoder.held() <= most);
            assert!(encoder.encode(&text[..60_000]).is_some(), "{round}");
            assert!(encoder.held() <= most, "{level}: {} held, {most} planned", encoder.held());
        }
    }
}
