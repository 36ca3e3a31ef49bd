//! What flows between tables: the new value and the old one.
use super::schema::Schema;
use std::fmt;
use std::marker::PhantomData;

/// The schema of a table's updates: closures never see it, but `Schema` is what edges are typed by.
pub struct Change<V>(PhantomData<fn() -> V>);

impl<V> Change<V> {}

impl<V> Clone for Change<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Change<V> {}

impl<V> fmt::Debug for Change<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Change")
    }
}

/// One update of a table's key.
pub struct Delta<'a, V: Schema> {
    /// The value now; `None` when the key was deleted.
    pub new: Option<V::View<'a>>,
    /// The value that went downstream before; `None` when there was none or nobody downstream asked for it.
    pub old: Option<V::View<'a>>,
}

impl<V: Schema> Clone for Delta<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Schema> Copy for Delta<'_, V> {}

impl<V: Schema> fmt::Debug for Delta<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delta").field("new", &self.new.is_some()).field("old", &self.old.is_some()).finish()
    }
}

impl<V: Schema> Schema for Change<V> {
    type View<'a> = Delta<'a, V>;
    type Out<'a> = Delta<'a, V>;

    #[inline]
    fn lend<'s, 'a: 's>(out: &'s Delta<'a, V>) -> Delta<'s, V> {
        Self::shorten(*out)
    }

    #[inline]
    fn shorten<'s, 'a: 's>(view: Delta<'a, V>) -> Delta<'s, V> {
        Delta { new: view.new.map(V::shorten), old: view.old.map(V::shorten) }
    }
}
