//! Bytes as they are.
use super::error::DecodeError;
use super::schema::{Codec, copy_schema};
use super::scratch::Scratch;

/// Bytes as they are, seen as `&[u8]`: a pass-through decodes nothing.
///
/// ```
/// use plimsoll::prelude::*;
/// assert_eq!(Bytes.decode(&[1, 2, 3]), Ok(&[1, 2, 3][..]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bytes;

copy_schema!(Bytes, 'a, &'a [u8]);

impl Codec for Bytes {
    type Owned = Vec<u8>;

    #[inline]
    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], DecodeError> {
        Ok(bytes)
    }

    #[inline]
    fn encode(&self, view: &[u8], out: &mut Scratch) {
        out.extend(view);
    }

    #[inline]
    fn as_bytes<'a>(&self, view: Self::View<'a>) -> Option<&'a [u8]> {
        Some(view)
    }

    #[inline]
    fn view(owned: &Vec<u8>) -> &[u8] {
        owned
    }

    fn own(view: &[u8]) -> Vec<u8> {
        view.to_vec()
    }

    fn own_into(view: &[u8], slot: &mut Vec<u8>) {
        slot.clear();
        slot.extend_from_slice(view);
    }

    fn weight(owned: &Vec<u8>) -> usize {
        owned.capacity()
    }
}
