//! Rebalances as the control thread sees them: who gets which task, where each begins, and the end of an epoch.
use super::control::{Control, Running, ThreadHandle, send};
use super::failure::RunError;
use super::message::{Command, StartPosition, TaskStart};
use super::state::State;
use crate::base::id::{SourceId, TaskId};
use crate::base::partition::TopicPartition;
use crate::client::membership::{Assigned, Assignment, CommittedOffset};
use crate::client::{OffsetQuery, OffsetSpec, list_offsets};
use crate::placement::leading::{SubtopologyInputs, owned};
use crate::topology::{OffsetReset, Subtopology, TopicName};
use std::sync::Arc;

impl Control {
    /// A new assignment: tasks are dealt to the threads, those that stay stay where they are.
    pub(super) fn assign(&mut self, running: &mut Running, assignment: &Assignment) -> Result<(), RunError> {
        self.board.state.advance(State::Rebalancing);
        let tasks = self.tasks_of(running, &assignment.partitions);
        let epoch = match running.membership.complete_assign().map_err(RunError::client)? {
            Assigned::Started(epoch) => epoch,
            // Another generation has begun meanwhile; its assignment follows.
            Assigned::Superseded => return Ok(()),
        };
        self.epoch = Some(epoch);
        for (thread, (keep, fresh)) in deal(running, &tasks).into_iter().enumerate() {
            // Another assignment follows, or the end. What this thread keeps is parked and stays so until then.
            let Some(start) = self.task_starts(running, &fresh)? else { return Ok(()) };
            if let Some(handle) = running.threads.get_mut(thread) {
                handle.tasks = keep.iter().copied().chain(fresh).collect();
                handle.running = false;
            }
            send(running, thread, Command::Assign { epoch, keep, start })?;
        }
        Ok(())
    }

    /// Every thread commits and parks before the group goes on; one that stays silent loses its commit.
    pub(super) fn revoke(&mut self, running: &mut Running) -> Result<(), RunError> {
        self.board.state.advance(State::Rebalancing);
        // Taken: a task that fails from here on starts again with the next assignment and not before.
        if let Some(epoch) = self.epoch.take() {
            for thread in 0..running.threads.len() {
                send(running, thread, Command::Revoke { epoch })?;
            }
            let give_up = self.clock.mono_ms() + self.settings.max_poll_interval_ms / 2;
            let silent = |t: &ThreadHandle| t.revoked != Some(epoch) && !t.ended;
            while running.threads.iter().any(silent) && self.clock.mono_ms() < give_up {
                self.inner_round(running)?;
            }
            for thread in 0..running.threads.len() {
                if silent(&running.threads[thread]) {
                    send(running, thread, Command::Lost)?;
                    running.threads[thread].tasks.clear();
                }
            }
            while running.membership.commits_under_way() > 0 && self.clock.mono_ms() < give_up {
                self.inner_round(running)?;
            }
        }
        running.membership.complete_revoke().map_err(RunError::client)
    }

    /// The assignment was lost: nothing may be committed any more.
    pub(super) fn lost(&mut self, running: &mut Running) -> Result<(), RunError> {
        self.board.state.advance(State::Rebalancing);
        self.epoch = None;
        for thread in 0..running.threads.len() {
            send(running, thread, Command::Lost)?;
            running.threads[thread].tasks.clear();
        }
        running.membership.complete_revoke().map_err(RunError::client)
    }

    /// Range's list turned into tasks: a task belongs to whoever is offered its partition of the subtopology's leading
    /// topic.
    fn tasks_of(&self, running: &Running, offered: &[TopicPartition]) -> Vec<TaskId> {
        let application = &self.settings.application_id;
        let inputs = |subtopology: &Subtopology| SubtopologyInputs {
            id: subtopology.id,
            topics: subtopology
                .sources
                .iter()
                .filter_map(|id| self.topology.source(*id))
                .map(|spec| spec.topic.full(application))
                .map(|name| (Arc::from(name.as_str()), running.topics.partitions.get(&name).copied().unwrap_or(0)))
                .collect(),
        };
        let subtopologies: Vec<SubtopologyInputs> = self.topology.subtopologies().iter().map(inputs).collect();
        owned(&subtopologies, offered)
    }

