//! What can go wrong with a transaction, and how each of Kafka's error codes is met at each step.
//!
//! Pure. The table is that of Kafka's own client (`TransactionManager`), which knows three classes: what is tried
//! again,
//! what ends the transaction (it must be aborted, then the producer goes on), and what ends the producer.
use crate::produce::error::ProduceError;
use crate::produce::identity::Identity;
use crate::wire::ErrorCode;

/// A request of a transactional producer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// FindCoordinator for the transactional id.
    FindCoordinator,
    /// FindCoordinator for the group whose offsets are committed.
    FindGroup,
    /// InitProducerId: a new incarnation, which aborts what the one before left open.
    Start,
    /// InitProducerId with the present identity: the next epoch (KIP-360).
    Renew,
    /// AddPartitionsToTxn.
    AddPartitions,
    /// AddOffsetsToTxn.
    AddOffsets,
    /// TxnOffsetCommit.
    CommitOffsets,
    /// EndTxn that commits.
    Commit,
    /// EndTxn that aborts.
    Abort,
    /// Produce: only named in errors, its codes are those of every producer.
    Produce,
}

impl Step {
    /// Kafka's name of the request.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FindCoordinator | Self::FindGroup => "FindCoordinator",
            Self::Start | Self::Renew => "InitProducerId",
            Self::AddPartitions => "AddPartitionsToTxn",
            Self::AddOffsets => "AddOffsetsToTxn",
            Self::CommitOffsets => "TxnOffsetCommit",
            Self::Commit => "EndTxn (commit)",
            Self::Abort => "EndTxn (abort)",
            Self::Produce => "Produce",
        }
    }
}

/// Who fenced a producer, as far as a client can tell: the broker answers the same in both cases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Successor {
    /// The transaction was within its time-out, so another producer has started with this transactional id.
    Another,
    /// The transaction was open longer than its time-out: the coordinator has aborted it, unless another producer took
    /// over.
    TimeOut {
        /// `transaction.timeout.ms`.
        timeout_ms: i32,
        /// How long it was open, in milliseconds.
        open_ms: i64,
    },
}

impl std::fmt::Display for Successor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Another => f.write_str("another producer with the same transactional.id took over"),
            Self::TimeOut { timeout_ms, open_ms } => write!(
                f,
                "the coordinator aborted the transaction, open for {open_ms} ms, at transaction.timeout.ms \
                 ({timeout_ms} ms), or another producer with the same transactional.id took over"
            ),
        }
    }
}

/// Why a transaction or the whole producer cannot go on. The state says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TxnError {
    /// A batch of the transaction was not delivered.
    #[error("a record of the transaction was not delivered: {0}")]
    Delivery(ProduceError),
    /// A broker refused a step.
    #[error("{} was answered with {code}{}", step.name(), advice(*step, *code))]
    Refused {
        /// The step.
        step: Step,
        /// Kafka's error code.
        code: ErrorCode,
    },
    /// This producer's epoch is over. It must be closed; a new one with the same transactional id would fence whoever
    /// took over.
    #[error("producer {id} was fenced at epoch {epoch}: {by}")]
    Fenced {
        /// Its id.
        id: i64,
        /// Its epoch.
        epoch: i16,
        /// Who took over.
        by: Successor,
    },
    /// A broker is too old.
    #[error("a broker does not offer {} as transactions need it: use kafka 2.5 or later", step.name())]
    Unsupported {
        /// The step.
        step: Step,
    },
    /// The broker's answer cannot be read, or a request does not fit its buffer.
    #[error("{} cannot be encoded or its answer cannot be read", step.name())]
    Encoding {
        /// The step.
        step: Step,
    },
    /// The call does not fit the state.
    #[error("{call} is not possible while the producer is {state}")]
    Misplaced {
        /// The call.
        call: &'static str,
        /// The state.
        state: &'static str,
    },
    /// Offsets of a second group while those of a first one have not been sent.
    #[error("offsets of one group are being sent; wait until they are before naming another group")]
    AnotherGroup,
    /// A text is longer than requests have room for.
    #[error("{what} of {bytes} bytes is too long; at most {most} are sent")]
    TooLong {
        /// What it is.
        what: &'static str,
        /// Its bytes.
        bytes: usize,
        /// Bytes allowed.
        most: usize,
    },
    /// More offsets than one transaction takes.
    #[error("more than {most} offsets in one transaction; split the application")]
    TooManyOffsets {
        /// The limit.
        most: usize,
    },
}

