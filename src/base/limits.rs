//! Limits as architecture: every bound that is not a row of the plan has its name, unit and reason here.

/// Bytes of one KiB.
pub(crate) const KIB: u64 = 1 << 10;
/// Bytes of one MiB: `Memory::total(256 * MIB)`.
pub const MIB: u64 = 1 << 20;

/// Kafka's default of `max.message.bytes`: what a topic is taken to accept until the brokers tell.
pub(crate) const DEFAULT_MAX_MESSAGE_BYTES: u32 = 1_048_588;
/// Produce requests on their way on one connection: what an idempotent producer may have without losing order.
pub(crate) const MAX_IN_FLIGHT: usize = 5;
/// Receive and send buffer of every socket, in bytes: fixed, so that the kernel's part of a connection is known.
pub(crate) const SOCKET_BUFFER_BYTES: usize = 256 << 10;
/// Brokers a process may be connected to. A cluster with more is refused by name.
pub(crate) const MAX_BROKERS: usize = 64;
/// Smallest fetch limit of a partition, in bytes: under it the rate halves.
pub(crate) const MIN_PARTITION_FETCH_BYTES: u32 = 16 << 10;
/// Frames a stream thread needs: one parsed, one received, one reserved for a waiting task.
pub(crate) const MIN_FRAMES: usize = 3;
/// Longest name of a topic that Kafka accepts, in bytes.
pub(crate) const MAX_TOPIC_NAME: usize = 249;
/// Bytes that may wait, encrypted, in one TLS session for room in its socket; a write beyond waits with its owner.
#[cfg(feature = "ssl")]
pub(crate) const TLS_SEND_BYTES: usize = 32 << 10;
/// Most bytes of a TLS session: what waits to leave, a record encrypted and decrypted (twice 18 KiB), and the
/// session's own state.
pub(crate) const TLS_CONNECTION_BYTES: u64 = 96 * KIB;
/// Least time between two looks of an operator for windows that have closed, in milliseconds: Kafka Streams' default.
pub(crate) const EMIT_INTERVAL_MS: i64 = 1_000;
