//! Shapes of records and batches: nulls, headers, both kinds of timestamps, gaps that compaction leaves, bombs.
use super::*;
use crate::client::fake::batch;
use crate::wire::{Compression, RawHeaders, Stamp};

/// Gives a batch that was built these fields, and its checksum.
fn patch(mut bytes: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    change(&mut bytes);
    let length = (bytes.len() - 12) as u32;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// A batch whose section, compressed by `codec`, is this; it claims one record.
fn packed(base: i64, codec: u8, section: &[u8]) -> Vec<u8> {
    patch(batch(base, &[b"x"], Compression::None, &Stamp::NONE), |bytes| {
        bytes.truncate(61);
        bytes.extend_from_slice(section);
        bytes[22] = bytes[22] & !7 | codec;
    })
}

/// So many zeros, in each codec's own format.
fn bombs(zeros: usize) -> Vec<(&'static str, u8, Vec<u8>)> {
    use std::io::Write as _;
    let plain = vec![0; zeros];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&plain).unwrap();
    let snappy = snap::raw::Encoder::new().compress_vec(&plain).unwrap();
    // The framing of snappy-java: blocks of 32 KiB, each within bounds.
    let mut framed = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    for block in plain.chunks(32 << 10) {
        let block = snap::raw::Encoder::new().compress_vec(block).unwrap();
        framed.extend_from_slice(&(block.len() as u32).to_be_bytes());
        framed.extend_from_slice(&block);
    }
    let mut zstd = vec![0; zstd_safe::compress_bound(zeros)];
    let len = zstd_safe::compress(&mut zstd[..], &plain, 3).unwrap();
    zstd.truncate(len);
    let mut lz4 = b"\x04\x22\x4d\x18\x60\x40\x82".to_vec();
    for block in plain.chunks(64 << 10) {
        let block = lz4_flex::block::compress(block);
        lz4.extend_from_slice(&(block.len() as u32).to_le_bytes());
        lz4.extend_from_slice(&block);
    }
    lz4.extend_from_slice(&[0; 4]);
    vec![
        ("gzip", 1, gzip.finish().unwrap()),
        ("snappy", 2, snappy),
        ("snappy-java", 2, framed),
        ("lz4", 3, lz4),
        ("zstd", 4, zstd),
    ]
}

#[test]
fn a_bomb_in_any_codec_is_a_typed_error_at_its_offset_and_takes_no_buffer() {
    for (codec, code, section) in bombs(32 << 20) {
        assert!(section.len() < 2 << 20, "{codec}: {} bytes", section.len());
        let broker = FakeBroker::start(1);
        fill(&broker, 0, 10, Compression::None);
        fill(&broker, 1, 200, Compression::None);
        broker.log("t", 0, |log| log.batches.push((10, 11, packed(10, code, &section))));
        // Snappy's does not fit a frame as it is.
        let mut bench = Bench::new(4, 2 << 20);
        bench.leaders(&[&broker], &[1, 1]);
        let (slot, other) = (bench.fetcher.add("t", 0, 0).unwrap(), bench.fetcher.add("t", 1, 0).unwrap());
        let mut got = Vec::new();
        let ((), seen) = plimsoll_alloc::testing::allocations(|| {
            bench.turn_until(|bench| {
                got.extend(bench.take(false));
                !bench.faults.is_empty() && got.len() == 210
            });
        });
        assert_eq!(of(&got, slot), expected(slot, 0, 0..10), "{codec}");
        assert_eq!(of(&got, other), expected(other, 1, 0..200), "{codec}");
        let [(at, FetchFault::TooLarge { offset: 10, needed, row })] = bench.faults[..] else {
            panic!("{codec}: {:?}", bench.faults)
        };
        assert!(at == slot && needed == row + 1 && row <= 2 << 20, "{codec}: {needed} {row}");
        assert!(seen.bytes < 4 << 20, "{codec}: {} bytes allocated", seen.bytes);
        bench.assert_idle();
    }
}

/// What comes in the oversize buffer and does not fit a frame unpacked has no other place than behind itself.
#[test]
fn a_batch_larger_than_a_frame_both_packed_and_unpacked_is_read_from_the_oversize_buffer() {
    let broker = FakeBroker::start(1);
    let mut random = fastrand::Rng::with_seed(1);
    let noise: Vec<u8> = (0..FRAME + 10_000).map(|_| random.u8(..)).collect();
    let large = [noise, vec![7; 20_000]].concat();
    fill(&broker, 0, 10, Compression::Lz4);
    for _ in 0..3 {
        broker.log("t", 0, |log| log.append(&[&large], Compression::Lz4));
        let end = broker.script().logs[&("t".to_owned(), 0)].end();
        fill(&broker, 0, end + 1, Compression::Lz4);
        fill(&broker, 1, end * 10, Compression::Lz4);
    }
    let mut bench = Bench::new(3, 4 * FRAME);
    bench.leaders(&[&broker], &[1, 1]);
    let (slot, other) = (bench.fetcher.add("t", 0, 0).unwrap(), bench.fetcher.add("t", 1, 0).unwrap());
    let got = bench.collect(16 + 150);
    let large_ones = of(&got, slot).into_iter().filter(|(.., value)| *value == large).count();
    assert_eq!((large_ones, of(&got, other).len()), (3, 150));
    let offsets: Vec<_> = of(&got, slot).iter().map(|(_, offset, _)| *offset).collect();
    assert_eq!(offsets, (0..16).collect::<Vec<_>>());
    bench.assert_idle();
}

