//! The text that is committed with an offset: Kafka Streams' `TopicPartitionMetadata`, so that an application written
//! in Java and this one can take over from each other.
//!
//! Format (Kafka Streams 4.x, `processor/internals/TopicPartitionMetadata`): Base64 of
//! `01 ‖ int64 time` (version 1) or `02 ‖ int64 time ‖ [int32 n ‖ n × (int32 length ‖ UTF-8 key ‖ int64 value)]`
//! (version 2; the part in brackets is left out when it is empty), integers big-endian. What is written is version 2;
//! what cannot be read means "unknown", as in Kafka Streams. Called by the control thread only.

/// Partition time when nothing is known.
pub(crate) const UNKNOWN_TIME: i64 = -1;
/// Entries that are read at most: one per operator that emits on window close.
const MAX_ENTRIES: usize = 4096;

/// What is remembered with a partition's committed offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OffsetsMetadata {
    /// The partition's stream time, in milliseconds since the Unix epoch, or [`UNKNOWN_TIME`].
    pub(crate) partition_time: i64,
    /// Per store name, when its windows were emitted last (emit on window close).
    pub(crate) processors: Vec<(String, i64)>,
}

impl Default for OffsetsMetadata {
    fn default() -> Self {
        Self::at(UNKNOWN_TIME)
    }
}

impl OffsetsMetadata {
    /// Metadata with a partition time only.
    pub(crate) fn at(partition_time: i64) -> Self {
        Self { partition_time, processors: Vec::new() }
    }

    /// The text to commit.
    pub(crate) fn encode(&self) -> String {
        let mut bytes = vec![2];
        bytes.extend(self.partition_time.to_be_bytes());
        if !self.processors.is_empty() {
            bytes.extend(length(self.processors.len()).to_be_bytes());
            for (key, value) in &self.processors {
                bytes.extend(length(key.len()).to_be_bytes());
                bytes.extend(key.as_bytes());
                bytes.extend(value.to_be_bytes());
            }
        }
        base64(&bytes)
    }

    /// Reads a committed text of either version; "unknown" for anything else, an empty text included.
    pub(crate) fn decode(text: &str) -> Self {
        unbase64(text).and_then(|bytes| Self::read(&bytes)).unwrap_or_default()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let [version] = take(&mut rest)?;
        let partition_time = i64::from_be_bytes(take(&mut rest)?);
        let mut processors = Vec::new();
        match version {
            1 => {}
            2 if rest.is_empty() => {}
            2 => {
                let count = usize::try_from(i32::from_be_bytes(take(&mut rest)?)).ok()?;
                if count > MAX_ENTRIES {
                    return None;
                }
                for _ in 0..count {
                    let length = usize::try_from(i32::from_be_bytes(take(&mut rest)?)).ok()?;
                    let (key, tail) = rest.split_at_checked(length)?;
                    rest = tail;
                    let value = i64::from_be_bytes(take(&mut rest)?);
                    processors.push((std::str::from_utf8(key).ok()?.to_owned(), value));
                }
            }
            _ => return None,
        }
        Some(Self { partition_time, processors })
    }
}

fn length(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 with padding, as `java.util.Base64.getEncoder()`.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            if place <= chunk.len() {
                let index = (bits >> (18 - 6 * place)) & 63;
                text.push(char::from(ALPHABET[index as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// The reverse of [`base64()`]; `None` for anything that it does not write.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let groups = text.len() / 4;
    for (index, group) in text.chunks(4).enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || (padding > 0 && index + 1 != groups) {
            return None;
        }
        let mut bits = 0;
        for byte in &group[..4 - padding] {
            bits = bits << 6 | u32::from(value(*byte)?);
        }
        let whole = (bits << (6 * padding)).to_be_bytes();
        bytes.extend(&whole[1..4 - padding]);
    }
    Some(bytes)
}

fn value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TS: i64 = 1_700_000_000_000;

    #[test]
    fn version_2_is_written_as_kafka_streams_writes_it() {
        assert_eq!(OffsetsMetadata::at(TS).encode(), "AgAAAYvP5WgA");
        let with_store = OffsetsMetadata { partition_time: TS, processors: vec![("store".to_owned(), TS - 1)] };
        assert_eq!(with_store.encode(), "AgAAAYvP5WgAAAAAAQAAAAVzdG9yZQAAAYvP5Wf/");
        assert_eq!(OffsetsMetadata::decode(&with_store.encode()), with_store);
    }

    #[test]
    fn versions_1_and_2_of_kafka_streams_are_read() {
        assert_eq!(OffsetsMetadata::decode("AQAAAYvP5WgA"), OffsetsMetadata::at(TS));
        assert_eq!(OffsetsMetadata::decode("AgAAAYvP5WgA"), OffsetsMetadata::at(TS));
        let read = OffsetsMetadata::decode("AgAAAYvP5WgAAAAAAQAAAAVzdG9yZQAAAYvP5Wf/");
        assert_eq!(read.processors, [("store".to_owned(), TS - 1)]);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let unknown = OffsetsMetadata { partition_time: -1, processors: Vec::new() };
        // Empty; not Base64; padding in the middle; version 3; cut off; a count of 2^31 - 1; a length past the end.
        let texts = [
            "",
            "?",
            "AgAA====",
            "AA==AgAA",
            "AwAAAYvP5WgA",
            "AgAAAYvP",
            "AgAAAYvP5WgAf////w==",
            "AgAAAYvP5WgAAAAAAQAAAAl4",
        ];
        for text in texts {
            assert_eq!(OffsetsMetadata::decode(text), unknown, "{text:?}");
        }
    }

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let vectors =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")];
        for (plain, text) in vectors {
            assert_eq!(base64(plain.as_bytes()), text);
            assert_eq!(unbase64(text).as_deref(), Some(plain.as_bytes()));
        }
    }
}
