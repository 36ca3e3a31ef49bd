//! A database that stopped after an error in its background: tasks are closed uncommitted, it is opened again, and the
//! tasks restore from their changelogs what it has lost.
//!
//! Owns what the control thread knows of it. Invariant: the database is opened again only when no stream thread uses
//! it, and nothing that was committed is lost: the changelogs have it. Bound: [`PATIENT_STOPS`] stops within
//! [`MEMORY_MS`]; the next one ends the application. Used by `control`.
use super::control::{Control, Running, send};
use super::failure::RunError;
use super::message::Command;
use super::restore::RestoreCommand;
use super::state::State;

/// So long a stop is remembered.
const MEMORY_MS: i64 = 10 * 60 * 1_000;
/// So many stops within that time are recovered from: the first with what is on the disk, the next without.
const PATIENT_STOPS: usize = 2;

/// What is known of a database that has stopped.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// Why, if it has stopped and is not open again.
    reason: Option<String>,
    /// Threads that have let go of it.
    released: Vec<usize>,
    /// How opening it went.
    reopened: Option<Result<(), String>>,
    /// When it stopped, within [`MEMORY_MS`], oldest first; milliseconds of the monotonic clock.
    stops: Vec<i64>,
}

impl Recovery {
    /// Somebody has seen that it stopped; the first reason stays.
    pub(super) fn stopped(&mut self, reason: String) {
        self.reason.get_or_insert(reason);
    }

    /// A thread has closed its tasks.
    pub(super) fn released(&mut self, thread: usize) {
        self.released.push(thread);
    }

    /// The restore thread's answer.
    pub(super) fn reopened(&mut self, outcome: Result<(), String>) {
        self.reopened = Some(outcome);
    }

    /// Notes a stop. How to open the database: `Some(true)` without its rows, `None` not at all.
    fn next(&mut self, now: i64) -> Option<bool> {
        self.stops.retain(|stop| now - stop < MEMORY_MS);
        if self.stops.len() >= PATIENT_STOPS {
            return None;
        }
        self.stops.push(now);
        Some(self.stops.len() > 1)
    }
}

impl Control {
    /// Recovers, if the database has stopped.
    pub(super) fn recover_store(&mut self, running: &mut Running) -> Result<(), RunError> {
        let Some(reason) = self.recovery.reason.clone() else { return Ok(()) };
        let stopped = |reason| RunError::StoreStopped { reason };
        let Some(empty) = self.recovery.next(self.clock.mono_ms()) else { return Err(stopped(reason)) };
        self.board.state.advance(State::Rebalancing);
        self.board.wait_for(Some(format!("the state database stopped ({reason}); it is opened again and restored")));
        self.recovery.released.clear();
        for thread in 0..running.threads.len() {
            send(running, thread, Command::ReleaseStore)?;
        }
        let patience = self.settings.max_poll_interval_ms / 2;
        let all_released = |control: &Self, running: &Running| {
            let mut threads = running.threads.iter().enumerate();
            threads.all(|(index, thread)| thread.ended || control.recovery.released.contains(&index))
        };
        if !self.serve_until(running, patience, all_released)? {
            return Err(stopped(format!("{reason}, and a thread did not let go of it")));
        }
        let mut opened = self.reopen(running, empty, patience)?;
        if opened.is_err() && !empty {
            opened = self.reopen(running, true, patience)?;
        }
        self.recovery.reason = None;
        opened.map_err(|again| stopped(format!("{reason}, and could not be opened again: {again}")))?;
        self.start_all_again(running)
    }

    /// Has the restore thread open it, and waits for that.
    fn reopen(&mut self, running: &mut Running, empty: bool, patience: i64) -> Result<Result<(), String>, RunError> {
        self.recovery.reopened = None;
        let asked = running.restore.commands.post(RestoreCommand::Reopen { empty });
        asked.map_err(|_| RunError::internal("the restore thread's box is full"))?;
        self.serve_until(running, patience, |control, _| control.recovery.reopened.is_some())?;
        Ok(self.recovery.reopened.take().unwrap_or_else(|| Err("the restore thread did not answer".to_owned())))
    }

    /// Serves commits and requests until `done`; false when the time is over before.
    fn serve_until(
        &mut self,
        running: &mut Running,
        patience: i64,
        done: impl Fn(&Self, &Running) -> bool,
    ) -> Result<bool, RunError> {
        let give_up = self.clock.mono_ms() + patience;
        while !done(self, running) {
            if self.clock.mono_ms() > give_up {
                return Ok(false);
            }
            self.inner_round(running)?;
        }
        Ok(true)
    }

    /// Every task of the assignment begins again. Between two assignments nothing starts: the next one finds that the
    /// tasks are missing.
    fn start_all_again(&mut self, running: &mut Running) -> Result<(), RunError> {
        if self.epoch.is_none() {
            return Ok(());
        }
        for thread in 0..running.threads.len() {
            let tasks = running.threads.get(thread).map(|handle| handle.tasks.clone()).unwrap_or_default();
            // Another assignment follows, or the end.
            let Some(starts) = self.task_starts(running, &tasks)? else { return Ok(()) };
            if let Some(handle) = running.threads.get_mut(thread) {
                handle.running = tasks.is_empty();
            }
            for start in starts {
                send(running, thread, Command::Restart(start))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stop_keeps_the_rows_the_second_does_not_and_the_third_is_the_end_unless_they_are_long_ago() {
        let mut recovery = Recovery::default();
        assert_eq!(recovery.next(1_000), Some(false));
        assert_eq!(recovery.next(300_000), Some(true));
        assert_eq!(recovery.next(600_999), None);
        assert_eq!(recovery.next(601_000), Some(true), "the first is ten minutes ago");
        assert_eq!(recovery.next(1_300_000), Some(false), "all are");
    }

    #[test]
    fn the_first_reason_stays() {
        let mut recovery = Recovery::default();
        recovery.stopped("no space".to_owned());
        recovery.stopped("it stopped".to_owned());
        assert_eq!(recovery.reason.as_deref(), Some("no space"));
    }
}
