//! How two values become one: the closures of the joins, for any of their kinds.
use crate::codec::Schema;
use crate::node::Fn2;
use std::sync::Arc;

/// Joins what is there of both sides; `None` where the kind of join has no result.
pub(crate) trait Joiner<V: Schema, R: Schema, W: Schema> {
    fn join<'x>(&self, left: Option<V::View<'x>>, right: Option<R::View<'x>>) -> Option<W::Out<'x>>;
}

/// Both sides must be there.
pub(crate) struct Inner<F>(pub(crate) Arc<F>);

/// The left side must be there.
pub(crate) struct Left<F>(pub(crate) Arc<F>);

/// One side must be there.
pub(crate) struct Outer<F>(pub(crate) Arc<F>);

/// The same join seen from its other side.
#[derive(Clone)]
pub(crate) struct Flipped<J>(pub(crate) J);

macro_rules! cloned {
    ($($name:ident),*) => {$(
        impl<F> Clone for $name<F> {
            fn clone(&self) -> Self {
                Self(Arc::clone(&self.0))
            }
        }
    )*};
}
cloned!(Inner, Left, Outer);

impl<V: Schema, R: Schema, W: Schema, F> Joiner<V, R, W> for Inner<F>
where
    F: for<'x> Fn2<V::View<'x>, R::View<'x>, W::Out<'x>>,
{
    #[inline]
    fn join<'x>(&self, left: Option<V::View<'x>>, right: Option<R::View<'x>>) -> Option<W::Out<'x>> {
        Some((self.0)(left?, right?))
    }
}

impl<V: Schema, R: Schema, W: Schema, F> Joiner<V, R, W> for Left<F>
where
    F: for<'x> Fn2<V::View<'x>, Option<R::View<'x>>, W::Out<'x>>,
{
    #[inline]
    fn join<'x>(&self, left: Option<V::View<'x>>, right: Option<R::View<'x>>) -> Option<W::Out<'x>> {
        Some((self.0)(left?, right))
    }
}

impl<V: Schema, R: Schema, W: Schema, F> Joiner<V, R, W> for Outer<F>
where
    F: for<'x> Fn2<Option<V::View<'x>>, Option<R::View<'x>>, W::Out<'x>>,
{
    #[inline]
    fn join<'x>(&self, left: Option<V::View<'x>>, right: Option<R::View<'x>>) -> Option<W::Out<'x>> {
        (left.is_some() || right.is_some()).then(|| (self.0)(left, right))
    }
}

impl<V: Schema, R: Schema, W: Schema, J: Joiner<V, R, W>> Joiner<R, V, W> for Flipped<J> {
    #[inline]
    fn join<'x>(&self, left: Option<R::View<'x>>, right: Option<V::View<'x>>) -> Option<W::Out<'x>> {
        self.0.join(right, left)
    }
}
