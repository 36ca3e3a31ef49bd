//! The restore thread: changelogs into the database, one thread and one set of frames for the whole process.
//!
//! Owns its fetcher and the jobs. Invariant: a store is reported complete only after everything up to the changelog's
//! end, read when the job began, is in the database with its offset. Bound: the restore frames and one store batch;
//! jobs are one for each (task, logged store). A restore that was interrupted goes on at the offset in the database.
use super::failure::RunError;
use super::mailbox::Mailbox;
use super::message::{Command, Request};
use super::settings::Settings;
use crate::base::clock::Clock;
use crate::base::id::{StoreId, TaskId};
use crate::budget::Reserved;
use crate::client::{FetchFault, FetchedBatch};
use crate::client::{Fetcher, OffsetQuery, OffsetSpec, SharedMetadata, Slot, list_offsets};
use crate::net::PollSet;
use crate::store::backend::Backend;
use crate::store::batch::StoreBatch;
use crate::store::error::StoreError;
use crate::store::kind::{Layout, StoreKind};
use crate::store::offset::Changelog;
use crate::store::restore::{Restore, RestorePosition};
use crate::store::rocks_upkeep::Upkeep;
use crate::task::intake::Intake;
use crate::task::step::Life;
use crate::topology::Topology;
use crate::wire::RecordCursor;
use plimsoll_alloc::Module;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// What the restore thread is told.
pub(crate) enum RestoreCommand {
    /// Complete a store of a task, then tell its thread.
    Restore {
        /// The task.
        task: TaskId,
        /// Which start of it.
        life: Life,
        /// Its store.
        store: StoreId,
        /// The thread to tell.
        owner: Mailbox<Command>,
    },
    /// The task has left: forget the jobs of this start of it. What is in the database stays.
    Cancel {
        /// Which start.
        life: Life,
    },
    /// The database has stopped and no thread uses it: open it again, without its rows if `empty`, and answer
    /// [`Request::StoreReopened`].
    Reopen {
        /// Whether what is on the disk is deleted first.
        empty: bool,
    },
    /// End.
    Stop,
}

/// The restore thread as the control thread holds it.
pub(super) struct RestoreHandle {
    pub(super) commands: Mailbox<RestoreCommand>,
    pub(super) join: Option<JoinHandle<()>>,
}

impl RestoreHandle {
    /// Ends the thread and waits for it.
    pub(super) fn stop(&mut self) {
        let _ = self.commands.post(RestoreCommand::Stop);
        if let Some(join) = self.join.take() {
            let _ = join.join();
        }
    }
}

/// Longest wait for the answer to one question about offsets.
const ASK: Duration = Duration::from_secs(10);
/// Pause before a question is asked again, milliseconds.
const ASK_AGAIN_MS: i64 = 200;
/// Longest sleep while records are awaited, milliseconds.
const IDLE_MS: i64 = 100;
/// Kafka's default of `delete.retention.ms`: how long the changelogs keep tombstones.
const DELETE_RETENTION_MS: i64 = 24 * 60 * 60 * 1000;

/// A store of a task on its way to be complete.
pub(crate) struct Job {
    task: TaskId,
    life: Life,
    store: StoreId,
    topic: String,
    owner: Mailbox<Command>,
    reading: Option<Reading>,
    /// Not before this moment, milliseconds of the monotonic clock.
    ask_at: i64,
}

/// A job whose bounds are known.
struct Reading {
    slot: Slot,
    position: RestorePosition,
    /// The changelog's end when the job began.
    target: i64,
}

/// The restore thread's own things.
pub(crate) struct RestoreThread {
    pub(super) settings: Arc<Settings>,
    pub(super) topology: Arc<Topology>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) backend: Arc<dyn Backend>,
    /// Flushes and the governor's wishes; none without a database.
    pub(super) upkeep: Option<Upkeep>,
    pub(super) metadata: SharedMetadata,
    pub(super) commands: Mailbox<RestoreCommand>,
    pub(super) fetcher: Fetcher,
    pub(super) polls: PollSet,
    pub(super) batch: StoreBatch,
    pub(super) jobs: Vec<Job>,
    /// What its pool has taken of its module's rows.
    pub(super) _reserved: Reserved,
    /// To the control thread.
    pub(super) control: Mailbox<Request>,
    /// The database has stopped and the control thread knows.
    pub(super) stopped: bool,
    pub(super) ending: bool,
}

