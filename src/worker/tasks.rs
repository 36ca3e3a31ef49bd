//! What a stream thread does when its tasks change: assign, park, restart, fail, close.
use super::failure::RunError;
use super::message::{Command, Request, TaskStart};
use super::restore::RestoreCommand;
use super::stream::StreamThread;
use crate::base::id::{StoreId, TaskId};
use crate::client::membership::Epoch;
use crate::node::{WireSettings, Wired};
use crate::task::group::PartitionGroup;
use crate::task::queue::{PartitionQueue, QueueStart};
use crate::task::step::{Life, Phase, Task};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl StreamThread {
    /// Does what it was told since the last turn.
    pub(super) fn obey(&mut self) -> Result<(), RunError> {
        while let Some(command) = self.commands.take() {
            match command {
                Command::Assign { epoch, keep, start } => self.assign(epoch, &keep, start)?,
                Command::Revoke { epoch } => self.revoke(epoch)?,
                Command::Lost => self.close_all(),
                Command::ReleaseStore => {
                    self.close_all();
                    self.tell(Request::StoreReleased { thread: self.index });
                }
                Command::Restored { task, life, store } => self.restored(task, life, store)?,
                Command::RestoreFailed { task, life, error } => {
                    if self.task_index(task).is_some_and(|index| self.tasks[index].life == life) {
                        self.fail_task(task, error)?;
                    }
                }
                Command::Position { task, topic, partition, offset } => {
                    self.reposition(task, &topic, partition, offset)
                }
                Command::Restart(start) => self.start(start)?,
                Command::Shutdown => {
                    self.commit()?;
                    self.ending = true;
                }
            }
        }
        Ok(())
    }

    fn assign(&mut self, epoch: Epoch, keep: &[TaskId], start: Vec<TaskStart>) -> Result<(), RunError> {
        let gone: Vec<TaskId> = self.tasks.iter().map(|task| task.id).filter(|id| !keep.contains(id)).collect();
        for id in gone {
            self.close_task(id);
        }
        self.epoch = Some(epoch);
        self.told_running = false;
        for index in 0..self.tasks.len() {
            self.resume(index);
        }
        // What is to be kept may have been closed uncommitted since the control thread dealt: a failure, a refused
        // commit.
        self.awaited = keep.iter().copied().filter(|id| self.task_index(*id).is_none()).collect();
        for task in &self.awaited {
            self.tell(Request::Reopen { thread: self.index, task: *task, epoch });
        }
        for task in start {
            self.start(task)?;
        }
        self.tell_running();
        Ok(())
    }

    /// A parked task goes on where it stands.
    fn resume(&mut self, index: usize) {
        let task = &mut self.tasks[index];
        if task.phase != Phase::Parked {
            return;
        }
        task.phase = if task.restoring.is_empty() { Phase::Running } else { Phase::Restoring };
        self.open_inputs(index);
    }

    fn revoke(&mut self, epoch: Epoch) -> Result<(), RunError> {
        self.commit()?;
        for task in &mut self.tasks {
            task.phase = Phase::Parked;
            for queue in task.group.queues() {
                self.fetcher.demand(queue.slot(), false);
            }
        }
        self.tell(Request::Revoked { thread: self.index, epoch });
        Ok(())
    }

    /// Takes a task over: wires its subtopology if it is the first of it here, opens its inputs, has its stores
    /// restored.
    fn start(&mut self, start: TaskStart) -> Result<(), RunError> {
        self.close_task(start.id);
        self.awaited.retain(|id| *id != start.id);
        self.told_running = false;
        let wired = self.wire(start.id.subtopology)?;
        let topology = Arc::clone(&self.shared.topology);
        let Some(subtopology) = topology.subtopologies().get(start.id.subtopology as usize) else { return Ok(()) };
        self.port.open_task(start.id, &subtopology.sinks, &subtopology.stores);
        let mut queues = Vec::with_capacity(start.inputs.len());
        let mut sources = Vec::with_capacity(start.inputs.len());
        for input in start.inputs {
            let Some(source) = wired.source(input.source) else { continue };
            let partition = i32::try_from(input.partition).unwrap_or(i32::MAX);
            let slot = self.fetcher.add(&input.topic, partition, input.offset).map_err(RunError::internal)?;
            self.fetcher.demand(slot, false);
            sources.push(Rc::clone(source));
            let timestamps = topology.source(input.source).map(|spec| spec.timestamps).unwrap_or_default();
            queues.push(PartitionQueue::new(QueueStart {
                source: input.source,
                topic: input.topic,
                partition: input.partition,
                slot,
                offset: input.offset,
                partition_time: input.partition_time,
                timestamps,
            }));
        }
        let logged: Vec<StoreId> = subtopology
            .stores
            .iter()
            .copied()
            .filter(|store| topology.store(*store).is_some_and(|spec| spec.logged))
            .collect();
        let life = Life(self.shared.lives.fetch_add(1, Ordering::Relaxed));
        for store in &logged {
            let ask = RestoreCommand::Restore { task: start.id, life, store: *store, owner: self.commands.clone() };
            if self.shared.restore.post(ask).is_err() {
                return Err(RunError::internal("the restore thread's box is full"));
            }
        }
        let group = PartitionGroup::new(queues, self.shared.settings.max_task_idle_ms);
        self.tasks.push(Task::new(start.id, life, group, sources, logged));
        self.tasks.sort_by_key(|task| task.id);
        match self.task_index(start.id) {
            Some(index) if self.tasks[index].phase == Phase::Running => self.begin(index),
            _ => Ok(()),
        }
    }

    /// The inputs of a running task are asked for.
    pub(super) fn open_inputs(&mut self, index: usize) {
        let task = &self.tasks[index];
        if task.phase == Phase::Running {
            for queue in task.group.queues() {
                self.fetcher.demand(queue.slot(), true);
            }
        }
    }

    fn wire(&mut self, subtopology: u32) -> Result<Rc<Wired>, RunError> {
        let at = subtopology as usize;
        if let Some(Some(wired)) = self.wired.get(at) {
            return Ok(Rc::clone(wired));
        }
        let settings = WireSettings {
            application_id: &self.shared.settings.application_id,
            backend: Arc::clone(&self.shared.backend),
            overlay_bytes_per_store: self.overlay_bytes,
            record_bytes: self.record_bytes,
            emit_interval_ms: crate::base::limits::EMIT_INTERVAL_MS,
            spill: Rc::clone(&self.spill),
        };
        let wired = self.shared.topology.wire(subtopology, &settings).map_err(RunError::internal)?;
        let wired = Rc::new(wired);
        if self.wired.len() <= at {
            self.wired.resize(at + 1, None);
        }
        self.wired[at] = Some(Rc::clone(&wired));
        Ok(wired)
    }

    fn restored(&mut self, id: TaskId, life: Life, store: StoreId) -> Result<(), RunError> {
        let Some(index) = self.task_index(id) else { return Ok(()) };
        let task = &mut self.tasks[index];
        if task.life != life {
            return Ok(());
        }
        task.restoring.retain(|waiting| *waiting != store);
        if task.restoring.is_empty() && task.phase == Phase::Restoring {
            task.phase = Phase::Running;
            return self.begin(index);
        }
        Ok(())
    }

    fn reposition(&mut self, id: TaskId, topic: &str, partition: u32, offset: i64) {
        let Some(index) = self.task_index(id) else { return };
        let group = &mut self.tasks[index].group;
        let at = group.queues().iter().position(|queue| *queue.topic == *topic && queue.partition == partition);
        if let Some(queue) = at.and_then(|at| group.queue_mut(at)) {
            queue.restart_at(offset, &mut self.fetcher);
            self.fetcher.seek(queue.slot(), offset);
        }
    }

    /// Tells once that every task of the assignment is processing.
    pub(super) fn tell_running(&mut self) {
        let all = self.awaited.is_empty() && self.tasks.iter().all(|task| task.phase == Phase::Running);
        if let Some(epoch) = self.epoch.filter(|_| all && !self.told_running) {
            self.told_running = true;
            self.tell(Request::Running { thread: self.index, epoch });
        }
    }

    /// The task is closed without committing, and the control thread is told why. Only a fault of the thread itself is
    /// an error.
    pub(super) fn fail_task(&mut self, id: TaskId, error: RunError) -> Result<(), RunError> {
        self.close_task(id);
        self.awaited.push(id);
        match error {
            // Not the task's fault: the control thread has the database opened again and the tasks with it.
            RunError::StoreStopped { reason } => self.tell(Request::StoreStopped { reason }),
            error => self.report(Some(id), error),
        }
        Ok(())
    }

    /// Gives everything back that a task holds. Its uncommitted entries are dropped; the database keeps what is
    /// committed.
    pub(super) fn close_task(&mut self, id: TaskId) {
        let Some(index) = self.task_index(id) else { return };
        let mut task = self.tasks.remove(index);
        task.group.clear(&mut self.fetcher);
        for queue in task.group.queues() {
            self.fetcher.remove(queue.slot());
        }
        if let Some(Some(wired)) = self.wired.get(id.subtopology as usize) {
            wired.closed(id.partition);
        }
        if !task.restoring.is_empty() {
            let _ = self.shared.restore.post(RestoreCommand::Cancel { life: task.life });
        }
        let topology = Arc::clone(&self.shared.topology);
        if let Some(subtopology) = topology.subtopologies().get(id.subtopology as usize) {
            self.port.close_task(id, &subtopology.sinks, &subtopology.stores);
        }
    }

    /// Closes every task without committing.
    pub(super) fn close_all(&mut self) {
        while let Some(task) = self.tasks.last() {
            let id = task.id;
            self.close_task(id);
        }
        self.awaited.clear();
    }
}
