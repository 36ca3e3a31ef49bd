//! Batches under construction, the sender, acknowledgements.
//!
//! Owns, for each stream thread, a [`Producer`]: the batch pool, one connection to each broker that leads a partition
//! written to, and the acknowledgement slots. Always idempotent: producer id, sequences, at most five requests on
//! their way, acknowledged by all replicas in sync. Invariant: what is appended is acknowledged or its slot tells the
//! error, and the records of a partition are written in the order of their appends, over retries, lost connections and
//! moved leaders. Bound: the pool is the memory of the records and the back-pressure; a connection has fixed buffers.
//! Called by the stream thread; nothing above this room and `client` knows the protocol.
//!
//! A limit of Kafka's own: a broker that restarts forgets a producer whose last records in a partition have timestamps
//! older than `producer.id.expiration.ms` (a day), whenever they were written. A batch whose acknowledgement was
//! lost in
//! that restart and that is sent again is then taken twice. Nothing on this side can tell; raise the setting where old
//! records are written.
//!
//! | file | what |
//! | --- | --- |
//! | `producer`, `settings`, `error` | the face: the turn, settings, what can go wrong |
//! | `pool`, `append`, `ack` | buffers, batches under construction, acknowledgement slots |
//! | `topics`, `partition`, `identity`, `sticky` | where records go, in which order, with which sequence |
//! | `sender`, `broker`, `request` | connections, requests, what leaves when |
//! | `answer`, `retry` | what became of the batches |
//! | `txn` | transactions |
mod ack;
mod answer;
mod append;
mod broker;
#[cfg(feature = "bench")]
mod describe;
mod error;
mod identity;
mod partition;
mod pool;
mod producer;
mod request;
mod retry;
mod sender;
mod settings;
mod sticky;
mod topics;
#[allow(dead_code)] // for the engine's exactly-once
mod txn;

#[cfg(test)]
mod tests;

pub(crate) use ack::{Ack, AckSlot};
pub(crate) use error::AppendError;
#[cfg(test)]
pub(crate) use error::Cause;
pub(crate) use producer::{OutRecord, Producer};
pub(crate) use settings::ProducerSettings;
pub(crate) use topics::OutTopic;
#[allow(unused_imports)] // the face of transactions, for the engine's exactly-once
pub(crate) use txn::{GroupMember, Step, Successor, TxnError, TxnOffset, TxnSettings, TxnState};