impl RestoreThread {
    /// Runs until it is told to stop.
    pub(crate) fn run(mut self) {
        if let Err(error) = plimsoll_alloc::bind_home(Module::Restore) {
            self.fail_all(&RunError::internal(error));
        }
        while !self.ending {
            self.obey();
            self.ask_bounds();
            let worked = self.apply_all();
            self.finish();
            self.care();
            if let Err(error) = self.poll(worked) {
                self.fail_all(&RunError::internal(error));
            }
        }
    }

    /// Flushes what is old, grants the governor's wishes, and tells everybody when the database has stopped.
    fn care(&mut self) {
        let now = self.clock.mono_ms();
        if self.stopped {
            return;
        }
        if let Some(Err(error)) = self.upkeep.as_mut().map(|upkeep| upkeep.turn(now)) {
            let error = RunError::store(&error);
            self.fail_all(&error);
            if let RunError::StoreStopped { reason } = error {
                self.stopped = self.control.post(Request::StoreStopped { reason }).is_ok();
            }
        }
    }

    /// Opens the database again. The control thread has seen to it that no other thread uses it.
    fn reopen(&mut self, empty: bool) {
        self.forget_all(|_| true);
        let outcome = self.upkeep.as_ref().map_or(Ok(()), |upkeep| upkeep.reopen(empty));
        self.stopped = outcome.is_err();
        let outcome = outcome.map_err(|error| error.to_string());
        let _ = self.control.post(Request::StoreReopened { outcome });
    }

    fn obey(&mut self) {
        while let Some(command) = self.commands.take() {
            match command {
                RestoreCommand::Restore { task, life, store, owner } => self.begin(task, life, store, owner),
                RestoreCommand::Cancel { life } => self.forget_all(|job| job.life == life),
                RestoreCommand::Reopen { empty } => self.reopen(empty),
                RestoreCommand::Stop => self.ending = true,
            }
        }
    }

    /// A job for the same store that is still there belongs to an earlier start, on another thread maybe: two writers
    /// of one partition must not be.
    fn begin(&mut self, task: TaskId, life: Life, store: StoreId, owner: Mailbox<Command>) {
        self.forget_all(|job| job.task == task && job.store == store);
        let changelog = self.topology.store(store).and_then(|spec| spec.changelog());
        let topic = changelog.map(|name| name.full(&self.settings.application_id)).unwrap_or_default();
        let wanted = self.metadata.want_topic(&topic);
        self.jobs.push(Job { task, life, store, topic, owner, reading: None, ask_at: i64::MIN });
        if let Err(error) = wanted {
            self.fail(self.jobs.len() - 1, RunError::client(error));
        }
    }

    /// Gives up what a job holds.
    fn forget(&mut self, index: usize) -> Job {
        let job = self.jobs.swap_remove(index);
        if let Some(reading) = &job.reading {
            self.fetcher.remove(reading.slot);
        }
        job
    }

    fn forget_all(&mut self, which: impl Fn(&Job) -> bool) {
        while let Some(index) = self.jobs.iter().position(&which) {
            self.forget(index);
        }
    }

    fn fail(&mut self, index: usize, error: RunError) {
        let job = self.forget(index);
        let _ = job.owner.post(Command::RestoreFailed { task: job.task, life: job.life, error });
    }

    fn fail_all(&mut self, error: &RunError) {
        while !self.jobs.is_empty() {
            self.fail(0, error.clone());
        }
    }

