//! When something goes wrong: lost connections, batches to send again, to renumber, to halve, to give up.
//!
//! Invariant: what may have been written is only ever sent again with the identity and sequence it had; what is given
//! up is told to its slots, with everything behind it in its partition. Called by the producer's turn.
use super::broker::Phase;
use super::error::{Cause, ProduceError};
use super::identity::Standing;
use super::partition::{NO_LEADER, PartitionId};
use super::pool::{Batch, BatchId, Stage};
use super::producer::Producer;
use super::request::Kind;
use super::txn::Step;
use crate::wire::{ErrorCode, WireError};

/// How often metadata is looked at while a partition waits for it, in milliseconds.
const METADATA_POLL_MS: i64 = 20;

impl Producer {
    /// Ends a connection. What was on its way is sent again, in order, on the next one.
    pub(super) fn lose(&mut self, index: usize) {
        let Some(broker) = self.brokers.get_mut(index) else { return };
        if let Some(txn) = self.txn.as_deref_mut() {
            txn.lost_broker(broker.node);
        }
        let (phase, idle) = (broker.phase, broker.oldest_ms().is_none());
        match phase {
            // Brokers close connections that nobody uses.
            Phase::Ready { .. } if idle => {}
            Phase::Idle => {}
            Phase::Ready { .. } | Phase::Greeting { .. } | Phase::Connecting { .. } => {
                broker.retry_at_ms = self.now_ms.saturating_add(broker.pause());
                self.stats.lost += u64::from(!idle);
            }
        }
        self.disconnect(index);
        match phase {
            Phase::Connecting { .. } => self.metadata.report_unreachable(),
            _ if idle => {}
            _ => self.metadata.request_refresh(),
        }
    }

    /// Ends a connection now and takes back what was on its way.
    pub(super) fn disconnect(&mut self, index: usize) {
        if let Some(broker) = self.brokers.get_mut(index) {
            broker.disconnect();
        }
        while let Some(request) = self.brokers.get_mut(index).and_then(|b| b.take_lost()) {
            match request.kind {
                Kind::Versions => {}
                Kind::Identity => self.standing = Standing::Unknown { retry_at_ms: i64::MIN },
                Kind::Transaction(step) => self.lost_step(step),
                Kind::Batches => {
                    for id in &request.batches {
                        self.land_lost(*id, request.is_begun());
                    }
                }
            }
            if let Some(broker) = self.brokers.get_mut(index) {
                broker.recycle(request);
            }
        }
    }

    /// The answer to a step of a transaction will not come.
    fn lost_step(&mut self, step: Step) {
        let now_ms = self.now_ms;
        if let Some(txn) = self.txn.as_deref_mut() {
            txn.lost_request(step, now_ms);
        }
    }

    /// The answer to a batch's request will not come. `begun`: the broker may have got it.
    pub(super) fn land_lost(&mut self, id: BatchId, begun: bool) {
        if let Some(at) = self.land(id) {
            self.retry(id, at, ErrorCode::NetworkException, begun, false);
        }
    }

    /// The oldest request's answer is too large to be read: its batches fail.
    pub(super) fn refuse_oldest(&mut self, index: usize, bytes: usize) {
        let Some(broker) = self.brokers.get_mut(index) else { return };
        let Some(request) = broker.take_lost() else { return };
        if let Kind::Transaction(step) = request.kind {
            self.lost_step(step);
        }
        for id in &request.batches {
            if let Some(at) = self.land(*id) {
                self.fail_partition(at, Cause::AnswerTooLarge { bytes });
            }
        }
        if let Some(broker) = self.brokers.get_mut(index) {
            broker.recycle(request);
        }
    }

    /// A batch that has landed is sent again. `unclear`: it may be written already. `pause`: not at once.
    pub(super) fn retry(&mut self, id: BatchId, at: PartitionId, code: ErrorCode, unclear: bool, pause: bool) {
        self.stats.retried += 1;
        if let Some(batch) = self.pool.get_mut(id) {
            batch.attempts += 1;
            batch.unclear |= unclear;
            batch.last = code;
        }
        let now_ms = self.now_ms;
        let Some(partition) = self.partition_mut(at) else { return };
        partition.again();
        if pause && partition.head() == Some(id) {
            partition.retry_at_ms = now_ms.saturating_add(partition.backoff.failed());
        }
    }

