//! Keys of windowed tables: a key, and the window it belongs to.
//!
//! Owns the bytes of such keys, Java's: a time or sliding window is the key and the window's start (8 bytes), a session
//! the key, its end and its start (8 bytes each). Invariant: what is decoded is encoded to the same bytes. Bound: none
//! beyond the inner codec's. Called by windowed tables and by who reads or writes their topics.
use super::error::DecodeError;
use super::place::Place;
use super::schema::{Codec, Schema};
use super::scratch::Scratch;
use std::fmt;
use std::time::Duration;

/// Bytes of a time in a windowed key.
pub(crate) const TIME_BYTES: usize = 8;

/// What follows the key's own bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WindowForm {
    /// The window's start. The end is so many milliseconds later.
    Time {
        /// Length of every window.
        size_ms: i64,
    },
    /// The session's end, then its start.
    Session,
}

/// The schema of a windowed key: closures see a [`WindowKey`].
///
/// The bytes are those of Java's `TimeWindowedSerializer` and `SessionWindowedSerializer`.
///
/// ```
/// use plimsoll::prelude::*;
/// use std::time::Duration;
///
/// let hourly = Windowed::time(Utf8, Duration::from_secs(3600));
/// let mut out = Scratch::with_limit(64);
/// hourly.encode(WindowKey { key: "a", start: 3_600_000, end: 7_200_000 }, &mut out);
/// assert_eq!(out.bytes(), b"a\0\0\0\0\0\x36\xee\x80");
/// let read = hourly.decode(out.bytes()).unwrap();
/// assert_eq!((read.key, read.start, read.end), ("a", 3_600_000, 7_200_000));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Windowed<K> {
    key: K,
    form: WindowForm,
}

impl<K> Windowed<K> {
    /// Keys of time windows or sliding windows of this length.
    pub fn time(key: K, size: Duration) -> Self {
        Self::new(key, WindowForm::Time { size_ms: i64::try_from(size.as_millis()).unwrap_or(i64::MAX) })
    }

    /// Keys of sessions.
    pub fn session(key: K) -> Self {
        Self::new(key, WindowForm::Session)
    }

    pub(crate) fn new(key: K, form: WindowForm) -> Self {
        Self { key, form }
    }
}

/// A key and its window, as closures see it.
pub struct WindowKey<'a, K: Schema> {
    /// The key.
    pub key: K::View<'a>,
    /// First millisecond of the window.
    pub start: i64,
    /// Of a time window the first millisecond behind it; of a sliding window or a session its last.
    pub end: i64,
}

impl<K: Schema> Clone for WindowKey<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Schema> Copy for WindowKey<'_, K> {}

impl<'a, K: Schema> fmt::Debug for WindowKey<'a, K>
where
    K::View<'a>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{}/{}", self.key, self.start, self.end)
    }
}

/// A windowed key as closures and decoders return it.
pub struct WindowKeyOut<'a, K: Schema> {
    /// The key.
    pub key: K::Out<'a>,
    /// First millisecond of the window.
    pub start: i64,
    /// As [`WindowKey::end`].
    pub end: i64,
}

impl<'a, K: Schema> fmt::Debug for WindowKeyOut<'a, K>
where
    K::Out<'a>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{}/{}", self.key, self.start, self.end)
    }
}

/// A windowed key as a store or a test keeps it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OwnedWindowKey<T> {
    /// The key.
    pub key: T,
    /// First millisecond of the window.
    pub start: i64,
    /// As [`WindowKey::end`].
    pub end: i64,
}

impl<K: Schema> Schema for Windowed<K> {
    type View<'a> = WindowKey<'a, K>;
    type Out<'a> = WindowKeyOut<'a, K>;

    #[inline]
    fn lend<'s, 'a: 's>(out: &'s WindowKeyOut<'a, K>) -> WindowKey<'s, K> {
        WindowKey { key: K::lend(&out.key), start: out.start, end: out.end }
    }

    #[inline]
    fn shorten<'s, 'a: 's>(view: WindowKey<'a, K>) -> WindowKey<'s, K> {
        WindowKey { key: K::shorten(view.key), start: view.start, end: view.end }
    }
}