/// What a user can do about a refusal.
fn advice(step: Step, code: ErrorCode) -> &'static str {
    match (step, code) {
        (_, ErrorCode::InvalidTransactionTimeout) => {
            ": lower transaction.timeout.ms to the brokers' transaction.max.timeout.ms or raise that"
        }
        (_, ErrorCode::TransactionalIdAuthorizationFailed) => {
            ": the user needs WRITE and DESCRIBE on the transactional id"
        }
        (Step::CommitOffsets, ErrorCode::IllegalGeneration | ErrorCode::UnknownMemberId) => {
            ": the group has gone on without this member"
        }
        (Step::CommitOffsets, ErrorCode::FencedInstanceId) => ": another member has the same group.instance.id",
        (_, ErrorCode::GroupAuthorizationFailed) => ": the user needs READ on the group",
        (_, ErrorCode::TopicAuthorizationFailed) => ": the user needs WRITE on the topic",
        _ => "",
    }
}

impl TxnError {
    /// The error of a producer that was fenced, whose transaction has been open for `open_ms` (`None`: none is open).
    pub(super) fn fenced(identity: Identity, open_ms: Option<i64>, timeout_ms: i32) -> Self {
        let by = match open_ms {
            Some(open_ms) if open_ms >= i64::from(timeout_ms) => Successor::TimeOut { timeout_ms, open_ms },
            _ => Successor::Another,
        };
        Self::Fenced { id: identity.id, epoch: identity.epoch, by }
    }
}

/// How a code is met, the mildest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Outcome {
    /// The step is done.
    Done,
    /// Again after a short pause: the coordinator still ends the transaction before.
    Soon,
    /// Again after a pause that grows.
    Again,
    /// Another broker is the coordinator: find it, then again.
    Moved,
    /// The transaction must be aborted.
    Abort,
    /// The coordinator no longer knows this producer: the transaction must be aborted, and without EndTxn.
    Forgotten,
    /// The producer cannot go on.
    Fatal,
    /// Somebody else took over.
    Fenced,
}

