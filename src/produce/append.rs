//! Taking records: a batch under construction for each output partition, buffers from the pool.
//!
//! Invariant: a record is in exactly one batch, or an error was answered and nothing was taken. Bound: the pool; when
//! no buffer is free the append is refused, and if every buffer is under construction the fullest is sealed, so that
//! one comes back however few there are.
use super::ack::AckSlot;
use super::error::{AppendError, Cause, ProduceError};
use super::partition::PartitionId;
use super::pool::{Batch, BatchId};
use super::producer::{OutRecord, Producer};
use super::topics::OutTopic;
use crate::wire::TooLarge;

impl Producer {
    /// Copies a record into its partition's batch. `slot` will tell what became of it.
    ///
    /// # Errors
    /// [`AppendError::Full`] and [`AppendError::NotReady`]: serve the sockets (`prepare`, wait, `process`) and append
    /// the record again. All others are final for this record.
    #[inline]
    pub(crate) fn append(
        &mut self,
        topic: OutTopic,
        partition: u32,
        record: &OutRecord<'_>,
        slot: AckSlot,
    ) -> Result<(), AppendError> {
        let at = PartitionId { topic, partition };
        if let Some(error) = self.acks.error(slot) {
            return Err(AppendError::Failed(error));
        }
        match self.partition(at).and_then(|p| p.open) {
            Some(id) if self.put(id, record, slot).is_ok() => Ok(()),
            _ => self.append_slow(at, record, slot),
        }
    }

    /// Puts a record into a batch, if it has room for it and for its slot.
    #[inline]
    fn put(&mut self, id: BatchId, record: &OutRecord<'_>, slot: AckSlot) -> Result<(), TooLarge> {
        let room = TooLarge { needed: 0 };
        let Batch { bytes, builder, shares, .. } = self.pool.get_mut(id).ok_or(room)?;
        if !shares.takes(&self.acks, slot) {
            return Err(room);
        }
        builder.append(bytes, record.timestamp, record.key, record.value, record.headers)?;
        shares.note(&mut self.acks, slot, builder.count() - 1);
        Ok(())
    }

    #[cold]
    fn append_slow(&mut self, at: PartitionId, record: &OutRecord<'_>, slot: AckSlot) -> Result<(), AppendError> {
        if let Some(txn) = &self.txn {
            txn.takes_records().map_err(AppendError::Transaction)?;
        }
        if let Some(error) = self.fatal_error(at) {
            return Err(error);
        }
        if self.partition(at).is_none() {
            return Err(self.unknown(at));
        }
        self.seal(at);
        let Some(id) = self.pool.take() else { return Err(self.full()) };
        let Err(TooLarge { needed }) = self.start(id, at, record, slot) else { return Ok(()) };
        self.pool.put_back(id);
        match self.pool.oversize() {
            Some((large, size, true)) if needed <= size => match self.start(large, at, record, slot) {
                Ok(()) => {
                    self.seal(at);
                    Ok(())
                }
                Err(TooLarge { needed }) => {
                    self.pool.put_back(large);
                    Err(self.too_large(needed))
                }
            },
            Some((_, size, false)) if needed <= size => Err(self.full()),
            _ => Err(self.too_large(needed)),
        }
    }

    /// Opens a batch in a free buffer with its first record.
    fn start(&mut self, id: BatchId, at: PartitionId, record: &OutRecord<'_>, slot: AckSlot) -> Result<(), TooLarge> {
        let deadline_ms = self.now_ms.saturating_add(self.settings.delivery_timeout_ms);
        if let Some(batch) = self.pool.get_mut(id) {
            batch.open(at, self.now_ms, deadline_ms);
        }
        self.put(id, record, slot)?;
        self.next_expiry_ms = self.next_expiry_ms.min(deadline_ms);
        self.activate(at);
        if let Some(partition) = self.partition_mut(at) {
            partition.open = Some(id);
        }
        Ok(())
    }

    /// Ends the batch under construction; it leaves as soon as it may.
    pub(super) fn seal(&mut self, at: PartitionId) {
        let Some(topic) = self.topics.get_mut(at.topic.0 as usize) else { return };
        let Some(partition) = topic.partitions.get_mut(at.partition as usize) else { return };
        if let Some(id) = partition.open.take() {
            partition.push(&mut self.pool, id);
        }
    }

    /// Notes that the partition has a batch.
    fn activate(&mut self, at: PartitionId) {
        if let Err(place) = self.active.binary_search(&at) {
            self.active.insert(place, at);
        }
    }

    /// Notes that the partition has no batch, if it has none.
    pub(super) fn deactivate(&mut self, at: PartitionId) {
        if self.partition(at).is_none_or(|p| !p.is_active())
            && let Ok(place) = self.active.binary_search(&at)
        {
            self.active.remove(place);
            self.flushing &= !self.active.is_empty();
        }
    }

    fn full(&mut self) -> AppendError {
        self.stats.full += 1;
        self.starved = true;
        if let Some(at) = self.pool.fullest_if_all_open().and_then(|id| self.pool.get(id)).map(|b| b.at) {
            self.seal(at);
        }
        AppendError::Full
    }

    fn too_large(&self, needed: usize) -> AppendError {
        let limit = self.settings.batch_bytes.max(self.settings.oversize_bytes);
        AppendError::TooLarge { needed, limit, row: self.settings.row }
    }

    fn unknown(&mut self, at: PartitionId) -> AppendError {
        let Some(topic) = self.topics.get(at.topic.0 as usize) else {
            return AppendError::UnknownTopic { waited_ms: 0 };
        };
        if !topic.partitions.is_empty() {
            let partitions = topic.partitions.len() as u32;
            return AppendError::NoSuchPartition { partition: at.partition, partitions };
        }
        if let Some(code) = topic.refused {
            let cause = Cause::Refused { code };
            return AppendError::Failed(ProduceError { topic: at.topic, partition: at.partition, cause });
        }
        let waited_ms = self.now_ms.saturating_sub(topic.asked_ms);
        if waited_ms >= self.settings.topic_timeout_ms {
            return AppendError::UnknownTopic { waited_ms };
        }
        self.metadata.request_refresh();
        self.awaits_topic = true;
        AppendError::NotReady
    }
}
