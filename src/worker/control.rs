//! The control thread: the group, the commits, the faults, the start and the end of an application.
//!
//! Owns the membership, the metadata connection, the threads' handles and the application's state. Invariant: only this
//! thread speaks to librdkafka, and a commit is sent only for the assignment that is current. Bound: its request box.
//! Made by `app`.
use super::bring_up::BringUp;
use super::failure::{Failure, FailureResponse, RunError};
use super::group_commit::PendingCommit;
use super::mailbox::Mailbox;
use super::message::{Command, CommitSlot, Request};
use super::purge::Purge;
use super::recovery::Recovery;
use super::restore::RestoreHandle;
use super::settings::Settings;
use super::state::{State, StateCell};
use super::topics::TopicPlan;
use crate::base::clock::Clock;
use crate::base::id::TaskId;
use crate::budget::Governor;
use crate::client::admin::Admin;
use crate::client::membership::{Epoch, Membership, MembershipEvent};
use crate::client::{MetadataClient, Reach, SharedMetadata};
use crate::ffi::kafka::Handle;
use crate::net::PollSet;
use crate::observe::Observed;
use crate::topology::Topology;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest sleep while nothing happens, milliseconds: the group's events and requests of threads end it earlier.
const POLL_MS: i64 = 100;
/// How long one question to the brokers may take.
pub(super) const ASK: Duration = Duration::from_secs(30);
/// Why a request cannot be put back.
pub(super) const BOX_FULL: &str = "the control thread's box is full";
/// How long leaving the group may take.
const LEAVE: Duration = Duration::from_secs(5);

/// A stream thread as the control thread sees it.
pub(super) struct ThreadHandle {
    pub(super) commands: Mailbox<Command>,
    pub(super) slot: CommitSlot,
    pub(super) join: Option<JoinHandle<()>>,
    /// Tasks of the current assignment.
    pub(super) tasks: Vec<TaskId>,
    /// Whether all of them are processing.
    pub(super) running: bool,
    /// The epoch it has parked for last.
    pub(super) revoked: Option<Epoch>,
    /// Turns that it has made, and since when (milliseconds, monotonic clock) no further one.
    pub(super) turns: (u64, i64),
    pub(super) ended: bool,
}

/// What the application's handle and the control thread share.
pub(crate) struct Board {
    /// The application's state.
    pub(crate) state: StateCell,
    /// Asked to close.
    pub(crate) closing: AtomicBool,
    /// Why it failed, if it did.
    pub(crate) failure: Mutex<Option<RunError>>,
    /// What the start waits for, in words; `None` when it waits for nothing.
    pub(crate) waiting: Mutex<Option<String>>,
}

