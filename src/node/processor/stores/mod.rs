//! State stores as processors use them: handles that are declared with the topology, views that a context lends.
//!
//! Owns the typed face over [`KeyValue`]. Invariant: what an iterator gives is what the store held when it began, the
//! processor's own changes meanwhile left out. Bound: an iterator reads a chunk at a time, and keeps what is changed
//! while it is open up to [`watch`]'s limit. Called by processors.
mod handle;
mod key_value;
mod rows;
mod session;
mod table;
mod watch;
mod window;

pub use handle::{Connect, StoreHandle};
pub(crate) use handle::{Opener, OpenerBox, StoresOf};
pub use key_value::{KeyValueStore, KeyValueView};
pub use rows::Rows;
pub use session::{SessionStore, SessionView};
pub use table::{TableStore, TableView};
pub use window::{SpanRows, WindowStore, WindowView};

use super::ProcessorError;
use crate::base::id::{NodeId, StoreId};
use crate::codec::{Codec, Scratch, Side};
use crate::node::topic::TopicName;
use crate::node::wiring::{Wiring, WiringError};
use crate::node::{Cx, Fault, KeyValue, Parked};
use rows::Chunk;
use std::cell::RefCell;
use std::rc::Rc;
pub(crate) use watch::Watch;

/// A store as one processor's node has it.
pub(crate) struct Opened<K: Codec, V: Codec> {
    node: NodeId,
    key: K,
    value: V,
    store: Rc<KeyValue<V>>,
    watch: Rc<Watch>,
    /// A key on its way.
    scratch: RefCell<Scratch>,
    /// The ends of a range.
    bounds: RefCell<[Scratch; 2]>,
    /// Buffers of iterators that are done.
    spare: RefCell<Vec<Chunk<K, V>>>,
    record_bytes: usize,
}

impl<K: Codec, V: Codec> Opened<K, V> {
    fn open(w: &mut Wiring<'_>, node: NodeId, id: StoreId, key: &K, value: &V) -> Result<Rc<Self>, WiringError> {
        let store = w.store::<Rc<KeyValue<V>>>(id)?;
        let changelog = TopicName::Changelog(w.store_part(id)?.name.clone());
        let record_bytes = w.settings().record_bytes;
        let scratch = || Scratch::with_limit(record_bytes);
        Ok(Rc::new(Self {
            node,
            key: w.with_place(&changelog, Side::Key, |place| key.bind(place)),
            value: w.with_place(&changelog, Side::Value, |place| value.bind(place)),
            store,
            watch: w.watch(id),
            scratch: RefCell::new(scratch()),
            bounds: RefCell::new([scratch(), scratch()]),
            spare: RefCell::default(),
            record_bytes,
        }))
    }

    /// Lends `f` the bytes of a key: the partition, the key, what comes behind it.
    fn with_key<R>(
        &self,
        cx: &Cx<'_>,
        key: K::View<'_>,
        behind: &[u8],
        f: impl FnOnce(&[u8]) -> Result<R, Fault>,
    ) -> Result<R, ProcessorError> {
        if K::is_null(key) {
            return Err(ProcessorError::new("a store's key cannot be null"));
        }
        // Taken and put back: `f` may come here again.
        let mut scratch = self.scratch.replace(Scratch::with_limit(self.record_bytes));
        scratch.clear();
        scratch.extend(&cx.task.partition.to_be_bytes());
        self.key.encode(key, &mut scratch);
        scratch.extend(behind);
        let done = scratch
            .check()
            .map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node: self.node, full }))
            .and_then(|()| f(scratch.bytes()));
        self.scratch.replace(scratch);
        done.map_err(ProcessorError::below)
    }

    fn read<R>(&self, cx: &Cx<'_>, key: &[u8], f: impl FnOnce(Option<(V::View<'_>, i64)>) -> R) -> Result<R, Fault> {
        self.store.get(cx, key, f)
    }

    /// Sets or deletes; what iterators have still to see is kept for them.
    fn write(&self, cx: &Cx<'_>, key: &[u8], value: Option<V::View<'_>>, timestamp: i64) -> Result<(), Fault> {
        if self.watch.is_open() && !self.watch.knows(key) {
            let image = self.read(cx, key, |row| {
                row.map(|(value, timestamp)| {
                    let mut bytes = Scratch::with_limit(self.record_bytes);
                    self.value.encode(value, &mut bytes);
                    (timestamp, bytes.bytes().to_vec())
                })
            })?;
            if !self.watch.keep(key, image) {
                let error = "an iterator is open while more than 1 MiB is changed; finish it first".into();
                return Err(cx.fault.park(Fault::User, Parked::User { node: self.node, error }));
            }
        }
        let value = value.filter(|value| !V::is_null(*value));
        self.store.put(cx, key, value, timestamp)
    }
}
