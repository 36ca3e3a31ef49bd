//! Taking answers: what became of each batch, and who the producer is.
//!
//! Invariant: every batch of an answered request is decided exactly once: written, to be sent again, or failed. Called
//! by the second half of the producer's turn.
use super::broker::Phase;
use super::error::{Cause, Class, class};
use super::identity::{Identity, Standing};
use super::partition::PartitionId;
use super::pool::{BatchId, Stage};
use super::producer::Producer;
use super::request::{Kind, Request};
use crate::client::Hint;
use crate::net::{NetError, PollSet};
use crate::wire::message::{
    API_VERSIONS_FALLBACK, ApiKey, ApiVersionsResponse, InitProducerIdResponse, ProduceResponse, ProducedPartition,
    TopicRef,
};
use crate::wire::{ErrorCode, WireError};

/// The highest version of Produce that a producer without transactions has a use for; it names topics.
pub(super) const PRODUCE_UP_TO: i16 = 11;

impl Producer {
    /// Moves one connection on after the wait.
    pub(super) fn progress(&mut self, index: usize, polls: &PollSet) {
        let Some(broker) = self.brokers.get_mut(index) else { return };
        if broker.phase == Phase::Idle {
            return;
        }
        match broker.advance(polls) {
            Err(_) => self.lose(index),
            Ok(readable) => {
                self.greet(index);
                if readable {
                    while self.read(index) {}
                }
                self.write(index);
            }
        }
    }

    /// Takes one answer, if it is there whole. Answers whether it was, and the connection goes on.
    fn read(&mut self, index: usize) -> bool {
        let Some(broker) = self.brokers.get_mut(index).filter(|b| b.is_connected()) else { return false };
        let (request, len) = match broker.read() {
            Ok(Some(answered)) => answered,
            Ok(None) => return false,
            Err(error) => {
                if let NetError::ResponseTooLarge { needed, .. } = error {
                    self.refuse_oldest(index, needed);
                }
                self.lose(index);
                return false;
            }
        };
        let answer = std::mem::take(&mut broker.answer);
        let taken = self.take_answer(index, request, answer.get(..len).unwrap_or_default());
        if let Some(broker) = self.brokers.get_mut(index) {
            broker.answer = answer;
        }
        if taken.is_err() {
            self.lose(index);
        }
        taken.is_ok()
    }

    fn take_answer(&mut self, index: usize, mut request: Request, frame: &[u8]) -> Result<(), WireError> {
        let taken = match request.kind {
            Kind::Versions => self.take_versions(index, request.version, frame),
            Kind::Identity => self.take_identity(index, request.version, frame),
            Kind::Batches => self.take_produced(index, &mut request, frame),
            Kind::Transaction(step) => self.take_step(index, step, request.version, frame),
        };
        if let Some(broker) = self.brokers.get_mut(index) {
            broker.recycle(request);
        }
        taken
    }

    fn take_versions(&mut self, index: usize, version: i16, frame: &[u8]) -> Result<(), WireError> {
        let answer = ApiVersionsResponse::read(frame, version)?;
        if answer.error == ErrorCode::UnsupportedVersion && version != API_VERSIONS_FALLBACK {
            self.greet_simply(index);
            return Ok(());
        }
        let offered = &answer.offered;
        let chosen = offered.check_release().and_then(|()| {
            Ok((offered.choose_up_to(ApiKey::Produce, PRODUCE_UP_TO)?, offered.choose(ApiKey::InitProducerId)?))
        });
        let (produce, identity) = match chosen {
            Ok(chosen) => chosen,
            Err(error) => {
                match self.txn {
                    Some(_) => self.end_by_produce(ErrorCode::UnsupportedVersion),
                    None => self.end(Cause::Unsupported(error)),
                }
                return Err(error);
            }
        };
        self.quieten(index, answer.throttle_ms);
        if let Some(txn) = self.txn.as_deref_mut() {
            txn.told(answer.transaction_version);
        }
        if let Some(broker) = self.brokers.get_mut(index) {
            broker.offered = answer.offered;
            broker.phase = Phase::Ready { produce, identity };
            broker.backoff.succeeded();
        }
        Ok(())
    }

    fn take_identity(&mut self, index: usize, version: i16, frame: &[u8]) -> Result<(), WireError> {
        let answer = InitProducerIdResponse::read(frame, version).inspect_err(|_| self.ask_identity_again())?;
        self.quieten(index, answer.throttle_ms);
        match class(answer.error) {
            Class::Success => {
                self.pause.succeeded();
                self.standing = Standing::Known(Identity { id: answer.producer_id, epoch: answer.producer_epoch });
            }
            Class::Fatal => {
                self.ask_identity_again();
                self.fatal(answer.error);
            }
            _ => self.ask_identity_again(),
        }
        Ok(())
    }

    /// The identity was not told; asks for it again after a pause.
    pub(super) fn ask_identity_again(&mut self) {
        let retry_at_ms = self.now_ms.saturating_add(self.pause.failed());
        self.standing = Standing::Unknown { retry_at_ms };
    }

