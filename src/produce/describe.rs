//! Where a producer stands, in words: for whoever has to find out why nothing moves.
//!
//! Called by the proofs, when nothing was acknowledged for long.
use super::producer::Producer;
use std::fmt::Write as _;

impl Producer {
    /// Connections and partitions with batches, a line each; times are relative to the last turn.
    pub(crate) fn describe(&self) -> String {
        let past = |ms: i64| self.now_ms.saturating_sub(ms);
        let mut text =
            format!("{:?}, {:?}, {} of {} buffers", self.stats, self.standing, self.pool.used(), self.pool.len());
        if let Some(state) = self.txn_state() {
            let _ = write!(text, ", {state:?}");
        }
        for broker in &self.brokers {
            let _ = write!(
                text,
                "\n  broker {}: {:?}, wanted {}, {} requests, the oldest for {:?} ms, retried in {} ms, quiet {} ms",
                broker.node,
                broker.phase,
                broker.wanted,
                broker.flying,
                broker.oldest_ms().map(past),
                -past(broker.retry_at_ms).max(-99_999),
                -past(broker.quiet_until_ms).max(-99_999),
            );
        }
        for at in &self.active {
            let Some(partition) = self.partition(*at) else { continue };
            let head = partition.head().and_then(|id| self.pool.get(id));
            let head = head.map(|batch| (batch.stage, batch.attempts, batch.last, past(batch.opened_ms)));
            let _ = write!(
                text,
                "\n  {}-{}: leader {} epoch {}, quiet {}, retried in {} ms, head {head:?}",
                self.topic_name(at.topic),
                at.partition,
                partition.leader,
                partition.leader_epoch,
                partition.is_quiet(),
                -past(partition.retry_at_ms).max(-99_999),
            );
        }
        text
    }
}
