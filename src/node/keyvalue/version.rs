//! A value or the mark that there was none from then on, as a versioned store keeps it.
use crate::codec::{Codec, DecodeError, Place, Schema, Scratch};
use crate::store::kind::{NONE, SOME};

/// The schema of a version: a flag, then the value. Unlike with `Opt`, "none" is something to keep.
#[derive(Clone, Debug)]
pub(crate) struct Version<V>(pub(crate) V);

impl<V: Schema> Schema for Version<V> {
    type View<'a> = Option<V::View<'a>>;
    type Out<'a> = Option<V::Out<'a>>;

    fn lend<'s, 'a: 's>(out: &'s Self::Out<'a>) -> Self::View<'s> {
        out.as_ref().map(V::lend)
    }

    fn shorten<'s, 'a: 's>(view: Self::View<'a>) -> Self::View<'s> {
        view.map(V::shorten)
    }
}

impl<V: Codec> Codec for Version<V> {
    type Owned = Option<V::Owned>;

    fn bind(&self, at: &Place<'_>) -> Self {
        Self(self.0.bind(at))
    }

    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Self::Out<'a>, DecodeError> {
        match bytes.split_first() {
            Some((&SOME, value)) => self.0.decode(value).map(Some),
            _ => Ok(None),
        }
    }

    fn encode(&self, view: Self::View<'_>, out: &mut Scratch) {
        out.push(if view.is_some() { SOME } else { NONE });
        if let Some(value) = view {
            self.0.encode(value, out);
        }
    }

    fn view(owned: &Self::Owned) -> Self::View<'_> {
        owned.as_ref().map(V::view)
    }

    fn own(view: Self::View<'_>) -> Self::Owned {
        view.map(V::own)
    }

    fn own_into(view: Self::View<'_>, slot: &mut Self::Owned) {
        match (view, slot.as_mut()) {
            (Some(view), Some(slot)) => V::own_into(view, slot),
            (view, _) => *slot = Self::own(view),
        }
    }

    fn weight(owned: &Self::Owned) -> usize {
        owned.as_ref().map_or(0, V::weight)
    }
}
