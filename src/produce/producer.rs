//! The producer of one stream thread: its face to the engine, and the turn of its sockets.
//!
//! Owns the batch pool, the topics, the acknowledgement slots and a connection to each broker that leads a partition
//! written to. Invariant: a record taken by [`Producer::append`] is acknowledged, or its slot tells the error. Bound:
//! the pool, a fixed answer buffer for each broker, a table entry for each partition. Called by the stream thread, in
//! each turn: `prepare`, the wait, `process`. Nothing here blocks or has a thread.
use super::ack::{Ack, AckSlot, AckTable};
use super::broker::Broker;
use super::error::{AppendError, Cause, ProduceError};
use super::identity::Standing;
use super::partition::PartitionId;
use super::pool::{BatchId, BatchPool, NoMemory};
use super::settings::ProducerSettings;
use super::topics::Topic;
use super::txn::{Txn, TxnError, TxnSettings};
use crate::client::SharedMetadata;
use crate::net::{Backoff, PollSet, jitter_seed};
use crate::wire::{BATCH_HEADER_BYTES, Compressor, RawHeaders, WireError};
use plimsoll_alloc::{Module, scope};

/// A record to append: its parts as bytes, and its timestamp in milliseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutRecord<'a> {
    /// Milliseconds since the Unix epoch.
    pub(crate) timestamp: i64,
    /// The key.
    pub(crate) key: Option<&'a [u8]>,
    /// The value.
    pub(crate) value: Option<&'a [u8]>,
    /// The headers, as they are encoded in a record.
    pub(crate) headers: RawHeaders<'a>,
}

/// What a producer has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProducerStats {
    /// Produce requests sent; one that is sent again on a new connection counts again.
    pub(crate) requests: u64,
    /// Batches in them.
    pub(crate) batches: u64,
    /// Bytes of these batches.
    pub(crate) bytes: u64,
    /// Records acknowledged.
    pub(crate) acked: u64,
    /// Appends refused because no buffer was free.
    pub(crate) full: u64,
    /// Connections lost with requests on their way.
    pub(crate) lost: u64,
    /// Batches that had to be sent again.
    pub(crate) retried: u64,
    /// Batches halved because a broker found them too large.
    pub(crate) halved: u64,
    /// Partitions that went on under a higher epoch, because their leader's log does not have what it acknowledged or
    /// has forgotten the producer.
    pub(crate) renumbered: u64,
}

