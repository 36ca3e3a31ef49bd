//! What a node of a scenario is in the library.
use super::datum::{Any, Dynamic};
use super::windows;
use plimsoll::prelude::*;
use std::rc::Rc;
use std::time::Duration;

/// Why a topology was not built.
#[derive(Debug)]
pub enum Stop {
    /// The library has no such operator yet.
    NotYet(String),
    /// It is refused, as Kafka Streams must, too.
    Refused(String),
}

impl From<String> for Stop {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

pub type Made = Result<Handle, Stop>;

/// A handle by the types of its keys and values.
#[derive(Clone)]
pub enum Handle {
    Stream(KStream<Any, Any>),
    Grouped(KGroupedStream<Any, Any>),
    Table(KTable<Any, Any>),
    Counts(KTable<Any, I64>),
    Global(plimsoll::GlobalKTable<Any, Any>),
    GroupedTable(KGroupedTable<Any, Any>),
    Time(windows::Time),
    Sliding(windows::Sliding),
    Session(windows::Session),
    Cogrouped(plimsoll::CogroupedKStream<Any, Any>),
    TimeCogrouped(Rc<plimsoll::TimeWindowedCogroupedKStream<Any, Any>>),
    SessionCogrouped(Rc<plimsoll::SessionWindowedCogroupedKStream<Any, Any>>),
    WindowedStream(KStream<Windowed<Any>, Any>),
    WindowedTable(KTable<Windowed<Any>, Any>),
    WindowedCounts(KTable<Windowed<Any>, I64>),
}

/// A key that handles may have.
pub trait Key: Dynamic {
    fn stream(stream: KStream<Self, Any>) -> Handle;
    fn table(table: KTable<Self, Any>) -> Handle;
    fn counts(table: KTable<Self, I64>) -> Handle;
}

impl Key for Any {
    fn stream(stream: KStream<Self, Any>) -> Handle {
        Handle::Stream(stream)
    }

    fn table(table: KTable<Self, Any>) -> Handle {
        Handle::Table(table)
    }

    fn counts(table: KTable<Self, I64>) -> Handle {
        Handle::Counts(table)
    }
}

impl Key for Windowed<Any> {
    fn stream(stream: KStream<Self, Any>) -> Handle {
        Handle::WindowedStream(stream)
    }

    fn table(table: KTable<Self, Any>) -> Handle {
        Handle::WindowedTable(table)
    }

    fn counts(table: KTable<Self, I64>) -> Handle {
        Handle::WindowedCounts(table)
    }
}

/// A value that tables may have.
pub trait Value: Dynamic {
    fn table<K: Key>(table: KTable<K, Self>) -> Handle;
}

impl Value for Any {
    fn table<K: Key>(table: KTable<K, Self>) -> Handle {
        K::table(table)
    }
}

impl Value for I64 {
    fn table<K: Key>(table: KTable<K, Self>) -> Handle {
        K::counts(table)
    }
}

/// Runs an expression for the stream in a handle, whatever its types.
macro_rules! each_stream {
    ($handle:expr, $stream:ident => $made:expr) => {
        match $handle {
            $crate::handle::Handle::Stream($stream) => $made,
            $crate::handle::Handle::WindowedStream($stream) => $made,
            _ => return Err($crate::handle::Stop::Refused("no stream".to_owned())),
        }
    };
}
pub(crate) use each_stream;

/// Runs an expression for the table in a handle, whatever its types.
macro_rules! each_table {
    ($handle:expr, $table:ident => $made:expr) => {
        match $handle {
            $crate::handle::Handle::Table($table) => $made,
            $crate::handle::Handle::Counts($table) => $made,
            $crate::handle::Handle::WindowedTable($table) => $made,
            $crate::handle::Handle::WindowedCounts($table) => $made,
            _ => return Err($crate::handle::Stop::Refused("no table".to_owned())),
        }
    };
}
pub(crate) use each_table;

impl Handle {
    pub fn is_table(&self) -> bool {
        matches!(self, Self::Table(_) | Self::Counts(_) | Self::WindowedTable(_) | Self::WindowedCounts(_))
    }
}

/// A node of a scenario.
#[derive(Clone, Copy)]
pub struct Node<'v>(pub &'v serde_json::Value);

impl<'v> Node<'v> {
    pub fn text(self, field: &str) -> Option<&'v str> {
        self.0[field].as_str()
    }

    pub fn op(self) -> &'v str {
        self.text("op").unwrap_or_default()
    }

    pub fn id(self) -> &'v str {
        self.text("id").unwrap_or_default()
    }

    /// The name of its function.
    pub fn function(self) -> &'v str {
        self.text("fn").unwrap_or("identity")
    }

    pub fn flag(self, field: &str) -> Option<bool> {
        self.0[field].as_bool()
    }

    pub fn number(self, field: &str) -> Option<u64> {
        self.0[field].as_u64()
    }

    pub fn duration(self, field: &str) -> Option<Duration> {
        self.number(field).map(Duration::from_millis)
    }

    /// The serde that a field names.
    pub fn serde(self, field: &str) -> Result<Any, String> {
        super::datum::Kind::named(self.text(field)).map(Any)
    }

    pub fn not_yet<T>(self) -> Result<T, Stop> {
        Err(Stop::NotYet(self.op().to_owned()))
    }

    /// The store's options.
    pub fn materialized(self) -> Materialized {
        let named = self.text("store").map_or_else(Materialized::new, Materialized::named);
        let mut store = named.caching(self.flag("cache").unwrap_or(true)).logging(self.flag("logging").unwrap_or(true));
        if let Some(history) = self.duration("history") {
            store = store.versioned(history);
        }
        if let Some(retention) = self.duration("retention") {
            store = store.retention(retention);
        }
        if self.text("store_type") == Some("in_memory") { store.in_memory() } else { store }
    }
}
