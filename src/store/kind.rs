//! What kind of store it is: how its rows look, and what their keys mean.
//!
//! Pure data, decided when the topology is built. Read by the wired store, by who restores it and by who makes its
//! changelog topic.

/// Bytes of a timestamp in front of a stored value.
pub(crate) const TIMESTAMP_BYTES: usize = 8;

/// The bytes of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// The value's timestamp (8 bytes, big-endian), then the value.
    Timestamped,
    /// The value alone.
    Plain,
}

/// What the keys mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rows {
    /// A row a key, until it is deleted.
    KeyValue,
    /// Keys end with the window's start (8 bytes) and a number (4 bytes); rows older than the retention go.
    Window {
        /// How long a row is kept behind the store's stream time, milliseconds.
        retention_ms: i64,
    },
    /// Keys end with the session's end and its start (8 bytes each); rows older than the retention go.
    Session {
        /// How long a row is kept behind the store's stream time, milliseconds.
        retention_ms: i64,
    },
}

/// A kind of store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StoreKind {
    pub(crate) layout: Layout,
    pub(crate) rows: Rows,
}

impl StoreKind {
    /// A window store with timestamps.
    pub(crate) const fn window(retention_ms: i64) -> Self {
        Self { layout: Layout::Timestamped, rows: Rows::Window { retention_ms } }
    }

    /// A window store without timestamps: that of a join.
    pub(crate) const fn plain_window(retention_ms: i64) -> Self {
        Self { layout: Layout::Plain, rows: Rows::Window { retention_ms } }
    }

    /// A session store, whose rows have no timestamps.
    pub(crate) const fn session(retention_ms: i64) -> Self {
        Self { layout: Layout::Plain, rows: Rows::Session { retention_ms } }
    }
}

impl From<Layout> for StoreKind {
    /// A key-value store.
    fn from(layout: Layout) -> Self {
        Self { layout, rows: Rows::KeyValue }
    }
}
