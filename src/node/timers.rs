//! When processors want to be called: a queue for each task and each kind of time.
//!
//! Owns the times, not the closures, which lie with their processors. Invariant: the earliest is called first, and what
//! was called is due again one interval on, intervals that were missed left out: Kafka Streams' `PunctuationQueue`,
//! whose Java heap decides between equal times. Bound: what processors schedule; a cancelled time goes when it comes.
//! Called by processors, and by the thread through [`Wired`](super::Wired).
use crate::base::id::NodeId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Whose time calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PunctuationType {
    /// Time as the records tell it: the first call comes with the first record. Without records nothing is called.
    StreamTime,
    /// The wall clock: the first call comes after one interval.
    WallClock,
}

/// A time at which a processor is to be called.
#[derive(Clone)]
pub(crate) struct Due {
    /// Milliseconds.
    at: i64,
    every: i64,
    pub(crate) partition: u32,
    pub(crate) node: NodeId,
    /// Which of the processor's closures.
    pub(crate) timer: usize,
    cancelled: Rc<Cell<bool>>,
}

struct Queue {
    partition: u32,
    kind: PunctuationType,
    /// As Java's `PriorityQueue` keeps it.
    heap: Vec<Due>,
}

/// The times of all tasks of a subtopology on one thread.
#[derive(Default)]
pub(crate) struct Timers {
    queues: RefCell<Vec<Queue>>,
    wants_commit: Cell<bool>,
}

impl Timers {
    /// Notes a time: stream time begins at 0, the wall clock one interval from now.
    pub(crate) fn schedule(&self, kind: PunctuationType, now_ms: i64, every: i64, of: Place) -> Rc<Cell<bool>> {
        let at = match kind {
            PunctuationType::StreamTime => 0,
            PunctuationType::WallClock => now_ms.saturating_add(every),
        };
        let cancelled = Rc::new(Cell::new(false));
        let Place { partition, node, timer } = of;
        self.offer(kind, Due { at, every, partition, node, timer, cancelled: Rc::clone(&cancelled) });
        cancelled
    }

    fn offer(&self, kind: PunctuationType, due: Due) {
        let mut queues = self.queues.borrow_mut();
        match queues.iter_mut().find(|queue| queue.partition == due.partition && queue.kind == kind) {
            Some(queue) => push(&mut queue.heap, due),
            None => queues.push(Queue { partition: due.partition, kind, heap: vec![due] }),
        }
    }

    /// The earliest time of a task.
    pub(crate) fn next(&self, partition: u32, kind: PunctuationType) -> Option<i64> {
        let queues = self.queues.borrow();
        let queue = queues.iter().find(|queue| queue.partition == partition && queue.kind == kind)?;
        queue.heap.first().map(|due| due.at)
    }

    /// Takes the task's earliest time if it has come.
    pub(crate) fn take(&self, partition: u32, kind: PunctuationType, now: i64) -> Option<Due> {
        let mut queues = self.queues.borrow_mut();
        let queue = queues.iter_mut().find(|queue| queue.partition == partition && queue.kind == kind)?;
        while queue.heap.first().is_some_and(|due| due.at <= now) {
            if let Some(due) = pop(&mut queue.heap).filter(|due| !due.cancelled.get()) {
                return Some(due);
            }
        }
        None
    }

    /// It was called at `now`: the next time, unless it was cancelled meanwhile.
    pub(crate) fn again(&self, kind: PunctuationType, due: Due, now: i64) {
        if !due.cancelled.get() {
            let missed = now.saturating_sub(due.at) / due.every.max(1);
            let at = due.at.saturating_add(due.every.saturating_mul(missed.saturating_add(1)));
            self.offer(kind, Due { at, ..due });
        }
    }

    /// Whether anything is scheduled.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) fn is_used(&self) -> bool {
        !self.queues.borrow().is_empty()
    }

    /// The task has left.
    pub(crate) fn forget(&self, partition: u32) {
        self.queues.borrow_mut().retain(|queue| queue.partition != partition);
    }

    /// A processor wants its work committed soon.
    pub(crate) fn request_commit(&self) {
        self.wants_commit.set(true);
    }

    /// Whether one wanted that since the last call.
    pub(crate) fn take_commit_request(&self) -> bool {
        self.wants_commit.take()
    }
}

/// Whose a time is.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) partition: u32,
    pub(crate) node: NodeId,
    pub(crate) timer: usize,
}

fn time(heap: &[Due], at: usize) -> i64 {
    heap.get(at).map_or(i64::MAX, |due| due.at)
}

fn push(heap: &mut Vec<Due>, due: Due) {
    heap.push(due);
    let mut at = heap.len() - 1;
    while at > 0 && time(heap, at) < time(heap, (at - 1) / 2) {
        heap.swap(at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

fn pop(heap: &mut Vec<Due>) -> Option<Due> {
    if heap.is_empty() {
        return None;
    }
    let first = heap.swap_remove(0);
    let mut at = 0;
    loop {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        let child = if right < heap.len() && time(heap, right) < time(heap, left) { right } else { left };
        if child >= heap.len() || time(heap, at) <= time(heap, child) {
            return Some(first);
        }
        heap.swap(at, child);
        at = child;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: PunctuationType = PunctuationType::StreamTime;

    fn fire(timers: &Timers, kind: PunctuationType, now: i64) -> Vec<usize> {
        let mut fired = Vec::new();
        while let Some(due) = timers.take(0, kind, now) {
            fired.push(due.timer);
            timers.again(kind, due, now);
        }
        fired
    }

    fn place(timer: usize) -> Place {
        Place { partition: 0, node: NodeId(1), timer }
    }

    /// Kafka's `PunctuationQueueTest`: an interval of 100, asked at these times.
    #[test]
    fn a_late_call_leaves_missed_intervals_out() {
        let timers = Timers::default();
        timers.schedule(STREAM, 7, 100, place(0));
        let counts: Vec<usize> = [-1, 0, 99, 100, 199, 200, 1001, 1002, 1099, 1100]
            .iter()
            .map(|now| fire(&timers, STREAM, *now).len())
            .collect();
        assert_eq!(counts, [0, 1, 0, 1, 0, 1, 1, 0, 0, 1]);
        assert_eq!(timers.next(0, STREAM), Some(1200));
    }

    #[test]
    fn the_wall_clock_begins_one_interval_from_now_and_a_cancelled_time_is_gone() {
        let timers = Timers::default();
        let wall = PunctuationType::WallClock;
        let cancelled = timers.schedule(wall, 1_000, 10, place(0));
        timers.schedule(wall, 1_000, 4, place(1));
        assert_eq!(timers.next(0, wall), Some(1_004));
        assert_eq!(fire(&timers, wall, 1_003), [0usize; 0]);
        assert_eq!(fire(&timers, wall, 1_010), [1, 0]);
        assert_eq!(timers.next(0, wall), Some(1_012), "1004 and 1008 were one call");
        cancelled.set(true);
        assert_eq!(fire(&timers, wall, 1_020), [1]);
        assert_eq!(timers.next(1, wall), None, "another task");
        timers.forget(0);
        assert_eq!(timers.next(0, wall), None);
    }
}
