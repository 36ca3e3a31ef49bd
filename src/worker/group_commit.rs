//! Commits on their way to the group: from a thread's slot to librdkafka and back.
//!
//! Invariant: a slot that was asked is answered once. Bound: one commit for each thread.
use super::control::{Control, Running};
use super::failure::RunError;
use super::message::{CommitOutcome, CommitPhase};
use super::state::State;
use crate::base::partition::TopicPartition;
use crate::client::membership::{CommitOffset, CommitOutcome as Outcome, CommitRefused, Ticket};
use crate::client::offsets_metadata::OffsetsMetadata;

/// Pause before a commit that may succeed later is sent again, milliseconds.
const AGAIN_MS: i64 = 100;

/// A thread's commit.
pub(super) struct PendingCommit {
    thread: usize,
    /// `None` while it waits to be sent again.
    ticket: Option<Ticket>,
    /// When to send it again, milliseconds of the monotonic clock.
    again_at: i64,
    /// Until when that is worth it.
    give_up: i64,
}

impl Control {
    /// Takes what lies in a thread's slot.
    pub(super) fn commit(&mut self, running: &mut Running, thread: usize) {
        let now = self.clock.mono_ms();
        let give_up = now + self.settings.max_poll_interval_ms / 2;
        running.commits.push(PendingCommit { thread, ticket: None, again_at: now, give_up });
        self.answer_commits(running);
    }

    /// Sends every commit whose time has come.
    pub(super) fn answer_commits(&mut self, running: &mut Running) {
        let now = self.clock.mono_ms();
        let mut index = 0;
        while index < running.commits.len() {
            let pending = &running.commits[index];
            if pending.ticket.is_some() || pending.again_at > now {
                index += 1;
                continue;
            }
            let thread = pending.thread;
            match self.send_commit(running, thread) {
                Ok(ticket) => {
                    running.commits[index].ticket = Some(ticket);
                    index += 1;
                }
                Err(outcome) => {
                    running.commits.swap_remove(index);
                    answer(running, thread, outcome);
                }
            }
        }
    }

    fn send_commit(&mut self, running: &mut Running, thread: usize) -> Result<Ticket, CommitOutcome> {
        let Some(handle) = running.threads.get(thread) else { return Err(CommitOutcome::Stale) };
        let request = handle.slot.lock();
        let metadata: Vec<(TopicPartition, i64, OffsetsMetadata)> = request
            .offsets
            .iter()
            .map(|o| {
                let partition = i32::try_from(o.partition).unwrap_or(i32::MAX);
                (TopicPartition::new(o.topic.clone(), partition), o.offset, OffsetsMetadata::at(o.partition_time))
            })
            .collect();
        let offsets: Vec<CommitOffset<'_>> = metadata
            .iter()
            .map(|(partition, offset, metadata)| CommitOffset { partition, offset: *offset, metadata })
            .collect();
        let Some(epoch) = request.epoch else { return Err(CommitOutcome::Stale) };
        running.membership.commit(epoch, &offsets).map_err(|refused| match refused {
            CommitRefused::StaleEpoch { .. } => CommitOutcome::Stale,
            other => CommitOutcome::Failed(RunError::client(other)),
        })
    }

    /// The group has answered.
    pub(super) fn committed(&mut self, running: &mut Running, ticket: Ticket, outcome: Outcome) {
        let Some(index) = running.commits.iter().position(|pending| pending.ticket == Some(ticket)) else { return };
        let now = self.clock.mono_ms();
        let outcome = match outcome {
            Outcome::Committed => CommitOutcome::Done,
            Outcome::Retriable(_) if now < running.commits[index].give_up => {
                running.commits[index].ticket = None;
                running.commits[index].again_at = now + AGAIN_MS;
                return;
            }
            Outcome::RebalanceInProgress => CommitOutcome::Rebalancing,
            Outcome::IllegalGeneration | Outcome::UnknownMember => CommitOutcome::Stale,
            Outcome::FencedInstance => CommitOutcome::Failed(RunError::Fenced),
            Outcome::Retriable(code) | Outcome::Failed(code) => {
                let reason = format!("committing offsets: {} ({})", code.text(), code.name());
                CommitOutcome::Failed(RunError::client(reason))
            }
        };
        let pending = running.commits.swap_remove(index);
        if matches!(outcome, CommitOutcome::Done) && self.board.state.get() == State::Running {
            // Whatever librdkafka last complained of has passed.
            self.board.wait_for(None);
        }
        if let (CommitOutcome::Done, Some(handle)) = (&outcome, running.threads.get(pending.thread)) {
            running.purge.committed(&handle.slot.lock().offsets);
        }
        answer(running, pending.thread, outcome);
    }
}

fn answer(running: &Running, thread: usize, outcome: CommitOutcome) {
    if let Some(handle) = running.threads.get(thread) {
        handle.slot.lock().phase = CommitPhase::Answered(outcome);
        handle.commands.wake();
    }
}
