//! What kind of store it is: how its rows look, what their keys mean and how long they stay.
//!
//! Pure data and arithmetic, decided when the topology is built. Read by the wired store, by who restores it and by who
//! makes its changelog topic.
//!
//! Rows of windows and sessions lie in segments, as Kafka Streams keeps them: behind the partition comes the number of
//! the row's segment (8 bytes, big-endian), then the key as Kafka has it. So what is old lies together and goes at
//! once, and iterating goes by segment, then by key, as there.
use super::offset::PREFIX_BYTES;

/// Bytes of a timestamp in front of a stored value.
pub(crate) const TIMESTAMP_BYTES: usize = 8;
/// Bytes of a segment's number.
pub(crate) const SEGMENT_BYTES: usize = 8;
/// Bytes behind the key in a window's key: its start and a number.
pub(crate) const WINDOW_SUFFIX: usize = 12;
/// Bytes behind the key in a session's key: its end and its start.
pub(crate) const SESSION_SUFFIX: usize = 16;
/// Bytes behind the key in a version's key: its time.
const VERSION_SUFFIX: usize = 8;
/// Bytes in front of the key in a version's key: its length.
pub(crate) const VERSION_LEAD: usize = 4;
/// First byte of a version without a value.
pub(crate) const NONE: u8 = 0;
/// First byte of a version with one.
pub(crate) const SOME: u8 = 1;
/// Kafka's shortest segment.
const MIN_SEGMENT_MS: i64 = 60_000;

/// The bytes of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// The value's timestamp (8 bytes, big-endian), then the value.
    Timestamped,
    /// The value alone.
    Plain,
}

/// How long rows stay behind the store's stream time, and how they lie together. Milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Retention {
    pub(crate) ms: i64,
    /// Time that a segment spans. 1: rows lie by time, then by key.
    pub(crate) segment_ms: i64,
}

impl Retention {
    /// With Kafka's segments.
    const fn new(ms: i64) -> Self {
        let half = ms / 2;
        Self { ms, segment_ms: if half > MIN_SEGMENT_MS { half } else { MIN_SEGMENT_MS } }
    }

    /// The number of the segment of a time.
    pub(crate) fn segment(&self, time: i64) -> u64 {
        (time.max(0) / self.segment_ms.max(1)).unsigned_abs()
    }

    /// The first segment that is kept. Moves in steps of Kafka's segments, so that deleting is seldom.
    pub(crate) fn first_kept(&self, stream_time: i64) -> u64 {
        let step = Self::new(self.ms).segment_ms;
        let kept = stream_time.saturating_sub(self.ms).max(0) / step * step;
        self.segment(kept)
    }
}

/// What the keys mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rows {
    /// A row a key, until it is deleted.
    KeyValue,
    /// Keys end with the window's start (8 bytes) and a number (4 bytes).
    Window(Retention),
    /// Keys end with the session's end and its start (8 bytes each).
    Session(Retention),
    /// Versions of a key: its length (4 bytes), the key, the version's time (8 bytes).
    Versioned {
        /// How far back a key's past is known, milliseconds.
        history_ms: i64,
    },
}

/// A kind of store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StoreKind {
    pub(crate) layout: Layout,
    pub(crate) rows: Rows,
    /// Whether committed rows lie in memory, not on disk.
    pub(crate) in_memory: bool,
    /// Whether changelog records carry the headers of the record that made the change.
    pub(crate) logs_headers: bool,
}

impl StoreKind {
    /// A window store with timestamps.
    pub(crate) const fn window(retention_ms: i64) -> Self {
        Self::of(Layout::Timestamped, Rows::Window(Retention::new(retention_ms)))
    }

    /// The window store of a join: without timestamps, as each row's is in its key.
    pub(crate) const fn join_window(retention_ms: i64) -> Self {
        let mut kind = Self::of(Layout::Plain, Rows::Window(Retention::new(retention_ms)));
        kind.logs_headers = true;
        kind
    }

    /// A window store whose rows are values alone.
    pub(crate) const fn plain_window(retention_ms: i64) -> Self {
        Self::of(Layout::Plain, Rows::Window(Retention::new(retention_ms)))
    }

    /// A session store, whose rows have no timestamps.
    pub(crate) const fn session(retention_ms: i64) -> Self {
        Self::of(Layout::Plain, Rows::Session(Retention::new(retention_ms)))
    }

    /// A store that knows the past of its keys.
    pub(crate) const fn versioned(history_ms: i64) -> Self {
        Self::of(Layout::Plain, Rows::Versioned { history_ms })
    }

    const fn of(layout: Layout, rows: Rows) -> Self {
        Self { layout, rows, in_memory: false, logs_headers: false }
    }

