use super::headers::read_bytes;
use super::*;
use crate::wire::compress::{Compression, Compressor, Decompressor};
use crate::wire::error::WireError;
use crate::wire::vectors::vector;

const PLAIN: Stamp = Stamp { producer_id: 77, producer_epoch: 3, base_sequence: 10, transactional: false };

/// A record that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
struct Owned {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn owned(record: &RecordView<'_>) -> Owned {
    Owned {
        offset: record.offset,
        timestamp: record.timestamp,
        key: record.key.map(Vec::from),
        value: record.value.map(Vec::from),
        headers: record.headers.iter().map(|h| (h.key.to_vec(), h.value.map(Vec::from))).collect(),
    }
}

fn read_all(header: &BatchHeader, section: &[u8]) -> Result<Vec<Owned>, WireError> {
    let mut records = Records::new(header, section);
    let mut all = Vec::new();
    while let Some(record) = records.next()? {
        all.push(owned(&record));
    }
    Ok(all)
}

/// The three records of `Vectors.java`.
fn the_three(second: &[u8]) -> Vec<Owned> {
    let h = |key: &[u8], value: Option<&[u8]>| (key.to_vec(), value.map(Vec::from));
    let record = |offset, timestamp, key: Option<&[u8]>, value: Option<&[u8]>, headers| Owned {
        offset,
        timestamp,
        key: key.map(Vec::from),
        value: value.map(Vec::from),
        headers,
    };
    vec![
        record(100, 1000, Some(b"k1"), Some(b"v1"), vec![]),
        record(101, 1005, None, Some(second), vec![h(b"h1", Some(b"x")), h(b"h2", None)]),
        record(102, 999, Some(b""), None, vec![]),
    ]
}

#[test]
fn a_batch_of_kafkas_client_is_read_as_it_was_written() {
    let batch = vector("batch none");
    let header = BatchHeader::peek(&batch).unwrap().unwrap();
    let expected = BatchHeader {
        base_offset: 100,
        size: batch.len(),
        leader_epoch: 4,
        crc: 0x778a_1bea,
        attributes: 0,
        last_offset_delta: 2,
        base_timestamp: 1000,
        max_timestamp: 1005,
        producer_id: 77,
        producer_epoch: 3,
        base_sequence: 10,
        count: 3,
    };
    assert_eq!(header, expected);
    assert_eq!((header.next_offset(), header.codec(), header.is_control()), (103, 0, false));
    header.check_crc(&batch).unwrap();
    assert_eq!(read_all(&header, header.section(&batch).unwrap()), Ok(the_three(b"v2")));
}

#[test]
fn every_codec_of_kafkas_client_is_read() {
    let mut decompressor = Decompressor::new().unwrap();
    let large = b"0123456789abcdef".repeat(12_500);
    for (prefix, second) in [("batch", &b"v2"[..]), ("large", &large)] {
        for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
            let batch = vector(&format!("{prefix} {}", codec.name()));
            let header = BatchHeader::peek(&batch).unwrap().unwrap();
            header.check_crc(&batch).unwrap();
            assert_eq!(Compression::from_code(header.codec()), Ok(codec));
            let mut section = vec![0; 300_000];
            let len = decompressor.decompress(codec, header.section(&batch).unwrap(), &mut section).unwrap();
            assert_eq!(read_all(&header, &section[..len]), Ok(the_three(second)), "{prefix} {codec:?}");
            // Exactly as much room as needed is enough, and one byte less is a typed error.
            let mut exact = vec![0; len];
            assert_eq!(decompressor.decompress(codec, header.section(&batch).unwrap(), &mut exact), Ok(len));
            assert_eq!(exact, section[..len]);
            let limit = len - 1;
            let refused = decompressor.decompress(codec, header.section(&batch).unwrap(), &mut exact[..limit]);
            assert_eq!(refused, Err(WireError::OutputTooLarge { limit }), "{prefix} {codec:?}");
        }
    }
}

#[test]
fn log_append_time_is_the_time_of_every_record() {
    let batch = vector("batch appended");
    let header = BatchHeader::peek(&batch).unwrap().unwrap();
    assert!(header.is_log_append_time());
    let times: Vec<i64> =
        read_all(&header, header.section(&batch).unwrap()).unwrap().iter().map(|r| r.timestamp).collect();
    assert_eq!(times, [5555, 5555, 5555]);
}

