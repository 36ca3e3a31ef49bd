//! Transactions: what a transactional producer adds to the idempotent one.
//!
//! Owns the state of the transaction and the requests to the two coordinators, the transaction's and the group's. They
//! travel on the producer's connections, at most one at a time. Called within the producer's turn; nothing here blocks.
//!
//! Invariant: a transaction is committed only after every batch of it is acknowledged and every offset of it is taken;
//! once one of them fails it can only be aborted. It is aborted only when no batch of it can be written any more: what
//! no broker can have got is dropped, what may be written is sent until that is clear, at most `delivery.timeout.ms`.
//! Bound: one request of `HEAD_BYTES`, the offsets' bound, and three texts of a transactional id's length.
//!
//! Two protocols (`transaction.version`, a finalized feature of the cluster, looked at when a transaction begins):
//! - Version 1: the coordinator is told of each partition before its first batch, and of the group; the epoch is raised
//!   at the start of a producer and, by InitProducerId, after an abort that left sequences unclear (KIP-360).
//! - Version 2 (KIP-890): a Produce request adds its partitions, TxnOffsetCommit its group, and EndTxn raises the
//!   epoch, so that a late batch of one transaction can never become part of the next.
//!
//! Recovery: [`Step::Start`] makes the coordinator abort what an earlier producer with the same id left open, complete
//! what that had begun to commit, and refuse it from then on.
//!
//! | file | what |
//! | --- | --- |
//! | `face` | the calls: begin, offsets, commit, abort |
//! | `offsets` | the offsets to commit |
//! | `ask`, `answer` | which request is next and to whom; what an answer changes |
//! | `error` | what can go wrong; the table of codes |
mod answer;
mod ask;
mod error;
mod face;
mod offsets;

pub(crate) use error::{Step, Successor, TxnError};
pub(crate) use offsets::{GroupMember, TxnOffset};

use super::error::Cause;
use super::identity::Identity;
use super::partition::{NO_LEADER, PartitionId};
use super::settings::ProducerSettings;
use crate::net::Backoff;
use offsets::Offsets;

/// What makes a producer transactional.
#[derive(Clone, Debug)]
pub(crate) struct TxnSettings {
    /// `transactional.id`: of all producers with the same one, the last to start can write.
    pub(crate) transactional_id: String,
    /// `transaction.timeout.ms`: when the coordinator aborts a transaction that stays open.
    pub(crate) timeout_ms: i32,
}

impl TxnSettings {
    /// Kafka's default time-out.
    pub(crate) fn new(transactional_id: &str) -> Self {
        Self { transactional_id: transactional_id.to_owned(), timeout_ms: 60_000 }
    }
}

/// Where a transactional producer stands. It changes by calls and, within the producer's turn, by answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TxnState {
    /// The coordinator is asked for the identity; becomes `Ready`.
    Starting,
    /// No transaction is open.
    Ready,
    /// Records and offsets are taken.
    Open,
    /// Waits for the acknowledgements, then for the commit; becomes `Ready`.
    Committing,
    /// The transaction cannot be committed: abort it.
    Failed(TxnError),
    /// Becomes `Ready`.
    Aborting,
    /// The producer is at its end: close it.
    Fatal(TxnError),
}

impl TxnState {
    fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "without an open transaction",
            Self::Open => "in a transaction",
            Self::Committing => "committing",
            Self::Failed(_) => "in a transaction that must be aborted",
            Self::Aborting => "aborting",
            Self::Fatal(_) => "at its end",
        }
    }
}

/// How partitions become part of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocol {
    /// By AddPartitionsToTxn.
    One,
    /// By Produce.
    Two,
}

/// How sure it is that the coordinator has the transaction open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// It was not told of anything.
    Nothing,
    /// It was told, but has not answered.
    Unclear,
    /// It has.
    Open,
}

/// State of a transactional producer.
#[derive(Debug)]
pub(super) struct Txn {
    settings: TxnSettings,
    state: TxnState,
    /// Of the transaction; chosen at its beginning.
    protocol: Protocol,
    /// Level of `transaction.version` that a broker told last.
    level: i16,
    /// Number of the transaction; a partition that carries it is known to the coordinator.
    serial: u32,
    known: Known,
    begun_ms: i64,
    /// The identity must be renewed before the next transaction.
    renew: bool,
    /// The coordinator has no transaction of this identity to end.
    forgotten: bool,
    /// Node id of the coordinator, or [`NO_LEADER`].
    coordinator: i32,
    /// Node id of the group's coordinator, or [`NO_LEADER`].
    group_coordinator: i32,
    /// What is to be asked next, and the node id of the broker to ask, if not any.
    next: Option<(Step, Option<i32>)>,
    /// The request on its way.
    asked: Option<Step>,
    /// The partitions of the AddPartitionsToTxn on its way.
    adding: Vec<PartitionId>,
    /// How many entries of the offsets are acknowledged with the answer to the present request.
    chunk_end: usize,
    /// Nothing is asked before.
    retry_at_ms: i64,
    pause: Backoff,
    /// Pauses while the coordinator ends the transaction before.
    short: Backoff,
    offsets: Offsets,
    /// Which broker is asked for a coordinator next when none is connected.
    turn: usize,
}

