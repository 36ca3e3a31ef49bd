//! Which request of a transaction is next, whom it is for, and its bytes.
//!
//! Invariant: what is next follows from the state alone, so a step whose answer was lost, or that is to be repeated, is
//! asked again by itself. Called by the first half of the producer's turn.
use super::error::{Step, TxnError};
use super::{Known, Protocol, Txn, TxnState};
use crate::produce::broker::Phase;
use crate::produce::partition::NO_LEADER;
use crate::produce::producer::Producer;
use crate::produce::request::{HEAD_BYTES, Kind, Request};
use crate::wire::message::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, ApiKey, CoordinatorKind, EndTxnRequest, FindCoordinatorRequest,
    InitProducerIdRequest, RequestHeader, TxnOffsetCommitRequest,
};
use crate::wire::{ErrorCode, WireError};

/// Room for everything of a request but its list: header and the numbers of its own fields.
const FIXED_BYTES: usize = 128;

/// The API of a step, with the lowest and highest version that the protocol allows.
fn api(step: Step, protocol: Protocol) -> (ApiKey, i16, i16) {
    match (step, protocol) {
        (Step::FindCoordinator | Step::FindGroup, _) => (ApiKey::FindCoordinator, 1, i16::MAX),
        // Below version 3 an epoch cannot be renewed.
        (Step::Start | Step::Renew, _) => (ApiKey::InitProducerId, 3, i16::MAX),
        (Step::AddPartitions, _) => (ApiKey::AddPartitionsToTxn, 0, 3),
        (Step::AddOffsets, _) => (ApiKey::AddOffsetsToTxn, 0, i16::MAX),
        (Step::CommitOffsets, Protocol::One) => (ApiKey::TxnOffsetCommit, 3, 4),
        (Step::CommitOffsets, Protocol::Two) => (ApiKey::TxnOffsetCommit, 5, i16::MAX),
        (Step::Commit | Step::Abort, Protocol::One) => (ApiKey::EndTxn, 0, 4),
        (Step::Commit | Step::Abort, Protocol::Two) => (ApiKey::EndTxn, 5, i16::MAX),
        (Step::Produce, _) => (ApiKey::Produce, 3, i16::MAX),
    }
}

impl Txn {
    /// What is next. `pending`: a partition with batches is not part of the transaction yet; `quiet`: every batch is
    /// acknowledged, or given up with no request on its way.
    fn next_step(&self, pending: bool, quiet: bool) -> Option<Step> {
        let step = match self.state {
            TxnState::Starting => Step::Start,
            TxnState::Open | TxnState::Committing if pending && self.protocol == Protocol::One => Step::AddPartitions,
            TxnState::Open | TxnState::Committing if self.offsets.is_pending() => {
                if self.protocol == Protocol::One && !self.offsets.added {
                    Step::AddOffsets
                } else if self.group_coordinator == NO_LEADER {
                    return Some(Step::FindGroup);
                } else {
                    return Some(Step::CommitOffsets);
                }
            }
            TxnState::Committing if quiet && self.known != Known::Nothing => Step::Commit,
            TxnState::Aborting if quiet && self.known != Known::Nothing && !self.forgotten => Step::Abort,
            TxnState::Aborting if quiet && self.renew => Step::Renew,
            _ => return None,
        };
        Some(if self.coordinator == NO_LEADER { Step::FindCoordinator } else { step })
    }

    /// The broker that a step is for; `None`: any.
    fn target(&self, step: Step) -> Option<i32> {
        match step {
            Step::FindCoordinator | Step::FindGroup => None,
            Step::CommitOffsets => Some(self.group_coordinator),
            _ => Some(self.coordinator),
        }
    }
}

impl Producer {
    /// Decides what is asked next in this turn, and ends transactions of which the coordinator knows nothing.
    pub(in crate::produce) fn plan_transaction(&mut self) {
        let quiet = self.pool.used() == 0;
        let pending = self.txn.as_ref().is_some_and(|txn| {
            let serial = |at| self.partition(at).map_or(txn.serial, |p| p.txn_serial);
            txn.protocol == Protocol::One && self.active.iter().any(|at| serial(*at) != txn.serial)
        });
        let now_ms = self.now_ms;
        let Some(txn) = self.txn.as_deref_mut() else { return };
        txn.next = None;
        if txn.asked.is_some() {
            return;
        }
        let step = txn.next_step(pending, quiet);
        let ends = match txn.state {
            TxnState::Committing => quiet && !txn.offsets.is_pending(),
            TxnState::Aborting => quiet,
            _ => false,
        };
        match step {
            None if ends => txn.state = TxnState::Ready,
            Some(step) if txn.retry_at_ms <= now_ms => txn.next = Some((step, txn.target(step))),
            _ => {}
        }
    }

