//! Lists, byte for byte as Java's `ListSerializer` writes them.
//!
//! Elements of a fixed size (numbers, UUIDs) follow each other, and a list of the places of nulls comes first; others
//! have their length in front, -1 for a null.
use super::error::DecodeError;
use super::place::Place;
use super::schema::{Codec, Schema};
use super::scratch::Scratch;

/// Elements of a fixed size.
const CONSTANT_SIZE: u8 = 0;
/// Elements with their lengths.
const VARIABLE_SIZE: u8 = 1;
/// The length of a null.
const NULL: i32 = -1;

/// A list of values of another codec. Closures see a slice of owned elements; a null among them needs
/// [`Opt`](super::Opt): `List(Opt(I64))`.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let mut out = Scratch::with_limit(64);
/// List(Utf8).encode(&["a".to_owned(), "bc".to_owned()], &mut out);
/// assert_eq!(out.bytes(), b"\x01\0\0\0\x02\0\0\0\x01a\0\0\0\x02bc");
/// assert_eq!(List(Utf8).decode(out.bytes()).unwrap(), ["a", "bc"]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct List<C>(pub C);

impl<C: Codec> Schema for List<C> {
    type View<'a> = &'a [C::Owned];
    type Out<'a> = Vec<C::Owned>;

    fn lend<'s, 'a: 's>(out: &'s Vec<C::Owned>) -> &'s [C::Owned] {
        out
    }

    fn shorten<'s, 'a: 's>(view: &'a [C::Owned]) -> &'s [C::Owned] {
        view
    }
}

impl<C: Codec> Codec for List<C> {
    type Owned = Vec<C::Owned>;

