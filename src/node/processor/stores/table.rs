//! Stores of tables, for processors that look.
use super::handle::{Connect, OpenerBox, StoreHandle, StoresOf, sealed};
use super::key_value::{KeyValueStore, KeyValueView};
use super::rows::Rows;
use crate::codec::Codec;
use crate::node::processor::ProcessorError;

/// The store of a table, to be looked at by processors: the handle that [`KTable::stored`](crate::KTable::stored)
/// answers. The table alone changes it.
#[derive(Clone, Debug)]
pub struct TableStore<K, V>(KeyValueStore<K, V>);

impl<K, V> TableStore<K, V> {
    pub(crate) fn new(store: KeyValueStore<K, V>) -> Self {
        Self(store)
    }

    /// The store's name.
    pub fn name(&self) -> &str {
        self.0.name()
    }
}

impl<K, V> sealed::Sealed for TableStore<K, V> {}

impl<K: Codec, V: Codec> Connect for TableStore<K, V> {
    fn opener(&self) -> OpenerBox {
        self.0.opener()
    }
}

impl<K: Codec, V: Codec> StoreHandle for TableStore<K, V> {
    type Open<'c> = TableView<'c, K, V>;

    fn view<'c>(&self, all: StoresOf<'c>) -> Option<TableView<'c, K, V>> {
        self.0.view(all).map(TableView)
    }
}

/// The store of a table, opened for a step, to read.
///
/// # Java
/// `ReadOnlyKeyValueStore`.
#[derive(Debug)]
pub struct TableView<'c, K: Codec, V: Codec>(KeyValueView<'c, K, V>);

impl<K: Codec, V: Codec> TableView<'_, K, V> {
    /// The value of a key, if it has one.
    ///
    /// # Errors
    /// The store failed, or has a value of another schema.
    pub fn get(&self, key: K::View<'_>) -> Result<Option<V::Owned>, ProcessorError> {
        self.0.get(key)
    }

    /// The value of a key and its timestamp, milliseconds since the epoch.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_with_timestamp(&self, key: K::View<'_>) -> Result<Option<(V::Owned, i64)>, ProcessorError> {
        self.0.get_with_timestamp(key)
    }

    /// Lends the closure the value of a key: nothing is copied.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn with<R>(&self, key: K::View<'_>, f: impl FnOnce(Option<V::View<'_>>) -> R) -> Result<R, ProcessorError> {
        self.0.with(key, f)
    }

    /// Rows from one key to another, both included, in the order of the keys' bytes. `None`: without an end.
    ///
    /// # Errors
    /// A key is too large.
    pub fn range(&self, from: Option<K::View<'_>>, to: Option<K::View<'_>>) -> Result<Rows<K, V>, ProcessorError> {
        self.0.range(from, to)
    }

    /// All rows of the task, in the order of the keys' bytes.
    pub fn all(&self) -> Rows<K, V> {
        self.0.all()
    }
}
