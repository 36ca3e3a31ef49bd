//! Kafka Streams for Rust under one load line.
// Elsewhere only the test driver runs, so what the engine uses is used by nobody.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

// Unit tests run on the tracking allocator, so that any of them may gate on what is allocated.
#[cfg(test)]
plimsoll_alloc::install!();

// Row 0.
pub(crate) mod base;
pub(crate) mod budget;
// Row 1.
#[cfg(target_os = "linux")]
pub(crate) mod ffi;
pub(crate) mod wire;
// Row 2.
pub(crate) mod arena;
#[cfg(target_os = "linux")]
pub(crate) mod net;
pub(crate) mod observe;
// Row 3.
#[cfg(target_os = "linux")]
pub(crate) mod client;
pub(crate) mod codec;
// Row 4 to 6.
pub(crate) mod node;
#[cfg(target_os = "linux")]
pub(crate) mod produce;
pub(crate) mod store;
// Row 7 to 9.
pub(crate) mod placement;
#[cfg(target_os = "linux")]
pub(crate) mod task;
pub(crate) mod topology;
// Row 10 and 11.
pub(crate) mod app;
pub(crate) mod dsl;
pub mod testing;
pub(crate) mod worker;

pub use app::{App, AppBuilder, NoLine, StartError, Stats, WithLine};
pub use base::id::TaskId;
pub use base::limits::MIB;
pub use base::token::OauthToken;
pub use budget::{Floor, Memory, MemoryReport, ModuleMemory, Plan, PlanError, Row, RowId};
#[cfg(feature = "bincode")]
pub use codec::Bincode;
#[cfg(any(feature = "avro", feature = "protobuf"))]
pub use codec::Framed;
#[cfg(feature = "json")]
pub use codec::Json;
pub use codec::{
    Bool, Bytes, Change, Codec, DecodeError, Delta, F32, F64, I16, I32, I64, Local, Opt, Place, Read, Schema, Scratch,
    Side, Text, Unread, Utf8, local,
};
pub use codec::{List, Uuid};
pub use codec::{OwnedWindowKey, WindowKey, WindowKeyOut, Windowed};
pub use dsl::{BufferConfig, StrictBufferConfig, Suppressed};
pub use dsl::{CogroupedKStream, SessionWindowedCogroupedKStream, TimeWindowedCogroupedKStream};
pub use dsl::{
    Consumed, GlobalKTable, Grouped, JoinWindows, Joined, KGroupedStream, KGroupedTable, KStream, KTable, Materialized,
    Printed, Produced, Repartitioned, Split, StreamJoined, StreamsBuilder, TableJoined, Topics,
};
pub use dsl::{
    EmitStrategy, SessionWindowedKStream, SessionWindows, SlidingWindows, TimeWindowedKStream, TimeWindows,
    UnlimitedWindows, Windows,
};
pub use dsl::{Processing, Stage, StoreBuilder, Stores, TopologyBuilder};
pub use node::ops::{PartitionChoice, Push, PushPair};
pub use node::{BoxError, Fn1, Fn2, Fn3, NoRoom, Pen};
pub use node::{
    Connect, KeyValueStore, KeyValueView, Rows, SessionStore, SessionView, SpanRows, StoreHandle, TableStore,
    TableView, WindowStore, WindowView,
};
pub use node::{
    Context, FixedKeyContext, FixedKeyInit, FixedKeyProcessor, FixedKeyRecord, Headers, HeadersBuf, Init, Processed,
    Processor, ProcessorError, ProcessorRecord as Record, PunctuationType, RecordMetadata, Timer,
};
pub use plimsoll_alloc::Module;
pub use store::error::{Severity, StoreError};
pub use topology::{
    BuildError, OffsetReset, Optimization, TimestampExtractor, TimestampPolicy, TopicName, Topology,
    UnknownOptimization, Unstamped,
};
pub use wire::{Compression, ErrorCode, WireError};
pub use worker::failure::{DeserializationResponse, Failure, FailureResponse, RunError, UndecodableRecord};
pub use worker::state::State;

/// Kafka on loopback and librdkafka as the oracle, shared with the integration tests.
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
pub(crate) mod support;

pub mod prelude;

/// Installs the tracking allocator in a binary, an example or a test: one line at the top of its crate root.
///
/// ```
/// plimsoll::install_allocator!();
///
/// # fn main() {
/// assert!(plimsoll_alloc::probe().is_ok());
/// # }
/// ```
#[macro_export]
macro_rules! install_allocator {
    () => {
        $crate::__private::install!();
    };
}

/// Makes a type the [`Schema`] of views that borrow and copy: `schema!(Order, 'a, OrderView<'a>)`. What is left to
/// write of a codec is [`Codec`].
///
/// ```
/// use plimsoll::prelude::*;
///
/// #[derive(Clone, Copy)]
/// struct Celsius;
/// plimsoll::schema!(Celsius, 'a, f32);
/// # fn is_schema<S: Schema>(_: S) {}
/// # is_schema(Celsius);
/// ```
#[macro_export]
macro_rules! schema {
    ($schema:ty, $life:lifetime, $view:ty) => {
        impl $crate::Schema for $schema {
            type View<$life> = $view;
            type Out<$life> = $view;

            fn lend<'s, $life: 's>(out: &'s $view) -> Self::View<'s> {
                *out
            }

            fn shorten<'s, $life: 's>(view: $view) -> Self::View<'s> {
                view
            }
        }
    };
}

#[doc(hidden)]
pub mod __private {
    pub use plimsoll_alloc::install;
}

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;

/// So do those of the page on memory.
#[cfg(doctest)]
#[doc = include_str!("../docs/memory.md")]
struct MemoryPage;

#[cfg(doctest)]
#[doc = include_str!("../docs/connecting.md")]
struct ConnectingPage;
