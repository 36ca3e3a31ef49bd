//! What the coordinators answer, and what that changes.
//!
//! Invariant: an answer is taken in whatever state the transaction is by then; what it made true (partitions added, an
//! identity) is noted, an error that no longer matters is not. Called by the second half of the producer's turn.
use super::error::{Outcome, Step, TxnError, outcome};
use super::{Known, TxnState};
use crate::produce::error::{Cause, ProduceError};
use crate::produce::identity::{Identity, Standing};
use crate::produce::partition::NO_LEADER;
use crate::produce::producer::Producer;
use crate::wire::message::{
    AddOffsetsToTxnResponse, AddPartitionsToTxnResponse, EndTxnResponse, FindCoordinatorResponse,
    InitProducerIdResponse, TopicRef, TxnOffsetCommitResponse,
};
use crate::wire::{ErrorCode, WireError};

/// What an answer says.
struct Told {
    code: ErrorCode,
    throttle_ms: i32,
    /// The coordinator found.
    node: i32,
    /// The identity given.
    identity: Option<Identity>,
}

impl Told {
    fn new(throttle_ms: i32, code: ErrorCode) -> Self {
        Self { code, throttle_ms, node: NO_LEADER, identity: None }
    }
}

fn read(step: Step, version: i16, frame: &[u8]) -> Result<Told, WireError> {
    let identity = |id: i64, epoch| (id >= 0).then_some(Identity { id, epoch });
    Ok(match step {
        Step::FindCoordinator | Step::FindGroup => {
            let answer = FindCoordinatorResponse::read(frame, version)?;
            Told { node: answer.node_id, ..Told::new(answer.throttle_ms, answer.error) }
        }
        Step::Start | Step::Renew => {
            let answer = InitProducerIdResponse::read(frame, version)?;
            let identity = identity(answer.producer_id, answer.producer_epoch);
            Told { identity, ..Told::new(answer.throttle_ms, answer.error) }
        }
        Step::AddPartitions => {
            let mut answer = AddPartitionsToTxnResponse::read(frame, version)?;
            let code = worst(step, || answer.next())?;
            Told::new(answer.throttle_ms, code)
        }
        Step::AddOffsets => {
            let answer = AddOffsetsToTxnResponse::read(frame, version)?;
            Told::new(answer.throttle_ms, answer.error)
        }
        Step::CommitOffsets => {
            let mut answer = TxnOffsetCommitResponse::read(frame, version)?;
            let code = worst(step, || answer.next())?;
            Told::new(answer.throttle_ms, code)
        }
        Step::Commit | Step::Abort => {
            let answer = EndTxnResponse::read(frame, version)?;
            let identity = identity(answer.producer_id, answer.producer_epoch);
            Told { identity, ..Told::new(answer.throttle_ms, answer.error) }
        }
        Step::Produce => return Err(WireError::Malformed { what: "answer of a transaction", at: 0 }),
    })
}

/// The code of the partition that decides. OPERATION_NOT_ATTEMPTED only says that another one does.
fn worst<'a>(
    step: Step,
    mut next: impl FnMut() -> Result<Option<(TopicRef<'a>, i32, ErrorCode)>, WireError>,
) -> Result<ErrorCode, WireError> {
    let rank = |code: ErrorCode| match code {
        ErrorCode::OperationNotAttempted => (Outcome::Done, 1),
        code => (outcome(step, code), 0),
    };
    let mut worst = ErrorCode::None;
    while let Some((_, _, code)) = next()? {
        if rank(code) > rank(worst) {
            worst = code;
        }
    }
    Ok(worst)
}

