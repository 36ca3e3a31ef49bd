//! Null, said in the type.
use super::error::DecodeError;
use super::place::Place;
use super::schema::{Codec, Schema};
use super::scratch::Scratch;

/// A key or value that may be null: closures see an `Option`.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let optional = Opt(Utf8);
/// assert_eq!(optional.decode(b"text"), Ok(Some("text")));
/// assert_eq!(optional.decode_null(), Ok(None));
/// assert_eq!(Utf8.decode_null(), Err(DecodeError::Null));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Opt<S>(pub S);

impl<S: Schema> Schema for Opt<S> {
    type View<'a> = Option<S::View<'a>>;
    type Out<'a> = Option<S::Out<'a>>;

    #[inline]
    fn lend<'s, 'a: 's>(out: &'s Self::Out<'a>) -> Self::View<'s> {
        out.as_ref().map(S::lend)
    }

    #[inline]
    fn shorten<'s, 'a: 's>(view: Self::View<'a>) -> Self::View<'s> {
        view.map(S::shorten)
    }
}

impl<S: Codec> Codec for Opt<S> {
    type Owned = Option<S::Owned>;
    const FIXED_BYTES: Option<usize> = S::FIXED_BYTES;

    fn bind(&self, at: &Place<'_>) -> Self {
        Self(self.0.bind(at))
    }

    #[inline]
    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Self::Out<'a>, DecodeError> {
        self.0.decode(bytes).map(Some)
    }

    #[inline]
    fn decode_null(&self) -> Result<Self::Out<'_>, DecodeError> {
        Ok(None)
    }

    #[inline]
    fn is_null(view: Self::View<'_>) -> bool {
        view.is_none_or(S::is_null)
    }

    #[inline]
    fn encode(&self, view: Self::View<'_>, out: &mut Scratch) {
        if let Some(view) = view {
            self.0.encode(view, out);
        }
    }

    #[inline]
    fn as_bytes<'a>(&self, view: Self::View<'a>) -> Option<&'a [u8]> {
        view.and_then(|view| self.0.as_bytes(view))
    }

    #[inline]
    fn view(owned: &Self::Owned) -> Self::View<'_> {
        owned.as_ref().map(S::view)
    }

    fn own(view: Self::View<'_>) -> Self::Owned {
        view.map(S::own)
    }

    fn own_into(view: Self::View<'_>, slot: &mut Self::Owned) {
        match (view, slot.as_mut()) {
            (Some(view), Some(there)) => S::own_into(view, there),
            (view, _) => *slot = Self::own(view),
        }
    }

    fn weight(owned: &Self::Owned) -> usize {
        owned.as_ref().map_or(0, S::weight)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{I64, Utf8};
    use super::*;

    #[test]
    fn null_is_none_at_any_depth() {
        assert!(Opt::<Opt<I64>>::is_null(None));
        assert!(Opt::<Opt<I64>>::is_null(Some(None)));
        assert!(!Opt::<Opt<I64>>::is_null(Some(Some(0))));
        assert_eq!(Opt(Opt(I64)).decode(&[0; 8]), Ok(Some(Some(0))));
    }

    #[test]
    fn own_into_keeps_the_buffer_of_a_value_that_stays() {
        let mut slot = Opt::<Utf8>::own(Some("a longer text"));
        let before = slot.as_ref().unwrap().as_ptr();
        Opt::<Utf8>::own_into(Some("short"), &mut slot);
        assert_eq!((slot.as_deref(), slot.as_ref().unwrap().as_ptr()), (Some("short"), before));
        Opt::<Utf8>::own_into(None, &mut slot);
        assert_eq!(slot, None);
    }
}