#[test]
fn control_batches_tell_abort_from_commit() {
    for (name, expected) in [("control abort", ControlType::Abort), ("control commit", ControlType::Commit)] {
        let batch = vector(name);
        let header = BatchHeader::peek(&batch).unwrap().unwrap();
        header.check_crc(&batch).unwrap();
        assert!(header.is_control() && header.is_transactional());
        assert_eq!((header.base_offset, header.producer_id, header.producer_epoch), (500, 77, 3));
        let record = Records::new(&header, header.section(&batch).unwrap()).next().unwrap().unwrap();
        assert_eq!(ControlType::from_key(record.key), Ok(expected));
    }
    assert_eq!(ControlType::from_key(Some(&[0, 1, 0, 5])), Ok(ControlType::Other(5)));
    assert!(ControlType::from_key(Some(&[0, 0, 0])).is_err());
    assert!(ControlType::from_key(None).is_err());
}

#[test]
fn old_message_formats_are_refused_by_name() {
    let batch = vector("batch magic1");
    assert_eq!(BatchHeader::peek(&batch), Err(WireError::OldMagic { magic: 1, offset: 100 }));
    assert_eq!(BatchHeader::peek(&batch[..17]), Err(WireError::OldMagic { magic: 1, offset: 100 }));
    assert_eq!(BatchHeader::peek(&batch[..16]), Ok(None));
}

#[test]
fn what_we_build_is_what_kafkas_client_builds() {
    let expected = vector("batch none");
    let mut headers = Vec::new();
    let two = [Header { key: b"h1", value: Some(b"x") }, Header { key: b"h2", value: None }];
    let headers = RawHeaders::write(&two, &mut headers).unwrap();
    let mut buf = vec![0xaa; 256];
    let mut builder = BatchBuilder::new();
    builder.append(&mut buf, 1000, Some(b"k1"), Some(b"v1"), RawHeaders::EMPTY).unwrap();
    builder.append(&mut buf, 1005, None, Some(b"v2"), headers).unwrap();
    builder.append(&mut buf, 999, Some(b""), None, RawHeaders::EMPTY).unwrap();
    assert_eq!((builder.count(), builder.len()), (3, expected.len()));
    let mut compressor = Compressor::new(Compression::None, 0).unwrap();
    let len = builder.seal(&mut buf, &PLAIN, &mut compressor).unwrap();
    // The broker assigns the base offset and the leader's epoch, neither of which the checksum covers.
    assert_eq!(buf[..8], [0; 8]);
    assert_eq!(buf[8..12], expected[8..12]);
    assert_eq!(buf[12..16], [0xff; 4]);
    assert_eq!(buf[16..len], expected[16..]);
}

#[test]
fn a_new_stamp_changes_the_producer_and_nothing_else() {
    let mut batch = vector("batch none");
    let stamp = Stamp { producer_id: 1 << 40, producer_epoch: 9, base_sequence: i32::MAX, transactional: false };
    restamp(&mut batch, &stamp).unwrap();
    let header = BatchHeader::peek(&batch).unwrap().unwrap();
    header.check_crc(&batch).unwrap();
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (1 << 40, 9, i32::MAX));
    assert_eq!(read_all(&header, header.section(&batch).unwrap()), Ok(the_three(b"v2")));
    restamp(&mut batch, &PLAIN).unwrap();
    assert_eq!(batch, vector("batch none"));
    assert!(restamp(&mut batch[..60], &PLAIN).is_err());
}

#[test]
fn a_record_without_room_tells_what_it_needs_and_changes_nothing() {
    let mut buf = [0; 100];
    let mut builder = BatchBuilder::new();
    builder.append(&mut buf, 1, Some(b"key"), Some(&[7; 20]), RawHeaders::EMPTY).unwrap();
    let before = (builder.len(), builder.count());
    let TooLarge { needed } = builder.append(&mut buf, 2, Some(b"key"), Some(&[7; 20]), RawHeaders::EMPTY).unwrap_err();
    assert_eq!(needed, before.0, "a batch of this record alone is as large as the first");
    assert_eq!((builder.len(), builder.count()), before);
    let TooLarge { needed } =
        BatchBuilder::new().append(&mut buf, 2, None, Some(&[7; 50]), RawHeaders::EMPTY).unwrap_err();
    assert!(needed > buf.len(), "no batch can hold it");
    let mut larger = vec![0; needed];
    let mut builder = BatchBuilder::new();
    assert!(builder.append(&mut larger[..needed - 1], 2, None, Some(&[7; 50]), RawHeaders::EMPTY).is_err());
    assert!(builder.is_empty());
    builder.append(&mut larger, 2, None, Some(&[7; 50]), RawHeaders::EMPTY).unwrap();
    assert_eq!(builder.len(), needed);
}

