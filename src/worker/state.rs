//! The states of an application, as Kafka Streams names them, and who may be told.
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What an application is doing. The order and the allowed steps are those of Kafka Streams' `KafkaStreams.State`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum State {
    /// Built, not yet started.
    Created,
    /// Joining the group, taking over tasks or restoring them.
    Rebalancing,
    /// Every task of this process is processing.
    Running,
    /// Closing because it was asked to.
    PendingShutdown,
    /// Closed.
    NotRunning,
    /// Closing because of a failure.
    PendingError,
    /// Closed because of a failure.
    Error,
}

impl State {
    /// Whether Kafka Streams allows this step.
    fn may_become(self, next: State) -> bool {
        use State::{Created, Error, NotRunning, PendingError, PendingShutdown, Rebalancing, Running};
        matches!(
            (self, next),
            (Created, Rebalancing | PendingShutdown | PendingError)
                | (Rebalancing, Running | PendingShutdown | PendingError)
                | (Running, Rebalancing | PendingShutdown | PendingError)
                | (PendingShutdown, NotRunning)
                | (PendingError, Error)
        )
    }

    /// Whether the application has ended.
    pub fn is_final(self) -> bool {
        matches!(self, State::NotRunning | State::Error)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Created => "CREATED",
            State::Rebalancing => "REBALANCING",
            State::Running => "RUNNING",
            State::PendingShutdown => "PENDING_SHUTDOWN",
            State::NotRunning => "NOT_RUNNING",
            State::PendingError => "PENDING_ERROR",
            State::Error => "ERROR",
        })
    }
}

/// Called with (new, old) on the thread that made the step; it should return soon.
pub(crate) type StateListener = Box<dyn Fn(State, State) + Send + Sync>;

/// The state, those who wait for it and the listener.
#[derive(Clone)]
pub(crate) struct StateCell {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    listener: Option<StateListener>,
}

impl StateCell {
    pub(crate) fn new(listener: Option<StateListener>) -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::new(State::Created), changed: Condvar::new(), listener }) }
    }

    /// The state now.
    pub(crate) fn get(&self) -> State {
        *self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the step if it is allowed, tells the listener, and answers whether it was made.
    pub(crate) fn advance(&self, next: State) -> bool {
        let old = {
            let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            if !state.may_become(next) {
                return false;
            }
            std::mem::replace(&mut *state, next)
        };
        self.shared.changed.notify_all();
        if let Some(listener) = &self.shared.listener {
            // It is the user's: a panic in it is printed by the process's hook and must not end the thread that told.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(next, old)));
        }
        true
    }

    /// Waits until `wanted` holds or the time is over; answers the state then.
    pub(crate) fn wait_for(&self, timeout: Option<Duration>, wanted: impl Fn(State) -> bool) -> State {
        let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !wanted(*state) {
            match deadline {
                None => state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        *state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn only_kafka_streams_steps_are_made_and_each_is_told_once() {
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let cell = StateCell::new(Some(Box::new(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
        })));
        assert!(!cell.advance(State::Running), "a created application does not run at once");
        assert!(cell.advance(State::Rebalancing));
        assert!(cell.advance(State::Running));
        assert!(!cell.advance(State::NotRunning), "closing comes first");
        assert!(cell.advance(State::PendingShutdown));
        assert!(cell.advance(State::NotRunning));
        assert!(!cell.advance(State::Rebalancing), "an ended application stays ended");
        assert_eq!(told.load(Ordering::Relaxed), 4);
        assert_eq!(cell.get().to_string(), "NOT_RUNNING");
    }

    #[test]
    fn waiting_ends_when_the_time_is_over() {
        let cell = StateCell::new(None);
        assert_eq!(cell.wait_for(Some(Duration::from_millis(5)), |s| s == State::Running), State::Created);
    }
}