impl Producer {
    /// Takes the answer to a step.
    pub(in crate::produce) fn take_step(
        &mut self,
        index: usize,
        step: Step,
        version: i16,
        frame: &[u8],
    ) -> Result<(), WireError> {
        let now_ms = self.now_ms;
        let told = match read(step, version, frame) {
            Ok(told) => told,
            Err(error) => {
                if let Some(txn) = self.txn.as_deref_mut() {
                    txn.lost_request(step, now_ms);
                }
                return Err(error);
            }
        };
        self.quieten(index, told.throttle_ms);
        let Some(txn) = self.txn.as_deref_mut() else { return Ok(()) };
        txn.asked = None;
        let refused = TxnError::Refused { step, code: told.code };
        match outcome(step, told.code) {
            Outcome::Done => self.step_done(step, &told),
            Outcome::Soon => txn.retry_at_ms = now_ms.saturating_add(txn.short.failed()),
            Outcome::Again => txn.retry_at_ms = now_ms.saturating_add(txn.pause.failed()),
            Outcome::Moved => {
                match step {
                    Step::CommitOffsets => txn.group_coordinator = NO_LEADER,
                    _ => txn.coordinator = NO_LEADER,
                }
                txn.unsure(step);
                txn.retry_at_ms = now_ms.saturating_add(txn.pause.failed());
            }
            // Aborting cannot be answered by aborting.
            Outcome::Abort if step == Step::Abort => txn.retry_at_ms = now_ms.saturating_add(txn.pause.failed()),
            Outcome::Abort => self.fail_transaction(refused),
            Outcome::Forgotten => {
                (txn.renew, txn.forgotten) = (true, true);
                self.fail_transaction(refused);
            }
            Outcome::Fenced => {
                let identity = self.standing.known().unwrap_or(Identity { id: -1, epoch: -1 });
                let error = txn.fenced(identity, now_ms);
                self.end_producer(error, ErrorCode::ProducerFenced);
            }
            // It was not told of the transaction, or forgot it with an answer that was lost: nothing to abort.
            Outcome::Fatal
                if step == Step::Abort && txn.known == Known::Unclear && told.code == ErrorCode::InvalidTxnState =>
            {
                txn.known = Known::Nothing;
            }
            // So a coordinator answers who comes with a transaction that it has aborted at its time-out.
            Outcome::Fatal if told.code == ErrorCode::InvalidTxnState && txn.is_late(now_ms) => {
                let identity = self.standing.known().unwrap_or(Identity { id: -1, epoch: -1 });
                let error = txn.fenced(identity, now_ms);
                self.end_producer(error, told.code);
            }
            Outcome::Fatal => self.end_producer(refused, told.code),
        }
        Ok(())
    }

    fn step_done(&mut self, step: Step, told: &Told) {
        if let Some(identity) = told.identity {
            self.standing = Standing::Known(identity);
        }
        let Some(txn) = self.txn.as_deref_mut() else { return };
        txn.pause.succeeded();
        txn.short.succeeded();
        txn.retry_at_ms = i64::MIN;
        let going_on = matches!(txn.state, TxnState::Open | TxnState::Committing);
        match step {
            Step::FindCoordinator => txn.coordinator = told.node,
            Step::FindGroup => txn.group_coordinator = told.node,
            Step::Start if txn.state == TxnState::Starting => txn.state = TxnState::Ready,
            Step::Renew => (txn.renew, txn.forgotten) = (false, false),
            Step::AddPartitions => {
                txn.known = Known::Open;
                self.partitions_added();
            }
            Step::AddOffsets => {
                txn.known = Known::Open;
                txn.offsets.added = going_on;
            }
            Step::CommitOffsets if going_on => txn.offsets.acknowledged(txn.chunk_end),
            Step::Commit => (txn.known, txn.state) = (Known::Nothing, TxnState::Ready),
            Step::Abort => txn.known = Known::Nothing,
            Step::Start | Step::CommitOffsets | Step::Produce => {}
        }
    }

    /// The coordinator has taken the partitions of the last AddPartitionsToTxn.
    fn partitions_added(&mut self) {
        let Some(txn) = self.txn.as_deref() else { return };
        for at in &txn.adding {
            let topic = self.topics.get_mut(at.topic.0 as usize);
            if let Some(partition) = topic.and_then(|t| t.partitions.get_mut(at.partition as usize)) {
                partition.txn_serial = txn.serial;
            }
        }
    }

    /// A step failed the transaction: no more records are taken.
    fn fail_transaction(&mut self, error: TxnError) {
        if let Some(txn) = self.txn.as_deref_mut() {
            txn.failed(error);
        }
        self.seal_all();
    }

    /// Batches of a transaction were given up.
    pub(in crate::produce) fn batches_failed(&mut self, error: ProduceError) {
        if let Some(txn) = self.txn.as_deref_mut() {
            txn.batches_failed(error);
        }
        self.seal_all();
    }

    /// The producer can never write again.
    pub(super) fn end_producer(&mut self, error: TxnError, code: ErrorCode) {
        if let Some(txn) = self.txn.as_deref_mut() {
            txn.state = TxnState::Fatal(error);
            txn.next = None;
        }
        self.end(Cause::Fatal { code });
    }

    /// A broker's answer to batches, or its versions, end the producer.
    pub(in crate::produce) fn end_by_produce(&mut self, code: ErrorCode) {
        let now_ms = self.now_ms;
        let identity = self.standing.known().unwrap_or(Identity { id: -1, epoch: -1 });
        let Some(txn) = self.txn.as_deref_mut() else { return };
        let error = match code {
            ErrorCode::ProducerFenced => txn.fenced(identity, now_ms),
            ErrorCode::UnsupportedVersion => TxnError::Unsupported { step: Step::Produce },
            code => TxnError::Refused { step: Step::Produce, code },
        };
        self.end_producer(error, code);
    }
}
