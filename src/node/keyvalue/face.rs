//! The store as the thread sees it.
use super::KeyValue;
use crate::base::id::StoreId;
use crate::codec::Codec;
use crate::node::cx::Cx;
use crate::node::edge::Drain;
use crate::node::fault::Fault;
use crate::node::state::{Collected, StateStore};
use crate::store::batch::StoreBatch;
use crate::store::error::StoreError;
use crate::store::kind::Layout;
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
                    let timestamp: &[u8] = if self.layout == Layout::Plain { &[] } else { &timestamp };
                    into.put_parts(self.id, [key, &[]], [timestamp, encoded.bytes()])
                }
            };
            match put {
                Ok(()) => entries += 1,
                Err(_) if !into.is_empty() => return Ok(Collected { entries, more: true }),
                Err(full) => {
                    return Err(full.into());
                }
            }
            overlay.core_mut().set_state(slot, State::Collected);
        }
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
        while freed < bytes && overlay.evict_clean() {
            freed = before - overlay.core().footprint();
        }
        freed
    }

    fn needs_commit(&self) -> bool {
        self.overlay.borrow().core().is_over(0)
    }
}
