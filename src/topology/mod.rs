//! The logical topology: nodes by name, topics, stores, subtopologies, and its text.
//!
//! Owns what an application knows of its topology without any type of the user's. Invariant: names are unique and equal
//! to those of Kafka Streams for the same calls, since topics are named after them. Bound: built once, never changed.
//! Called by `dsl` (which builds it), `placement`, `worker`, `app` and `testing`.
mod describe;
mod draft;
mod error;
mod freeze;
mod graph;
mod group;
mod names;
mod optimisation;
mod optimise;
mod repartition;
mod self_join;
mod spec;
mod tables;
mod timestamp;
#[allow(clippy::module_inception)] // one noun a file; the room has the same one
mod topology;
mod tree_set;

pub use crate::node::TopicName;
pub(crate) use draft::{NewNode, Port};
pub use error::BuildError;
pub(crate) use graph::{Graph, SourceTemplate};
pub(crate) use names::is_generated_stream_name;
pub use optimisation::{Optimization, UnknownOptimization};
pub(crate) use repartition::{Movable, Repartition};
pub(crate) use self_join::StreamJoin;
pub use spec::{OffsetReset, TimestampPolicy};
pub(crate) use spec::{RepartitionSpec, StoreSpec, Subtopology};
pub(crate) use tables::{LateStore, TableKind};
pub(crate) use timestamp::Stamped;
pub use timestamp::{TimestampExtractor, Unstamped};
pub use topology::Topology;
