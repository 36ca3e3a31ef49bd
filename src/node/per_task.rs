//! State of a task inside a node: nodes are made once a thread, tasks come and go.
//!
//! Owns a value for each partition whose task ran here, and what it was at the last commit. Invariant: an abort goes
//! back to the last commit. Bound: two values for each task of the subtopology that this thread has. Called by nodes;
//! told about commits by the thread or the driver through [`Wired`](super::Wired).
use super::wiring::Wiring;
use std::cell::RefCell;
use std::rc::Rc;

/// What is told of the end of each commit.
pub(crate) trait TaskState {
    /// What the task of this partition did is committed.
    fn committed(&self, partition: u32);
    /// What it did since its last commit is undone.
    fn aborted(&self, partition: u32);
    /// It has left this thread.
    fn closed(&self, partition: u32);
}

struct Value<T> {
    partition: u32,
    now: T,
    committed: T,
}

struct Values<T> {
    initial: T,
    /// By partition.
    all: RefCell<Vec<Value<T>>>,
}

/// A value for each task.
pub(crate) struct PerTask<T>(Rc<Values<T>>);

impl<T: Clone + Default + 'static> PerTask<T> {
    /// Begins with the default in each task.
    pub(crate) fn new(wiring: &mut Wiring<'_>) -> Self {
        Self::with(wiring, T::default())
    }
}

impl<T: Clone + 'static> PerTask<T> {
    /// Begins with this value in each task.
    pub(crate) fn with(wiring: &mut Wiring<'_>, initial: T) -> Self {
        let values = Rc::new(Values { initial, all: RefCell::default() });
        wiring.task_state(Rc::clone(&values) as _);
        Self(values)
    }

    /// The value of a task.
    #[inline]
    pub(crate) fn get(&self, partition: u32) -> T {
        let all = self.0.all.borrow();
        let found = all.binary_search_by_key(&partition, |value| value.partition).ok().and_then(|at| all.get(at));
        found.map_or_else(|| self.0.initial.clone(), |value| value.now.clone())
    }

    /// Gives a task a value; an abort takes it back.
    #[inline]
    pub(crate) fn set(&self, partition: u32, now: T) {
        let mut all = self.0.all.borrow_mut();
        match all.binary_search_by_key(&partition, |value| value.partition) {
            Ok(at) => all[at].now = now,
            Err(at) => all.insert(at, Value { partition, now, committed: self.0.initial.clone() }),
        }
    }
}

impl<T: Clone> TaskState for Values<T> {
    fn committed(&self, partition: u32) {
        for value in self.all.borrow_mut().iter_mut().filter(|value| value.partition == partition) {
            value.committed.clone_from(&value.now);
        }
    }

    fn aborted(&self, partition: u32) {
        for value in self.all.borrow_mut().iter_mut().filter(|value| value.partition == partition) {
            value.now.clone_from(&value.committed);
        }
    }

    fn closed(&self, partition: u32) {
        self.all.borrow_mut().retain(|value| value.partition != partition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abort_goes_back_to_the_last_commit_of_that_task_only() {
        let value = PerTask(Rc::new(Values { initial: -1i64, all: RefCell::default() }));
        assert_eq!(value.get(3), -1);
        value.set(3, 10);
        value.set(4, 40);
        value.0.committed(3);
        value.set(3, 20);
        value.0.aborted(3);
        assert_eq!((value.get(3), value.get(4)), (10, 40));
        value.0.aborted(4);
        assert_eq!((value.get(3), value.get(4)), (10, -1), "task 4 has never committed");
        value.0.closed(3);
        assert_eq!(value.get(3), -1);
    }
}