    /// Finds out where each new job begins and ends. A question that may succeed later is asked again.
    fn ask_bounds(&mut self) {
        let now = self.clock.mono_ms();
        let mut index = 0;
        // A question may take long: what this thread is told goes first.
        while index < self.jobs.len() && self.commands.is_empty() {
            let job = &self.jobs[index];
            if job.reading.is_some() || job.ask_at > now {
                index += 1;
                continue;
            }
            match self.bounds(index) {
                Ok(Some(reading)) => {
                    self.jobs[index].reading = Some(reading);
                    index += 1;
                }
                Ok(None) => {
                    self.jobs[index].ask_at = now + ASK_AGAIN_MS;
                    index += 1;
                }
                Err(error) => self.fail(index, error),
            }
        }
    }

    fn bounds(&mut self, index: usize) -> Result<Option<Reading>, RunError> {
        let job = &self.jobs[index];
        let partition = i32::try_from(job.task.partition).unwrap_or(i32::MAX);
        let mut bounds = [0i64; 2];
        // One question for each: a broker answers only once for a partition in a request.
        for (bound, spec) in bounds.iter_mut().zip([OffsetSpec::Earliest, OffsetSpec::Latest]) {
            let query = OffsetQuery { topic: &job.topic, partition, spec };
            match list_offsets(&self.metadata, &self.settings.client_id, &[query], false, ASK).pop() {
                Some(Ok(offset)) => *bound = offset.unwrap_or(0),
                Some(Err(fault)) if !fault.is_retriable() => {
                    return Err(RunError::client(format!("{}: {fault}", job.topic)));
                }
                _ => return Ok(None),
            }
        }
        let [start, target] = bounds;
        let topic_id = self.metadata.latest().topic(&job.topic).map_or([0; 16], |topic| topic.id);
        let position = self.position(job, topic_id, start, target).map_err(|error| RunError::store(&error))?;
        let slot = self.fetcher.add(&job.topic, partition, position.next).map_err(RunError::internal)?;
        Ok(Some(Reading { slot, position, target }))
    }

    /// Where to begin: behind what the database has, if that is of this topic, still in the log and young enough; else
    /// from the beginning, over an empty partition.
    fn position(&self, job: &Job, topic_id: [u8; 16], start: i64, end: i64) -> Result<RestorePosition, StoreError> {
        let stored = self.backend.begin_restore(job.store, job.task.partition)?;
        let log = Changelog { topic_id, start, end, delete_retention_ms: DELETE_RETENTION_MS };
        let usable = stored.filter(|stored| stored.is_usable(&log, self.clock.wall_ms()));
        if stored.is_some() && usable.is_none() {
            self.backend.drop_partition(job.store, job.task.partition)?;
        }
        Ok(RestorePosition::new(job.store, job.task.partition, topic_id, usable, start))
    }

    /// Applies every batch that has come.
    fn apply_all(&mut self) -> bool {
        let mut worked = false;
        let mut index = 0;
        while index < self.jobs.len() {
            let slot = self.jobs[index].reading.as_ref().map(|reading| reading.slot);
            let Some(batch) = slot.and_then(|slot| self.fetcher.next_batch(slot)) else {
                index += 1;
                continue;
            };
            worked = true;
            let applied = self.apply(index, &batch);
            self.fetcher.release(batch.frame);
            if let Err(error) = applied {
                self.fail(index, error);
            }
        }
        self.take_faults();
        worked
    }

    fn apply(&mut self, index: usize, batch: &FetchedBatch) -> Result<(), RunError> {
        let wall_ms = self.clock.wall_ms();
        let topic = self.jobs[index].topic.clone();
        let kind = self.kind(self.jobs[index].store);
        let Some(reading) = &mut self.jobs[index].reading else { return Ok(()) };
        let partition = reading.position.partition;
        let section = Intake::section(&self.fetcher, batch);
        let mut cursor = RecordCursor::new(&batch.header);
        let mut restore = Restore::begin(&*self.backend, &mut self.batch, &mut reading.position, kind, wall_ms);
        loop {
            match cursor.next(section) {
                Ok(Some(record)) => {
                    let applied = restore.apply(record.key, record.value, record.timestamp, record.offset);
                    applied.map_err(|error| RunError::store(&error))?;
                }
                Ok(None) => break,
                Err(error) => {
                    let (offset, reason) = (batch.header.base_offset, error.to_string());
                    return Err(RunError::Unreadable { topic, partition, offset, reason });
                }
            }
        }
        restore.finish(batch.header.next_offset()).map_err(|error| RunError::store(&error))
    }