    fn bind(&self, at: &Place<'_>) -> Self {
        Self(self.0.bind(at))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Vec<C::Owned>, DecodeError> {
        let mut from = Bytes(bytes);
        let constant = match from.take(1)? {
            [CONSTANT_SIZE] => true,
            [VARIABLE_SIZE] => false,
            _ => return Err(DecodeError::Invalid("a list begins with 0 or 1")),
        };
        let mut nulls = Bytes(&[]);
        if constant {
            let count = from.length()?;
            nulls = Bytes(from.take(count.saturating_mul(4))?);
        }
        let fixed = C::FIXED_BYTES.filter(|_| constant);
        if constant && fixed.is_none() {
            return Err(DecodeError::Invalid("a list of elements of a fixed size, which this codec's are not"));
        }
        let count = from.length()?;
        // What is not there cannot be asked for: a null takes four bytes, here or in the places of nulls.
        if count > bytes.len() {
            return Err(DecodeError::Invalid("a list is longer than its bytes"));
        }
        let mut list = Vec::with_capacity(count);
        for at in 0..count {
            let length = match fixed {
                Some(_) if nulls.has(at) => NULL,
                Some(length) => i32::try_from(length).unwrap_or(NULL),
                None => from.int()?,
            };
            let out = match usize::try_from(length) {
                Ok(length) => self.0.decode(from.take(length)?)?,
                Err(_) if length == NULL => self.0.decode_null()?,
                Err(_) => return Err(DecodeError::Invalid("a negative length in a list")),
            };
            list.push(C::own(C::lend(&out)));
        }
        if from.0.is_empty() { Ok(list) } else { Err(DecodeError::Invalid("bytes behind a list")) }
    }

    fn encode(&self, view: &[C::Owned], out: &mut Scratch) {
        let is_null = |element: &C::Owned| C::is_null(C::view(element));
        let constant = C::FIXED_BYTES.is_some();
        out.push(if constant { CONSTANT_SIZE } else { VARIABLE_SIZE });
        if constant {
            put(out, view.iter().filter(|element| is_null(element)).count());
            for at in view.iter().enumerate().filter(|(_, element)| is_null(element)).map(|(at, _)| at) {
                put(out, at);
            }
        }
        put(out, view.len());
        let mut element = Scratch::with_limit(out.room());
        for item in view {
            match (is_null(item), constant) {
                (true, true) => {}
                (true, false) => out.extend(&NULL.to_be_bytes()),
                (false, true) => self.0.encode(C::view(item), out),
                (false, false) => {
                    element.clear();
                    self.0.encode(C::view(item), &mut element);
                    if element.is_over() {
                        return out.refuse();
                    }
                    put(out, element.len());
                    out.extend(element.bytes());
                }
            }
        }
    }

    fn view(owned: &Vec<C::Owned>) -> &[C::Owned] {
        owned
    }

    fn own(view: &[C::Owned]) -> Vec<C::Owned> {
        view.iter().map(|element| C::own(C::view(element))).collect()
    }

    fn own_into(view: &[C::Owned], slot: &mut Vec<C::Owned>) {
        slot.truncate(view.len());
        for (to, from) in slot.iter_mut().zip(view) {
            C::own_into(C::view(from), to);
        }
        let kept = slot.len();
        slot.extend(view.iter().skip(kept).map(|element| C::own(C::view(element))));
    }

    fn weight(owned: &Vec<C::Owned>) -> usize {
        owned.capacity() * size_of::<C::Owned>() + owned.iter().map(C::weight).sum::<usize>()
    }
}

fn put(out: &mut Scratch, number: usize) {
    match i32::try_from(number) {
        Ok(number) => out.extend(&number.to_be_bytes()),
        Err(_) => out.refuse(),
    }
}

/// What is left to read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let too_short = DecodeError::Length { expected: count, found: self.0.len() };
        let (taken, rest) = self.0.split_at_checked(count).ok_or(too_short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn int(&mut self) -> Result<i32, DecodeError> {
        let bytes = self.take(4)?.first_chunk().copied().unwrap_or_default();
        Ok(i32::from_be_bytes(bytes))
    }

    fn length(&mut self) -> Result<usize, DecodeError> {
        usize::try_from(self.int()?).map_err(|_| DecodeError::Invalid("a negative length in a list"))
    }

    /// Whether this number is among the four-byte ones.
    fn has(&self, number: usize) -> bool {
        let number = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
        self.0.chunks_exact(4).any(|chunk| chunk == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{I64, Opt, Utf8};

    fn bytes<C: Codec>(list: &List<C>, elements: &[C::Owned]) -> Vec<u8> {
        let mut out = Scratch::with_limit(1 << 16);
        list.encode(elements, &mut out);
        assert!(!out.is_over());
        out.bytes().to_vec()
    }

    /// What `Serdes.ListSerde(ArrayList.class, …)` writes.
    #[test]
    fn nulls_are_told_by_place_or_by_length() {
        let numbers = List(Opt(I64));
        let elements = [Some(1), None, Some(2), None];
        let expected = b"\0\0\0\0\x02\0\0\0\x01\0\0\0\x03\0\0\0\x04\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02";
        assert_eq!(bytes(&numbers, &elements), expected);
        assert_eq!(numbers.decode(expected).unwrap(), elements);
        let texts = List(Opt(Utf8));
        let elements = [Some("a".to_owned()), None];
        let expected = b"\x01\0\0\0\x02\0\0\0\x01a\xff\xff\xff\xff";
        assert_eq!(bytes(&texts, &elements), expected);
        assert_eq!(texts.decode(expected).unwrap(), elements);
        assert_eq!(List(Utf8).decode(expected), Err(DecodeError::Null));
        assert_eq!(bytes(&List(I64), &[]), b"\0\0\0\0\0\0\0\0\0");
    }

    #[test]
    fn a_list_that_promises_more_than_it_has_takes_no_memory() {
        for bad in [&b""[..], b"\x02", b"\0\x7f\xff\xff\xff", b"\x01\x7f\xff\xff\xff", b"\x01\0\0\0\x01\0\0\0\x05a"] {
            assert!(List(Utf8).decode(bad).is_err(), "{bad:?}");
            assert!(List(I64).decode(bad).is_err(), "{bad:?}");
        }
    }
}
