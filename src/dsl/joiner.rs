//! The closures of stream-stream joins as joiners: which sides may miss, and whether the key is seen.
use crate::codec::Schema;
use crate::node::ops::StreamJoiner;
use crate::node::{Fn2, Fn3};

/// Both values are there.
pub(super) struct Inner<F>(pub(super) F);
/// The right value may miss.
pub(super) struct Left<F>(pub(super) F);
/// Either may miss.
pub(super) struct Outer<F>(pub(super) F);
/// As [`Inner`], with the key.
pub(super) struct InnerWithKey<F>(pub(super) F);
/// As [`Left`], with the key.
pub(super) struct LeftWithKey<F>(pub(super) F);
/// As [`Outer`], with the key.
pub(super) struct OuterWithKey<F>(pub(super) F);

/// A joiner out of a closure's shape.
macro_rules! joiner {
    (
        $joiner:ident, $closure:ident, ($($argument:ty),*),
        |$f:ident, $key:ident, $left:ident, $right:ident| $call:expr
    ) => {
        impl<K: Schema, L: Schema, R: Schema, W: Schema, F> StreamJoiner<K, L, R, W> for $joiner<F>
        where
            F: for<'x> $closure<$($argument,)* W::Out<'x>>,
        {
            fn join<'x>(
                &self,
                $key: K::View<'x>,
                $left: Option<L::View<'x>>,
                $right: Option<R::View<'x>>,
            ) -> Option<W::Out<'x>> {
                let $f = &self.0;
                Some($call)
            }
        }
    };
}

joiner!(Inner, Fn2, (L::View<'x>, R::View<'x>), |f, _key, left, right| f(left?, right?));
joiner!(Left, Fn2, (L::View<'x>, Option<R::View<'x>>), |f, _key, left, right| f(left?, right));
joiner!(Outer, Fn2, (Option<L::View<'x>>, Option<R::View<'x>>), |f, _key, left, right| f(left, right));
joiner!(InnerWithKey, Fn3, (K::View<'x>, L::View<'x>, R::View<'x>), |f, key, left, right| f(key, left?, right?));
joiner!(LeftWithKey, Fn3, (K::View<'x>, L::View<'x>, Option<R::View<'x>>), |f, key, left, right| f(key, left?, right));
joiner!(OuterWithKey, Fn3, (K::View<'x>, Option<L::View<'x>>, Option<R::View<'x>>), |f, key, left, right| f(
    key, left, right
));
