//! The calls of a transactional producer. Each changes the state at once; the rest happens in the turns.
use super::offsets::{GroupMember, TxnOffset};
use super::{Known, Protocol, TxnError, TxnSettings, TxnState};
use crate::client::SharedMetadata;
use crate::produce::error::{Cause, ProduceError};
use crate::produce::partition::PartitionId;
use crate::produce::producer::{Producer, ProducerError};
use crate::produce::settings::ProducerSettings;

impl Producer {
    /// A transactional producer. It begins to start in its first turn: [`TxnState::Starting`], then
    /// [`TxnState::Ready`]. `delivery.timeout.ms` is lowered to the transaction's time-out.
    ///
    /// # Errors
    /// As [`Producer::new`]; a transactional id that is too long.
    pub(crate) fn transactional(
        mut settings: ProducerSettings,
        txn: TxnSettings,
        metadata: SharedMetadata,
        now_ms: i64,
    ) -> Result<Self, ProducerError> {
        settings.delivery_timeout_ms = settings.delivery_timeout_ms.min(i64::from(txn.timeout_ms.max(1)));
        let mut producer = Self::new(settings, metadata, now_ms)?;
        producer.make_transactional(txn)?;
        Ok(producer)
    }

    /// Where a transactional producer stands; `None` for one without transactions.
    pub(crate) fn txn_state(&self) -> Option<TxnState> {
        self.txn.as_ref().map(|txn| txn.state)
    }

    /// The present epoch, once the coordinator has given one.
    pub(crate) fn epoch(&self) -> Option<i16> {
        self.standing.known().map(|identity| identity.epoch)
    }

    /// Opens a transaction. Possible in [`TxnState::Ready`].
    ///
    /// # Errors
    /// [`TxnError::Misplaced`] in another state; the error of a producer that is at its end.
    pub(crate) fn begin(&mut self) -> Result<(), TxnError> {
        let now_ms = self.now_ms;
        let (txn, state) = self.txn_for("begin")?;
        if state != TxnState::Ready {
            return Err(misplaced("begin", state));
        }
        txn.state = TxnState::Open;
        txn.protocol = if txn.level >= 2 { Protocol::Two } else { Protocol::One };
        txn.serial = txn.serial.wrapping_add(1);
        txn.known = Known::Nothing;
        txn.begun_ms = now_ms;
        txn.offsets.clear();
        Ok(())
    }

    /// Commits these offsets with the transaction. They are sent in the turns that follow, before the commit. Possible
    /// in [`TxnState::Open`], several times.
    ///
    /// # Errors
    /// [`TxnError::Misplaced`] in another state, the error that failed the transaction, or offsets that cannot be sent;
    /// then none of them is taken.
    pub(crate) fn send_offsets<'a>(
        &mut self,
        who: &GroupMember<'_>,
        offsets: impl Iterator<Item = TxnOffset<'a>>,
    ) -> Result<(), TxnError> {
        let (txn, state) = self.txn_for("send_offsets")?;
        match state {
            TxnState::Open => {
                let group_before = txn.offsets.who().group == who.group;
                if !group_before {
                    txn.group_coordinator = crate::produce::partition::NO_LEADER;
                }
                txn.offsets.stage(who, offsets)
            }
            TxnState::Failed(error) => Err(error),
            state => Err(misplaced("send_offsets", state)),
        }
    }

    /// Commits the transaction once every batch of it is acknowledged and every offset taken; if one is not,
    /// [`TxnState::Failed`] follows and nothing is committed. [`TxnState::Ready`] means: committed. Possible in
    /// [`TxnState::Open`].
    ///
    /// # Errors
    /// [`TxnError::Misplaced`] in another state, or the error that failed the transaction.
    pub(crate) fn commit(&mut self) -> Result<(), TxnError> {
        let (txn, state) = self.txn_for("commit")?;
        match state {
            TxnState::Open => txn.state = TxnState::Committing,
            TxnState::Failed(error) => return Err(error),
            state => return Err(misplaced("commit", state)),
        }
        self.seal_all();
        self.begin_flush();
        Ok(())
    }

    /// Aborts the transaction: nothing of it will be read by consumers that read committed records. What has not left
    /// yet is dropped; its slots tell [`Cause::Aborted`]. [`TxnState::Ready`] follows. Possible in [`TxnState::Open`]
    /// and [`TxnState::Failed`].
    ///
    /// # Errors
    /// [`TxnError::Misplaced`] in another state. A commit that has begun cannot be taken back.
    pub(crate) fn abort(&mut self) -> Result<(), TxnError> {
        let (txn, state) = self.txn_for("abort")?;
        if !matches!(state, TxnState::Open | TxnState::Failed(_)) {
            return Err(misplaced("abort", state));
        }
        txn.state = TxnState::Aborting;
        txn.offsets.clear();
        self.seal_all();
        let mut place = 0;
        while let Some(at) = self.active.get(place).copied() {
            self.drop_unsent(at);
            // A partition without batches is no longer in the list.
            place += usize::from(self.active.get(place) == Some(&at));
        }
        self.begin_flush();
        Ok(())
    }

    fn txn_for(&mut self, call: &'static str) -> Result<(&mut super::Txn, TxnState), TxnError> {
        let state = "without a transactional.id";
        let txn = self.txn.as_deref_mut().ok_or(TxnError::Misplaced { call, state })?;
        match txn.state {
            TxnState::Fatal(error) => Err(error),
            state => Ok((txn, state)),
        }
    }

    /// Ends every batch under construction, so that the next append finds out what became of the transaction.
    pub(in crate::produce) fn seal_all(&mut self) {
        for place in 0..self.active.len() {
            let Some(at) = self.active.get(place).copied() else { break };
            self.seal(at);
        }
    }

    /// Drops the batches of a partition that no broker can have got: all behind the last one that flies or that an
    /// earlier attempt may have written.
    fn drop_unsent(&mut self, at: PartitionId) {
        let Some(topic) = self.topics.get_mut(at.topic.0 as usize) else { return };
        let Some(partition) = topic.partitions.get_mut(at.partition as usize) else { return };
        let error = ProduceError { topic: at.topic, partition: at.partition, cause: Cause::Aborted };
        let mut next = partition.cut_unsent(&mut self.pool);
        while let Some(id) = next {
            let Some(batch) = self.pool.get_mut(id) else { break };
            next = batch.next;
            batch.shares.failed(&mut self.acks, error);
            self.pool.put_back(id);
        }
        self.deactivate(at);
    }
}

fn misplaced(call: &'static str, state: TxnState) -> TxnError {
    TxnError::Misplaced { call, state: state.name() }
}
