//! Where a fetcher stands, in words: for whoever has to find out why nothing moves.
//!
//! Called by the proofs, when nothing was read for long.
use super::Fetcher;
use std::fmt::Write as _;

impl Fetcher {
    /// Connections and partitions, a line each; times are relative to `now_ms`.
    pub(crate) fn describe(&self, now_ms: i64) -> String {
        let left = |ms: i64| ms.saturating_sub(now_ms).clamp(-99_999, 999_999);
        let mut text = format!(
            "{} frames free, {} entries, wakes in {} ms",
            self.pool.free(),
            self.inbox.queue.len(),
            left(self.wake_at)
        );
        for broker in &self.brokers {
            let _ = write!(
                text,
                "\n  broker {}: {:?} for {} ms, {} partitions, {} asked, blocked {}, \
                 retried in {} ms, throttled {} ms, {:?}",
                broker.id,
                broker.phase,
                left(broker.deadline),
                broker.slots.len(),
                broker.asked.len(),
                broker.blocked,
                left(broker.retry_at),
                left(broker.throttled_until),
                broker.last_fault,
            );
        }
        for slot in (0..self.slots.places()).filter_map(|at| self.slots.at(at)) {
            let _ = write!(
                text,
                "\n  {}-{}: leader {} epoch {}, replica {}, at {} of {}, retried in {} ms, demand {}, stopped {}",
                self.slots.topic(slot.topic),
                slot.partition,
                slot.leader,
                slot.leader_epoch,
                slot.replica,
                slot.fetch_offset,
                slot.high_watermark,
                left(slot.retry_at),
                slot.demand,
                slot.stopped,
            );
        }
        text
    }
}
