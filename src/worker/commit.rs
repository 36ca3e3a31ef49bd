//! The commit of a stream thread: drain, flush, check, offsets, database, in this order and no other.
//!
//! Kafka Streams' at-least-once order, with the database last: a crash between any two steps leaves the database behind
//! the changelog and the changelog behind or level with the offsets' input, so that what is lost locally is restored
//! and what is repeated is repeated.
use super::failure::RunError;
use super::message::{CommitOutcome, CommitPhase, OffsetToCommit, Request};
use super::stream::StreamThread;
use super::turn::panic_text;
use crate::base::id::{StoreId, TaskId};
use crate::node::{Cx, StateStore};
use crate::store::error::StoreError;
use crate::store::offset::StoredOffset;
use crate::task::step::Phase;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

impl StreamThread {
    /// Whether some store is beyond its room by what only a commit can free.
    pub(super) fn commit_early(&self) -> bool {
        self.wired.iter().flatten().flat_map(|wired| &wired.stores).any(|store| store.needs_commit())
    }

    /// Commits every task that processed something. A task that fails on the way is closed; the others go on.
    pub(super) fn commit(&mut self) -> Result<(), RunError> {
        if !self.tasks.iter().any(|task| task.needs_commit()) {
            return Ok(());
        }
        self.drain()?;
        self.flush()?;
        self.check_acknowledgements()?;
        if !self.tasks.iter().any(|task| task.needs_commit()) {
            // All that had something to commit has failed on the way.
            return Ok(());
        }
        match self.commit_offsets()? {
            CommitOutcome::Done => match self.write_stores() {
                // What was committed is in the changelog, from which the stores are restored.
                Err(RunError::StoreStopped { reason }) => {
                    self.close_all();
                    self.tell(Request::StoreStopped { reason });
                    Ok(())
                }
                written => written,
            },
            CommitOutcome::Rebalancing => Ok(()),
            CommitOutcome::Stale => {
                self.close_all();
                Ok(())
            }
            CommitOutcome::Failed(error) => Err(error),
        }
    }