/// Why a producer cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ProducerError {
    /// A buffer cannot hold any record.
    #[error("a batch buffer of {bytes} bytes holds no record; at least {least} are needed")]
    BatchTooSmall {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes needed.
        least: usize,
    },
    /// The client's name is beyond what a request has room for.
    #[error("a client id of {bytes} bytes is too long; at most {most} are sent with each request")]
    ClientId {
        /// Bytes of it.
        bytes: usize,
        /// Bytes allowed.
        most: usize,
    },
    /// No memory for the buffers.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// The codec cannot be written.
    #[error(transparent)]
    Codec(#[from] WireError),
    /// The transactional id is too long.
    #[error(transparent)]
    Transaction(#[from] TxnError),
}

/// Smallest batch buffer: a header and a small record.
const LEAST_BATCH_BYTES: usize = BATCH_HEADER_BYTES + 64;
/// Longest `client.id`, in bytes.
const MOST_CLIENT_ID: usize = 1_024;

/// An idempotent producer over a fixed pool of batches, transactional if it was made so. One a stream thread.
#[derive(Debug)]
pub(crate) struct Producer {
    pub(super) settings: ProducerSettings,
    pub(super) metadata: SharedMetadata,
    /// Version of the metadata that the topics show.
    pub(super) seen_version: u64,
    pub(super) topics: Vec<Topic>,
    pub(super) pool: BatchPool,
    pub(super) acks: AckTable,
    pub(super) compressor: Compressor,
    /// Partitions that have a batch, in the order of requests.
    pub(super) active: Vec<PartitionId>,
    pub(super) brokers: Vec<Broker>,
    pub(super) standing: Standing,
    /// Of a transactional producer.
    pub(super) txn: Option<Box<Txn>>,
    /// Pauses between attempts to get an identity; the pattern for those of partitions and brokers.
    pub(super) pause: Backoff,
    /// No batch can ever be written again.
    pub(super) fatal: Option<Cause>,
    /// Partial batches leave as soon as there is room for a request.
    pub(super) flushing: bool,
    /// An append found no buffer since the last turn: partial batches do not wait for the linger time.
    pub(super) starved: bool,
    /// An append waits for the metadata of a topic.
    pub(super) awaits_topic: bool,
    /// Time of the last turn.
    pub(super) now_ms: i64,
    /// No deadline of a batch passes before this.
    pub(super) next_expiry_ms: i64,
    /// When sealed batches that wait for company leave without it.
    pub(super) company_until_ms: i64,
    /// Batches chosen for the request under construction.
    pub(super) picked: Vec<BatchId>,
    pub(super) seed: u32,
    pub(super) stats: ProducerStats,
}

impl Producer {
    /// Takes all memory that batches will ever use. `now_ms` is the first time of the clock that `prepare` goes on
    /// with.
    ///
    /// # Errors
    /// The sizes make no sense, the system has no memory, or the codec cannot be written.
    pub(crate) fn new(
        settings: ProducerSettings,
        metadata: SharedMetadata,
        now_ms: i64,
    ) -> Result<Self, ProducerError> {
        let _scope = scope(Module::Producer);
        if settings.batch_bytes < LEAST_BATCH_BYTES {
            return Err(ProducerError::BatchTooSmall { bytes: settings.batch_bytes, least: LEAST_BATCH_BYTES });
        }
        if settings.client_id.len() > MOST_CLIENT_ID {
            return Err(ProducerError::ClientId { bytes: settings.client_id.len(), most: MOST_CLIENT_ID });
        }
        let pool = BatchPool::new(settings.batch_bytes, settings.batches, settings.oversize_bytes)?;
        let buffers = pool.len();
        let section = settings.batch_bytes - BATCH_HEADER_BYTES;
        let compressor = Compressor::with_level(settings.compression, settings.compression_level, section)?;
        let seed = jitter_seed();
        let pause = Backoff::new(settings.retry_backoff_ms, settings.retry_backoff_max_ms, seed);
        Ok(Self {
            metadata,
            seen_version: 0,
            topics: Vec::new(),
            pool,
            acks: AckTable::default(),
            compressor,
            active: Vec::with_capacity(buffers),
            brokers: Vec::new(),
            standing: Standing::Unknown { retry_at_ms: i64::MIN },
            txn: None,
            pause,
            fatal: None,
            flushing: false,
            starved: false,
            awaits_topic: false,
            now_ms,
            next_expiry_ms: i64::MAX,
            company_until_ms: i64::MAX,
            picked: Vec::with_capacity(buffers),
            seed,
            stats: ProducerStats::default(),
            settings,
        })
    }

    /// Makes a new producer a transactional one.
    #[allow(dead_code)] // for tests and the plan
    pub(super) fn make_transactional(&mut self, settings: TxnSettings) -> Result<(), ProducerError> {
        let _scope = scope(Module::Producer);
        self.txn = Some(Box::new(Txn::new(settings, &self.settings, self.seed)?));
        Ok(())
    }

    /// Opens an acknowledgement slot: one for each store and partition, one for each sink.
    pub(crate) fn ack_slot(&mut self) -> AckSlot {
        self.acks.open()
    }

    /// What became of the slot's records.
    pub(crate) fn ack(&self, slot: AckSlot) -> Ack {
        self.acks.get(slot)
    }

    /// Starts the slot anew; what is outstanding no longer counts for it. For a task that begins again after an error.
    #[allow(dead_code)] // for tests and the plan
    pub(crate) fn reset(&mut self, slot: AckSlot) {
        self.acks.reset(slot);
    }

    /// Gives the slot back.
    pub(crate) fn close_slot(&mut self, slot: AckSlot) {
        self.acks.close(slot);
    }

    /// First half of a turn: sends what can leave, and enters the connections into the poll set. Answers when the turn
    /// must come again though nothing happens on the sockets, in milliseconds of the same clock; `i64::MAX`: never.
    pub(crate) fn prepare(&mut self, polls: &mut PollSet, now_ms: i64) -> i64 {
        self.now_ms = now_ms;
        self.learn();
        self.expire();
        self.serve_brokers();
        self.starved = false;
        self.register(polls);
        let due = self.next_deadline();
        self.awaits_topic = false;
        due
    }

    /// Second half of a turn, after the wait: takes answers, and writes on where there is room.
    pub(crate) fn process(&mut self, polls: &PollSet, now_ms: i64) {
        self.now_ms = now_ms;
        for index in 0..self.brokers.len() {
            self.progress(index, polls);
        }
    }

    /// From now on until all is acknowledged, partial batches leave without waiting for company.
    pub(crate) fn begin_flush(&mut self) {
        self.flushing = !self.active.is_empty();
    }

    /// Whether every record taken so far is acknowledged or failed; the slots tell which.
    pub(crate) fn is_flushed(&self) -> bool {
        self.active.is_empty()
    }

    /// Gives up everything that is not acknowledged, with an error in its slot, and ends the connections.
    #[allow(dead_code)] // for tests and the plan
    pub(crate) fn close(&mut self) {
        self.fail_all(Cause::Closed);
        for index in 0..self.brokers.len() {
            self.disconnect(index);
        }
    }

    /// What has been done so far.
    pub(crate) fn stats(&self) -> ProducerStats {
        self.stats
    }

    /// The error that every append gets, once the producer cannot go on.
    pub(super) fn fatal_error(&self, at: PartitionId) -> Option<AppendError> {
        let cause = self.fatal?;
        Some(AppendError::Failed(ProduceError { topic: at.topic, partition: at.partition, cause }))
    }
}
