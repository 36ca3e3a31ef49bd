//! Everything that decodes bytes from a socket, driven by arbitrary bytes. The fuzz target `wire` calls [`run`]; so
//! does a unit test, with the vectors of Kafka's client, their cuts and changes. Besides not panicking, what is
//! decoded must keep to its bounds and survive being encoded again.
use super::batch::{
    BATCH_HEADER_BYTES, BatchBuilder, BatchHeader, Batches, ControlType, RawHeaders, RecordView, Records, Stamp,
};
use super::compress::{Compression, Compressor, Decompressor};
use super::error::{Result, WireError};
use super::message::*;

/// Bytes that a section may decompress to.
const LIMIT: usize = 128 << 10;

/// APIs whose responses are decoded.
pub(crate) const APIS: &[ApiKey] = &[
    ApiKey::ApiVersions,
    ApiKey::Metadata,
    ApiKey::ListOffsets,
    ApiKey::Fetch,
    ApiKey::Produce,
    ApiKey::InitProducerId,
    ApiKey::FindCoordinator,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::EndTxn,
    ApiKey::TxnOffsetCommit,
    ApiKey::SaslHandshake,
    ApiKey::SaslAuthenticate,
];

/// What decoding needs, made once.
pub(crate) struct State {
    decompressor: Decompressor,
    compressor: Compressor,
    section: Vec<u8>,
    batch: Vec<u8>,
}

impl State {
    /// Fails only without memory.
    pub(crate) fn new() -> Result<State> {
        Ok(State {
            decompressor: Decompressor::new()?,
            compressor: Compressor::new(Compression::Lz4, LIMIT)?,
            section: vec![0; LIMIT],
            batch: vec![0; LIMIT],
        })
    }
}

/// Decodes `input`: two bytes choose what it is, the rest are the bytes from the socket. For a response the second is
/// the API's number, and one byte more its version.
pub(crate) fn run(state: &mut State, input: &[u8]) {
    let [kind, choice, bytes @ ..] = input else { return };
    let _ = frame_len(bytes).and(correlation_id(bytes));
    let _ = match kind % 4 {
        0 => {
            let ([version, frame @ ..], Some(api)) = (bytes, ApiKey::from_code(i16::from(*choice))) else { return };
            let Some((low, high)) = api.spoken() else { return };
            let version = i16::from(*version).clamp(low, high);
            response(api, version, frame).and_then(|()| match api {
                ApiKey::Fetch => fetched_batches(state, frame, version),
                _ => Ok(()),
            })
        }
        1 => batches(state, bytes),
        2 => decompress(state, *choice, bytes),
        _ => fields(bytes),
    };
}

/// Decodes all of a response.
pub(crate) fn response(api: ApiKey, version: i16, frame: &[u8]) -> Result<()> {
    match api {
        ApiKey::ApiVersions => {
            let response = ApiVersionsResponse::read(frame, version)?;
            assert!(APIS.iter().filter(|api| response.offered.choose(**api).is_ok()).count() <= APIS.len());
        }
        ApiKey::Metadata => {
            let response = MetadataResponse::read(frame, version)?;
            let partitions = response.topics.flat_map(|topic| topic.partitions);
            let nodes =
                partitions.map(|partition| partition.replicas.count() + partition.in_sync.count()).sum::<usize>();
            assert!(nodes + response.brokers.count() <= frame.len());
        }
        ApiKey::ListOffsets => {
            let mut response = ListOffsetsResponse::read(frame, version)?;
            while response.next()?.is_some() {}
        }
        ApiKey::Fetch => {
            let mut response = FetchResponse::read(frame, version)?;
            while let Some(partition) = response.next()? {
                assert!(partition.aborted.count() <= frame.len());
                let end = partition.records_at + partition.records.len();
                assert_eq!(frame.get(partition.records_at..end), Some(partition.records));
            }
            response.endpoints()?.for_each(drop);
        }
        ApiKey::Produce => {
            let mut response = ProduceResponse::read(frame, version)?;
            while let Some(partition) = response.next()? {
                assert!(partition.record_errors.count() <= frame.len());
            }
            response.tail()?.endpoints.for_each(drop);
        }
        ApiKey::InitProducerId => drop(InitProducerIdResponse::read(frame, version)?),
        ApiKey::SaslHandshake => SaslHandshakeResponse::read(frame)?.mechanisms(|_| ())?,
        ApiKey::SaslAuthenticate => drop(SaslAuthenticateResponse::read(frame)?),
        ApiKey::FindCoordinator => drop(FindCoordinatorResponse::read(frame, version)?),
        ApiKey::OffsetForLeaderEpoch => {
            let mut response = OffsetForLeaderEpochResponse::read(frame, version)?;
            while response.next()?.is_some() {}
        }
        ApiKey::AddPartitionsToTxn => {
            let mut response = AddPartitionsToTxnResponse::read(frame, version)?;
            while response.next()?.is_some() {}
        }
        ApiKey::AddOffsetsToTxn => drop(AddOffsetsToTxnResponse::read(frame, version)?),
        ApiKey::EndTxn => drop(EndTxnResponse::read(frame, version)?),
        ApiKey::TxnOffsetCommit => {
            let mut response = TxnOffsetCommitResponse::read(frame, version)?;
            while response.next()?.is_some() {}
        }
        _ => {}
    }
    Ok(())
}

fn fetched_batches(state: &mut State, frame: &[u8], version: i16) -> Result<()> {
    let mut response = FetchResponse::read(frame, version)?;
    while let Some(partition) = response.next()? {
        batches(state, partition.records)?;
    }
    Ok(())
}