    /// Forwards and logs every dirty entry, parents before children.
    fn drain(&mut self) -> Result<(), RunError> {
        for subtopology in 0..self.wired.len() {
            let Some(wired) = self.wired[subtopology].clone() else { continue };
            for (_, drain) in &wired.drains {
                loop {
                    let task = TaskId { subtopology: u32::try_from(subtopology).unwrap_or(u32::MAX), partition: 0 };
                    let now_ms = self.shared.clock.wall_ms();
                    let drained = {
                        let cx = Cx::idle(&self.arena, task, &self.port, &self.fault, now_ms);
                        catch_unwind(AssertUnwindSafe(|| drain.drain_one(&cx)))
                    };
                    self.arena.reset();
                    match drained {
                        Ok(Ok(true)) => {}
                        Ok(Ok(false)) => break,
                        Ok(Err(fault)) => {
                            let (parked, partition) = self.fault.take();
                            let task = TaskId { partition: partition.unwrap_or(0), ..task };
                            let error = self.describe(task, fault, parked, "a commit".to_owned());
                            self.fail_task(task, error)?;
                        }
                        Err(panic) => {
                            let (_, partition) = self.fault.take();
                            let task = TaskId { partition: partition.unwrap_or(0), ..task };
                            let reason = panic_text(panic.as_ref());
                            self.fail_task(task, RunError::Panicked { task, reason })?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits until every record is acknowledged or has failed; the producer's delivery time-out bounds it.
    fn flush(&mut self) -> Result<(), RunError> {
        self.port.with(|producer, _| producer.begin_flush());
        while !self.port.with(|producer, _| producer.is_flushed()) {
            self.port.pump().map_err(|_| RunError::Internal {
                reason: self.port.take_failure().unwrap_or_else(|| "waiting for the sockets failed".to_owned()),
            })?;
        }
        Ok(())
    }

    /// A task with an error in any of its slots fails: nothing is committed over a record that was not written.
    fn check_acknowledgements(&mut self) -> Result<(), RunError> {
        let mut index = 0;
        while index < self.tasks.len() {
            let task = self.tasks[index].id;
            match self.first_error(task) {
                None => index += 1,
                Some(reason) => self.fail_task(task, RunError::Production { task, reason })?,
            }
        }
        Ok(())
    }

    fn first_error(&self, task: TaskId) -> Option<String> {
        let subtopology = self.shared.topology.subtopologies().get(task.subtopology as usize)?;
        let application = &self.shared.settings.application_id;
        let of_sinks = subtopology.sinks.iter().find_map(|sink| {
            let error = self.port.sink_ack(*sink, task.partition)?.error?;
            let topic = self.shared.topology.sink(*sink)?.topic.full(application);
            Some(format!("{topic}: {error}"))
        });
        of_sinks.or_else(|| {
            subtopology.stores.iter().find_map(|store| {
                let error = self.port.changelog_ack(*store, task.partition)?.error?;
                let topic = self.shared.topology.store(*store)?.changelog()?.full(application);
                Some(format!("{topic}: {error}"))
            })
        })
    }

    /// Hands the offsets to the control thread and waits for its answer, serving the producer's sockets.
    fn commit_offsets(&mut self) -> Result<CommitOutcome, RunError> {
        {
            let mut request = self.slot.lock();
            request.epoch = self.epoch;
            request.phase = CommitPhase::Asked;
            request.offsets.clear();
            for queue in self.tasks.iter().filter(|t| t.needs_commit()).flat_map(|t| t.group.queues()) {
                request.offsets.push(OffsetToCommit {
                    topic: queue.topic.clone(),
                    partition: queue.partition,
                    offset: queue.commit_offset(&self.fetcher),
                    partition_time: queue.partition_time(),
                });
            }
        }
        self.tell(Request::Commit { thread: self.index });
        let give_up = self.shared.clock.mono_ms() + self.shared.settings.max_poll_interval_ms;
        loop {
            if let Some(outcome) = self.slot.take_answer() {
                return Ok(outcome);
            }
            if self.shared.clock.mono_ms() > give_up {
                let reason = "the control thread did not answer a commit within max.poll.interval.ms".to_owned();
                return Ok(CommitOutcome::Failed(RunError::internal(reason)));
            }
            let pumped = self.port.pump();
            if pumped.is_err() {
                let reason = self.port.take_failure().unwrap_or_default();
                return Ok(CommitOutcome::Failed(RunError::internal(reason)));
            }
        }
    }

    /// The offsets are the group's: what was logged goes into the database, with the changelog's position beside it.
    fn write_stores(&mut self) -> Result<(), RunError> {
        for index in 0..self.tasks.len() {
            if !self.tasks[index].needs_commit() || self.tasks[index].phase == Phase::Restoring {
                continue;
            }
            let task = self.tasks[index].id;
            let stream_time = self.tasks[index].group.stream_time();
            let wired = self.wired.get(task.subtopology as usize).cloned().flatten();
            for store in wired.iter().flat_map(|wired| &wired.stores) {
                let written = self.write_store(store, task.partition, stream_time);
                written.map_err(|error| RunError::store(&error))?;
            }
            wired.iter().for_each(|wired| wired.committed(task.partition));
            let mut stores = wired.iter().flat_map(|wired| &wired.stores);
            stores.try_for_each(|store| store.expire(task.partition)).map_err(|error| RunError::store(&error))?;
            self.tasks[index].committed();
        }
        self.count(|counters| counters.commits.add(1));
        Ok(())
    }

    fn write_store(&self, store: &Rc<dyn StateStore>, partition: u32, stream_time: i64) -> Result<(), StoreError> {
        let stream_time = store.stream_time(partition).unwrap_or(stream_time);
        let position = self.stored_offset(store.id(), partition, stream_time);
        let batch = &mut *self.spill.borrow_mut();
        let backend = &self.shared.backend;
        loop {
            batch.clear();
            let collected = store.collect(partition, batch)?;
            let last = !collected.more;
            if last && batch.set_offset(store.id(), partition, &position).is_err() {
                backend.write(batch)?;
                store.written(partition);
                batch.clear();
                batch.set_offset(store.id(), partition, &position)?;
            }
            backend.write(batch)?;
            store.written(partition);
            if last {
                return Ok(());
            }
        }
    }

    /// Where the changelog stands. Before the first record of this task's life that is where its restore ended.
    fn stored_offset(&self, store: StoreId, partition: u32, stream_time: i64) -> StoredOffset {
        let highest = self.port.changelog_ack(store, partition).map_or(-1, |ack| ack.highest);
        let before = self.shared.backend.offset(store, partition).ok().flatten();
        let offset = before.map_or(0, |stored| stored.offset).max(highest + 1);
        StoredOffset {
            offset,
            topic_id: before.map_or([0; 16], |stored| stored.topic_id),
            wall_ms: self.shared.clock.wall_ms(),
            stream_time,
        }
    }
}