/// The last 8 bytes as a time, and what is before them.
fn split_time(bytes: &[u8]) -> Result<(&[u8], i64), DecodeError> {
    let too_short = DecodeError::Length { expected: TIME_BYTES, found: bytes.len() };
    let (key, time) = bytes.split_last_chunk::<TIME_BYTES>().ok_or(too_short)?;
    Ok((key, i64::from_be_bytes(*time)))
}

impl WindowForm {
    /// The key's own bytes, start and end.
    pub(crate) fn split(self, bytes: &[u8]) -> Result<(&[u8], i64, i64), DecodeError> {
        let (rest, start) = split_time(bytes)?;
        match self {
            // A window that would end behind the last millisecond ends there.
            Self::Time { size_ms } => Ok((rest, start, start.saturating_add(size_ms))),
            Self::Session => split_time(rest).map(|(key, end)| (key, start, end)),
        }
    }

    /// Appends the window behind a key's own bytes.
    #[inline]
    pub(crate) fn append(self, start: i64, end: i64, out: &mut Scratch) {
        if self == Self::Session {
            out.extend(&end.to_be_bytes());
        }
        out.extend(&start.to_be_bytes());
    }
}

impl<K: Codec> Codec for Windowed<K> {
    type Owned = OwnedWindowKey<K::Owned>;

    fn bind(&self, at: &Place<'_>) -> Self {
        Self { key: self.key.bind(at), form: self.form }
    }

    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<WindowKeyOut<'a, K>, DecodeError> {
        let (key, start, end) = self.form.split(bytes)?;
        Ok(WindowKeyOut { key: self.key.decode(key)?, start, end })
    }

    fn encode(&self, view: WindowKey<'_, K>, out: &mut Scratch) {
        self.key.encode(view.key, out);
        self.form.append(view.start, view.end, out);
    }

    fn view(owned: &Self::Owned) -> WindowKey<'_, K> {
        WindowKey { key: K::view(&owned.key), start: owned.start, end: owned.end }
    }

    fn own(view: WindowKey<'_, K>) -> Self::Owned {
        OwnedWindowKey { key: K::own(view.key), start: view.start, end: view.end }
    }

    fn own_into(view: WindowKey<'_, K>, slot: &mut Self::Owned) {
        K::own_into(view.key, &mut slot.key);
        (slot.start, slot.end) = (view.start, view.end);
    }

    fn weight(owned: &Self::Owned) -> usize {
        K::weight(&owned.key)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::Utf8;
    use super::*;

    fn bytes<C: Codec>(codec: &C, view: C::View<'_>) -> Vec<u8> {
        let mut out = Scratch::with_limit(64);
        codec.encode(view, &mut out);
        out.bytes().to_vec()
    }

    #[test]
    fn a_time_window_is_the_key_and_its_start_as_java_writes_it() {
        let codec = Windowed::time(Utf8, Duration::from_millis(10));
        let written = bytes(&codec, WindowKey { key: "all", start: 5, end: 15 });
        assert_eq!(written, b"all\0\0\0\0\0\0\0\x05");
        let read = codec.decode(&written).unwrap();
        assert_eq!((read.key, read.start, read.end), ("all", 5, 15));
    }

    #[test]
    fn a_session_is_the_key_its_end_and_its_start_as_java_writes_it() {
        let codec = Windowed::session(Utf8);
        let written = bytes(&codec, WindowKey { key: "ab", start: 27, end: 31 });
        assert_eq!(written, b"ab\0\0\0\0\0\0\0\x1f\0\0\0\0\0\0\0\x1b");
        let read = codec.decode(&written).unwrap();
        assert_eq!((read.key, read.start, read.end), ("ab", 27, 31));
    }

    #[test]
    fn a_key_without_room_for_its_window_is_refused() {
        assert_eq!(
            Windowed::session(Utf8).decode(&[0; 15]).unwrap_err(),
            DecodeError::Length { expected: 8, found: 7 }
        );
        let endless = Windowed::time(Utf8, Duration::MAX).decode(&[0, 0, 0, 0, 0, 0, 0, 9]).unwrap();
        assert_eq!((endless.start, endless.end), (9, i64::MAX));
    }
}