    /// Marks the broker that is to be asked as wanted.
    pub(in crate::produce) fn note_coordinator(&mut self) {
        let Some((_, target)) = self.txn.as_ref().and_then(|txn| txn.next) else { return };
        let node = match target {
            Some(node) => Some(node),
            None if self.brokers.iter().any(|b| b.phase != Phase::Idle) => None,
            None => self.any_broker(),
        };
        if let Some(node) = node {
            match self.brokers.iter_mut().find(|b| b.node == node) {
                Some(broker) => broker.wanted = true,
                None => self.add_broker(node),
            }
        }
    }

    /// A broker of the cluster to connect to, while none is connected: another one after each failure.
    fn any_broker(&mut self) -> Option<i32> {
        let snapshot = self.metadata.latest();
        if snapshot.brokers.is_empty() {
            self.metadata.request_refresh();
            self.awaits_topic = true;
            return None;
        }
        let now_ms = self.now_ms;
        let txn = self.txn.as_deref_mut()?;
        for _ in 0..snapshot.brokers.len() {
            let node = snapshot.brokers.get(txn.turn % snapshot.brokers.len())?.id;
            let resting = self.brokers.iter().any(|b| b.node == node && b.retry_at_ms > now_ms);
            if !resting {
                return Some(node);
            }
            txn.turn = txn.turn.wrapping_add(1);
        }
        snapshot.brokers.get(txn.turn % snapshot.brokers.len()).map(|b| b.id)
    }

    /// Asks this broker what is next, if it is the one to be asked.
    pub(in crate::produce) fn ask_transaction(&mut self, index: usize) {
        let now_ms = self.now_ms;
        let Some(txn) = self.txn.as_deref_mut() else { return };
        let Some(broker) = self.brokers.get_mut(index) else { return };
        let Some((step, target)) = txn.next else { return };
        let ready = matches!(broker.phase, Phase::Ready { .. }) && broker.quiet_until_ms <= now_ms;
        if !ready || target.is_some_and(|node| node != broker.node) {
            return;
        }
        let (api, least, most) = api(step, txn.protocol);
        let version = match broker.offered.choose_up_to(api, most) {
            Ok(version) if version >= least => version,
            _ => return self.end_producer(TxnError::Unsupported { step }, ErrorCode::UnsupportedVersion),
        };
        let Some((mut request, correlation_id)) = broker.begin(Kind::Transaction(step), version, now_ms) else {
            return;
        };
        txn.next = None;
        txn.asked = Some(step);
        if step == Step::CommitOffsets && txn.protocol == Protocol::Two {
            txn.known = Known::Open;
        }
        let written = self.write_step(step, &mut request, version, correlation_id);
        if let Some(broker) = self.brokers.get_mut(index) {
            broker.send(request);
        }
        if written.is_err() {
            self.lose(index);
            self.end_producer(TxnError::Encoding { step }, ErrorCode::InvalidRequest);
        }
    }

    fn write_step(
        &mut self,
        step: Step,
        request: &mut Request,
        version: i16,
        correlation_id: i32,
    ) -> Result<(), WireError> {
        if step == Step::AddPartitions {
            self.gather_partitions();
        }
        let missing = WireError::Malformed { what: "identity of the producer", at: 0 };
        let known = self.standing.known();
        let txn = self.txn.as_deref().ok_or(missing)?;
        let header = RequestHeader {
            api: api(step, txn.protocol).0,
            version,
            correlation_id,
            client_id: &self.settings.client_id,
        };
        let (head, transactional_id) = (&mut request.head, txn.id());
        match step {
            Step::FindCoordinator => {
                FindCoordinatorRequest { key: transactional_id, kind: CoordinatorKind::Transaction }
                    .write(head, &header)?;
            }
            Step::FindGroup => {
                FindCoordinatorRequest { key: txn.offsets.who().group, kind: CoordinatorKind::Group }
                    .write(head, &header)?;
            }
            Step::Start | Step::Renew => {
                let present = known.filter(|_| step == Step::Renew);
                InitProducerIdRequest {
                    transactional_id: Some(transactional_id),
                    transaction_timeout_ms: txn.settings.timeout_ms,
                    producer_id: present.map_or(-1, |p| p.id),
                    producer_epoch: present.map_or(-1, |p| p.epoch),
                }
                .write(head, &header)?;
            }
            Step::AddPartitions => self.write_partitions(head, &header)?,
            Step::AddOffsets => {
                let (group_id, identity) = (txn.offsets.who().group, known.ok_or(missing)?);
                let (producer_id, producer_epoch) = (identity.id, identity.epoch);
                AddOffsetsToTxnRequest { transactional_id, producer_id, producer_epoch, group_id }
                    .write(head, &header)?;
            }
            Step::CommitOffsets => {
                let end = self.write_offsets(head, &header)?;
                if let Some(txn) = self.txn.as_deref_mut() {
                    txn.chunk_end = end;
                }
            }
            Step::Commit | Step::Abort => {
                let identity = known.ok_or(missing)?;
                let (producer_id, producer_epoch) = (identity.id, identity.epoch);
                let commit = step == Step::Commit;
                EndTxnRequest { transactional_id, producer_id, producer_epoch, commit }.write(head, &header)?;
            }
            Step::Produce => return Err(missing),
        }
        Ok(())
    }