impl Board {
    pub(super) fn wait_for(&self, what: Option<String>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// Notes why the application ends; the first reason stays.
    pub(crate) fn fail(&self, error: RunError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// What runs once the topics are known.
pub(super) struct Running {
    pub(super) membership: Membership,
    pub(super) admin: Admin,
    /// Commits that were handed to the membership, or wait to be handed again.
    pub(super) commits: Vec<PendingCommit>,
    /// Events that came while another was being answered.
    pub(super) deferred: VecDeque<MembershipEvent>,
    pub(super) threads: Vec<ThreadHandle>,
    pub(super) restore: RestoreHandle,
    pub(super) topics: TopicPlan,
    /// Repartition records that everybody has read.
    pub(super) purge: Purge,
    /// The threads' counters.
    pub(super) observed: Observed,
    /// Dropped last: it holds the line while the others end.
    pub(super) _governor: Governor,
}

impl Running {
    fn thread_ended(&mut self, thread: usize) {
        if let Some(thread) = self.threads.get_mut(thread) {
            thread.ended = true;
        }
    }
}

/// The control thread's own things.
pub(crate) struct Control {
    pub(crate) settings: Arc<Settings>,
    pub(crate) topology: Arc<Topology>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) board: Arc<Board>,
    pub(crate) requests: Mailbox<Request>,
    pub(crate) metadata: SharedMetadata,
    pub(crate) metadata_client: MetadataClient,
    pub(crate) polls: PollSet,
    /// The assignment in force, under which commits may be sent.
    pub(crate) epoch: Option<Epoch>,
    /// Whether the failure handler was asked about what ends the application.
    pub(crate) asked: bool,
    /// Where new tokens go besides the data path.
    pub(crate) token_handle: Weak<Handle>,
    /// The last attempt to get a token failed, and that is what the application is shown to wait for.
    pub(crate) token_fault: bool,
    /// The brokers' refusal is what the application is shown to wait for.
    pub(crate) refused: bool,
    /// What is known of a database that has stopped.
    pub(crate) recovery: Recovery,
}

impl Control {
    /// Brings the application up, serves it and ends it.
    pub(crate) fn run(mut self, bring_up: BringUp) {
        let outcome = self.bring_up(bring_up);
        match outcome {
            Ok(Some(mut running)) => {
                let failed = self.serve(&mut running);
                self.end(running, failed.err());
            }
            Ok(None) => {
                self.ending(None);
                self.ended(false);
            }
            Err(error) => {
                self.ending(Some(&error));
                self.ended(true);
            }
        }
    }

    pub(super) fn closing(&self) -> bool {
        self.board.closing.load(Ordering::Acquire)
    }

    /// Until the application closes or fails.
    fn serve(&mut self, running: &mut Running) -> Result<(), RunError> {
        while !self.closing() {
            self.metadata_round(POLL_MS)?;
            self.show_refusal();
            self.answer_commits(running);
            while let Some(event) = running.deferred.pop_front().or_else(|| running.membership.poll(Duration::ZERO)) {
                self.on_event(running, event)?;
            }
            self.requests(running)?;
            self.recover_store(running)?;
            self.watch(running)?;
            let now = self.clock.mono_ms();
            running.purge.turn(&running.admin, now);
        }
        Ok(())
    }

    /// Brokers that refuse this process while it runs (a password was changed, a certificate has expired) are shown.
    fn show_refusal(&mut self) {
        match self.metadata.reach() {
            Reach::Unreachable { last, .. } if last.is_refusal() && !self.refused => {
                self.refused = true;
                self.board.wait_for(Some(format!("no broker lets this process in ({last}); trying again")));
            }
            Reach::Reachable if self.refused => {
                self.refused = false;
                self.board.wait_for(None);
            }
            _ => {}
        }
    }

    /// A thread whose turn lasts longer than `max.poll.interval.ms` holds its partitions without progress: the process
    /// leaves the group, loudly.
    fn watch(&self, running: &mut Running) -> Result<(), RunError> {
        let now = self.clock.mono_ms();
        for (index, thread) in running.threads.iter_mut().enumerate() {
            let turns = running.observed.thread(index).map_or(0, |stats| stats.counters.turns.get());
            if thread.turns.0 != turns || thread.turns.1 == 0 || thread.tasks.is_empty() {
                thread.turns = (turns, now);
            } else if now - thread.turns.1 > self.settings.max_poll_interval_ms {
                return Err(RunError::TurnTooLong { max_poll_interval_ms: self.settings.max_poll_interval_ms });
            }
        }
        Ok(())
    }

    fn on_event(&mut self, running: &mut Running, event: MembershipEvent) -> Result<(), RunError> {
        match event {
            MembershipEvent::Assign(assignment) => self.assign(running, &assignment),
            MembershipEvent::Revoke { .. } => self.revoke(running),
            MembershipEvent::Lost { .. } => self.lost(running),
            MembershipEvent::Committed { ticket, outcome } => {
                self.committed(running, ticket, outcome);
                Ok(())
            }
            MembershipEvent::Error(error) if error.fatal => Err(RunError::Client { reason: error.text }),
            MembershipEvent::Error(error) => {
                self.board.wait_for(Some(error.text));
                Ok(())
            }
        }
    }

    /// One round while an event is being answered: commits and requests go on, other events wait.
    pub(super) fn inner_round(&mut self, running: &mut Running) -> Result<(), RunError> {
        self.metadata_round(20)?;
        self.answer_commits(running);
        while let Some(event) = running.membership.poll(Duration::ZERO) {
            match event {
                MembershipEvent::Committed { ticket, outcome } => self.committed(running, ticket, outcome),
                other => running.deferred.push_back(other),
            }
        }
        self.requests(running)
    }

    /// Answers what the threads have asked.
    fn requests(&mut self, running: &mut Running) -> Result<(), RunError> {
        while let Some(request) = self.requests.take() {
            match request {
                Request::Commit { thread } => self.commit(running, thread),
                Request::Revoked { thread, epoch } => {
                    if let Some(thread) = running.threads.get_mut(thread) {
                        thread.revoked = Some(epoch);
                    }
                }
                Request::Running { thread, epoch } => self.thread_runs(running, thread, epoch),
                Request::Reopen { thread, task, epoch } if Some(epoch) == self.epoch => {
                    self.start_again(running, thread, task)?;
                }
                // The next assignment deals the task anew.
                Request::Reopen { .. } => {}
                Request::Failed { thread, failure } => self.failed(running, thread, failure)?,
                Request::OutOfRange { thread, task, source, topic, partition, offset, end } => {
                    let Some(reset) = self.reset_position(running, source, &topic, partition, offset)? else {
                        // The group comes first, or the end: asked again after that.
                        let again = Request::OutOfRange { thread, task, source, topic, partition, offset, end };
                        return self.requests.post(again).map_err(|_| RunError::internal(BOX_FULL));
                    };
                    // A log that was truncated is read on from where it parts from what was read, if that is known.
                    let position = end.unwrap_or(reset);
                    let command = Command::Position { task, topic, partition, offset: position };
                    send(running, thread, command)?;
                }
                Request::StoreStopped { reason } => self.recovery.stopped(reason),
                Request::StoreReleased { thread } => self.recovery.released(thread),
                Request::StoreReopened { outcome } => self.recovery.reopened(outcome),
                Request::Ended { thread } => running.thread_ended(thread),
            }
        }
        Ok(())
    }

    fn thread_runs(&mut self, running: &mut Running, thread: usize, epoch: Epoch) {
        if Some(epoch) != self.epoch {
            return;
        }
        if let Some(thread) = running.threads.get_mut(thread) {
            thread.running = true;
        }
        if running.threads.iter().all(|thread| thread.running) {
            self.board.wait_for(None);
            self.board.state.advance(State::Running);
        }
    }

    fn failed(&mut self, running: &mut Running, thread: usize, failure: Failure) -> Result<(), RunError> {
        let response = self.ask(&failure);
        let Some(task) = failure.task.filter(|_| response == FailureResponse::ReplaceThread) else {
            return Err(failure.error);
        };
        self.asked = false;
        // Between two assignments nothing starts: the next one finds that the task is missing.
        if self.epoch.is_some() { self.start_again(running, thread, task) } else { Ok(()) }
    }

    /// Lets a thread begin one of its tasks again from its last commit.
    fn start_again(&mut self, running: &mut Running, thread: usize, task: TaskId) -> Result<(), RunError> {
        if !running.threads.get(thread).is_some_and(|handle| handle.tasks.contains(&task)) {
            return Ok(());
        }
        // Without an answer the next assignment finds that the task is missing.
        let Some(start) = self.task_starts(running, &[task])?.and_then(|mut starts| starts.pop()) else {
            return Ok(());
        };
        if let Some(handle) = running.threads.get_mut(thread) {
            handle.running = false;
        }
        self.board.state.advance(State::Rebalancing);
        send(running, thread, Command::Restart(start))
    }

    /// Asks the user's handler, once for each failure. A handler that panics has chosen to close.
    fn ask(&mut self, failure: &Failure) -> FailureResponse {
        self.asked = true;
        let handler = &self.settings.on_failure;
        catch_unwind(AssertUnwindSafe(|| handler(failure))).unwrap_or(FailureResponse::ShutdownClient)
    }

    /// The same for what ends the application and belongs to no task, unless the handler was asked already.
    fn ask_at_the_end(&mut self, error: &RunError) {
        if !self.asked {
            let _ = self.ask(&Failure { task: None, error: error.clone() });
        }
    }

    /// Ends everything in order: threads commit, the group is left, the database closes, the line is let go.
    fn end(&mut self, mut running: Running, error: Option<RunError>) {
        self.ending(error.as_ref());
        for thread in 0..running.threads.len() {
            let _ = send(&running, thread, Command::Shutdown);
        }
        let give_up = self.clock.mono_ms() + self.settings.max_poll_interval_ms / 2;
        while running.threads.iter().any(|thread| !thread.ended) && self.clock.mono_ms() < give_up {
            if self.metadata_round(20).is_err() {
                break;
            }
            self.answer_commits(&mut running);
            self.last_events(&mut running);
        }
        running.restore.stop();
        for thread in &mut running.threads {
            if let Some(join) = thread.join.take().filter(|_| thread.ended) {
                let _ = join.join();
            }
        }
        // The backend closes with the threads and the governor ends last; the handle's own time is bounded.
        let Running { membership, .. } = running;
        membership.close(LEAVE);
        self.ended(error.is_some());
    }

    /// Events and requests while the threads end: only commits still matter. A failure now changes nothing: its task
    /// was closed uncommitted.
    fn last_events(&mut self, running: &mut Running) {
        while let Some(event) = running.membership.poll(Duration::ZERO) {
            match event {
                MembershipEvent::Committed { ticket, outcome } => self.committed(running, ticket, outcome),
                MembershipEvent::Revoke { .. } | MembershipEvent::Lost { .. } => self.epoch = None,
                _ => {}
            }
        }
        while let Some(request) = self.requests.take() {
            match request {
                Request::Commit { thread } => self.commit(running, thread),
                Request::Ended { thread } => running.thread_ended(thread),
                _ => {}
            }
        }
    }

    /// Begins the end: the handler is asked, the state and the reason are shown.
    fn ending(&mut self, error: Option<&RunError>) {
        if let Some(error) = error {
            self.ask_at_the_end(error);
            self.board.fail(error.clone());
        }
        self.board.state.advance(if error.is_some() { State::PendingError } else { State::PendingShutdown });
    }

    fn ended(&self, failed: bool) {
        self.board.state.advance(if failed { State::Error } else { State::NotRunning });
    }
}

/// Posts a command to a thread.
pub(super) fn send(running: &Running, thread: usize, command: Command) -> Result<(), RunError> {
    let Some(handle) = running.threads.get(thread) else { return Ok(()) };
    handle.commands.post(command).map_err(|_| RunError::internal("a stream thread's box is full"))
}