    /// Where the tasks begin: committed offsets, else each source's reset policy. `None` when the brokers did not
    /// answer before the application closes or the group calls.
    pub(super) fn task_starts(
        &mut self,
        running: &mut Running,
        tasks: &[TaskId],
    ) -> Result<Option<Vec<TaskStart>>, RunError> {
        let mut wanted: Vec<(usize, SourceId, TopicPartition)> = Vec::new();
        for (index, task) in tasks.iter().enumerate() {
            let Some(subtopology) = self.topology.subtopologies().get(task.subtopology as usize) else { continue };
            for source in &subtopology.sources {
                let Some(spec) = self.topology.source(*source) else { continue };
                let topic = spec.topic.full(&self.settings.application_id);
                let count = running.topics.partitions.get(&topic).copied().unwrap_or(0);
                if task.partition < count {
                    let partition = i32::try_from(task.partition).unwrap_or(i32::MAX);
                    wanted.push((index, *source, TopicPartition::new(topic, partition)));
                }
            }
        }
        let mut starts: Vec<TaskStart> = tasks.iter().map(|id| TaskStart { id: *id, inputs: Vec::new() }).collect();
        if wanted.is_empty() {
            return Ok(Some(starts));
        }
        let partitions: Vec<TopicPartition> = wanted.iter().map(|(_, _, tp)| tp.clone()).collect();
        let Some(committed) = self.committed_offsets(running, &partitions)? else { return Ok(None) };
        for ((index, source, tp), committed) in wanted.into_iter().zip(committed) {
            let partition = u32::try_from(tp.partition).unwrap_or(0);
            let (offset, partition_time) = match committed {
                Some(found) => (found.offset, found.metadata.partition_time),
                None => match self.reset_position(running, source, &tp.topic, partition, -1)? {
                    Some(offset) => (offset, -1),
                    None => return Ok(None),
                },
            };
            starts[index].inputs.push(StartPosition { source, topic: tp.topic, partition, offset, partition_time });
        }
        Ok(Some(starts))
    }

    /// Asks the coordinator until it answers; `None` as in [`Self::task_starts`].
    fn committed_offsets(
        &mut self,
        running: &mut Running,
        partitions: &[TopicPartition],
    ) -> Result<Option<Vec<Option<CommittedOffset>>>, RunError> {
        let mut question = self.question("the committed offsets".to_owned());
        loop {
            match running.membership.committed(partitions, question.attempt(self.clock.mono_ms())) {
                Ok(found) => return Ok(Some(found)),
                Err(error) if error.is_retriable() => {
                    if !self.ask_again(running, &mut question, &error)? {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(RunError::client(error)),
            }
        }
    }

    /// The offset that a source's reset policy gives; `None` as in [`Self::task_starts`]. Repartition topics start at
    /// their beginning.
    pub(super) fn reset_position(
        &mut self,
        running: &mut Running,
        source: SourceId,
        topic: &str,
        partition: u32,
        offset: i64,
    ) -> Result<Option<i64>, RunError> {
        let spec = self.topology.source(source);
        let policy = match spec.map(|spec| (&spec.topic, spec.reset)) {
            Some((TopicName::External(_), own)) => own.unwrap_or(self.settings.reset),
            _ => OffsetReset::Earliest,
        };
        let spec = match policy {
            OffsetReset::Earliest => OffsetSpec::Earliest,
            OffsetReset::Latest => OffsetSpec::Latest,
            OffsetReset::ByDuration(age) => {
                OffsetSpec::At(self.clock.wall_ms() - i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
            }
            OffsetReset::None => {
                return Err(RunError::OffsetOutOfRange { topic: topic.to_owned(), partition, offset });
            }
        };
        let partition = i32::try_from(partition).unwrap_or(i32::MAX);
        match self.look_up(running, OffsetQuery { topic, partition, spec })? {
            Some(None) => {
                // No record is that late: at the end.
                let end = self.look_up(running, OffsetQuery { topic, partition, spec: OffsetSpec::Latest })?;
                Ok(end.map(Option::unwrap_or_default))
            }
            found => Ok(found.flatten()),
        }
    }

    /// Asks the brokers for an offset until they know it: `Some(None)` when no record is that late, `None` as in
    /// [`Self::task_starts`].
    fn look_up(&mut self, running: &mut Running, query: OffsetQuery<'_>) -> Result<Option<Option<i64>>, RunError> {
        let OffsetQuery { topic, partition, .. } = query;
        let mut question = self.question(format!("an offset of {topic}-{partition}"));
        loop {
            let attempt = question.attempt(self.clock.mono_ms());
            match list_offsets(&self.metadata, &self.settings.client_id, &[query], false, attempt).pop() {
                Some(Ok(offset)) => return Ok(Some(offset)),
                Some(Err(fault)) if fault.is_retriable() => {
                    if !self.ask_again(running, &mut question, &fault)? {
                        return Ok(None);
                    }
                }
                Some(Err(fault)) => return Err(RunError::client(format!("{topic}-{partition}: {fault}"))),
                None => return Ok(Some(None)),
            }
        }
    }
}

/// Which tasks each thread keeps and which are new to it: those that stay do not move; the others go to the emptiest
/// thread.
fn deal(running: &Running, tasks: &[TaskId]) -> Vec<(Vec<TaskId>, Vec<TaskId>)> {
    let mut dealt: Vec<(Vec<TaskId>, Vec<TaskId>)> = running
        .threads
        .iter()
        .map(|thread| (thread.tasks.iter().copied().filter(|task| tasks.contains(task)).collect(), Vec::new()))
        .collect();
    let most = tasks.len().div_ceil(dealt.len().max(1));
    for (keep, _) in &mut dealt {
        keep.truncate(most);
    }
    let kept: Vec<TaskId> = dealt.iter().flat_map(|(keep, _)| keep.iter().copied()).collect();
    for task in tasks.iter().filter(|task| !kept.contains(task)) {
        if let Some((_, fresh)) = dealt.iter_mut().min_by_key(|(keep, fresh)| keep.len() + fresh.len()) {
            fresh.push(*task);
        }
    }
    dealt
}
