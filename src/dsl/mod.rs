//! What a user writes a topology with: Kafka Streams' DSL.
//!
//! Owns handles; no logic. A method adds one node to the graph: its name and one closure that builds the node when a
//! thread is wired. Invariant: names use up numbers exactly where Kafka Streams does, since topics are named after
//! them. Bound: called once, before anything runs.
mod branch;
mod builder;
mod by_hand;
mod cogroup;
mod consumed;
mod foreign_key;
mod global_table;
mod grouped;
mod grouped_table;
mod joiner;
mod kstream;
mod ktable;
mod ktable_join;
mod ktable_source;
mod ktable_store;
mod ktable_values;
mod late_table;
mod options;
mod printed;
mod process;
mod repartition;
mod sinks;
mod source;
mod stateless;
mod stores;
mod stream_join;
mod stream_joined;
mod stream_table;
mod suppress;
mod to_stream_as;
mod window_table;
mod windowed;
mod windows;

pub use branch::Split;
pub use builder::{StreamsBuilder, Topics};
pub use by_hand::{Stage, TopologyBuilder};
pub use cogroup::{CogroupedKStream, SessionWindowedCogroupedKStream, TimeWindowedCogroupedKStream};
pub use consumed::Consumed;
pub use foreign_key::TableJoined;
pub use global_table::GlobalKTable;
pub use grouped::KGroupedStream;
pub use grouped_table::KGroupedTable;
pub use kstream::KStream;
pub use ktable::KTable;
pub use options::{Grouped, Materialized, Produced, Repartitioned};
pub use printed::Printed;
pub use process::Processing;
pub use stores::{StoreBuilder, Stores};
pub use stream_joined::{JoinWindows, StreamJoined};
pub use stream_table::Joined;
pub use suppress::{BufferConfig, StrictBufferConfig, Suppressed};
pub use windowed::{SessionWindowedKStream, TimeWindowedKStream};
pub use windows::{EmitStrategy, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, Windows};
