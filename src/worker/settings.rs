//! What the threads need to know of the user's settings, parsed and checked.
use super::failure::{DeserializationHandler, FailureHandler};
use crate::base::token::OauthToken;
use crate::budget::MAX_BATCH_BYTES;
use crate::topology::OffsetReset;
use crate::wire::{Compression, Compressor};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

/// Gives a new token; called by the control thread.
pub(crate) type OauthCallback = dyn Fn() -> Result<OauthToken, Box<dyn Error + Send + Sync>> + Send + Sync;

/// Settings of one application. Times are milliseconds; names in the comments are Kafka's.
#[derive(Clone)]
pub(crate) struct Settings {
    /// `application.id`: the group, and the prefix of internal topics.
    pub(crate) application_id: String,
    /// `bootstrap.servers`.
    pub(crate) bootstrap: String,
    /// `client.id`.
    pub(crate) client_id: String,
    /// `num.stream.threads`.
    pub(crate) threads: usize,
    /// `state.dir`, with the application's id below it.
    pub(crate) state_dir: PathBuf,
    /// `commit.interval.ms`.
    pub(crate) commit_interval_ms: i64,
    /// `max.task.idle.ms`.
    pub(crate) max_task_idle_ms: i64,
    /// `task.timeout.ms`: how long questions to the brokers on behalf of a task are asked again.
    pub(crate) task_timeout_ms: i64,
    /// `auto.offset.reset`, for sources without a policy of their own.
    pub(crate) reset: OffsetReset,
    /// `max.poll.interval.ms`: a turn may not last longer.
    pub(crate) max_poll_interval_ms: i64,
    /// `linger.ms` of the producer.
    pub(crate) linger_ms: i64,
    /// `delivery.timeout.ms` of the producer.
    pub(crate) delivery_timeout_ms: i64,
    /// `max.block.ms` of the producer: how long a topic to write to may stay unknown.
    pub(crate) max_block_ms: i64,
    /// `request.timeout.ms`.
    pub(crate) request_timeout_ms: i64,
    /// `fetch.max.wait.ms`.
    pub(crate) fetch_max_wait_ms: i32,
    /// `compression.type` of the producer.
    pub(crate) compression: Compression,
    /// `compression.gzip.level`, `compression.lz4.level` and `compression.zstd.level`: the codec's is used.
    pub(crate) compression_levels: [(Compression, Option<i32>); 3],
    /// `replication.factor` of internal topics; -1 is the broker's default.
    pub(crate) replication_factor: i32,
    /// Settings of `topic.` for internal topics.
    pub(crate) topic_configs: Vec<(String, String)>,
    /// Settings handed to the control plane as they are, in librdkafka's names.
    pub(crate) control_plane: Vec<(String, String)>,
    /// Security settings in librdkafka's names: for both planes.
    pub(crate) security: Vec<(String, String)>,
    /// Gives tokens for OAUTHBEARER.
    pub(crate) oauth_token: Option<Arc<OauthCallback>>,
    /// Whether the allocator counts the calls of stream threads.
    pub(crate) count_allocations: bool,
    /// Asked for each record that cannot be decoded.
    pub(crate) on_undecodable: Arc<DeserializationHandler>,
    /// Asked for each failure.
    pub(crate) on_failure: Arc<FailureHandler>,
}

impl Settings {
    /// The level set for the codec of the producer.
    pub(crate) fn compression_level(&self) -> Option<i32> {
        self.compression_levels.iter().find(|(codec, _)| *codec == self.compression).and_then(|(_, level)| *level)
    }

    /// Bytes of one thread's contexts for compression, for the plan: those of the largest batch.
    pub(crate) fn compression_bytes(&self) -> u64 {
        let largest = usize::try_from(MAX_BATCH_BYTES).unwrap_or(usize::MAX);
        Compressor::context_bytes(self.compression, self.compression_level(), largest) as u64
    }
}
