//! A table's update on its way to another key: the bytes of Kafka Streams' `ChangedSerializer`.
use super::change::Delta;
use super::error::DecodeError;
use super::place::Place;
use super::schema::{Codec, Schema};
use super::scratch::Scratch;

/// Only the old value.
const OLD: u8 = 0;
/// Only the new value.
const NEW: u8 = 1;
/// Both: the new one's length as a zigzag varint, the new one, the old one.
const BOTH: u8 = 2;
/// What is added to these where a byte says whether the update is the latest.
const WITH_LATEST: u8 = 3;

/// The codec of an update: its new value, its old one, or both; the last byte says which.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed<V>(pub(crate) V);

/// A decoded update.
pub(crate) struct ChangedOut<'a, V: Schema> {
    pub(crate) new: Option<V::Out<'a>>,
    pub(crate) old: Option<V::Out<'a>>,
}

impl<V: Schema> Schema for Changed<V> {
    type View<'a> = Delta<'a, V>;
    type Out<'a> = ChangedOut<'a, V>;

    fn lend<'s, 'a: 's>(out: &'s ChangedOut<'a, V>) -> Delta<'s, V> {
        Delta { new: out.new.as_ref().map(V::lend), old: out.old.as_ref().map(V::lend) }
    }

    fn shorten<'s, 'a: 's>(view: Delta<'a, V>) -> Delta<'s, V> {
        Delta { new: view.new.map(V::shorten), old: view.old.map(V::shorten) }
    }
}

/// A zigzag varint of a length, and how many bytes it has.
fn varint(length: usize) -> ([u8; 5], usize) {
    let mut rest = u32::try_from(length).unwrap_or(u32::MAX) << 1;
    let mut bytes = [0; 5];
    let mut len = 0;
    for byte in &mut bytes {
        len += 1;
        *byte = (rest & 0x7f) as u8;
        rest >>= 7;
        if rest == 0 {
            break;
        }
        *byte |= 0x80;
    }
    (bytes, len)
}

fn read_varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0u32;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value |= u32::from(byte & 0x7f).checked_shl(7 * u32::try_from(at).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value >> 1).ok()?, bytes.get(at + 1..)?));
        }
    }
    None
}

impl<V: Codec> Codec for Changed<V> {
    type Owned = (Option<V::Owned>, Option<V::Owned>);

    fn bind(&self, at: &Place<'_>) -> Self {
        Self(self.0.bind(at))
    }

    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<ChangedOut<'a, V>, DecodeError> {
        const BAD: DecodeError = DecodeError::Invalid("not an update of a table");
        let (flag, bytes) = bytes.split_last().ok_or(BAD)?;
        let bytes = if *flag >= WITH_LATEST { bytes.split_last().ok_or(BAD)?.1 } else { bytes };
        let (new, old) = match flag % WITH_LATEST {
            _ if *flag >= 2 * WITH_LATEST => return Err(BAD),
            OLD => (None, Some(bytes)),
            NEW => (Some(bytes), None),
            _ => {
                let (length, bytes) = read_varint(bytes).ok_or(BAD)?;
                let (new, old) = bytes.split_at_checked(length).ok_or(BAD)?;
                (Some(new), Some(old))
            }
        };
        let decode = |bytes: Option<&'a [u8]>| bytes.map(|bytes| self.0.decode(bytes)).transpose();
        Ok(ChangedOut { new: decode(new)?, old: decode(old)? })
    }

    fn encode(&self, view: Delta<'_, V>, out: &mut Scratch) {
        let at = out.len();
        match (view.new, view.old) {
            (Some(new), Some(old)) => {
                self.0.encode(new, out);
                let (bytes, len) = varint(out.len() - at);
                out.insert(at, bytes.get(..len).unwrap_or_default());
                self.0.encode(old, out);
                out.push(BOTH);
            }
            (Some(new), None) => {
                self.0.encode(new, out);
                out.push(NEW);
            }
            (None, Some(old)) => {
                self.0.encode(old, out);
                out.push(OLD);
            }
            (None, None) => out.refuse(),
        }
    }

    fn view(owned: &Self::Owned) -> Delta<'_, V> {
        Delta { new: owned.0.as_ref().map(V::view), old: owned.1.as_ref().map(V::view) }
    }

    fn own(view: Delta<'_, V>) -> Self::Owned {
        (view.new.map(V::own), view.old.map(V::own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Utf8;

    fn bytes(new: Option<&str>, old: Option<&str>) -> Vec<u8> {
        let mut out = Scratch::with_limit(1024);
        out.push(b'k');
        Changed(Utf8).encode(Delta { new, old }, &mut out);
        out.bytes()[1..].to_vec()
    }

    #[test]
    fn updates_have_javas_bytes_and_are_read_again() {
        assert_eq!(bytes(Some("ab"), None), b"ab\x01");
        assert_eq!(bytes(None, Some("ab")), b"ab\x00");
        assert_eq!(bytes(Some("ab"), Some("c")), b"\x04abc\x02");
        let long = "x".repeat(100);
        assert_eq!(&bytes(Some(&long), Some(""))[..3], &[0xc8, 0x01, b'x']);
        for (new, old) in [(Some("ab"), None), (None, Some("")), (Some(&*long), Some("old"))] {
            let encoded = bytes(new, old);
            let out = Changed(Utf8).decode(&encoded).unwrap();
            assert_eq!((out.new, out.old), (new, old));
        }
    }

    #[test]
    fn newer_flags_are_read_and_what_is_no_update_is_refused() {
        let read = |bytes: &'static [u8]| Changed(Utf8).decode(bytes).map(|out| (out.new, out.old));
        assert_eq!(read(b"ab\x01\x04"), Ok((Some("ab"), None)));
        assert_eq!(read(b"\x04abc\x01\x05"), Ok((Some("ab"), Some("c"))));
        for bad in [&b""[..], b"\x03", b"ab\x06", b"\x08ab\x02", b"\x80\x02"] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
