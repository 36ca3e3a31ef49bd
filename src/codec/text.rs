//! Text.
use super::error::DecodeError;
use super::schema::{Codec, copy_schema};
use super::scratch::Scratch;

/// UTF-8 text, seen as `&str`; the bytes of Java's `StringSerializer` with its default charset.
///
/// ```
/// use plimsoll::prelude::*;
/// assert_eq!(Utf8.decode(b"words"), Ok("words"));
/// assert_eq!(Utf8.decode(b"a\xff"), Err(DecodeError::Utf8 { valid_up_to: 1 }));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Utf8;

copy_schema!(Utf8, 'a, &'a str);

impl Codec for Utf8 {
    type Owned = String;

    #[inline]
    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(bytes).map_err(|e| DecodeError::Utf8 { valid_up_to: e.valid_up_to() })
    }

    #[inline]
    fn encode(&self, view: &str, out: &mut Scratch) {
        out.extend(view.as_bytes());
    }

    #[inline]
    fn as_bytes<'a>(&self, view: Self::View<'a>) -> Option<&'a [u8]> {
        Some(view.as_bytes())
    }

    #[inline]
    fn view(owned: &String) -> &str {
        owned
    }

    fn own(view: &str) -> String {
        view.to_owned()
    }

    fn own_into(view: &str, slot: &mut String) {
        slot.clear();
        slot.push_str(view);
    }

    fn weight(owned: &String) -> usize {
        owned.capacity()
    }
}