    /// What kind of store it is.
    fn kind(&self, store: StoreId) -> StoreKind {
        self.topology.store_kind(store).unwrap_or(StoreKind::from(Layout::Timestamped))
    }

    fn take_faults(&mut self) {
        while let Some((slot, fault)) = self.fetcher.next_fault() {
            let of = |job: &Job| job.reading.as_ref().is_some_and(|reading| reading.slot == slot);
            let Some(index) = self.jobs.iter().position(of) else { continue };
            if matches!(fault, FetchFault::OffsetOutOfRange { .. } | FetchFault::Truncated { .. }) {
                self.begin_again(index);
                continue;
            }
            let job = &self.jobs[index];
            let error = RunError::Unreadable {
                topic: job.topic.clone(),
                partition: job.task.partition,
                offset: self.fetcher.position(slot),
                reason: fault.to_string(),
            };
            self.fail(index, error);
        }
    }

    /// The log no longer has what was to be read: the partition is emptied and restored from the log's beginning.
    fn begin_again(&mut self, index: usize) {
        let job = &mut self.jobs[index];
        if let Some(reading) = job.reading.take() {
            self.fetcher.remove(reading.slot);
        }
        let dropped = self.backend.drop_partition(job.store, job.task.partition);
        if let Err(error) = dropped {
            self.fail(index, RunError::store(&error));
        }
    }

    /// Reports every job that has read up to its target.
    fn finish(&mut self) {
        let mut index = 0;
        while index < self.jobs.len() {
            let done = self.jobs[index].reading.as_ref().is_some_and(|reading| {
                self.fetcher.position(reading.slot).max(reading.position.next) >= reading.target
            });
            if !done {
                index += 1;
                continue;
            }
            let written = self.write_end(index);
            match written {
                Ok(()) => {
                    let job = &self.jobs[index];
                    let done = Command::Restored { task: job.task, life: job.life, store: job.store };
                    // A full box empties when its thread has its turn: told again then.
                    if job.owner.post(done).is_ok() {
                        self.forget(index);
                    } else {
                        index += 1;
                    }
                }
                Err(error) => self.fail(index, RunError::store(&error)),
            }
        }
    }

    /// Markers and compacted records at the end take offsets too: the partition is complete up to its target.
    fn write_end(&mut self, index: usize) -> Result<(), StoreError> {
        let wall_ms = self.clock.wall_ms();
        let kind = self.kind(self.jobs[index].store);
        let Some(reading) = &mut self.jobs[index].reading else { return Ok(()) };
        let (store, partition, target) = (reading.position.store, reading.position.partition, reading.target);
        if self.backend.offset(store, partition)?.is_none() {
            // An empty changelog: the partition is complete without a row, and must have its offset.
            reading.position.next = reading.position.next.max(target);
            self.batch.clear();
            self.batch.set_offset(store, partition, &reading.position.stored(wall_ms))?;
            return self.backend.write(&self.batch);
        }
        let position = &mut reading.position;
        Restore::begin(&*self.backend, &mut self.batch, position, kind, wall_ms).finish(target)
    }

    fn poll(&mut self, worked: bool) -> Result<(), crate::net::NetError> {
        let now = self.clock.mono_ms();
        self.polls.clear();
        let fetch_at = self.fetcher.prepare(&mut self.polls, now);
        let asking = self.jobs.iter().filter(|job| job.reading.is_none()).map(|job| job.ask_at);
        let until = asking.fold(fetch_at, i64::min);
        let idle = !worked && self.commands.is_empty();
        self.polls.wait_until(now, if idle { until.min(now + IDLE_MS) } else { now })?;
        self.fetcher.process(&self.polls, self.clock.mono_ms());
        Ok(())
    }
}
