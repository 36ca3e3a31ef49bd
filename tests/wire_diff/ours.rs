//! The library's own data path.
use crate::script::{End, Part, Place, Read};
use crate::support::oracle::Rec;
use plimsoll::Compression;
use plimsoll::testing::wire::{self, Client, Reader, ReaderOptions, Record, Seen, Writer, WriterOptions};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Writes a part of a script.
pub fn write(client: &Client, place: &Place, part: &Part, transactional_id: &str) -> Result<(), String> {
    let codec = match part.codec {
        "none" => Compression::None,
        "gzip" => Compression::Gzip,
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::Zstd,
        other => return Err(format!("no codec {other}")),
    };
    let transactional_id = part.transactional.then(|| transactional_id.to_owned());
    let batch_bytes = part.batch_bytes;
    let options = WriterOptions { codec, batch_bytes, batches: 6, transactional_id, ..WriterOptions::default() };
    let mut writer = Writer::new(client, &options)?;
    let topic = writer.topic(&place.topic);
    for run in &part.runs {
        if part.transactional {
            writer.begin()?;
        }
        for record in &run.records {
            writer.write(topic, place.partition.cast_unsigned(), &own(record))?;
        }
        writer.flush()?;
        match run.end {
            End::Flushed => {}
            End::Committed => match writer.commit()? {
                wire::End::Committed => {}
                wire::End::Aborted => return Err("the transaction had to be aborted".to_owned()),
            },
            End::Aborted => writer.abort()?,
        }
    }
    Ok(())
}

fn own(record: &Rec) -> Record {
    let Rec { timestamp, key, value, headers, .. } = record.clone();
    Record { timestamp, key, value, headers }
}

/// Reads each place to its end.
pub fn read(client: &Client, committed: bool, places: &[(Place, i64)]) -> Result<Vec<Read>, String> {
    let options = ReaderOptions { read_committed: committed, max_wait_ms: 20, ..ReaderOptions::default() };
    let mut reader = Reader::new(client, &options)?;
    for (place, _) in places {
        reader.add(&place.topic, place.partition, 0)?;
    }
    let mut read: Vec<_> = places.iter().map(|_| Read { position: 0, records: Vec::new() }).collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        reader.turn(20, &mut |number, seen| read[number].records.push(rec(seen)))?;
        for (number, read) in read.iter_mut().enumerate() {
            read.position = reader.position(number);
        }
        let missing = read.iter().zip(places).find(|(read, (_, end))| read.position < *end);
        let Some((read, (place, end))) = missing else { break };
        if Instant::now() > deadline {
            return Err(format!("{place:?} is read to {} and not to its end {end}", read.position));
        }
    }
    Ok(read)
}

fn rec(seen: &Seen<'_>) -> Rec {
    let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
    let header = |(name, value): &(&[u8], _)| (String::from_utf8_lossy(name).into_owned(), owned(*value));
    Rec {
        partition: 0,
        offset: seen.offset,
        timestamp: seen.timestamp,
        key: owned(seen.key),
        value: owned(seen.value),
        headers: seen.headers.iter().map(header).collect(),
    }
}
