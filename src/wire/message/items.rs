//! Arrays in responses that are read where they lie.
use std::marker::PhantomData;

use crate::wire::Reader;
use crate::wire::error::Result;

/// An element of an array, read in the form of a version of its message.
pub(crate) trait Item<'a>: Sized {
    /// Reads one element with its tagged fields.
    fn read(reader: &mut Reader<'a>, version: i16) -> Result<Self>;
}

/// An array that was checked when its message was read, and is decoded while it is iterated. Costs no memory, at the
/// price of decoding twice; so it is for small arrays and for messages off the hot path.
#[derive(Debug)]
pub(crate) struct Items<'a, T> {
    reader: Reader<'a>,
    left: usize,
    version: i16,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Items<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Items<'_, T> {}

impl<'a, T: Item<'a>> Items<'a, T> {
    /// No elements.
    pub(crate) fn empty() -> Items<'a, T> {
        Items { reader: Reader::new(&[], false), left: 0, version: 0, element: PhantomData }
    }

    /// Reads and checks the array at the reader's position, null as empty.
    pub(crate) fn read(reader: &mut Reader<'a>, version: i16) -> Result<Items<'a, T>> {
        let left = reader.array_len()?;
        let items = Items { reader: *reader, left, version, element: PhantomData };
        for _ in 0..left {
            T::read(reader, version)?;
        }
        Ok(items)
    }
}

impl<'a, T: Item<'a>> Iterator for Items<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        T::read(&mut self.reader, self.version).ok() // checked when the array was read
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'a, T: Item<'a>> ExactSizeIterator for Items<'a, T> {}