#[test]
fn an_empty_batch_cannot_be_sealed() {
    let mut compressor = Compressor::new(Compression::None, 0).unwrap();
    let sealed = BatchBuilder::new().seal(&mut [0; 100], &Stamp::NONE, &mut compressor);
    assert!(matches!(sealed, Err(WireError::Malformed { .. })));
}

#[test]
fn a_changed_byte_is_found_by_the_checksum() {
    let batch = vector("batch none");
    for at in 21..batch.len() {
        let mut bad = batch.clone();
        bad[at] ^= 0x10;
        let Ok(Some(header)) = BatchHeader::peek(&bad) else { continue };
        assert!(matches!(header.check_crc(&bad), Err(WireError::BadCrc { offset: 100, .. })), "byte {at}");
    }
}

#[test]
fn a_cut_batch_is_left_out_and_its_size_is_known() {
    let batch = vector("batch none");
    let mut two = batch.clone();
    two.extend_from_slice(&batch);
    for cut in 0..=two.len() {
        let mut batches = Batches::new(&two[..cut]);
        let mut whole = 0;
        while let Some((header, bytes)) = batches.next().unwrap() {
            assert_eq!((header.size, bytes), (batch.len(), &batch[..]));
            whole += 1;
        }
        assert_eq!((whole, batches.at()), (cut / batch.len(), whole * batch.len()));
        match cut % batch.len() {
            0 => assert_eq!(batches.incomplete(), None),
            1..BATCH_HEADER_BYTES => assert_eq!(batches.incomplete(), Some(BATCH_HEADER_BYTES)),
            _ => assert_eq!(batches.incomplete(), Some(batch.len())),
        }
    }
}

#[test]
fn a_cursor_kept_apart_goes_on_where_it_stood() {
    let batch = vector("batch none");
    let header = BatchHeader::peek(&batch).unwrap().unwrap();
    let section = header.section(&batch).unwrap();
    let mut cursor = RecordCursor::new(&header);
    let mut offsets = Vec::new();
    while let Some(record) = cursor.next(section).unwrap() {
        offsets.push((record.offset, cursor.left()));
        let stored = cursor;
        cursor = Records::resume(stored, section).cursor();
    }
    assert_eq!(offsets, [(100, 2), (101, 1), (102, 0)]);
    assert_eq!(cursor.next(section), Ok(None));
    assert_eq!(size_of::<RecordCursor>(), 32);
}

#[test]
fn offsets_removed_by_compaction_are_gaps() {
    // What a compacted log holds: the second record gone, offsets and last offset as they were.
    let mut batch = vector("batch none");
    let header = BatchHeader::peek(&batch).unwrap().unwrap();
    let section = header.section(&batch).unwrap();
    let mut at = 0;
    let first = read_bytes(section, &mut at).unwrap().unwrap().len() + 1;
    let second = read_bytes(section, &mut at).unwrap().unwrap().len() + 1;
    batch.drain(BATCH_HEADER_BYTES + first..BATCH_HEADER_BYTES + first + second);
    let length = (batch.len() - 12) as u32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch[57..61].copy_from_slice(&2_u32.to_be_bytes());
    let header = BatchHeader::peek(&batch).unwrap().unwrap();
    let records = read_all(&header, header.section(&batch).unwrap()).unwrap();
    assert_eq!(records.iter().map(|r| r.offset).collect::<Vec<_>>(), [100, 102]);
    assert_eq!(header.next_offset(), 103);
    // And all of them gone.
    batch.truncate(BATCH_HEADER_BYTES);
    batch[8..12].copy_from_slice(&49_u32.to_be_bytes());
    batch[57..61].copy_from_slice(&[0; 4]);
    let header = BatchHeader::peek(&batch).unwrap().unwrap();
    assert_eq!(read_all(&header, header.section(&batch).unwrap()), Ok(vec![]));
    assert_eq!(header.next_offset(), 103);
}

