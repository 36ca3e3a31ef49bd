//! Text that closures make.
use super::error::DecodeError;
use super::schema::{Codec, Schema};
use super::scratch::Scratch;
use super::text::Utf8;

/// UTF-8 text whose closures answer an owned `String`, for text that is made rather than cut out of other text. Seen as
/// `&str`, the bytes are those of [`Utf8`]. Each record's string is an allocation; `map_values_in` makes
/// text without.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder.stream("in", Consumed::with(Utf8, Utf8)).map_values(Text, |value| value.to_uppercase()).to("out");
/// # builder.build().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Text;

impl Schema for Text {
    type View<'a> = &'a str;
    type Out<'a> = String;

    #[inline]
    fn lend<'s, 'a: 's>(out: &'s String) -> &'s str {
        out
    }

    #[inline]
    fn shorten<'s, 'a: 's>(view: &'a str) -> &'s str {
        view
    }
}

impl Codec for Text {
    type Owned = String;

    fn decode(&self, bytes: &[u8]) -> Result<String, DecodeError> {
        Utf8.decode(bytes).map(str::to_owned)
    }

    #[inline]
    fn encode(&self, view: &str, out: &mut Scratch) {
        Utf8.encode(view, out);
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
        Utf8::own(view)
    }

    fn own_into(view: &str, slot: &mut String) {
        Utf8::own_into(view, slot);
    }

    fn weight(owned: &String) -> usize {
        Utf8::weight(owned)
    }
}
