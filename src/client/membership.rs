//! The process's membership of its consumer group: which partitions it is offered, and plain commits.
//!
//! Owns: the order of events and answers on the control-plane handle. Called by the control thread alone.
//! Invariant: librdkafka's own assignment is always empty, so it fetches nothing and seeks nothing; a commit carries
//! the [`Epoch`] of the assignment it was made under, and one of an older epoch never reaches librdkafka, which would
//! stamp it with the present generation and so let it through.
//! Events come in any order: the loss that a commit's failure brings may arrive before the commit's answer.
//! Bound: at most [`MAX_COMMITS`] commits are under way; closing ends within its time-out.
//!
//! ```text
//! poll ─▶ Assign ── complete_assign() ─▶ Epoch ── commit(epoch, …) ─▶ poll ─▶ Committed
//!      ─▶ Revoke ── commit(epoch, …) ─▶ poll ─▶ Committed … ── complete_revoke()
//!      ─▶ Lost   ── complete_revoke()                            (nothing may be committed)
//! ```
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::offsets_metadata::OffsetsMetadata;
use crate::base::partition::TopicPartition;
use crate::ffi::kafka::{GroupMetadata, Handle};
use crate::ffi::kafka_error::{Code, KafkaError};
use crate::ffi::kafka_event::Event;
use crate::ffi::kafka_list::List;

/// Commits under way at most: one a stream thread, with room to spare.
pub(crate) const MAX_COMMITS: usize = 256;
/// Part of the time for closing that is left for ending librdkafka's threads.
const CLOSE_RESERVE: Duration = Duration::from_millis(500);

/// Numbers the assignments of this process; grows with each assignment, revocation and loss.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Epoch(u64);

/// Names a commit under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ticket(u64);

/// What happened to the membership.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum MembershipEvent {
    /// A generation began. Answer with [`Membership::complete_assign`] before any task starts.
    Assign(Assignment),
    /// The generation ends: commit under the present epoch, then [`Membership::complete_revoke`].
    Revoke {
        /// The list of the assignment that ends.
        partitions: Vec<TopicPartition>,
    },
    /// The group went on without this member: commits are refused already; close tasks uncommitted, then
    /// [`Membership::complete_revoke`].
    Lost {
        /// The list of the assignment that was lost.
        partitions: Vec<TopicPartition>,
    },
    /// A commit was answered.
    Committed {
        /// Which.
        ticket: Ticket,
        /// How.
        outcome: CommitOutcome,
    },
    /// Something failed; the membership goes on trying unless it is fatal.
    Error(MembershipError),
}

/// What the group's leader offers this member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Assignment {
    /// Range's list, sorted.
    pub(crate) partitions: Vec<TopicPartition>,
    pub(crate) generation: i32,
    pub(crate) member_id: String,
}

/// A failure that librdkafka reports by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MembershipError {
    pub(crate) code: Code,
    pub(crate) text: String,
    /// The handle is of no further use: close it.
    pub(crate) fatal: bool,
}

/// How an assignment's answer went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Assigned {
    /// Tasks may start, and commit under this epoch.
    Started(Epoch),
    /// The group began another generation meanwhile: start nothing, its assignment follows.
    Superseded,
}

/// How a commit went. Which of a task's reactions follows is in the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommitOutcome {
    /// The group holds the offsets.
    Committed,
    /// Nothing is known to be wrong: commit again, within the caller's bound.
    Retriable(Code),
    /// The group is forming a generation: commit in it if the task is kept.
    RebalanceInProgress,
    /// Another generation is present: close tasks uncommitted; the process rejoins by itself.
    IllegalGeneration,
    /// The group forgot this member: close tasks uncommitted; the process rejoins by itself.
    UnknownMember,
    /// Another process has this `group.instance.id`: stop the instance.
    FencedInstance,
    /// Repeating cannot help (not authorised, metadata too large, topic gone).
    Failed(Code),
}

impl CommitOutcome {
    fn of(code: Code) -> Self {
        match code {
            Code::NONE => Self::Committed,
            Code::REBALANCE_IN_PROGRESS => Self::RebalanceInProgress,
            Code::ILLEGAL_GENERATION => Self::IllegalGeneration,
            Code::UNKNOWN_MEMBER_ID => Self::UnknownMember,
            Code::FENCED_INSTANCE_ID => Self::FencedInstance,
            code if KafkaError::refused("OffsetCommit", code, "").is_retriable() => Self::Retriable(code),
            code => Self::Failed(code),
        }
    }
}

