//! The logical topology: nodes by name, topics, stores, subtopologies, and its text.
//!
//! Owns what an application knows of its topology without any type of the user's. Invariant: names are unique and equal
//! to those of Kafka Streams for the same calls, since topics are named after them. Bound: built once, never changed.
//! Called by `dsl` (which builds it), `placement`, `worker`, `app` and `testing`.
mod describe;
mod error;
mod graph;
mod group;
mod names;
mod spec;
mod timestamp;
#[allow(clippy::module_inception)] // one noun a file; the room has the same one
mod topology;

pub use crate::node::TopicName;
pub use error::BuildError;
pub(crate) use graph::{Graph, NewNode, Port, SourceTemplate};
pub(crate) use names::is_generated_stream_name;
pub use spec::{OffsetReset, TimestampPolicy};
pub(crate) use spec::{RepartitionSpec, StoreSpec, Subtopology};
pub(crate) use timestamp::Stamped;
pub use topology::Topology;
