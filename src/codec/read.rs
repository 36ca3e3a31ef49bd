//! What a source may read of a record: a codec's value, or nothing.
use super::error::DecodeError;
use super::place::Place;
use super::schema::{Codec, Schema};

mod sealed {
    pub trait Sealed {}
    impl<C: super::Codec> Sealed for C {}
    impl Sealed for super::Unread {}
}

/// What a source node can read: any [`Codec`], or [`Unread`]. Not for implementing.
pub trait Read: Schema + sealed::Sealed {
    #[doc(hidden)]
    fn at(&self, place: &Place<'_>) -> Self;
    #[doc(hidden)]
    fn read<'a>(&'a self, bytes: Option<&'a [u8]>) -> Result<Self::Out<'a>, DecodeError>;
}

impl<C: Codec> Read for C {
    fn at(&self, place: &Place<'_>) -> Self {
        self.bind(place)
    }

    #[inline]
    fn read<'a>(&'a self, bytes: Option<&'a [u8]>) -> Result<Self::Out<'a>, DecodeError> {
        match bytes {
            Some(bytes) => self.decode(bytes),
            None => self.decode_null(),
        }
    }
}

/// The schema of a key that is not read: it may be null or anything. Closures see `()`. It is no [`Codec`]: such a
/// stream cannot be written or grouped before `select_key`, `map` or `group_by` gave it a key.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder.stream("lines", Consumed::values(Utf8)).select_key(Utf8, |(), line| line).to("by-line");
/// # builder.build().unwrap();
/// ```
///
/// ```compile_fail
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder.stream("lines", Consumed::values(Utf8)).to("copy"); // would lose the key
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unread;

impl Schema for Unread {
    type View<'a> = ();
    type Out<'a> = ();

    fn lend<'s, 'a: 's>(_out: &'s ()) {}

    fn shorten<'s, 'a: 's>(_view: ()) {}
}

impl Read for Unread {
    fn at(&self, _place: &Place<'_>) -> Self {
        *self
    }

    #[inline]
    fn read(&self, _bytes: Option<&[u8]>) -> Result<(), DecodeError> {
        Ok(())
    }
}
