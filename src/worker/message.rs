//! What the threads of a process say to each other. All of it happens at rebalances, commits and faults, never per
//! record.
use super::failure::{Failure, RunError};
use crate::base::id::{SourceId, StoreId, TaskId};
use crate::client::membership::Epoch;
use crate::task::step::Life;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Commands that may wait for a thread: at most one assignment, one revocation and a message for each store of its
/// tasks.
pub(crate) const COMMANDS: usize = 1_024;
/// Requests that may wait for the control thread.
pub(crate) const REQUESTS: usize = 4_096;

/// Where a task starts reading one of its inputs.
#[derive(Debug, Clone)]
pub(crate) struct StartPosition {
    /// The source node.
    pub(crate) source: SourceId,
    /// Topic name.
    pub(crate) topic: Arc<str>,
    /// Partition number.
    pub(crate) partition: u32,
    /// Offset of the first record to process.
    pub(crate) offset: i64,
    /// Committed partition time, -1 when unknown.
    pub(crate) partition_time: i64,
}

/// A task that a thread takes over.
#[derive(Debug, Clone)]
pub(crate) struct TaskStart {
    /// Which.
    pub(crate) id: TaskId,
    /// Its inputs.
    pub(crate) inputs: Vec<StartPosition>,
}

/// What a stream thread is told.
#[derive(Debug)]
pub(crate) enum Command {
    /// The tasks of this epoch: those of `keep` go on where they stand, those of `start` begin, all others close.
    Assign {
        /// Number of the assignment; commits of older ones are refused.
        epoch: Epoch,
        /// Tasks that the thread has parked and keeps.
        keep: Vec<TaskId>,
        /// Tasks that it takes over.
        start: Vec<TaskStart>,
    },
    /// Commit, park every task, answer with [`Request::Revoked`].
    Revoke {
        /// The epoch that ends.
        epoch: Epoch,
    },
    /// The assignment is lost: close every task without committing.
    Lost,
    /// A store of a task is complete.
    Restored {
        /// The task.
        task: TaskId,
        /// Its life, as it was given when the restore was asked for: the task may have begun again since.
        life: Life,
        /// Its store.
        store: StoreId,
    },
    /// A store of a task could not be restored.
    RestoreFailed {
        /// The task.
        task: TaskId,
        /// Its life.
        life: Life,
        /// Why.
        error: RunError,
    },
    /// Read an input from here: the answer to [`Request::OutOfRange`].
    Position {
        /// The task.
        task: TaskId,
        /// The input's topic.
        topic: Arc<str>,
        /// The input's partition.
        partition: u32,
        /// Where to go on.
        offset: i64,
    },
    /// Close this task uncommitted and start it again from its last commit.
    Restart(TaskStart),
    /// The database has stopped: close every task without committing, answer with [`Request::StoreReleased`].
    ReleaseStore,
    /// Commit, close every task and end.
    Shutdown,
}

/// What the control thread is asked.
#[derive(Debug)]
pub(crate) enum Request {
    /// The thread's commit slot is filled.
    Commit {
        /// Index of the thread.
        thread: usize,
    },
    /// The thread has parked its tasks.
    Revoked {
        /// Index of the thread.
        thread: usize,
        /// The epoch that ended.
        epoch: Epoch,
    },
    /// Every task of the thread's assignment is processing.
    Running {
        /// Index of the thread.
        thread: usize,
        /// The assignment.
        epoch: Epoch,
    },
    /// A task that the thread was to keep is not there: it was closed uncommitted meanwhile and has to start again.
    Reopen {
        /// Index of the thread.
        thread: usize,
        /// The task.
        task: TaskId,
        /// The assignment.
        epoch: Epoch,
    },
    /// A task or the thread failed.
    Failed {
        /// Index of the thread.
        thread: usize,
        /// What and why.
        failure: Failure,
    },
    /// An input's offset is no longer in the log.
    OutOfRange {
        /// Index of the thread.
        thread: usize,
        /// The task.
        task: TaskId,
        /// The source node.
        source: SourceId,
        /// The input's topic.
        topic: Arc<str>,
        /// The input's partition.
        partition: u32,
        /// The offset asked for.
        offset: i64,
        /// Where the log parts from what was read of it, when it was truncated and the leader could tell.
        end: Option<i64>,
    },
    /// The database has stopped after an error in its background.
    StoreStopped {
        /// What it said.
        reason: String,
    },
    /// The thread has closed its tasks and does not use the database.
    StoreReleased {
        /// Index of the thread.
        thread: usize,
    },
    /// The restore thread has opened the database again, or could not.
    StoreReopened {
        /// Why not.
        outcome: Result<(), String>,
    },
    /// The thread has ended.
    Ended {
        /// Index of the thread.
        thread: usize,
    },
}

/// One offset to commit.
#[derive(Debug, Clone)]
pub(crate) struct OffsetToCommit {
    /// Topic name.
    pub(crate) topic: Arc<str>,
    /// Partition number.
    pub(crate) partition: u32,
    /// Offset of the next record to process.
    pub(crate) offset: i64,
    /// Partition time for the metadata, -1 when unknown.
    pub(crate) partition_time: i64,
}

/// How a plain commit ended.
#[derive(Debug, Clone)]
pub(crate) enum CommitOutcome {
    /// The offsets are the group's.
    Done,
    /// A rebalance runs: nothing is committed; the task parks and commits later if it is kept.
    Rebalancing,
    /// The thread's assignment is over: its tasks close uncommitted.
    Stale,
    /// It will not pass.
    Failed(RunError),
}

/// How far a thread's commit is.
#[derive(Debug, Default)]
pub(crate) enum CommitPhase {
    /// Nothing asked.
    #[default]
    Idle,
    /// The control thread is to commit.
    Asked,
    /// The control thread has answered.
    Answered(CommitOutcome),
}

/// What lies in a commit slot.
#[derive(Debug, Default)]
pub(crate) struct CommitRequest {
    /// The thread's assignment.
    pub(crate) epoch: Option<Epoch>,
    /// Its offsets; the vector is used again for the next commit.
    pub(crate) offsets: Vec<OffsetToCommit>,
    /// How far it is.
    pub(crate) phase: CommitPhase,
}

/// The one slot through which a thread hands over its offsets.
#[derive(Debug, Default, Clone)]
pub(crate) struct CommitSlot {
    shared: Arc<Mutex<CommitRequest>>,
}

impl CommitSlot {
    /// The slot's content.
    pub(crate) fn lock(&self) -> MutexGuard<'_, CommitRequest> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer, if there is one; the slot is idle then.
    pub(crate) fn take_answer(&self) -> Option<CommitOutcome> {
        let mut request = self.lock();
        match std::mem::take(&mut request.phase) {
            CommitPhase::Answered(outcome) => Some(outcome),
            other => {
                request.phase = other;
                None
            }
        }
    }
}