    /// The broker expected another sequence or epoch. Behind a batch that is sent again that is to be expected. For the
    /// first one it means that the broker's memory of this producer is gone, or that its log no longer has what it
    /// acknowledged, as after an unclean election. Where certainly nothing is written twice everything goes on under
    /// the next epoch (KIP-360, as Kafka's own client does), else the partition fails.
    pub(super) fn resequence(&mut self, id: BatchId, at: PartitionId, code: ErrorCode, log_start: i64) {
        let Some(batch) = self.pool.get(id) else { return };
        let Some(partition) = self.partition(at) else { return };
        if partition.head() != Some(id) || partition.identity.is_none() {
            return self.retry(id, at, code, false, false);
        }
        let forgotten_by_retention = log_start >= 0 && partition.acked_offset < log_start;
        let not_written = match code {
            ErrorCode::InvalidProducerEpoch => !batch.unclear,
            ErrorCode::UnknownProducerId => !batch.unclear && (!partition.acked || forgotten_by_retention),
            // A broker that has the batch would know it: it is among the last five. But parts of it may be another
            // attempt's whole.
            _ => !batch.unclear || !batch.is_halved(),
        };
        // The epoch of a transaction is its coordinator's. (A broker that has forgotten the producer takes any
        // sequence.)
        let keeps_epoch = self.txn.is_some();
        if !not_written || (keeps_epoch && code != ErrorCode::UnknownProducerId) {
            return self.fail_partition(at, Cause::SequenceLost { code });
        }
        let used = partition.identity;
        self.stats.renumbered += 1;
        if keeps_epoch {
            self.outdate_from(Some(id));
            if let Some(partition) = self.partition_mut(at) {
                partition.rewind_sequence(0);
            }
            return self.retry(id, at, code, false, true);
        }
        if let Some(used) = used {
            self.standing.outdate(used);
        }
        self.outdate_from(Some(id));
        if let Some(partition) = self.partition_mut(at) {
            partition.identity = None;
        }
        self.retry(id, at, code, false, true);
    }

    /// The stamped batches from this one on get a new stamp before they are sent again.
    fn outdate_from(&mut self, first: Option<BatchId>) {
        let mut at = first;
        while let Some(batch) = at.and_then(|id| self.pool.get_mut(id)) {
            batch.outdated = batch.stamp.is_some();
            at = batch.next;
        }
    }

    /// The broker finds the batch too large: its first half leaves first, then the rest, in the sequence it had.
    pub(super) fn halve(&mut self, id: BatchId, at: PartitionId) {
        let Some(batch) = self.pool.get_mut(id) else { return };
        let count = batch.builder.count();
        if count < 2 {
            let bytes = batch.builder.len();
            return self.fail_partition(at, Cause::TooLarge { bytes });
        }
        // One that is outdated already is numbered anew behind another batch.
        let (sequence, next) = (batch.stamp.filter(|_| !batch.outdated).map(|s| s.base_sequence), batch.next);
        if cut(batch, count.div_ceil(2)).is_err() {
            return self.fail_partition(at, Cause::Encoding);
        }
        (batch.stamp, batch.outdated) = (None, false);
        batch.last = ErrorCode::MessageTooLarge;
        self.outdate_from(next);
        self.stats.halved += 1;
        if let Some(partition) = self.partition_mut(at) {
            if let Some(sequence) = sequence {
                partition.rewind_sequence(sequence);
            }
            partition.again();
        }
    }