#[test]
fn a_section_that_its_codec_cannot_read_is_a_typed_error_at_its_offset() {
    for code in 1..=7 {
        let broker = FakeBroker::start(1);
        fill(&broker, 0, 10, Compression::None);
        broker.log("t", 0, |log| log.batches.push((10, 11, packed(10, code, b"\x13this is of no codec"))));
        let mut bench = Bench::new(3, 0);
        bench.leaders(&[&broker], &[1]);
        let slot = bench.fetcher.add("t", 0, 0).unwrap();
        assert_eq!(bench.collect(10), expected(slot, 0, 0..10));
        let (at, fault) = bench.until_fault();
        assert_eq!(at, slot);
        assert!(matches!(fault, FetchFault::Undecodable { offset: 10, .. }), "{code}: {fault}");
        bench.assert_idle();
    }
}

/// Reads one batch: offset, timestamp, key and value of each record behind where it was begun.
type Shape = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

fn shapes(broker: &FakeBroker, from: i64, until: i64) -> Vec<Shape> {
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[broker], &[1]);
    let slot = bench.fetcher.add("t", 0, from).unwrap();
    let mut got = Vec::new();
    bench.turn_until(|bench| {
        while let Some(next) = bench.fetcher.next() {
            let Fetched::Batch(batch) = next else { panic!("{next:?}") };
            let mut cursor = RecordCursor::new(&batch.header);
            while let Some(record) = cursor.next(bench.fetcher.records_of(&batch)).unwrap() {
                if record.offset >= batch.skip_below {
                    let owned = |part: Option<&[u8]>| part.map(<[u8]>::to_vec);
                    got.push((record.offset, record.timestamp, owned(record.key), owned(record.value)));
                }
            }
            bench.fetcher.release(batch.frame);
        }
        bench.fetcher.position(slot) == until
    });
    bench.assert_idle();
    got
}

#[test]
fn gaps_that_compaction_leaves_move_the_position_and_repeat_nothing() {
    let broker = FakeBroker::start(1);
    broker.log("t", 0, |log| {
        // Offsets 0 to 4, of which 1 to 4 are gone: the last delta stays.
        let first = patch(batch(0, &[b"a"], Compression::None, &Stamp::NONE), |b| b[26] = 4);
        // 5 to 9 with nothing left.
        let empty = patch(batch(5, &[b"x"], Compression::None, &Stamp::NONE), |b| {
            b.truncate(61);
            b[26] = 4;
            b[60] = 0;
        });
        // 10 to 19 are gone with their batches.
        let last = batch(20, &[b"b", b"c"], Compression::Lz4, &Stamp::NONE);
        log.batches = vec![(0, 5, first), (5, 10, empty), (20, 22, last)];
    });
    let offsets = |from| shapes(&broker, from, 22).iter().map(|(offset, ..)| *offset).collect::<Vec<_>>();
    assert_eq!(offsets(0), [0, 20, 21]);
    for from in [1, 4, 5, 7, 10, 15, 20] {
        assert_eq!(offsets(from), [20, 21], "from {from}");
    }
    assert_eq!(offsets(21), [21]);
}

#[test]
fn nulls_and_both_kinds_of_timestamps_are_read_as_they_are() {
    let build = |base: i64, log_append: bool| {
        let mut buf = vec![0; 1_024];
        let mut builder = crate::wire::BatchBuilder::new();
        let parts = [(None, None), (Some(&b""[..]), Some(&b""[..])), (Some(b"k"), None), (None, Some(b"v"))];
        for (time, (key, value)) in (0..).zip(parts) {
            builder.append(&mut buf, 5_000 - time * 10, key, value, RawHeaders::EMPTY).unwrap();
        }
        let mut none = crate::wire::Compressor::new(Compression::None, 0).unwrap();
        let len = builder.seal(&mut buf, &Stamp::NONE, &mut none).unwrap();
        buf.truncate(len);
        patch(buf, |bytes| {
            bytes[..8].copy_from_slice(&base.to_be_bytes());
            if log_append {
                bytes[22] |= 8;
                bytes[35..43].copy_from_slice(&77_000i64.to_be_bytes());
            }
        })
    };
    let broker = FakeBroker::start(1);
    broker.log("t", 0, |log| log.batches = vec![(0, 4, build(0, false)), (4, 8, build(4, true))]);
    let got = shapes(&broker, 0, 8);
    let times: Vec<_> = got.iter().map(|(_, time, ..)| *time).collect();
    assert_eq!(times, [5_000, 4_990, 4_980, 4_970, 77_000, 77_000, 77_000, 77_000]);
    let parts = |at: usize| (got[at].2.as_deref(), got[at].3.as_deref());
    for base in [0, 4] {
        assert_eq!(parts(base), (None, None));
        assert_eq!(parts(base + 1), (Some(&b""[..]), Some(&b""[..])));
        assert_eq!(parts(base + 2), (Some(&b"k"[..]), None));
        assert_eq!(parts(base + 3), (None, Some(&b"v"[..])));
    }
}

#[test]
fn both_old_message_formats_are_refused_with_their_offset() {
    for magic in [0, 1] {
        let broker = FakeBroker::start(1);
        fill(&broker, 0, 20, Compression::None);
        broker.log("t", 0, |log| log.batches[1].2[16] = magic);
        let mut bench = Bench::new(3, 0);
        bench.leaders(&[&broker], &[1]);
        let slot = bench.fetcher.add("t", 0, 0).unwrap();
        assert_eq!(bench.collect(10), expected(slot, 0, 0..10), "what is before it is read");
        let (at, FetchFault::Undecodable { offset: 10, error }) = bench.until_fault() else { panic!("{magic}") };
        assert_eq!((at, error), (slot, crate::wire::WireError::OldMagic { magic: magic as i8, offset: 10 }));
        bench.assert_idle();
    }
}
