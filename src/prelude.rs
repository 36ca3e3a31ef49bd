//! What a program that builds topologies usually needs: `use plimsoll::prelude::*;`
#[cfg(feature = "bincode")]
pub use crate::codec::Bincode;
pub use crate::{
    App, Bool, BoxError, BuildError, Bytes, Codec, Consumed, DecodeError, F32, F64, Grouped, I16, I32, I64,
    KGroupedStream, KStream, KTable, Local, MIB, Materialized, Memory, OffsetReset, Opt, Place, Produced, Push,
    PushPair, Repartitioned, Schema, Scratch, Side, Split, State, StreamsBuilder, Text, TimestampPolicy, Topology,
    Unread, Utf8, local,
};
