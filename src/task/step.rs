//! A task at work: the step over its next record.
use super::group::{Choice, PartitionGroup};
use super::intake::Intake;
use super::queue::{Head, PartitionQueue, Unreadable};
use crate::arena::Arena;
use crate::base::id::{StoreId, TaskId};
use crate::node::{Cx, Fault, FaultCell, Port, RawRecord, RecordContext, Source};
use std::rc::Rc;

/// Numbers the starts of tasks in this process, so that what belongs to an earlier start of a task is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life(pub(crate) u64);

/// What a task is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its stores are being restored; its inputs are not fetched.
    Restoring,
    /// It processes.
    Running,
    /// A rebalance runs: it waits, committed, with its state.
    Parked,
}

/// What the thread lends a task for a step.
pub(crate) struct StepEnv<'e> {
    /// Where decoded temporaries go.
    pub(crate) arena: &'e Arena,
    /// Where records leave.
    pub(crate) port: &'e dyn Port,
    /// Where details of a fault go.
    pub(crate) fault: &'e FaultCell,
    /// Wall time of this turn, milliseconds since the epoch.
    pub(crate) now_ms: i64,
    /// The same moment on the monotonic clock, milliseconds.
    pub(crate) mono_ms: i64,
}

/// Why a run of steps ended.
#[derive(Debug)]
pub(crate) enum StepEnd {
    /// As many records as were allowed; there may be more.
    Budget,
    /// Nothing is buffered.
    Empty,
    /// A partition without data is waited for, until this time (milliseconds, monotonic clock).
    Waiting(i64),
    /// A step failed on the head of this queue.
    Fault {
        /// Index of the queue.
        queue: usize,
        /// What happened; details are in the fault cell.
        fault: Fault,
    },
    /// The head of this queue has no valid timestamp, and its source's policy is to fail.
    NoTimestamp {
        /// Index of the queue.
        queue: usize,
    },
    /// A batch of some input could not be read.
    Unreadable(Unreadable),
}

/// One active task.
pub(crate) struct Task {
    /// Which.
    pub(crate) id: TaskId,
    /// Which start of it this is.
    pub(crate) life: Life,
    /// What it is doing.
    pub(crate) phase: Phase,
    /// Its inputs.
    pub(crate) group: PartitionGroup,
    /// Stores that are not complete yet.
    pub(crate) restoring: Vec<StoreId>,
    /// The source node of each queue.
    sources: Vec<Rc<dyn Source>>,
    /// Whether each of them has a use for the key that comes next.
    warms: Vec<bool>,
    /// Whether it processed something since its last commit.
    dirty: bool,
}

impl Task {
    /// Begins with complete queues; `sources` has one node for each queue.
    pub(crate) fn new(
        id: TaskId,
        life: Life,
        group: PartitionGroup,
        sources: Vec<Rc<dyn Source>>,
        restoring: Vec<StoreId>,
    ) -> Self {
        let phase = if restoring.is_empty() { Phase::Running } else { Phase::Restoring };
        let warms = sources.iter().map(|source| source.warms()).collect();
        Self { id, life, phase, group, restoring, sources, warms, dirty: false }
    }

    /// Whether there is something to commit.
    pub(crate) fn needs_commit(&self) -> bool {
        self.dirty
    }

    /// It did something that no record caused.
    pub(crate) fn touch(&mut self) {
        self.dirty = true;
    }

    /// Its work is committed.
    pub(crate) fn committed(&mut self) {
        self.dirty = false;
    }

    /// Processes up to `budget` records in the order of their timestamps; answers how many and why it ended.
    pub(crate) fn run<I: Intake>(&mut self, intake: &mut I, env: &StepEnv<'_>, budget: u32) -> (u32, StepEnd) {
        self.group.begin_turn(env.now_ms);
        let mut done = 0;
        while done < budget {
            let index = match self.group.choose(intake, env.mono_ms) {
                Ok(Choice::Ready(index)) => index,
                Ok(Choice::Empty) => return (done, StepEnd::Empty),
                Ok(Choice::Waiting(until)) => return (done, StepEnd::Waiting(until)),
                Err(unreadable) => return (done, StepEnd::Unreadable(unreadable)),
            };
            if self.group.queues().get(index).and_then(PartitionQueue::head_info).is_some_and(|head| head.timestamp < 0)
            {
                return (done, StepEnd::NoTimestamp { queue: index });
            }
            if let Err(fault) = self.step(intake, env, index) {
                return (done, StepEnd::Fault { queue: index, fault });
            }
            done += 1;
            let advanced = self.group.queue_mut(index).map_or(Ok(()), |queue| queue.advance(intake));
            if let Err(unreadable) = advanced {
                return (done, StepEnd::Unreadable(unreadable));
            }
            if self.warms.get(index) == Some(&true) {
                self.warm(intake, index);
            }
        }
        (done, StepEnd::Budget)
    }

    /// Walks the head of a queue through the nodes.
    #[inline]
    fn step<I: Intake>(&mut self, intake: &I, env: &StepEnv<'_>, index: usize) -> Result<(), Fault> {
        let Some((record, source)) =
            self.group.queues().get(index).and_then(|queue| queue.head(intake)).zip(self.sources.get(index))
        else {
            return Ok(());
        };
        self.dirty = true;
        let Some(Head { timestamp, .. }) = self.group.queues().get(index).and_then(PartitionQueue::head_info) else {
            return Ok(());
        };
        self.group.observe(timestamp);
        let Some(queue) = self.group.queues().get(index) else { return Ok(()) };
        let cx = Cx {
            arena: env.arena,
            task: self.id,
            source: RecordContext {
                topic: &queue.topic,
                partition: queue.partition,
                offset: record.offset,
                timestamp,
                headers: record.headers,
            },
            port: env.port,
            fault: env.fault,
            stream_time: self.group.stream_time(),
            now_ms: env.now_ms,
            latest: true,
        };
        let raw = RawRecord { key: record.key, value: record.value, timestamp };
        source.feed(&cx, &raw)
    }

    /// Tells the nodes which key comes behind the head, so that its state is there when its turn comes.
    #[inline]
    fn warm<I: Intake>(&self, intake: &I, index: usize) {
        let key = self.group.queues().get(index).and_then(|queue| queue.key_behind_head(intake));
        if let (Some(key), Some(source)) = (key, self.sources.get(index)) {
            source.warm(self.id.partition, key);
        }
    }

    /// Steps over the head of a queue: an undecodable record that the handler said to skip. It counts as consumed.
    pub(crate) fn skip<I: Intake>(&mut self, intake: &mut I, index: usize) -> Result<(), Unreadable> {
        self.dirty = true;
        self.group.queue_mut(index).map_or(Ok(()), |queue| queue.skip(intake))
    }
}
