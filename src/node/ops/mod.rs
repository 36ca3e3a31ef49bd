//! The operators at work, one a file. Generic code ends at closure call, lend and edge; what works on bytes and slots
//! does not know types.
mod aggregate;
mod branch;
mod filter;
mod flat_map;
mod flat_map_values;
mod for_each;
mod joiner;
mod map;
mod map_values;
mod map_values_in;
mod pass;
mod peek;
mod reduce;
mod select_key;
mod sink;
mod source;
mod stream_table_join;
mod table_aggregate;
mod table_filter;
mod table_group_by;
mod table_join;
mod table_map_values;
mod table_source;
mod to_stream;
mod try_map_values;

pub(crate) use aggregate::{Aggregate, Fold, FromInit};
pub(crate) use branch::{Branch, Predicate};
pub(crate) use filter::Filter;
pub(crate) use flat_map::FlatMap;
pub use flat_map::PushPair;
pub(crate) use flat_map_values::FlatMapValues;
pub use flat_map_values::Push;
pub(crate) use for_each::ForEach;
#[allow(unused_imports)] // Flipped and Joiner: for joins of streams
pub(crate) use joiner::{Flipped, Inner, Joiner, Left, Outer};
pub(crate) use map::Map;
pub(crate) use map_values::{MapValues, MapValuesWithKey};
pub(crate) use map_values_in::MapValuesIn;
pub(crate) use pass::Pass;
pub(crate) use peek::Peek;
pub(crate) use reduce::Reduce;
pub(crate) use select_key::SelectKey;
pub(crate) use sink::{NotNullKey, Sink};
pub(crate) use source::SourceNode;
#[allow(unused_imports)] // for global tables
pub(crate) use stream_table_join::{StreamGlobalJoin, StreamTableJoin};
pub(crate) use table_aggregate::{AddSubtract, TableAggregate, TableFold, TableReduce};
pub(crate) use table_filter::{FilterGetter, TableFilter};
pub(crate) use table_group_by::TableGroupBy;
pub(crate) use table_join::{JoinGetter, TableJoinSide, TableMerge};
pub(crate) use table_map_values::{MapValuesGetter, TableMapValues};
pub(crate) use table_source::{StreamToTable, TableSource};
pub(crate) use to_stream::{ToStream, ToStreamAs};
pub(crate) use try_map_values::TryMapValues;