/// Walks batches, also those whose checksum is wrong: a fuzzer does not guess checksums.
fn batches(state: &mut State, bytes: &[u8]) -> Result<()> {
    let mut batches = Batches::new(bytes);
    while let Some((header, batch)) = batches.next()? {
        assert!(header.size == batch.len() && header.next_offset() > header.base_offset);
        let _ = header.check_crc(batch);
        let section = header.section(batch)?;
        let codec = Compression::from_code(header.codec())?;
        let len = state.decompressor.decompress(codec, section, &mut state.section)?;
        records(state, &header, len)?;
    }
    assert!(batches.at() <= bytes.len());
    Ok(())
}

/// Reads the records of the section in the state, and writes each into a batch of its own batch builder, which must
/// be read back as the same records.
fn records(state: &mut State, header: &BatchHeader, len: usize) -> Result<()> {
    let section = &state.section[..len];
    let mut records = Records::new(header, section);
    let (mut builder, mut kept) = (BatchBuilder::new(), 0);
    while let Some(record) = records.next()? {
        assert!(record.offset >= header.base_offset && record.offset < header.next_offset());
        let _ = ControlType::from_key(record.key);
        let RecordView { timestamp, key, value, headers, .. } = record;
        if builder.append(&mut state.batch, timestamp, key, value, headers).is_ok() {
            kept += 1;
        } else {
            break;
        }
    }
    if kept == 0 {
        return Ok(());
    }
    let plain = builder.len();
    let stamp = Stamp { transactional: true, ..Stamp::NONE };
    let sealed = builder.seal(&mut state.batch, &stamp, &mut state.compressor)?;
    let again = BatchHeader::peek(&state.batch[..sealed])?;
    let again = again.ok_or(WireError::Malformed { what: "own batch", at: 0 })?;
    assert!(again.check_crc(&state.batch[..sealed]).is_ok() && again.count == kept);
    let mut copy = vec![0; plain - BATCH_HEADER_BYTES];
    let codec = Compression::from_code(again.codec())?;
    let len = state.decompressor.decompress(codec, again.section(&state.batch[..sealed])?, &mut copy)?;
    assert_eq!(len, copy.len());
    let (mut written, mut read) = (Records::new(&again, &copy), Records::new(header, section));
    for delta in 0..i64::from(kept) {
        let (ours, theirs) = (written.next()?, read.next()?);
        assert_eq!(ours, theirs.map(|theirs| RecordView { offset: delta, ..theirs }));
    }
    assert_eq!(written.next()?, None);
    Ok(())
}

/// Decompresses with the limit that the choice names.
fn decompress(state: &mut State, choice: u8, bytes: &[u8]) -> Result<()> {
    let codec = Compression::from_code(choice % 5)?;
    let limit = LIMIT >> (choice / 5 % 16);
    state.section[limit..].fill(0xa5);
    let result = state.decompressor.decompress(codec, bytes, &mut state.section[..limit]);
    assert!(state.section[limit..].iter().all(|byte| *byte == 0xa5), "nothing behind the limit is touched");
    assert!(result? <= limit);
    Ok(())
}

fn fields(bytes: &[u8]) -> Result<()> {
    let _ = BatchHeader::peek(bytes);
    let _ = ControlType::from_key(Some(bytes));
    if let Some(headers) = RawHeaders::parse(bytes) {
        let bytes_in = headers.iter().map(|h| h.key.len() + h.value.map_or(0, <[u8]>::len)).sum::<usize>();
        assert!(bytes_in <= bytes.len() && headers.iter().count() == headers.iter().size_hint().0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::vectors;

    /// An input of [`run`] that decodes the vector.
    fn input(name: &str, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let mut words = name.split(' ');
        let head = match (words.next()?, words.next()?, words.next()) {
            ("response", api, Some(version)) => {
                let api = APIS.iter().find(|known| known.name() == api)?;
                vec![0, api.code() as u8, version.parse().ok()?]
            }
            ("request", ..) => return None,
            _ => return Some([vec![1, 0], bytes].concat()),
        };
        Some([&head[..], &bytes[4..]].concat())
    }

    #[test]
    fn vectors_with_every_byte_changed_or_cut_do_not_panic() {
        let mut state = State::new().unwrap();
        let mut count = 0;
        for (name, bytes) in vectors::all() {
            let Some(input) = input(name, bytes) else { continue };
            run(&mut state, &input);
            for at in (3..input.len()).take(1200) {
                run(&mut state, &input[..at]);
                for change in [0x01, 0x80, 0xff] {
                    let mut changed = input.clone();
                    changed[at] ^= change;
                    run(&mut state, &changed);
                }
            }
            count += 1;
        }
        assert!(count > 50);
    }

    #[test]
    fn noise_does_not_panic() {
        let mut state = State::new().unwrap();
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let noise: Vec<u8> =
                (0..rng.usize(..200)).map(|_| if rng.bool() { rng.u8(..4) } else { rng.u8(..) }).collect();
            run(&mut state, &noise);
        }
    }

    /// Writes the corpus that is checked in: `PLIMSOLL_SEEDS=fuzz/seeds/wire cargo test --lib wire::fuzz`.
    #[test]
    fn seeds_are_the_vectors() {
        let Some(folder) = std::env::var_os("PLIMSOLL_SEEDS") else { return };
        for (name, bytes) in vectors::all() {
            let Some(mut input) = input(name, bytes) else { continue };
            input.truncate(4096);
            std::fs::write(std::path::Path::new(&folder).join(name.replace(' ', "-")), input).unwrap();
        }
    }
}
