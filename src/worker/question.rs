//! A question to the brokers on behalf of tasks that start: asked again until it is answered or `task.timeout.ms` is
//! over.
//!
//! Owns the deadline and the pauses of one question. Invariant: while the control thread waits for the next attempt,
//! commits go on and the group is polled, so a long outage costs neither a commit nor the membership. Bound: requests
//! that must wait are those of the control thread's box. Used by `rebalance` and `control`.
use super::control::{BOX_FULL, Control, Running};
use super::failure::RunError;
use super::message::Request;
use crate::client::membership::MembershipEvent;
use crate::net::{Backoff, jitter_seed};
use std::fmt;
use std::time::Duration;

/// First and longest pause between two attempts, milliseconds.
const PAUSES_MS: (u32, u32) = (100, 5_000);
/// How long one attempt may take: asking to close is answered no later.
const ATTEMPT_MS: i64 = 5_000;
/// Longest wait for the sockets while a pause lasts, milliseconds.
const ROUND_MS: i64 = 100;

/// One question, with its patience.
#[derive(Debug)]
pub(super) struct Question {
    what: String,
    task_timeout_ms: i64,
    give_up: i64,
    pauses: Backoff,
}

impl Question {
    /// `what` is asked for, in words.
    pub(super) fn new(what: String, task_timeout_ms: i64, now: i64) -> Self {
        let pauses = Backoff::new(PAUSES_MS.0, PAUSES_MS.1, jitter_seed());
        Self { what, task_timeout_ms, give_up: now.saturating_add(task_timeout_ms), pauses }
    }

    /// How long the next attempt may take: at least a millisecond, since there is always one attempt.
    pub(super) fn attempt(&self, now: i64) -> Duration {
        let left = self.give_up.saturating_sub(now).clamp(1, ATTEMPT_MS);
        Duration::from_millis(left.unsigned_abs())
    }

    /// After a failed attempt: the moment of the next one and what is waited for, in words.
    ///
    /// # Errors
    /// [`RunError::TaskTimeout`] when the time is over.
    fn failed(&mut self, now: i64, reason: &dyn fmt::Display) -> Result<(i64, String), RunError> {
        let left = self.give_up.saturating_sub(now);
        if left <= 0 {
            let (what, task_timeout_ms) = (self.what.clone(), self.task_timeout_ms);
            return Err(RunError::TaskTimeout { what, task_timeout_ms, reason: reason.to_string() });
        }
        let waiting = format!("{}: {reason}; asked again for {} s", self.what, (left + 999) / 1_000);
        Ok((now + self.pauses.failed().min(left), waiting))
    }
}

impl Control {
    /// Begins a question.
    pub(super) fn question(&self, what: String) -> Question {
        Question::new(what, self.settings.task_timeout_ms, self.clock.mono_ms())
    }

    /// Waits before a question is asked again. False when it need not be: the application closes, or the group has
    /// something to say that comes first.
    pub(super) fn ask_again(
        &mut self,
        running: &mut Running,
        question: &mut Question,
        reason: &dyn fmt::Display,
    ) -> Result<bool, RunError> {
        let (until, waiting) = question.failed(self.clock.mono_ms(), reason)?;
        self.board.wait_for(Some(waiting));
        let mut aside = Vec::new();
        let again = loop {
            self.group_round(running);
            self.urgent_requests(running, &mut aside);
            if self.closing() || running.deferred.iter().any(is_call) {
                break false;
            }
            let left = until - self.clock.mono_ms();
            if left <= 0 {
                break true;
            }
            self.metadata_round(left.min(ROUND_MS))?;
        };
        for request in aside {
            self.requests.post(request).map_err(|_| RunError::internal(BOX_FULL))?;
        }
        Ok(again)
    }

    /// Commits go on; what the group says otherwise is kept for later, unless it only complains about the brokers.
    fn group_round(&mut self, running: &mut Running) {
        self.answer_commits(running);
        while let Some(event) = running.membership.poll(Duration::ZERO) {
            match event {
                MembershipEvent::Committed { ticket, outcome } => self.committed(running, ticket, outcome),
                MembershipEvent::Error(error) if !error.fatal => {}
                other => running.deferred.push_back(other),
            }
        }
    }

    /// Requests that a thread waits for; the others are put aside.
    fn urgent_requests(&mut self, running: &mut Running, aside: &mut Vec<Request>) {
        while let Some(request) = self.requests.take() {
            match request {
                Request::Commit { thread } => self.commit(running, thread),
                other => aside.push(other),
            }
        }
    }
}

/// Whether an event of the group ends what is being done for its last assignment.
fn is_call(event: &MembershipEvent) -> bool {
    !matches!(event, MembershipEvent::Error(error) if !error.fatal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_again_with_growing_pauses_until_its_time_is_over() {
        let mut question = Question::new("the committed offsets".to_owned(), 10_000, 1_000);
        assert_eq!(question.attempt(1_000), Duration::from_millis(5_000));
        let (next, waiting) = question.failed(1_500, &"no coordinator").unwrap();
        assert!((1_580..=1_620).contains(&next), "{next}");
        assert_eq!(waiting, "the committed offsets: no coordinator; asked again for 10 s");
        let (later, _) = question.failed(2_000, &"no coordinator").unwrap();
        assert!((2_160..=2_240).contains(&later), "{later}");
        assert_eq!(question.attempt(10_990), Duration::from_millis(10));
        assert_eq!(question.failed(10_990, &"no coordinator").unwrap().0, 11_000, "the last attempt is in time");
        assert_eq!(question.attempt(11_000), Duration::from_millis(1));
        let over = question.failed(11_000, &"no coordinator").unwrap_err();
        assert_eq!(
            over.to_string(),
            "the committed offsets: no answer within task.timeout.ms (10000 ms): no coordinator; check the brokers or \
             raise it"
        );
    }
}
