//! The choice of the next record over a task's partitions: the lowest head timestamp, and how long to wait for a
//! partition that has nothing (`max.task.idle.ms`, Kafka Streams' `PartitionGroup`).
use super::intake::Intake;
use super::queue::{PartitionQueue, Unreadable};

/// What the task can do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Process the head of this queue.
    Ready(usize),
    /// Nothing is buffered.
    Empty,
    /// Something is buffered, but a partition that may still bring an earlier record has nothing; ask again at this
    /// time (milliseconds of the monotonic clock), or when data came.
    Waiting(i64),
}

/// The input queues of one task.
pub(crate) struct PartitionGroup {
    queues: Vec<PartitionQueue>,
    /// `max.task.idle.ms`: -1 never waits, 0 waits for what the broker is known to have, more waits that long for
    /// producers.
    max_idle_ms: i64,
    idle_since: Option<i64>,
    stream_time: i64,
}

/// How long to sleep at most while a partition's first answer or its known lag is awaited.
const LAG_RECHECK_MS: i64 = 100;

impl PartitionGroup {
    /// Groups the queues; stream time starts at the highest committed partition time.
    pub(crate) fn new(queues: Vec<PartitionQueue>, max_idle_ms: i64) -> Self {
        let stream_time = queues.iter().map(PartitionQueue::partition_time).max().unwrap_or(-1);
        Self { queues, max_idle_ms, idle_since: None, stream_time }
    }

    /// All queues.
    pub(crate) fn queues(&self) -> &[PartitionQueue] {
        &self.queues
    }

    /// One queue, to change.
    pub(crate) fn queue_mut(&mut self, index: usize) -> Option<&mut PartitionQueue> {
        self.queues.get_mut(index)
    }

    /// Highest timestamp that the task has taken up, -1 before the first.
    pub(crate) fn stream_time(&self) -> i64 {
        self.stream_time
    }

    /// A record with this timestamp is taken up.
    #[inline]
    pub(crate) fn observe(&mut self, timestamp: i64) {
        self.stream_time = self.stream_time.max(timestamp);
    }

    /// A new turn begins at this wall time, milliseconds since the epoch.
    pub(crate) fn begin_turn(&mut self, wall_ms: i64) {
        for queue in &mut self.queues {
            queue.set_wall_ms(wall_ms);
        }
    }

    /// Records skipped for their timestamp since the last call.
    pub(crate) fn take_skipped(&mut self) -> u64 {
        self.queues.iter_mut().map(PartitionQueue::take_skipped).sum()
    }

    /// Chooses the next record. A tie goes to the queue that comes first.
    #[inline]
    pub(crate) fn choose(&mut self, intake: &mut impl Intake, now_ms: i64) -> Result<Choice, Unreadable> {
        if let [only] = self.queues.as_mut_slice() {
            return Ok(if only.fill(intake)?.is_some() { Choice::Ready(0) } else { Choice::Empty });
        }
        self.choose_of_many(intake, now_ms)
    }

    fn choose_of_many(&mut self, intake: &mut impl Intake, now_ms: i64) -> Result<Choice, Unreadable> {
        let mut best: Option<(usize, i64)> = None;
        let mut missing = false;
        for (index, queue) in self.queues.iter_mut().enumerate() {
            match queue.fill(intake)? {
                Some(head) if best.is_none_or(|(_, time)| head.timestamp < time) => {
                    best = Some((index, head.timestamp))
                }
                Some(_) => {}
                None => missing = true,
            }
        }
        let Some((index, _)) = best else {
            self.idle_since = None;
            return Ok(Choice::Empty);
        };
        if !missing || self.max_idle_ms < 0 {
            self.idle_since = None;
            return Ok(Choice::Ready(index));
        }
        Ok(self.wait_or_go(intake, now_ms, index))
    }

    /// Some partition has nothing: whether its records may be on their way.
    fn wait_or_go(&mut self, intake: &impl Intake, now_ms: i64, index: usize) -> Choice {
        let behind = self
            .queues
            .iter()
            .filter(|queue| queue.is_empty())
            .any(|queue| intake.lag(queue.slot()).is_none_or(|lag| lag > 0));
        if behind {
            self.idle_since = None;
            return Choice::Waiting(now_ms + LAG_RECHECK_MS);
        }
        let since = *self.idle_since.get_or_insert(now_ms);
        let until = since + self.max_idle_ms;
        if now_ms < until {
            return Choice::Waiting(until);
        }
        Choice::Ready(index)
    }

    /// Drops everything buffered.
    pub(crate) fn clear(&mut self, intake: &mut impl Intake) {
        for queue in &mut self.queues {
            queue.clear(intake);
        }
        self.idle_since = None;
    }
}
