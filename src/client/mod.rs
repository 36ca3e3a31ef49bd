//! The consuming side of Kafka's protocol, and what every part of the engine knows about the cluster.
//!
//! Owns: the metadata client and the snapshot it publishes, the fetcher of each thread, look-ups of offsets; over the
//! control-plane handle the group's membership with its commits, administration and internal topics.
//! Invariant: above this room and `produce`, nothing knows the protocol. Bound: each file names its own.
//! Called by: the control thread (metadata, membership, administration), stream and restore threads (fetcher).
#[cfg(target_os = "linux")]
pub(crate) mod admin;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod fetcher;
#[cfg(target_os = "linux")]
pub(crate) mod internal_topics;
#[cfg(target_os = "linux")]
pub(crate) mod membership;
pub(crate) mod metadata;
#[cfg(any(test, feature = "bench"))]
pub(crate) mod metadata_thread;
pub(crate) mod offered;
pub(crate) mod offsets;
pub(crate) mod offsets_metadata;
#[cfg(all(test, feature = "ssl", target_os = "linux"))]
mod security_tests;
pub(crate) mod shared;
pub(crate) mod snapshot;
#[cfg(all(test, target_os = "linux"))]
mod test_admin;

pub(crate) use fetcher::{FetchFault, FetchedBatch, Fetcher, FetcherSettings, LinkFault, Slot};
pub(crate) use metadata::{MetadataClient, MetadataSettings};
pub(crate) use offsets::{OffsetQuery, OffsetSpec, list_offsets};
pub(crate) use shared::{Hint, Reach, SharedMetadata, TooManyTopics};
pub(crate) use snapshot::{Broker, MetadataSnapshot, PartitionInfo, TopicInfo, TopicState};
