//! Text and bytes that a closure makes, in the thread's arena.
use crate::arena::Arena;
use std::fmt::{self, Write as _};

/// There is no room for what a closure wanted to write: the record is larger than the thread's arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no room in the arena of {limit} bytes for what a closure makes of a record; raise the memory line")]
#[non_exhaustive]
pub struct NoRoom {
    /// Bytes of the arena.
    pub limit: usize,
}

/// Writes text and bytes that live until the record is done, without an allocation. What a `map_values_in` closure
/// gets.
#[derive(Clone, Copy, Debug)]
pub struct Pen<'a> {
    arena: &'a Arena,
}

impl<'a> Pen<'a> {
    pub(crate) fn new(arena: &'a Arena) -> Self {
        Self { arena }
    }

    fn no_room(self) -> NoRoom {
        NoRoom { limit: self.arena.limit() }
    }

    /// Formats text: `pen.write(format_args!("{a}-{b}"))`.
    ///
    /// # Errors
    /// It is larger than the arena, or what is formatted answers an error.
    pub fn write(self, text: fmt::Arguments<'_>) -> Result<&'a str, NoRoom> {
        if let Some(text) = text.as_str() {
            return self.text(text);
        }
        let mut length = Length(0);
        length.write_fmt(text).map_err(|_| self.no_room())?;
        let room = self.arena.alloc_zeroed(length.0).map_err(|_| self.no_room())?;
        let mut fill = Fill { room, at: 0 };
        fill.write_fmt(text).map_err(|_| self.no_room())?;
        let Fill { room, at } = fill;
        room.get(..at).and_then(|bytes| std::str::from_utf8(bytes).ok()).ok_or(self.no_room())
    }

    /// A copy of text.
    ///
    /// # Errors
    /// It is larger than the arena.
    pub fn text(self, text: &str) -> Result<&'a str, NoRoom> {
        self.arena.alloc_str(text).map_err(|_| self.no_room())
    }

    /// A copy of bytes.
    ///
    /// # Errors
    /// They are larger than the arena.
    pub fn bytes(self, bytes: &[u8]) -> Result<&'a [u8], NoRoom> {
        self.arena.alloc_bytes(bytes).map_err(|_| self.no_room())
    }
}

/// Counts what would be written.
struct Length(usize);

impl fmt::Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// Writes into room of the right size.
struct Fill<'a> {
    room: &'a mut [u8],
    at: usize,
}

impl fmt::Write for Fill<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.at + text.len();
        self.room.get_mut(self.at..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.at = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_written_once_and_what_is_too_large_is_refused() {
        let arena = Arena::new(1024);
        let pen = Pen::new(&arena);
        assert_eq!(pen.write(format_args!("{}-{:03}", "a", 7)), Ok("a-007"));
        assert_eq!(pen.bytes(&[1, 2]), Ok(&[1, 2][..]));
        assert_eq!(pen.text(&"x".repeat(2000)), Err(NoRoom { limit: arena.limit() }));
    }
}