/// Why a commit was not sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum CommitRefused {
    /// The partitions may belong to somebody else by now: close the task uncommitted.
    #[error("the commit belongs to assignment {} and the process is at {}: its partitions may have moved", of.0, now.0)]
    StaleEpoch {
        /// The commit's.
        of: Epoch,
        /// The membership's.
        now: Epoch,
    },
    /// Too many are under way: poll, then commit again.
    #[error("{MAX_COMMITS} commits are under way: wait for their answers")]
    TooMany,
    /// librdkafka did not take it.
    #[error(transparent)]
    Kafka(#[from] KafkaError),
}

/// An offset to commit: that of the next record to process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CommitOffset<'a> {
    pub(crate) partition: &'a TopicPartition,
    pub(crate) offset: i64,
    pub(crate) metadata: &'a OffsetsMetadata,
}

/// A committed offset as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CommittedOffset {
    pub(crate) offset: i64,
    pub(crate) metadata: OffsetsMetadata,
}

/// How closing ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closed {
    /// The group knows that this member left.
    Left,
    /// The time was over before: the group finds out by its session time-out.
    Abandoned,
}

/// The membership.
#[derive(Debug)]
pub(crate) struct Membership {
    handle: Arc<Handle>,
    epoch: Epoch,
    /// Generation of the assignment that waits for its answer.
    offered: Option<i32>,
    /// Generation in which tasks may commit.
    assigned: Option<i32>,
    tickets: u64,
    under_way: usize,
}

