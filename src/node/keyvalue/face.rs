//! The store as the thread sees it.
use super::KeyValue;
use crate::base::id::StoreId;
use crate::codec::{Codec, Scratch};
use crate::node::cx::Cx;
use crate::node::edge::Drain;
use crate::node::fault::{Fault, FaultCell, Flow};
use crate::node::state::{Collected, StateStore};
use crate::store::backend::Order;
use crate::store::batch::StoreBatch;
use crate::store::error::StoreError;
use crate::store::kind::{Layout, StoreKind};
use crate::store::overlay::core::State;

/// What is left when every node that forwards has drained: changes that nobody forwards.
impl<V: Codec> Drain for KeyValue<V> {
    fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        let Some(slot) = self.pop_dirty() else { return Ok(false) };
        self.log(cx, slot)?;
        Ok(true)
    }
}

impl<V: Codec> StateStore for KeyValue<V> {
    fn id(&self) -> StoreId {
        self.id
    }

    fn kind(&self) -> StoreKind {
        self.kind
    }

    fn collect(&self, partition: u32, into: &mut StoreBatch) -> Result<Collected, StoreError> {
        let mut overlay = self.overlay.borrow_mut();
        let mut encoded = self.encoded.borrow_mut();
        let mut entries = 0;
        while let Some(slot) = overlay.core().oldest_pending(partition) {
            let key = overlay.core().key(slot);
            let put = match overlay.value(slot) {
                None => into.delete(self.id, key),
                Some(value) => {
                    encoded.clear();
                    self.codec.encode(V::view(value), &mut encoded);
                    let timestamp = overlay.core().timestamp(slot).to_be_bytes();
                    let timestamp: &[u8] = if self.kind.layout == Layout::Plain { &[] } else { &timestamp };
                    into.put_parts(self.id, [key, &[]], [timestamp, encoded.bytes()])
                }
            };
            match put {
                Ok(()) => entries += 1,
                Err(_) if !into.is_empty() => {
                    self.count_written(partition, entries);
                    return Ok(Collected { entries, more: true });
                }
                Err(full) => {
                    return Err(full.into());
                }
            }
            overlay.core_mut().set_state(slot, State::Collected);
        }
        self.count_written(partition, entries);
        Ok(Collected { entries, more: false })
    }

    fn written(&self, partition: u32) {
        self.overlay.borrow_mut().written(partition);
    }

    fn discard(&self, partition: u32) {
        self.overlay.borrow_mut().discard(partition);
    }

    fn weight(&self) -> usize {
        self.overlay.borrow().core().footprint()
    }

    fn shed(&self, bytes: usize) -> usize {
        let mut overlay = self.overlay.borrow_mut();
        let before = overlay.core().footprint();
        let mut freed = 0;
        while freed < bytes && (overlay.evict_chunk() || overlay.evict_clean()) {
            freed = before - overlay.core().footprint();
        }
        freed
    }

    fn stream_time(&self, partition: u32) -> Option<i64> {
        self.known_time(partition)
    }

    fn expire(&self, partition: u32) -> Result<(), StoreError> {
        self.delete_expired(partition)?;
        self.sweep(partition)
    }

    fn read(&self, fault: &FaultCell, key: &[u8], into: &mut Scratch) -> Result<Option<i64>, Fault> {
        let mut read = |found: Option<(V::View<'_>, i64)>| {
            into.clear();
            found.map(|(value, timestamp)| {
                self.codec.encode(value, into);
                timestamp
            })
        };
        let is_expired = self.is_expired(fault, key)?;
        self.with_row(key, |row| self.get_row(fault, row, is_expired, &mut read))
    }

    fn rows(&self, fault: &FaultCell, partition: u32, visit: &mut dyn FnMut(&[u8], &[u8], i64) -> bool) -> Flow {
        let mut encoded = Scratch::with_limit(usize::MAX);
        self.all(fault, partition, Order::Forward, &mut |key, value, timestamp| {
            encoded.clear();
            self.codec.encode(value, &mut encoded);
            Ok(visit(key, encoded.bytes(), timestamp))
        })
    }

    fn needs_commit(&self) -> bool {
        self.overlay.borrow().core().is_over(0)
    }
}
