//! UUIDs, as Java writes them: text.
use super::error::DecodeError;
use super::schema::{Codec, copy_schema};
use super::scratch::Scratch;

/// Characters of a UUID's text.
const TEXT: usize = 36;
/// Where the hyphens are.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// A UUID: 36 characters of text, as Java's `UUIDSerializer` writes it. Closures see a `u128`, most significant byte
/// first, which is what `uuid::Uuid::from_u128` takes.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let mut out = Scratch::with_limit(64);
/// Uuid.encode(0x67e5_5044_10b1_426f_9247_bb68_0e5f_e0c8, &mut out);
/// assert_eq!(out.bytes(), b"67e55044-10b1-426f-9247-bb680e5fe0c8");
/// assert_eq!(Uuid.decode(out.bytes()), Ok(0x67e5_5044_10b1_426f_9247_bb68_0e5f_e0c8));
/// assert!(Uuid.decode(b"67e55044").is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Uuid;

copy_schema!(Uuid, 'a, u128);

impl Codec for Uuid {
    type Owned = u128;
    const FIXED_BYTES: Option<usize> = Some(TEXT);

    fn decode(&self, bytes: &[u8]) -> Result<u128, DecodeError> {
        if bytes.len() != TEXT {
            return Err(DecodeError::Length { expected: TEXT, found: bytes.len() });
        }
        let mut value = 0;
        for (at, byte) in bytes.iter().enumerate() {
            let is_hyphen = HYPHENS.contains(&at);
            match (is_hyphen, (*byte as char).to_digit(16)) {
                (true, _) if *byte == b'-' => {}
                (false, Some(digit)) => value = value << 4 | u128::from(digit),
                _ => return Err(DecodeError::Invalid("not the text of a UUID")),
            }
        }
        Ok(value)
    }

    fn encode(&self, view: u128, out: &mut Scratch) {
        let mut left = 128;
        for at in 0..TEXT {
            if HYPHENS.contains(&at) {
                out.push(b'-');
            } else {
                left -= 4;
                out.push(b"0123456789abcdef"[(view >> left & 15) as usize]);
            }
        }
    }

    fn view(owned: &u128) -> u128 {
        *owned
    }

    fn own(view: u128) -> u128 {
        view
    }
}