impl Membership {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle, epoch: Epoch(0), offered: None, assigned: None, tickets: 0, under_way: 0 }
    }

    /// Joins the group, offering to read these topics. All members must name the same.
    pub(crate) fn subscribe(&mut self, topics: &[&str]) -> Result<(), KafkaError> {
        self.handle.subscribe(topics)
    }

    /// Calls `wake`, from another thread, when events wait after there were none: then poll until `None`.
    pub(crate) fn on_event(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.handle.on_event(wake);
    }

    /// The next event, waiting at most so long. Must be called well within `max.poll.interval.ms`, or the group
    /// revokes everything from this member.
    pub(crate) fn poll(&mut self, timeout: Duration) -> Option<MembershipEvent> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.handle.poll(left)?;
            if let Some(event) = self.take(event) {
                return Some(event);
            }
        }
    }

    fn take(&mut self, event: Event) -> Option<MembershipEvent> {
        match event {
            Event::Assign(mut partitions) => {
                partitions.sort();
                self.next_epoch();
                let group = self.handle.group();
                let (generation, member_id) = group.map_or((-1, String::new()), |g| (g.generation, g.member_id));
                self.offered = Some(generation);
                Some(MembershipEvent::Assign(Assignment { partitions, generation, member_id }))
            }
            Event::Revoke { partitions, lost: false } => Some(MembershipEvent::Revoke { partitions }),
            Event::Revoke { partitions, lost: true } => {
                self.next_epoch();
                Some(MembershipEvent::Lost { partitions })
            }
            Event::Committed { ticket, code } => {
                self.under_way = self.under_way.saturating_sub(1);
                let outcome = CommitOutcome::of(code);
                Some(MembershipEvent::Committed { ticket: Ticket(ticket), outcome })
            }
            Event::Error { code, text, fatal } => Some(MembershipEvent::Error(MembershipError { code, text, fatal })),
            Event::Other => None,
        }
    }

    fn next_epoch(&mut self) {
        self.epoch.0 += 1;
        self.assigned = None;
    }

    fn is_present(&self, generation: i32) -> bool {
        self.handle.group().is_some_and(|group| group.generation == generation)
    }

    /// Answers an assignment: nothing is fetched by librdkafka, the membership is kept.
    pub(crate) fn complete_assign(&mut self) -> Result<Assigned, KafkaError> {
        let Some(generation) = self.offered.take() else { return Ok(Assigned::Superseded) };
        self.handle.assign_nothing()?;
        if !self.is_present(generation) {
            return Ok(Assigned::Superseded);
        }
        self.next_epoch();
        self.assigned = Some(generation);
        Ok(Assigned::Started(self.epoch))
    }

    /// Answers a revocation or a loss: from here on commits of its epoch are refused.
    ///
    /// Call it when no commit is under way any more ([`Self::commits_under_way`]): librdkafka would send a commit that
    /// still waits for its coordinator under the next generation.
    pub(crate) fn complete_revoke(&mut self) -> Result<(), KafkaError> {
        self.offered = None;
        self.next_epoch();
        self.handle.unassign()
    }

    /// Commits offsets made under an assignment. The outcome arrives by [`Self::poll`].
    pub(crate) fn commit(&mut self, epoch: Epoch, offsets: &[CommitOffset<'_>]) -> Result<Ticket, CommitRefused> {
        // The generation is asked for as well: librdkafka may have joined another one whose assignment still waits in
        // the queue.
        if epoch != self.epoch || self.assigned.is_none_or(|generation| !self.is_present(generation)) {
            return Err(CommitRefused::StaleEpoch { of: epoch, now: self.epoch });
        }
        if self.under_way == MAX_COMMITS {
            return Err(CommitRefused::TooMany);
        }
        let mut list = List::with_capacity(offsets.len())?;
        for entry in offsets {
            let metadata = entry.metadata.encode();
            let TopicPartition { topic, partition } = entry.partition;
            list.push(topic, *partition, Some(entry.offset), Some(&metadata))?;
        }
        self.tickets += 1;
        self.handle.commit(&list, self.tickets)?;
        self.under_way += 1;
        Ok(Ticket(self.tickets))
    }

    /// Commits that were sent and not answered yet.
    pub(crate) fn commits_under_way(&self) -> usize {
        self.under_way
    }

    /// Committed offsets with their metadata, in the order asked; `None` where nothing is committed. Blocks.
    pub(crate) fn committed(
        &self,
        partitions: &[TopicPartition],
        timeout: Duration,
    ) -> Result<Vec<Option<CommittedOffset>>, KafkaError> {
        let mut list = List::of(partitions.iter().map(|p| (&*p.topic, p.partition)))?;
        self.handle.committed(&mut list, timeout)?;
        let found = list.elements().into_iter().map(|element| {
            element.code.check("OffsetFetch")?;
            let metadata = OffsetsMetadata::decode(element.metadata.as_deref().unwrap_or_default());
            Ok((element.offset >= 0).then_some(CommittedOffset { offset: element.offset, metadata }))
        });
        found.collect()
    }

    /// Member and generation now, as transactional commits must name them; `None` before the first join.
    #[allow(dead_code)] // for transactional commits
    pub(crate) fn group(&self) -> Option<GroupMetadata> {
        self.handle.group()
    }

    /// Leaves the group and ends the handle, within `timeout`. Revocations on the way are answered without commits:
    /// whoever wants to commit does so before.
    pub(crate) fn close(mut self, timeout: Duration) -> Closed {
        let deadline = Instant::now() + timeout;
        let leave_by = deadline.checked_sub(CLOSE_RESERVE.min(timeout / 2)).unwrap_or(deadline);
        self.next_epoch();
        let left = leave(&self.handle, leave_by);
        let end = deadline.saturating_duration_since(Instant::now());
        destroy_within(self.handle, end);
        if left { Closed::Left } else { Closed::Abandoned }
    }
}

fn leave(handle: &Handle, deadline: Instant) -> bool {
    let Ok(closing) = handle.begin_close() else { return false };
    while !closing.is_closed() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        // Short waits: being closed is a state, not an event of its own.
        if let Some(Event::Assign(_) | Event::Revoke { .. }) = closing.poll(left.min(Duration::from_millis(20)))
            && handle.unassign().is_err()
        {
            return false;
        }
    }
    true
}

/// Ends librdkafka's threads. They end at once unless one is stuck (in a name look-up): then they end behind our back.
fn destroy_within(handle: Arc<Handle>, timeout: Duration) {
    let (done, wait) = std::sync::mpsc::sync_channel(1);
    let reaper = std::thread::Builder::new().name("plimsoll-reaper".to_owned()).spawn(move || {
        drop(handle);
        let _ = done.send(());
    });
    if reaper.is_ok() {
        let _ = wait.recv_timeout(timeout);
    }
}

#[cfg(test)]
mod tests;
