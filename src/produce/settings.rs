//! What a producer is made with. Sizes come from the plan; the rest are Kafka's settings under Kafka's names.
use super::broker::Broker;
use super::pool::BatchPool;
use crate::wire::{Compression, Compressor};

/// Settings of one [`Producer`](super::Producer). Times are in milliseconds, sizes in bytes.
#[derive(Clone, Debug)]
pub(crate) struct ProducerSettings {
    /// Bytes of one batch buffer, header included: the largest batch, and the largest record but for `oversize_bytes`.
    pub(crate) batch_bytes: usize,
    /// Batch buffers: with `batch_bytes` the whole memory of the records on their way.
    pub(crate) batches: usize,
    /// Bytes of the one buffer for records that fit no batch buffer; 0 for none.
    pub(crate) oversize_bytes: usize,
    /// Name of the plan's row that pays for the buffers; named when a record does not fit.
    pub(crate) row: &'static str,
    /// Codec of the batches. Needs one buffer more of `batch_bytes` unless it is `None`.
    pub(crate) compression: Compression,
    /// Level of the codec; `None`: Kafka's default.
    pub(crate) compression_level: Option<i32>,
    /// How long a partial batch waits for more records. 0: it leaves when few requests are on their way, without a
    /// timer.
    pub(crate) linger_ms: i64,
    /// How long a batch may take from its first record to its acknowledgement; then it fails (`delivery.timeout.ms`).
    pub(crate) delivery_timeout_ms: i64,
    /// How long a request may stay unanswered before its connection is given up (`request.timeout.ms`).
    pub(crate) request_timeout_ms: i64,
    /// First pause before something is tried again; doubles up to `retry_backoff_max_ms`, with jitter of a fifth.
    pub(crate) retry_backoff_ms: u32,
    /// Longest pause before something is tried again.
    pub(crate) retry_backoff_max_ms: u32,
    /// How long a topic may stay unknown to the cluster before an append is refused (`max.block.ms`).
    pub(crate) topic_timeout_ms: i64,
    /// How long a connection that nobody uses is kept (`connections.max.idle.ms`).
    pub(crate) max_idle_ms: i64,
    /// Most bytes of batches in one request (`max.request.size`).
    pub(crate) request_bytes: usize,
    /// `client.id` of the requests.
    pub(crate) client_id: String,
}

impl ProducerSettings {
    /// Kafka's defaults around a pool of `batches` buffers of `batch_bytes`.
    pub(crate) fn new(batch_bytes: usize, batches: usize) -> Self {
        Self {
            batch_bytes,
            batches,
            oversize_bytes: 0,
            row: "producer batch pool",
            compression: Compression::None,
            compression_level: None,
            linger_ms: 0,
            delivery_timeout_ms: 120_000,
            request_timeout_ms: 30_000,
            retry_backoff_ms: 100,
            retry_backoff_max_ms: 1_000,
            topic_timeout_ms: 60_000,
            max_idle_ms: 540_000,
            request_bytes: 1 << 20,
            client_id: String::from("plimsoll"),
        }
    }

    /// Bytes that a producer holds with these settings, for the plan: buffers, codec, and connections to `brokers`
    /// brokers. What it notes of each topic and partition (about 150 bytes) comes on top.
    #[allow(dead_code)] // for tests and the plan
    pub(crate) fn bytes(&self, brokers: usize) -> usize {
        let pool = BatchPool::bytes(self.batch_bytes, self.batches, self.oversize_bytes);
        let buffers = self.batches + usize::from(self.oversize_bytes > self.batch_bytes);
        pool + Compressor::bytes(self.compression, self.compression_level, self.batch_bytes)
            + brokers * Broker::bytes(buffers)
    }
}