#[test]
fn malformed_records_are_errors_and_end_the_batch() {
    let header = BatchHeader::peek(&vector("batch none")).unwrap().unwrap();
    let cases: [&[u8]; 10] = [
        &[],                                               // no record where three are announced
        &[0x0e, 0, 0, 0, 1, 1],                            // shorter than it says
        &[0x01, 0, 0, 0, 1, 1, 0],                         // negative length
        &[0x0c, 0, 0, 6, 1, 1, 0],                         // offset behind the batch's last
        &[0x0c, 0, 0, 1, 1, 1, 0],                         // offset before the batch's first
        &[0x0c, 0, 0, 0, 0x7e, 1, 0],                      // key behind the record's end
        &[0x0e, 0, 0, 0, 1, 1, 0, 0],                      // bytes behind the headers
        &[0x0a, 0, 0, 0, 1, 1],                            // no headers
        &[0x10, 0, 0, 0, 1, 1, 2, 1, 0],                   // a header without key
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], // a length of 2^48
    ];
    for section in cases {
        let mut records = Records::new(&header, section);
        assert!(matches!(records.next(), Err(WireError::Malformed { what: "record", .. })), "{section:x?}");
        assert_eq!(records.next(), Ok(None));
    }
    let mut one = header;
    one.count = 1;
    let mut records = Records::new(&one, &[0x0c, 0, 0, 0, 1, 1, 0, 99]);
    assert!(records.next().unwrap().is_some());
    assert_eq!(records.next(), Err(WireError::Malformed { what: "end of a batch", at: 7 }));
    assert_eq!(records.next(), Ok(None));
}

#[test]
fn impossible_headers_are_refused() {
    let good = vector("batch none");
    let with = |at: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        BatchHeader::peek(&bad)
    };
    let malformed = |what, at| Err(WireError::Malformed { what, at });
    assert_eq!(with(8, &48_u32.to_be_bytes()), malformed("batch length", 12));
    assert_eq!(with(8, &[0xff; 4]), malformed("batch length", 12));
    assert_eq!(with(16, &[3]), malformed("message format number", 16));
    assert_eq!(with(57, &[0xff; 4]), malformed("record count", 61));
    assert_eq!(with(0, &[0xff; 8]), malformed("batch offsets", 61));
    assert_eq!(with(0, &i64::MAX.to_be_bytes()), malformed("batch offsets", 61));
    assert_eq!(with(23, &[0xff; 4]), malformed("batch offsets", 61));
}

fn random_bytes(rng: &mut fastrand::Rng, most: usize) -> Option<Vec<u8>> {
    let len = rng.usize(..=most);
    (rng.u8(..) >= 32).then(|| (0..len).map(|_| rng.u8(..4)).collect())
}

#[test]
fn what_is_appended_is_read_back() {
    let mut decompressor = Decompressor::new().unwrap();
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let codec = if seed % 2 == 0 { Compression::None } else { Compression::Lz4 };
        let capacity = 200 + rng.usize(..100_000);
        let mut compressor = Compressor::new(codec, capacity).unwrap();
        let (mut buf, mut builder, mut expected) = (vec![0; capacity], BatchBuilder::new(), Vec::new());
        loop {
            let timestamp = if rng.bool() { rng.i64(..) } else { rng.i64(0..5_000) };
            let (key, value) = (random_bytes(&mut rng, 20), random_bytes(&mut rng, 300));
            let headers: Vec<_> = (0..rng.usize(..4).saturating_sub(1))
                .map(|_| (random_bytes(&mut rng, 9).unwrap_or_default(), random_bytes(&mut rng, 70)))
                .collect();
            let views: Vec<_> = headers.iter().map(|(k, v)| Header { key: k, value: v.as_deref() }).collect();
            let mut raw = Vec::new();
            let raw = RawHeaders::write(&views, &mut raw).unwrap();
            if builder.append(&mut buf, timestamp, key.as_deref(), value.as_deref(), raw).is_err() {
                break;
            }
            let offset = expected.len() as i64;
            expected.push(Owned { offset, timestamp, key, value, headers });
        }
        if expected.is_empty() {
            continue;
        }
        let before = builder.len();
        let len = builder.seal(&mut buf, &Stamp { transactional: true, ..PLAIN }, &mut compressor).unwrap();
        let batch = &buf[..len];
        let header = BatchHeader::peek(batch).unwrap().unwrap();
        header.check_crc(batch).unwrap();
        assert!(header.is_transactional());
        assert_eq!(header.max_timestamp, expected.iter().map(|r| r.timestamp).max().unwrap());
        let mut section = vec![0; before - BATCH_HEADER_BYTES];
        let used = Compression::from_code(header.codec()).unwrap();
        let len = decompressor.decompress(used, header.section(batch).unwrap(), &mut section).unwrap();
        assert_eq!(len, section.len());
        assert_eq!(read_all(&header, &section), Ok(expected), "seed {seed}");
        assert!(codec == Compression::None || before < 2_000 || used == Compression::Lz4, "small values compress");
    }
}
