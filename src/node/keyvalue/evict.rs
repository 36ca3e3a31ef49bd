//! Keeping a store within its room.
use super::KeyValue;
use crate::codec::Codec;
use crate::node::cx::Cx;
use crate::node::fault::Flow;
use crate::node::state::StateStore;
use crate::store::error::StoreError;

impl<V: Codec> KeyValue<V> {
    /// Makes the store keep its limit, for an entry with a key of this length more (0: for what there is). Drops clean
    /// entries, then lets `forward` have dirty ones, then writes pending ones to the backend. What remains above the
    /// limit when nothing is left to evict is one record's.
    #[inline]
    pub(crate) fn keep_limit(&self, cx: &Cx<'_>, key_len: usize, forward: &dyn Fn(u32) -> Flow) -> Flow {
        loop {
            {
                let mut overlay = self.overlay.borrow_mut();
                let growth = if key_len == 0 { 0 } else { overlay.core().growth(key_len) };
                if !overlay.core().is_over(growth) {
                    return Ok(());
                }
                if overlay.evict_clean() {
                    continue;
                }
            }
            if let Some(slot) = self.pop_dirty() {
                forward(slot)?;
            } else if !self.spill().map_err(|error| self.park(cx.fault, error))? {
                return Ok(());
            }
        }
    }

    /// Writes pending entries of one partition to the backend before the commit; false when there are none.
    fn spill(&self) -> Result<bool, StoreError> {
        let Some(partition) = self.overlay.borrow().core().some_pending_partition() else { return Ok(false) };
        let mut batch = self.spill.borrow_mut();
        batch.clear();
        self.collect(partition, &mut batch)?;
        self.backend.write(&batch)?;
        self.written(partition);
        batch.clear();
        Ok(true)
    }
}