    /// Rows in memory; windows and sessions then lie by time.
    #[must_use]
    pub(crate) const fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self.by_time()
    }

    /// Rows by time, then by key: for stores whose windows are emitted when they close, and those in memory.
    #[must_use]
    pub(crate) const fn by_time(mut self) -> Self {
        match &mut self.rows {
            Rows::Window(retention) | Rows::Session(retention) => retention.segment_ms = 1,
            Rows::KeyValue | Rows::Versioned { .. } => {}
        }
        self
    }

    /// As errors name it.
    pub(crate) fn in_words(&self) -> &'static str {
        match self.rows {
            Rows::KeyValue => "a key-value store",
            Rows::Window(_) => "a window store",
            Rows::Session(_) => "a session store",
            Rows::Versioned { .. } => "a versioned store",
        }
    }

    /// How long rows stay; `None`: until they are deleted.
    pub(crate) fn retention(&self) -> Option<Retention> {
        match self.rows {
            Rows::KeyValue | Rows::Versioned { .. } => None,
            Rows::Window(retention) | Rows::Session(retention) => Some(retention),
        }
    }

    /// The lowest time of a row that is still there. Kafka Streams' window stores on disk whose rows lie by time keep
    /// a millisecond more.
    pub(crate) fn oldest(&self, stream_time: i64) -> i64 {
        let Some(retention) = self.retention() else { return i64::MIN };
        let keeps_more = retention.segment_ms == 1 && !self.in_memory && matches!(self.rows, Rows::Window(_));
        stream_time.saturating_sub(retention.ms).saturating_add(i64::from(!keeps_more))
    }

    /// How far back a key's past is known, milliseconds.
    pub(crate) fn history(&self) -> Option<i64> {
        match self.rows {
            Rows::Versioned { history_ms } => Some(history_ms),
            _ => None,
        }
    }

    /// Bytes behind the user's key in a key.
    pub(crate) fn suffix(&self) -> usize {
        match self.rows {
            Rows::KeyValue => 0,
            Rows::Window(_) => WINDOW_SUFFIX,
            Rows::Session(_) => SESSION_SUFFIX,
            Rows::Versioned { .. } => VERSION_SUFFIX,
        }
    }

    /// The time by which a row expires: a window's start, a session's end; a version's time. `key` with or without what
    /// is in front of the user's key.
    pub(crate) fn time_of(&self, key: &[u8]) -> i64 {
        time_at(key, self.suffix())
    }

    /// The segment's number in front of a row's key; `None` where rows are not in segments.
    pub(crate) fn segment_of(&self, key: &[u8]) -> Option<[u8; SEGMENT_BYTES]> {
        let retention = self.retention()?;
        Some(retention.segment(self.time_of(key)).to_be_bytes())
    }
}

impl From<Layout> for StoreKind {
    /// A key-value store.
    fn from(layout: Layout) -> Self {
        Self::of(layout, Rows::KeyValue)
    }
}

/// The 8-byte number that begins so many bytes before the end of a key.
fn time_at(key: &[u8], before_end: usize) -> i64 {
    let at = key.len().checked_sub(before_end);
    let bytes = at.and_then(|at| key.get(at..)).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

/// The parts of a window store's key: the user's key, the window's start, the number.
pub(crate) fn window_parts(key: &[u8]) -> (&[u8], i64, u32) {
    let user = key.get(..key.len().saturating_sub(WINDOW_SUFFIX)).unwrap_or_default();
    let number = key.last_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    (user, time_at(key, WINDOW_SUFFIX), number)
}

/// The parts of a session store's key: the user's key, the session's start and end.
pub(crate) fn session_parts(key: &[u8]) -> (&[u8], i64, i64) {
    let user = key.get(..key.len().saturating_sub(SESSION_SUFFIX)).unwrap_or_default();
    (user, time_at(key, 8), time_at(key, SESSION_SUFFIX))
}

/// Makes the key of a version: `key` is the partition and the user's key.
pub(crate) fn version_key(key: &[u8], time: i64, into: &mut Vec<u8>) {
    let (prefix, user) = key.split_at_checked(PREFIX_BYTES).unwrap_or((key, &[]));
    into.clear();
    into.extend_from_slice(prefix);
    into.extend_from_slice(&version_lead(user));
    into.extend_from_slice(user);
    into.extend_from_slice(&time.to_be_bytes());
}

/// What is in front of the user's key in a version's key: its length, so that a key's versions lie together.
pub(crate) fn version_lead(user: &[u8]) -> [u8; VERSION_LEAD] {
    u32::try_from(user.len()).unwrap_or(u32::MAX).to_be_bytes()
}

/// The parts of a version's key: the user's key and the version's time.
pub(crate) fn version_parts(key: &[u8]) -> (&[u8], i64) {
    let end = key.len().saturating_sub(VERSION_SUFFIX);
    (key.get(VERSION_LEAD..end).unwrap_or_default(), time_at(key, VERSION_SUFFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_windows_and_sessions_are_taken_apart() {
        let window = b"k\0\0\0\0\0\0\x01\x02\0\0\0\x07";
        assert_eq!(window_parts(window), (&b"k"[..], 258, 7));
        assert_eq!(StoreKind::window(1).time_of(window), 258);
        let session = b"k\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\0\x09";
        assert_eq!(session_parts(session), (&b"k"[..], 9, 258));
        assert_eq!(StoreKind::session(1).time_of(session), 258);
    }

    #[test]
    fn segments_are_half_the_retention_and_at_least_a_minute() {
        assert_eq!(Retention::new(1_000).segment_ms, 60_000);
        assert_eq!(Retention::new(300_000).segment_ms, 150_000);
        assert_eq!(Retention::new(300_000).segment(449_999), 2);
        let kind = StoreKind::window(300_000);
        assert_eq!((kind.oldest(300_005), kind.by_time().oldest(300_005), kind.in_memory().oldest(300_005)), (6, 5, 6));
        assert_eq!(StoreKind::session(300_000).by_time().oldest(300_005), 6);
        assert_eq!((Retention::new(1_000).first_kept(60_999), Retention::new(1_000).first_kept(61_000)), (0, 1));
    }
}
