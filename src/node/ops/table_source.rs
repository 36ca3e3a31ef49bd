//! Where records become a table's updates: `table` and `to_table`.
use crate::codec::{Change, Codec, Delta, Opt, Schema};
use crate::node::{Cx, Drain, Fault, Flow, Node, Record, TableOut};

/// The table of a topic. A null value deletes; a record without a key is skipped.
pub(crate) struct TableSource<K, V: Codec>(pub(crate) TableOut<K, V>);

impl<K: Codec, V: Codec> Node<Opt<K>, Opt<V>> for TableSource<K, V> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, Opt<K>, Opt<V>>) -> Flow {
        let Some(key) = r.key.filter(|key| !K::is_null(*key)) else {
            cx.port.dropped(self.0.node);
            return Ok(());
        };
        let value = Delta { new: r.value, old: None };
        self.0.update(cx, &Record { key, value: Change::<V>::shorten(value), timestamp: r.timestamp })
    }
}

impl<K: Codec, V: Codec> Drain for TableSource<K, V> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        self.0.drain_one(cx)
    }
}

/// The table of a stream.
pub(crate) struct StreamToTable<K, V: Codec>(pub(crate) TableOut<K, V>);

impl<K: Codec, V: Codec> Node<K, V> for StreamToTable<K, V> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        if K::is_null(r.key) {
            cx.port.dropped(self.0.node);
            return Ok(());
        }
        let value = Delta { new: (!V::is_null(r.value)).then_some(r.value), old: None };
        self.0.update(cx, &Record { key: r.key, value, timestamp: r.timestamp })
    }
}

impl<K: Codec, V: Codec> Drain for StreamToTable<K, V> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        self.0.drain_one(cx)
    }
}