    /// Fails every batch of a partition, in order.
    pub(super) fn fail_partition(&mut self, at: PartitionId, cause: Cause) {
        let Some(topic) = self.topics.get_mut(at.topic.0 as usize) else { return };
        let Some(partition) = topic.partitions.get_mut(at.partition as usize) else { return };
        let error = ProduceError { topic: at.topic, partition: at.partition, cause };
        while let Some(id) = partition.pop(&mut self.pool).or_else(|| partition.open.take()) {
            let Some(batch) = self.pool.get_mut(id) else { continue };
            batch.shares.failed(&mut self.acks, error);
            match batch.stage {
                Stage::Flying => batch.stage = Stage::GivenUp,
                _ => self.pool.put_back(id),
            }
        }
        // Some of them may be written or may be missing: their sequence cannot be continued.
        if let (Some(used), None) = (partition.identity, &self.txn) {
            self.standing.outdate(used);
        }
        partition.forget();
        self.deactivate(at);
        if self.txn.is_some() {
            self.batches_failed(error);
        }
    }

    /// Fails everything.
    pub(super) fn fail_all(&mut self, cause: Cause) {
        while let Some(at) = self.active.last().copied() {
            self.fail_partition(at, cause);
        }
    }

    /// The producer can never write again.
    pub(super) fn fatal(&mut self, code: ErrorCode) {
        if self.txn.is_some() {
            return self.end_by_produce(code);
        }
        self.end(Cause::Fatal { code });
    }

    /// Nothing is taken any more, and everything taken fails.
    pub(super) fn end(&mut self, cause: Cause) {
        self.fatal = Some(cause);
        self.fail_all(cause);
    }

    /// Fails the partitions whose oldest batch has passed its deadline.
    pub(super) fn expire(&mut self) {
        if self.now_ms < self.next_expiry_ms {
            return;
        }
        self.next_expiry_ms = i64::MAX;
        let timeout_ms = self.settings.delivery_timeout_ms;
        let mut place = 0;
        while let Some(at) = self.active.get(place).copied() {
            let oldest = self.partition(at).and_then(|p| p.oldest()).and_then(|id| self.pool.get(id));
            match oldest.map(|b| (b.deadline_ms, b.last)) {
                Some((deadline_ms, last)) if deadline_ms <= self.now_ms => {
                    self.fail_partition(at, Cause::TimedOut { timeout_ms, last });
                }
                told => {
                    self.next_expiry_ms =
                        self.next_expiry_ms.min(told.map_or(i64::MAX, |(deadline_ms, _)| deadline_ms));
                    place += 1;
                }
            }
        }
    }

    /// When the next turn is due though nothing happens on the sockets; `i64::MAX`: never.
    pub(super) fn next_deadline(&self) -> i64 {
        let soon = self.now_ms.saturating_add(METADATA_POLL_MS);
        let mut due = if self.awaits_topic { soon } else { i64::MAX };
        for broker in &self.brokers {
            due = due.min(broker.due_ms(self.now_ms, &self.settings));
        }
        let transaction = self.txn.as_ref().filter(|txn| txn.is_busy());
        if self.active.is_empty() && transaction.is_none() {
            return due;
        }
        due = due.min(transaction.map_or(i64::MAX, |txn| self.later(txn.retry_at_ms())));
        due = due.min(self.next_expiry_ms).min(self.later(self.company_until_ms));
        if let Standing::Unknown { retry_at_ms } = self.standing {
            due = due.min(self.later(retry_at_ms));
        }
        for at in &self.active {
            let Some(partition) = self.partition(*at) else { continue };
            due = due.min(self.later(partition.retry_at_ms));
            if partition.leader == NO_LEADER {
                due = due.min(soon);
            }
            if let Some(batch) = partition.open.and_then(|id| self.pool.get(id)) {
                due = due.min(self.later(batch.opened_ms.saturating_add(self.settings.linger_ms)));
            }
        }
        due
    }

    /// A time that is still to come; what has passed waits for something else.
    fn later(&self, ms: i64) -> i64 {
        if ms > self.now_ms { ms } else { i64::MAX }
    }
}

/// Leaves the first `keep` records in the batch, the others behind them.
fn cut(batch: &mut Batch, keep: u32) -> Result<(), WireError> {
    let Batch { bytes, builder, rest, .. } = batch;
    let limit = rest.map_or(bytes.len(), |r| r.start());
    builder.unseal(bytes, limit)?;
    *rest = Some(builder.cut(bytes, keep, *rest)?);
    Ok(())
}
