//! A bounded queue between two threads of the process, with the reader's waker.
//!
//! Invariant: what was posted is read once and in order. Bound: the capacity given at construction; a full box answers
//! the message back instead of growing. Used for commands and requests that happen at rebalances, commits and faults,
//! never per record.
use crate::net::Waker;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

struct Shared<T> {
    queue: Mutex<VecDeque<T>>,
    capacity: usize,
    waker: Waker,
}

/// Both ends of a mailbox; clones share the queue.
pub(crate) struct Mailbox<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Mailbox<T> {
    /// A box of `capacity` messages whose reader sleeps on `waker`.
    pub(crate) fn new(capacity: usize, waker: Waker) -> Self {
        let queue = Mutex::new(VecDeque::with_capacity(capacity));
        Self { shared: Arc::new(Shared { queue, capacity, waker }) }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts and wakes the reader.
    ///
    /// # Errors
    /// The message itself when the box is full.
    pub(crate) fn post(&self, message: T) -> Result<(), T> {
        {
            let mut queue = self.queue();
            if queue.len() >= self.shared.capacity {
                return Err(message);
            }
            queue.push_back(message);
        }
        self.shared.waker.wake();
        Ok(())
    }

    /// The oldest message, if any.
    pub(crate) fn take(&self) -> Option<T> {
        self.queue().pop_front()
    }

    /// Whether a message waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue().is_empty()
    }

    /// Wakes the reader without a message.
    pub(crate) fn wake(&self) {
        self.shared.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::PollSet;
    use std::time::{Duration, Instant};

    #[test]
    fn a_full_box_answers_the_message_back_and_loses_nothing() {
        let polls = PollSet::new().unwrap();
        let mailbox = Mailbox::new(2, polls.waker());
        assert_eq!((mailbox.post(1), mailbox.post(2), mailbox.post(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!((mailbox.take(), mailbox.take(), mailbox.take()), (Some(1), Some(2), None));
    }

    #[test]
    fn a_post_ends_the_readers_wait() {
        let mut polls = PollSet::new().unwrap();
        let mailbox = Mailbox::new(1, polls.waker());
        let poster = mailbox.clone();
        let thread = std::thread::spawn(move || poster.post(7));
        let started = Instant::now();
        while mailbox.is_empty() && started.elapsed() < Duration::from_secs(10) {
            polls.clear();
            polls.wait(Some(Duration::from_secs(10))).unwrap();
        }
        assert_eq!((mailbox.take(), thread.join().unwrap()), (Some(7), Ok(())));
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}
