//! What a program that builds topologies usually needs: `use plimsoll::prelude::*;`
pub use crate::app::App;
pub use crate::base::limits::MIB;
pub use crate::budget::Memory;
#[cfg(feature = "bincode")]
pub use crate::codec::Bincode;
#[cfg(any(feature = "avro", feature = "protobuf"))]
pub use crate::codec::Framed;
#[cfg(feature = "json")]
pub use crate::codec::Json;
pub use crate::codec::{
    Bool, Bytes, Codec, DecodeError, F32, F64, I16, I32, I64, Local, Opt, Place, Schema, Scratch, Side, Text, Unread,
    Utf8, local,
};
pub use crate::codec::{List, Uuid};
pub use crate::codec::{WindowKey, Windowed};
pub use crate::dsl::{BufferConfig, Suppressed};
pub use crate::dsl::{
    Consumed, GlobalKTable, Grouped, JoinWindows, Joined, KGroupedStream, KGroupedTable, KStream, KTable, Materialized,
    Printed, Produced, Repartitioned, Split, StreamJoined, StreamsBuilder, TableJoined,
};
pub use crate::dsl::{EmitStrategy, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows};
pub use crate::dsl::{Processing, StoreBuilder, Stores, TopologyBuilder};
pub use crate::node::ops::{Push, PushPair};
pub use crate::node::{BoxError, NoRoom, Pen};
pub use crate::node::{
    Connect, KeyValueStore, KeyValueView, Rows, SessionStore, SessionView, SpanRows, StoreHandle, TableStore,
    TableView, WindowStore, WindowView,
};
pub use crate::node::{
    Context, FixedKeyContext, FixedKeyInit, FixedKeyProcessor, FixedKeyRecord, Headers, HeadersBuf, Init, Processed,
    Processor, ProcessorError, ProcessorRecord as Record, PunctuationType, RecordMetadata, Timer,
};
pub use crate::topology::{BuildError, OffsetReset, Optimization, TimestampExtractor, TimestampPolicy, Topology};
pub use crate::worker::state::State;