/// First pause while the coordinator is busy with the transaction before, in milliseconds (as Kafka's client).
const CONCURRENT_PAUSE_MS: u32 = 20;

impl Txn {
    pub(super) fn new(settings: TxnSettings, producer: &ProducerSettings, seed: u32) -> Result<Self, TxnError> {
        offsets::check_id("a transactional.id", &settings.transactional_id)?;
        let (base, most) = (producer.retry_backoff_ms, producer.retry_backoff_max_ms);
        Ok(Self {
            settings,
            state: TxnState::Starting,
            protocol: Protocol::One,
            level: 0,
            serial: 0,
            known: Known::Nothing,
            begun_ms: 0,
            renew: false,
            forgotten: false,
            coordinator: NO_LEADER,
            group_coordinator: NO_LEADER,
            next: None,
            asked: None,
            adding: Vec::new(),
            chunk_end: 0,
            retry_at_ms: i64::MIN,
            pause: Backoff::new(base, most, seed),
            short: Backoff::new(base.min(CONCURRENT_PAUSE_MS), most, seed.wrapping_add(1)),
            offsets: Offsets::default(),
            turn: 0,
        })
    }

    /// The transactional id, for the head of Produce requests.
    pub(super) fn id(&self) -> &str {
        &self.settings.transactional_id
    }

    /// Whether records are taken.
    pub(super) fn takes_records(&self) -> Result<(), TxnError> {
        match self.state {
            TxnState::Open => Ok(()),
            TxnState::Failed(error) | TxnState::Fatal(error) => Err(error),
            state => Err(TxnError::Misplaced { call: "append", state: state.name() }),
        }
    }

    /// Whether batches of a partition that carries `serial` may leave.
    pub(super) fn may_send(&self, serial: u32) -> bool {
        self.protocol == Protocol::Two || serial == self.serial
    }

    /// The version of Produce that the protocol asks for, at most.
    pub(super) fn produce_up_to(&self) -> i16 {
        match self.protocol {
            Protocol::One => super::answer::PRODUCE_UP_TO,
            Protocol::Two => super::answer::PRODUCE_UP_TO + 1,
        }
    }

    /// Batches have left: from now on the coordinator may have the transaction open.
    pub(super) fn batches_left(&mut self) {
        if self.protocol == Protocol::Two {
            self.known = Known::Open;
        }
    }

    /// A broker told the level of `transaction.version`.
    pub(super) fn told(&mut self, level: Option<i16>) {
        self.level = level.unwrap_or(0);
    }

    /// How long the transaction has been open, if one is.
    fn open_ms(&self, now_ms: i64) -> Option<i64> {
        match self.state {
            TxnState::Starting | TxnState::Ready => None,
            _ => Some(now_ms.saturating_sub(self.begun_ms)),
        }
    }

    /// Whether the transaction has been open longer than its coordinator allows.
    fn is_late(&self, now_ms: i64) -> bool {
        self.open_ms(now_ms).is_some_and(|open_ms| open_ms >= i64::from(self.settings.timeout_ms))
    }

    /// The state after the producer was fenced.
    fn fenced(&mut self, identity: Identity, now_ms: i64) -> TxnError {
        let error = TxnError::fenced(identity, self.open_ms(now_ms), self.settings.timeout_ms);
        self.state = TxnState::Fatal(error);
        error
    }

    /// The transaction can only be aborted. While it is aborted anyway that changes nothing.
    fn failed(&mut self, error: TxnError) {
        if matches!(self.state, TxnState::Open | TxnState::Committing) {
            self.state = TxnState::Failed(error);
            self.offsets.clear();
        }
    }

    /// Batches of a partition were given up: whether they are written is not clear, so sequences cannot go on.
    pub(super) fn batches_failed(&mut self, error: super::error::ProduceError) {
        // In version 2 the end of the transaction raises the epoch.
        self.renew |= self.protocol == Protocol::One;
        if error.cause != Cause::Closed {
            self.failed(TxnError::Delivery(error));
        }
    }

    /// A connection was lost or could not be made: whatever this broker coordinates, another one may by now.
    pub(super) fn lost_broker(&mut self, node: i32) {
        for seat in [&mut self.coordinator, &mut self.group_coordinator] {
            if *seat == node {
                *seat = NO_LEADER;
            }
        }
    }

    /// The request on its way will not be answered.
    pub(super) fn lost_request(&mut self, step: Step, now_ms: i64) {
        self.asked = None;
        self.unsure(step);
        self.retry_at_ms = now_ms.saturating_add(self.pause.failed());
    }

    /// The coordinator may have taken the step although that was not answered.
    fn unsure(&mut self, step: Step) {
        let opens = matches!(step, Step::AddPartitions | Step::AddOffsets);
        if opens && self.known == Known::Nothing {
            self.known = Known::Unclear;
        }
    }

    /// Whether something is to be done or awaited, so that the turn must go on.
    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.state, TxnState::Ready | TxnState::Fatal(_))
    }

    /// When the next request is due, if it waits for a pause.
    pub(super) fn retry_at_ms(&self) -> i64 {
        self.retry_at_ms
    }
}
