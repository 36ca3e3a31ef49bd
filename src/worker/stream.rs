//! A stream thread: what it owns and its loop.
//!
//! Owns its tasks, its wired nodes, its fetcher with the frames, its producer with the batches, and its arena.
//! Invariant: a task is touched by one thread only, and everything that a task holds is given back before the task is
//! forgotten. Bound: the rows of the plan that were split by threads. Made by the control thread.
use super::failure::{Failure, RunError};
use super::mailbox::Mailbox;
use super::message::{Command, CommitSlot, Request};
use super::port::ThreadPort;
use super::restore::RestoreCommand;
use super::settings::Settings;
use crate::arena::Arena;
use crate::base::clock::Clock;
use crate::base::id::TaskId;
use crate::budget::{Pressure, Reserved, Shares};
use crate::client::Fetcher;
use crate::client::membership::Epoch;
use crate::node::{FaultCell, Wired};
use crate::observe::{Counters, Observed};
use crate::store::backend::Backend;
use crate::store::batch::StoreBatch;
use crate::task::step::Task;
use crate::topology::Topology;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What every stream thread of a process shares.
#[derive(Clone)]
pub(crate) struct Shared {
    /// The user's settings.
    pub(crate) settings: Arc<Settings>,
    /// What is computed.
    pub(crate) topology: Arc<Topology>,
    /// Both clocks.
    pub(crate) clock: Arc<dyn Clock>,
    /// The database.
    pub(crate) backend: Arc<dyn Backend>,
    /// To the control thread.
    pub(crate) control: Mailbox<Request>,
    /// To the restore thread.
    pub(crate) restore: Mailbox<RestoreCommand>,
    /// What the pools take of their modules' rows.
    pub(crate) shares: Shares,
    /// The next task's life.
    pub(crate) lives: Arc<AtomicU64>,
}

/// A stream thread's own things. Built on the thread itself, so that its memory is its own.
pub(crate) struct StreamThread {
    pub(super) index: usize,
    pub(super) shared: Shared,
    pub(super) commands: Mailbox<Command>,
    pub(super) slot: CommitSlot,
    pub(super) observed: Observed,
    pub(super) pressure: Arc<Pressure>,
    pub(super) fetcher: Fetcher,
    pub(super) port: ThreadPort,
    pub(super) arena: Arena,
    pub(super) fault: FaultCell,
    /// By subtopology, made when its first task comes.
    pub(super) wired: Vec<Option<Rc<Wired>>>,
    pub(super) tasks: Vec<Task>,
    /// Rows on their way into the database: at commits, and before when a store is full.
    pub(super) spill: Rc<RefCell<StoreBatch>>,
    /// Bytes that the entries of one store may take here.
    pub(super) overlay_bytes: usize,
    /// Bytes of an encoded key and value together, at most.
    pub(super) record_bytes: usize,
    /// The assignment under which this thread commits.
    pub(super) epoch: Option<Epoch>,
    /// Monotonic time of the next commit, milliseconds.
    pub(super) commit_at: i64,
    /// Whether only one partition a task is asked for.
    pub(super) fewer_partitions: bool,
    /// Monotonic time from which stores may be made to shed again, milliseconds.
    pub(super) shed_at: i64,
    /// What its pools have taken of their modules' rows.
    pub(super) _reserved: [Reserved; 3],
    /// Refusals of its frame pool and of its producer that were counted already.
    pub(super) refusals: (u64, u64),
    /// Bytes and calls of this thread's allocations that were shown already.
    pub(super) allocated: (u64, u64),
    /// Tasks of the assignment that are closed and not started again yet.
    pub(super) awaited: Vec<TaskId>,
    /// Whether the assignment's end of restoring was told.
    pub(super) told_running: bool,
    pub(super) ending: bool,
}

impl StreamThread {
    /// Runs until it is told to shut down or cannot go on. The control thread hears of the end in either case.
    pub(crate) fn run(mut self) {
        if self.shared.settings.count_allocations {
            plimsoll_alloc::count_calls(true);
        }
        while !self.ending {
            if let Err(error) = self.turn() {
                self.report(None, error);
                break;
            }
        }
        self.close_all();
        self.tell(Request::Ended { thread: self.index });
    }

    /// Tells the control thread of a failure; it answers with a command.
    pub(super) fn report(&self, task: Option<TaskId>, error: RunError) {
        self.tell(Request::Failed { thread: self.index, failure: Failure { task, error } });
    }

    /// Posts to the control thread. Its box holds more than all threads can have on their way, so a refusal means that
    /// it has ended, and then nobody waits for the message.
    pub(super) fn tell(&self, request: Request) {
        let _ = self.shared.control.post(request);
    }

    /// This thread's counters.
    pub(super) fn count(&self, add: impl FnOnce(&Counters)) {
        if let Some(stats) = self.observed.thread(self.index) {
            add(&stats.counters);
        }
    }

    /// A task by its id.
    pub(super) fn task_index(&self, id: TaskId) -> Option<usize> {
        self.tasks.iter().position(|task| task.id == id)
    }
}