    /// Bytes that the list of a request may have.
    fn list_bytes(&self, ids: usize) -> usize {
        let txn = self.txn.as_ref().map_or(0, |txn| txn.id().len());
        HEAD_BYTES.saturating_sub(FIXED_BYTES + self.settings.client_id.len() + txn + ids)
    }

    /// Takes as many partitions that are not part of the transaction yet as one request has room for.
    fn gather_partitions(&mut self) {
        let mut left = self.list_bytes(0);
        let Some(mut txn) = self.txn.take() else { return };
        txn.adding.clear();
        for at in &self.active {
            if self.partition(*at).is_none_or(|p| p.txn_serial == txn.serial) {
                continue;
            }
            let named = txn.adding.last().is_some_and(|last| last.topic == at.topic);
            let bytes = 8 + if named { 0 } else { self.topic_name(at.topic).len() + 16 };
            if bytes > left {
                break;
            }
            left -= bytes;
            txn.adding.push(*at);
        }
        self.txn = Some(txn);
    }

    fn write_partitions(&self, head: &mut Vec<u8>, header: &RequestHeader<'_>) -> Result<(), WireError> {
        let missing = WireError::Malformed { what: "identity of the producer", at: 0 };
        let (txn, identity) = (self.txn.as_deref().ok_or(missing)?, self.standing.known().ok_or(missing)?);
        let request = AddPartitionsToTxnRequest {
            transactional_id: txn.id(),
            producer_id: identity.id,
            producer_epoch: identity.epoch,
        };
        let topics = || txn.adding.chunk_by(|a, b| a.topic == b.topic);
        let mut out = request.begin(head, header, topics().count());
        for topic in topics() {
            out.topic(topic.first().map_or("", |at| self.topic_name(at.topic)), topic.len());
            for at in topic {
                out.partition(i32::try_from(at.partition).unwrap_or(i32::MAX));
            }
        }
        out.finish().map(|_| ())
    }

    /// Writes the next offsets; answers how many of all that makes.
    fn write_offsets(&self, head: &mut Vec<u8>, header: &RequestHeader<'_>) -> Result<usize, WireError> {
        let missing = WireError::Malformed { what: "identity of the producer", at: 0 };
        let (txn, identity) = (self.txn.as_deref().ok_or(missing)?, self.standing.known().ok_or(missing)?);
        let who = txn.offsets.who();
        let request = TxnOffsetCommitRequest {
            transactional_id: txn.id(),
            group_id: who.group,
            producer_id: identity.id,
            producer_epoch: identity.epoch,
            generation_id: who.generation,
            member_id: who.member,
            instance_id: who.instance,
        };
        let ids = who.group.len() + who.member.len() + who.instance.map_or(0, str::len);
        let chunk = txn.offsets.next_chunk(self.list_bytes(ids));
        let offsets = || txn.offsets.chunk(chunk.clone());
        let mut topics = 0;
        let mut before = None;
        for offset in offsets() {
            topics += usize::from(before.replace(offset.topic) != Some(offset.topic));
        }
        let mut out = request.begin(head, header, topics);
        let mut before = None;
        for (place, offset) in offsets().enumerate() {
            if before.replace(offset.topic) != Some(offset.topic) {
                out.topic(offset.topic, offsets().skip(place).take_while(|o| o.topic == offset.topic).count());
            }
            out.partition(offset.partition, offset.offset, offset.leader_epoch, offset.metadata);
        }
        out.finish()?;
        Ok(chunk.end)
    }
}
