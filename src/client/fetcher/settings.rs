//! What a fetcher is told once.
use crate::base::limits::MIN_FRAMES;

/// Settings of a fetcher. Times in milliseconds; names are those of Kafka's consumer where they mean the same.
#[derive(Debug, Clone)]
pub(crate) struct FetcherSettings {
    /// `client.id`, as brokers show it in their logs and quotas.
    pub(crate) client_id: String,
    /// `fetch.max.wait.ms`: how long a broker may hold a fetch back until there is something.
    pub(crate) max_wait_ms: i32,
    /// `fetch.min.bytes`: what counts as something.
    pub(crate) min_bytes: i32,
    /// `isolation.level=read_committed`.
    pub(crate) read_committed: bool,
    /// `check.crcs`.
    pub(crate) check_crcs: bool,
    /// `request.timeout.ms`: after that a silent connection is given up. On top of `max_wait_ms`.
    pub(crate) request_timeout_ms: i64,
    /// `socket.connection.setup.timeout.ms`.
    pub(crate) connect_timeout_ms: i64,
    /// `reconnect.backoff.ms`: first pause after a lost connection.
    pub(crate) reconnect_backoff_ms: u32,
    /// `reconnect.backoff.max.ms`: longest pause.
    pub(crate) reconnect_backoff_max_ms: u32,
    /// `retry.backoff.ms`: first pause of a partition whose broker refused it.
    pub(crate) retry_backoff_ms: u32,
    /// `retry.backoff.max.ms`: its longest pause.
    pub(crate) retry_backoff_max_ms: u32,
    /// `connections.max.idle.ms`: a connection that nobody uses is ended after that.
    pub(crate) max_idle_ms: i64,
    /// `client.rack`: brokers may then name a replica in the same rack to read from; empty: always the leader.
    pub(crate) rack: String,
    /// `metadata.max.age.ms`: how long a replica that was named is read from before the leader is asked again.
    pub(crate) replica_ms: i64,
    /// How long a topic may be missing until that is a fault: a topic just created is not known everywhere at once.
    pub(crate) missing_topic_ms: i64,
}

impl Default for FetcherSettings {
    fn default() -> Self {
        Self {
            client_id: "plimsoll".into(),
            max_wait_ms: 500,
            min_bytes: 1,
            read_committed: false,
            check_crcs: true,
            request_timeout_ms: 30_000,
            connect_timeout_ms: 10_000,
            reconnect_backoff_ms: 50,
            reconnect_backoff_max_ms: 1_000,
            retry_backoff_ms: 100,
            retry_backoff_max_ms: 1_000,
            max_idle_ms: 540_000,
            rack: String::new(),
            replica_ms: 300_000,
            missing_topic_ms: 10_000,
        }
    }
}

/// Why a fetcher cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FetcherError {
    /// The frame pool is too small to make progress.
    #[error(
        "a thread needs {MIN_FRAMES} frames, one of them reserved, but has {frames} with {reserved} reserved: raise \
         the memory line or use fewer threads"
    )]
    Frames {
        /// Frames of the pool.
        frames: usize,
        /// Reserved ones among them.
        reserved: usize,
    },
    /// A frame cannot hold even one partition's share.
    #[error("a frame has {frame_bytes} bytes but needs {needed}: raise the memory line")]
    FrameBytes {
        /// Bytes of a frame.
        frame_bytes: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// The contexts for decompression could not be made.
    #[error(transparent)]
    Decompressor(#[from] crate::wire::WireError),
    /// More topics or partitions than a fetcher can hold.
    #[error("a thread can fetch at most {limit} {what}")]
    TooMany {
        /// Topics or partitions.
        what: &'static str,
        /// How many.
        limit: usize,
    },
    /// More topics than a process may have.
    #[error(transparent)]
    Topics(#[from] crate::client::TooManyTopics),
}
