//! Nodes, the typed edges between them, and what the thread gives them.
//!
//! Owns the seam between the operators and whoever drives them (a stream thread or the test driver): records, faults,
//! the context of a step, [`Port`]s for what leaves a node, and the wiring that builds nodes from a topology's
//! [`Blueprint`]. Invariant: the graph has no cycle, so a node is never on the stack twice; that is the proof behind
//! each `RefCell` here. Bound: nodes are built once per thread and subtopology and allocate nothing per record. Called
//! by `task`, `worker` and `testing`.
mod cx;
mod edge;
mod fault;
mod func;
mod history;
mod keyvalue;
pub(crate) mod ops;
mod pen;
mod per_task;
mod processor;
mod record;
mod state;
mod table;
mod timers;
mod topic;
mod wiring;

pub(crate) use cx::{Cx, Port};
pub(crate) use edge::{Drain, Edge, Node, Source};
pub(crate) use fault::{Fault, FaultCell, Flow, Parked, Spot};
pub use func::{BoxError, Fn1, Fn2, Fn3};
pub(crate) use history::make_history;
pub(crate) use keyvalue::{Entry, KeyValue, make_key_value};
#[allow(unused_imports)] // for the operators to come
pub(crate) use keyvalue::{Keys, NO_TIMESTAMP, Put, Version, Versions, Visit, make_store, make_versioned};
pub use pen::{NoRoom, Pen};
#[allow(unused_imports)] // for the operators to come
pub(crate) use per_task::PerTask;
/// A record as processors see it.
pub use processor::Record as ProcessorRecord;
pub use processor::{
    Connect, KeyValueStore, KeyValueView, Rows, SessionStore, SessionView, SpanRows, StoreHandle, TableStore,
    TableView, WindowStore, WindowView,
};
pub use processor::{
    Context, FixedKeyContext, FixedKeyInit, FixedKeyProcessor, FixedKeyRecord, Headers, HeadersBuf, Init, Processed,
    Processor, ProcessorError, RecordMetadata, Timer,
};
pub(crate) use processor::{FixedKey, Opener, OpenerBox, ProcessorNode, Supplier};
pub(crate) use record::{LogBytes, OutBytes, RawRecord, Record, RecordContext};
#[cfg(test)]
pub(crate) use state::Collected;
pub(crate) use state::StateStore;
pub(crate) use table::{Found, Getter, MakeGetter, StoreGetter, TableOut};
pub use timers::PunctuationType;
pub use topic::TopicName;
pub(crate) use wiring::{
    Blueprint, Made, Make, MakeStore, Part, SourcePart, StorePart, WireSettings, Wired, Wiring, WiringError,
};
