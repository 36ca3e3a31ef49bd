//! The transactions of a [`Writer`].
//!
//! Invariant and bound as the writer's: a call returns when the transaction is where it was asked to be, or with the
//! reason why it never will be.
use super::writer::TURN_MS;
use super::{Outcome, Writer, text};
use crate::produce::{GroupMember, TxnOffset, TxnState};
use std::time::Instant;

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it is in the log for readers of committed records.
    Committed,
    /// None of it is.
    Aborted,
}

impl Writer {
    /// Opens a transaction; waits until the one before is over.
    ///
    /// # Errors
    /// The producer is at its end.
    pub fn begin(&mut self) -> Outcome<()> {
        match self.settle()? {
            TxnState::Ready => self.producer.begin().map_err(text),
            other => Err(format!("no transaction can begin: {other:?}")),
        }
    }

    /// Commits an offset of a group without members with the transaction.
    ///
    /// # Errors
    /// The transaction has failed: abort it. Or the group's name is too long.
    pub fn send_offset(&mut self, group: &str, topic: &str, partition: i32, offset: i64) -> Outcome<()> {
        let who = GroupMember { group, generation: -1, member: "", instance: None };
        let offset = TxnOffset { topic, partition, offset, leader_epoch: -1, metadata: "" };
        self.producer.send_offsets(&who, [offset].into_iter()).map_err(text)
    }

    /// Whether the transaction can only be aborted.
    pub fn must_abort(&self) -> bool {
        matches!(self.producer.txn_state(), Some(TxnState::Failed(_)))
    }

    /// Commits the transaction, or aborts it when some of it cannot be written; the answer says which.
    ///
    /// # Errors
    /// The producer is at its end.
    pub fn commit(&mut self) -> Outcome<End> {
        if let Some(TxnState::Open) = self.producer.txn_state() {
            self.producer.commit().map_err(text)?;
        }
        match self.settle()? {
            TxnState::Ready => Ok(End::Committed),
            TxnState::Failed(_) => self.abort().map(|()| End::Aborted),
            other => Err(format!("not committed: {other:?}")),
        }
    }

    /// Aborts the transaction.
    ///
    /// # Errors
    /// The producer is at its end.
    pub fn abort(&mut self) -> Outcome<()> {
        self.producer.abort().map_err(text)?;
        match self.settle()? {
            TxnState::Ready => {
                // What was dropped is told to the slot.
                self.producer.reset(self.slot);
                Ok(())
            }
            other => Err(format!("not aborted: {other:?}")),
        }
    }

    /// Turns until the coordinator is not waited for.
    fn settle(&mut self) -> Outcome<TxnState> {
        let end = Instant::now() + self.patience;
        loop {
            match self.producer.txn_state() {
                None => return Err("a writer without transactions".to_owned()),
                Some(TxnState::Starting | TxnState::Committing | TxnState::Aborting) => self.turn(TURN_MS)?,
                Some(state) => return Ok(state),
            }
            if Instant::now() > end {
                return Err(format!("stuck: {}", self.describe()));
            }
        }
    }
}
