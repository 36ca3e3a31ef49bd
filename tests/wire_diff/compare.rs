//! Whether the clients read the same, and what was written.
use crate::script::{Kind, Read, Script};
use crate::support::oracle::Rec;
use std::fmt::Write as _;

/// Compares what each read with the first, and that with what was written.
pub fn all(script: &Script, committed: bool, reads: &[(&'static str, Read)]) -> Result<(), String> {
    let (first, mine) = &reads[0];
    for (who, theirs) in &reads[1..] {
        same((*who, theirs), (*first, mine))?;
    }
    let wanted = &script.expected(committed);
    match script.kind {
        Kind::Plain => same(("written", wanted), (*first, mine)),
        Kind::Appended => {
            let mut wanted = wanted.clone();
            for (wanted, read) in wanted.records.iter_mut().zip(&mine.records) {
                wanted.timestamp = read.timestamp;
            }
            same(("written", &wanted), (*first, mine))
        }
        Kind::Compacted => cleaned(wanted, &script.expected(true), mine),
    }
}

fn same((theirs, expected): (&str, &Read), (mine, got): (&str, &Read)) -> Result<(), String> {
    let pairs = expected.records.iter().zip(&got.records).enumerate();
    if let Some((at, (expected, got))) = pairs.into_iter().find(|(_, (expected, got))| expected != got) {
        return Err(format!("record {at}: {theirs} {}, {mine} {}", short(expected), short(got)));
    }
    if expected.records.len() != got.records.len() {
        let (longer, more) = if expected.records.len() > got.records.len() { (theirs, expected) } else { (mine, got) };
        let next = &more.records[expected.records.len().min(got.records.len())];
        let (theirs_len, mine_len) = (expected.records.len(), got.records.len());
        return Err(format!("{theirs} {theirs_len} records, {mine} {mine_len}; {longer} goes on with {}", short(next)));
    }
    if expected.position != got.position {
        return Err(format!("{theirs} ends at {}, {mine} at {}", expected.position, got.position));
    }
    Ok(())
}

/// What the cleaner leaves are records that were written, each key's last committed one among them, and the one that
/// closed the segment.
fn cleaned(wanted: &Read, committed: &Read, got: &Read) -> Result<(), String> {
    let [left @ .., last] = &got.records[..] else { return Err("nothing is left".to_owned()) };
    if last.key.as_deref() != Some(b"last") || last.offset != wanted.position {
        return Err(format!("the last record is {}", short(last)));
    }
    let mut rest = wanted.records.iter();
    for record in left {
        if !rest.any(|written| written == record) {
            return Err(format!("never written, or out of order: {}", short(record)));
        }
    }
    for (at, record) in committed.records.iter().enumerate() {
        let later = committed.records[at + 1..].iter().any(|other| other.key == record.key);
        let is_left = left.iter().any(|other| other.offset == record.offset);
        if !later && !is_left && record.value.is_some() {
            return Err(format!("the last of its key is gone: {}", short(record)));
        }
        if later && is_left {
            return Err(format!("not cleaned: {}", short(record)));
        }
    }
    Ok(())
}

/// A record in few characters.
fn short(record: &Rec) -> String {
    let mut text = format!("offset {} time {} key ", record.offset, record.timestamp);
    bytes(&mut text, record.key.as_deref());
    text.push_str(" value ");
    bytes(&mut text, record.value.as_deref());
    let _ = write!(text, " {} headers", record.headers.len());
    for (name, value) in record.headers.iter().take(3) {
        let _ = write!(text, " {name:?}=");
        bytes(&mut text, value.as_deref());
    }
    text
}

fn bytes(text: &mut String, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else { return text.push_str("null") };
    let sum = bytes.iter().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    let head: String = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let _ = write!(text, "[{} bytes {head} sum {sum:08x}]", bytes.len());
}