/// What Kafka's own client does about a code at a step.
pub(super) fn outcome(step: Step, code: ErrorCode) -> Outcome {
    use ErrorCode as E;
    match (step, code) {
        (_, E::None) => Outcome::Done,
        (_, E::TransactionalIdAuthorizationFailed | E::ClusterAuthorizationFailed) => Outcome::Fatal,
        (Step::FindCoordinator | Step::FindGroup, code) => match code {
            E::GroupAuthorizationFailed => Outcome::Abort,
            code if code.is_retriable() => Outcome::Again,
            _ => Outcome::Fatal,
        },
        (_, E::NotCoordinator | E::CoordinatorNotAvailable) => Outcome::Moved,
        (Step::CommitOffsets, E::RequestTimedOut) => Outcome::Moved,
        (_, E::ConcurrentTransactions) => Outcome::Soon,
        (_, E::ProducerFenced | E::InvalidProducerEpoch) => Outcome::Fenced,
        (Step::Start | Step::Renew, code) if code.is_retriable() => Outcome::Again,
        (Step::Start | Step::Renew, _) => Outcome::Fatal,
        (_, code) if code.is_retriable() => Outcome::Again,
        (_, E::InvalidProducerIdMapping | E::UnknownProducerId) => Outcome::Forgotten,
        (_, E::TransactionAbortable) => Outcome::Abort,
        (Step::AddPartitions, E::InvalidTxnState) => Outcome::Fatal,
        // Also OPERATION_NOT_ATTEMPTED, TOPIC_AUTHORIZATION_FAILED and what is not known: the others were not added.
        (Step::AddPartitions, _) => Outcome::Abort,
        (Step::AddOffsets | Step::CommitOffsets, E::GroupAuthorizationFailed) => Outcome::Abort,
        (
            Step::CommitOffsets,
            // The member is not in the group any more, or not alone.
            E::IllegalGeneration | E::UnknownMemberId | E::FencedInstanceId | E::StaleMemberEpoch
            // The offsets themselves are refused. (Kafka's client ends the producer for some; aborting is enough.)
            | E::OffsetMetadataTooLarge | E::InvalidCommitOffsetSize | E::TopicAuthorizationFailed
            | E::RebalanceInProgress,
        ) => Outcome::Abort,
        _ => Outcome::Fatal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn all(step: Step, codes: &[i16], expected: Outcome) {
        for code in codes {
            assert_eq!(outcome(step, ErrorCode::from_code(*code)), expected, "{step:?} {code}");
        }
    }

    /// Every step with every code that its answer can have, beside what Kafka's own client does.
    #[test]
    fn each_code_at_each_step_is_met_as_by_kafkas_own_client() {
        use Outcome::{Abort, Again, Done, Fatal, Fenced, Forgotten, Moved, Soon};
        let steps = [Step::Start, Step::Renew, Step::AddPartitions, Step::AddOffsets, Step::Commit, Step::Abort];
        for step in steps {
            all(step, &[0], Done);
            all(step, &[15, 16], Moved);
            all(step, &[14], Again);
            all(step, &[51], Soon);
            all(step, &[47, 90], Fenced);
            all(step, &[53, 31], Fatal);
        }
        for step in [Step::Start, Step::Renew] {
            all(step, &[48, 49, 50, 59, 35, -1, 120], Fatal);
        }
        for step in [Step::AddPartitions, Step::AddOffsets, Step::CommitOffsets, Step::Commit, Step::Abort] {
            all(step, &[49, 59], Forgotten);
            all(step, &[120], Abort);
            all(step, &[48], Fatal);
        }
        all(Step::AddPartitions, &[3], Again);
        all(Step::AddPartitions, &[29, 55, 17, -1, 9_999], Abort);
        all(Step::AddOffsets, &[30], Abort);
        all(Step::AddOffsets, &[-1, 42], Fatal);
        all(Step::CommitOffsets, &[0], Done);
        all(Step::CommitOffsets, &[7, 15, 16], Moved);
        all(Step::CommitOffsets, &[3, 14], Again);
        all(Step::CommitOffsets, &[22, 25, 82, 113, 30, 12, 28, 29, 27], Abort);
        all(Step::CommitOffsets, &[47, 90], Fenced);
        all(Step::CommitOffsets, &[53, 43, -1], Fatal);
        for step in [Step::Commit, Step::Abort] {
            all(step, &[-1, 42, 35], Fatal);
        }
        for step in [Step::FindCoordinator, Step::FindGroup] {
            all(step, &[0], Done);
            all(step, &[15, 14], Again);
            all(step, &[53, 24, -1], Fatal);
        }
        all(Step::FindGroup, &[30], Abort);
    }

    #[test]
    fn a_fenced_producer_says_who_took_over() {
        let identity = Identity { id: 4_001, epoch: 3 };
        assert_eq!(
            TxnError::fenced(identity, Some(59_999), 60_000).to_string(),
            "producer 4001 was fenced at epoch 3: another producer with the same transactional.id took over"
        );
        assert_eq!(
            TxnError::fenced(identity, Some(60_000), 60_000).to_string(),
            "producer 4001 was fenced at epoch 3: the coordinator aborted the transaction, open for 60000 ms, at \
             transaction.timeout.ms (60000 ms), or another producer with the same transactional.id took over"
        );
        assert!(matches!(TxnError::fenced(identity, None, 1), TxnError::Fenced { by: Successor::Another, .. }));
        let refused = TxnError::Refused { step: Step::CommitOffsets, code: ErrorCode::IllegalGeneration };
        assert_eq!(
            refused.to_string(),
            "TxnOffsetCommit was answered with ILLEGAL_GENERATION (22): the group has gone on without this member"
        );
    }
}