    /// Decides the batches of a request. Those that the answer leaves out count as lost with a connection.
    fn take_produced(&mut self, index: usize, request: &mut Request, frame: &[u8]) -> Result<(), WireError> {
        let mut answered = 0;
        let outcome = self.visit_produced(request, frame, &mut answered);
        for id in request.batches.get(answered..).unwrap_or_default() {
            self.land_lost(*id, true);
        }
        self.quieten(index, outcome?);
        Ok(())
    }

    /// Visits the partitions of an answer. Answers how long the broker wants to be left alone, in milliseconds.
    fn visit_produced(&mut self, request: &mut Request, frame: &[u8], answered: &mut usize) -> Result<i32, WireError> {
        let mut answer = ProduceResponse::read(frame, request.version)?;
        while let Some(told) = answer.next()? {
            // Brokers answer in an order of their own; most keep ours.
            let Some(place) = (*answered..request.batches.len()).find(|place| self.is_about(&told, request, *place))
            else {
                return Err(WireError::Malformed { what: "partition in a produce answer", at: 0 });
            };
            request.batches.swap(*answered, place);
            let Some(id) = request.batches.get(*answered).copied() else { break };
            *answered += 1;
            self.decide(id, &told);
        }
        Ok(answer.tail()?.throttle_ms)
    }

    fn is_about(&self, told: &ProducedPartition<'_>, request: &Request, place: usize) -> bool {
        let batch = request.batches.get(place).and_then(|id| self.pool.get(*id));
        batch.is_some_and(|b| {
            i64::from(b.at.partition) == i64::from(told.partition)
                && told.topic == TopicRef::Name(self.topic_name(b.at.topic))
        })
    }

    /// What a broker told about one batch.
    fn decide(&mut self, id: BatchId, told: &ProducedPartition<'_>) {
        let Some(at) = self.land(id) else { return };
        let code = told.error;
        match class(code) {
            Class::Success => self.written(id, at, told.base_offset),
            Class::Duplicate => self.written(id, at, -1),
            Class::Moved => {
                let moved = self.moved(at, told);
                self.retry(id, at, code, true, !moved);
            }
            Class::Unclear => self.retry(id, at, code, true, true),
            Class::Retry => self.retry(id, at, code, false, true),
            Class::Split => self.halve(id, at),
            Class::Sequence => self.resequence(id, at, code, told.log_start_offset),
            Class::Fatal => self.fatal(code),
            Class::Refused => self.fail_partition(at, Cause::Refused { code }),
        }
    }

    /// The request of a batch is over. Answers its partition, unless its outcome was told before.
    pub(super) fn land(&mut self, id: BatchId) -> Option<PartitionId> {
        let batch = self.pool.get_mut(id)?;
        let (at, stage) = (batch.at, batch.stage);
        batch.stage = Stage::Ready;
        self.partition_mut(at)?.landed();
        if stage == Stage::GivenUp {
            self.pool.put_back(id);
            return None;
        }
        Some(at)
    }

    /// A batch, or the part of it that was sent, is written: at `offset`, or where the broker does not tell (-1).
    fn written(&mut self, id: BatchId, at: PartitionId, offset: i64) {
        let Some(batch) = self.pool.get_mut(id) else { return };
        let count = batch.builder.count();
        let end = batch.done + count;
        batch.shares.written(&mut self.acks, offset, batch.done, end);
        self.stats.acked += u64::from(count);
        let resumed = batch.rest.take().map(|rest| {
            (batch.done, batch.stamp, batch.unclear) = (end, None, false);
            batch.builder.resume(&mut batch.bytes, rest)
        });
        let Some(topic) = self.topics.get_mut(at.topic.0 as usize) else { return };
        let Some(partition) = topic.partitions.get_mut(at.partition as usize) else { return };
        let last_offset = if offset < 0 { -1 } else { offset + i64::from(count) - 1 };
        partition.acknowledged(last_offset, self.now_ms);
        match resumed {
            Some(Ok(())) => {}
            Some(Err(_)) => self.fail_partition(at, Cause::Encoding),
            None => {
                partition.remove(&mut self.pool, id);
                self.pool.put_back(id);
                self.deactivate(at);
            }
        }
    }

    /// The partition is led by another broker. Answers whether it is known by which.
    fn moved(&mut self, at: PartitionId, told: &ProducedPartition<'_>) -> bool {
        let Some(leader) = told.current_leader else {
            self.metadata.request_refresh();
            return false;
        };
        let Some(topic) = self.topics.get_mut(at.topic.0 as usize) else { return false };
        let Some(partition) = topic.partitions.get_mut(at.partition as usize) else { return false };
        let news = leader.leader_epoch > partition.leader_epoch && leader.leader_id != partition.leader;
        if news {
            partition.leader = leader.leader_id;
            partition.leader_epoch = leader.leader_epoch;
        }
        self.metadata.hint(&Hint {
            topic: &topic.name,
            partition: told.partition,
            leader: leader.leader_id,
            leader_epoch: leader.leader_epoch,
        });
        news
    }

    /// Nothing more goes to this broker for so long.
    pub(super) fn quieten(&mut self, index: usize, throttle_ms: i32) {
        let until = self.now_ms.saturating_add(i64::from(throttle_ms.max(0)));
        if let Some(broker) = self.brokers.get_mut(index).filter(|_| throttle_ms > 0) {
            broker.quiet_until_ms = broker.quiet_until_ms.max(until);
        }
    }
}
