//! One output partition: its batch under construction and the sealed ones behind which it waits.
//!
//! Owns the order of delivery. Invariant: sealed batches leave in the order of their records; once one of them has to
//! be sent again none leaves until every answer on its way is in, and then all leave again from the first. A batch
//! that fails takes everything behind it along. Bound: the batches are the pool's; the queue is a list through them.
use super::identity::{Identity, sequence_after};
use super::pool::{BatchId, BatchPool, Stage};
use super::topics::OutTopic;
use crate::net::Backoff;

/// Names one output partition; sorts by topic, then partition, as a request lists them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PartitionId {
    pub(super) topic: OutTopic,
    pub(super) partition: u32,
}

/// Number of no broker.
pub(super) const NO_LEADER: i32 = -1;

/// How long brokers certainly remember a producer that writes nothing (`producer.id.expiration.ms` is a day).
const REMEMBERED_MS: i64 = 600_000;

/// What a partition could send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// A sealed batch.
    Sealed(BatchId),
    /// The batch under construction: everything before it flies.
    Open(BatchId),
    /// Nothing now.
    Wait,
}

/// State of one output partition.
#[derive(Debug)]
pub(super) struct Partition {
    /// Broker that leads it, or [`NO_LEADER`].
    pub(super) leader: i32,
    pub(super) leader_epoch: i32,
    /// The batch under construction.
    pub(super) open: Option<BatchId>,
    head: Option<BatchId>,
    tail: Option<BatchId>,
    /// Batches in unanswered requests, given-up ones included.
    flying: u32,
    /// The broker they were sent to. No other gets a batch before they are answered.
    via: i32,
    /// Whether a batch must be sent again: nothing leaves until nothing flies.
    rewind: bool,
    /// Not before this time is anything sent again.
    pub(super) retry_at_ms: i64,
    /// Pauses between attempts.
    pub(super) backoff: Backoff,
    /// The identity of the stamped batches; none before the first and after a failure.
    pub(super) identity: Option<Identity>,
    next_sequence: i32,
    /// Offset of the last acknowledged record under this identity, -1 for none.
    pub(super) acked_offset: i64,
    /// Whether anything was acknowledged under this identity, with or without an offset.
    pub(super) acked: bool,
    /// When that was the last time.
    acked_ms: i64,
    /// The transaction of which the coordinator knows this partition to be a part (version 1).
    pub(super) txn_serial: u32,
}

impl Partition {
    pub(super) fn new(leader: i32, leader_epoch: i32, backoff: Backoff) -> Self {
        Self {
            leader,
            leader_epoch,
            open: None,
            head: None,
            tail: None,
            flying: 0,
            via: NO_LEADER,
            rewind: false,
            retry_at_ms: i64::MIN,
            backoff,
            identity: None,
            next_sequence: 0,
            acked_offset: -1,
            acked: false,
            acked_ms: 0,
            txn_serial: 0,
        }
    }

    /// Whether a buffer of the pool belongs to it, given-up ones aside.
    pub(super) fn is_active(&self) -> bool {
        self.open.is_some() || self.head.is_some()
    }

    /// The first sealed batch.
    pub(super) fn head(&self) -> Option<BatchId> {
        self.head
    }

    /// The batch whose deadline passes first.
    pub(super) fn oldest(&self) -> Option<BatchId> {
        self.head.or(self.open)
    }

    /// Puts a sealed batch behind the others.
    pub(super) fn push(&mut self, pool: &mut BatchPool, id: BatchId) {
        let Some(batch) = pool.get_mut(id) else { return };
        batch.stage = Stage::Ready;
        batch.next = None;
        match self.tail.and_then(|tail| pool.get_mut(tail)) {
            Some(tail) => tail.next = Some(id),
            None => self.head = Some(id),
        }
        self.tail = Some(id);
    }

    /// Takes a decided batch out of the order.
    pub(super) fn remove(&mut self, pool: &mut BatchPool, id: BatchId) {
        let (mut before, mut at) = (None, self.head);
        while let Some(here) = at {
            let next = pool.get(here).and_then(|b| b.next);
            if here == id {
                match before.and_then(|b| pool.get_mut(b)) {
                    Some(before) => before.next = next,
                    None => self.head = next,
                }
                if self.tail == Some(id) {
                    self.tail = before;
                }
                return;
            }
            (before, at) = (at, next);
        }
    }

    /// Takes the first sealed batch, whatever its stage.
    pub(super) fn pop(&mut self, pool: &mut BatchPool) -> Option<BatchId> {
        let id = self.head?;
        self.remove(pool, id);
        Some(id)
    }

    /// Takes the sealed batches behind the last one that flies or may be written out of the order. Answers the first of
    /// them, which leads to the others. The next batch gets the sequence that it had.
    #[allow(dead_code)] // for tests and the plan
    pub(super) fn cut_unsent(&mut self, pool: &mut BatchPool) -> Option<BatchId> {
        let (mut kept, mut at) = (None, self.head);
        while let Some(batch) = at.and_then(|id| pool.get(id)) {
            if batch.stage == Stage::Flying || batch.unclear {
                kept = at;
            }
            at = batch.next;
        }
        let first = match kept.and_then(|id| pool.get_mut(id)) {
            Some(last) => last.next.take(),
            None => self.head.take(),
        };
        self.tail = kept;
        let stamp = first.and_then(|id| pool.get(id)).filter(|b| !b.outdated).and_then(|b| b.stamp);
        if let Some(stamp) = stamp {
            self.next_sequence = stamp.base_sequence;
        }
        first
    }

    /// Whether a batch may be sent to `node` now: it leads, and no other broker may still answer.
    pub(super) fn may_send(&self, node: i32, now_ms: i64) -> bool {
        let elsewhere = self.flying > 0 && self.via != node;
        self.leader == node && !elsewhere && !(self.rewind && self.flying > 0) && self.retry_at_ms <= now_ms
    }

    /// A batch was acknowledged: the broker knows this identity here.
    pub(super) fn acknowledged(&mut self, last_offset: i64, now_ms: i64) {
        self.backoff.succeeded();
        self.retry_at_ms = i64::MIN;
        self.acked = true;
        self.acked_ms = now_ms;
        self.acked_offset = self.acked_offset.max(last_offset);
    }

    /// The batch to send next, if [`Self::may_send`].
    pub(super) fn next_to_send(&self, pool: &BatchPool, now_ms: i64) -> Next {
        // A broker that has not heard of this producer, or has forgotten it, takes any sequence: were the first batch
        // refused and the second one taken, their order would be lost. So the first one travels alone.
        let known = self.acked && now_ms.saturating_sub(self.acked_ms) < REMEMBERED_MS;
        if self.flying > 0 && !known {
            return Next::Wait;
        }
        let mut at = self.head;
        while let Some(batch) = at.and_then(|id| pool.get(id)) {
            match (batch.stage, at) {
                // A batch that is sent again travels alone: brokers know a copy only among the last five batches. So do
                // the parts of a halved one, which share its buffer.
                _ if (batch.attempts > 0 || batch.is_halved()) && self.flying > 0 => return Next::Wait,
                (Stage::Ready, Some(id)) => return Next::Sealed(id),
                _ => at = batch.next,
            }
        }
        self.open.map_or(Next::Wait, Next::Open)
    }

    /// Takes over a newer identity once no batch is stamped with the old one, and answers the identity to stamp with.
    pub(super) fn adopt(&mut self, current: Identity) -> Identity {
        match self.identity {
            Some(own) if own == current || self.flying > 0 => own,
            _ => {
                self.identity = Some(current);
                self.next_sequence = 0;
                self.acked_offset = -1;
                self.acked = false;
                current
            }
        }
    }

    /// Whether the identity may change: nothing flies, so no batch with the old one is undecided.
    #[allow(dead_code)] // for tests and the plan
    pub(super) fn is_quiet(&self) -> bool {
        self.flying == 0
    }

    /// Takes sequence numbers for a batch of `count` records and answers the first.
    pub(super) fn take_sequence(&mut self, count: u32) -> i32 {
        let first = self.next_sequence;
        self.next_sequence = sequence_after(first, count);
        first
    }

    /// The next batch takes its sequence numbers from here: those behind it are numbered anew, too.
    pub(super) fn rewind_sequence(&mut self, sequence: i32) {
        self.next_sequence = sequence;
    }

    /// A batch has left for `node`.
    pub(super) fn sent(&mut self, node: i32) {
        self.flying += 1;
        self.via = node;
    }

    /// A request with one of its batches was answered or lost.
    pub(super) fn landed(&mut self) {
        self.flying = self.flying.saturating_sub(1);
        if self.flying == 0 {
            self.rewind = false;
        }
    }

    /// A batch that has landed must be sent again, after everything that flies has landed too.
    pub(super) fn again(&mut self) {
        self.rewind = self.flying > 0;
    }

    /// Forgets its identity: the next batch is stamped with a newer one from sequence 0.
    pub(super) fn forget(&mut self) {
        self.identity = None;
        self.rewind = false;
        self.retry_at_ms = i64::MIN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(pool: &mut BatchPool, count: usize) -> (Partition, Vec<BatchId>) {
        let mut partition = Partition::new(1, 0, Backoff::new(100, 1_000, 1));
        let ids: Vec<_> = (0..count).map(|_| pool.take().unwrap()).collect();
        ids.iter().for_each(|id| partition.push(pool, *id));
        (partition, ids)
    }

    fn send(partition: &mut Partition, pool: &mut BatchPool) -> BatchId {
        assert!(partition.may_send(1, 0));
        let Next::Sealed(id) = partition.next_to_send(pool, 0) else { panic!("nothing sealed") };
        pool.get_mut(id).unwrap().stage = Stage::Flying;
        partition.sent(1);
        id
    }

    #[test]
    fn batches_leave_in_order_and_again_from_the_first_once_nothing_flies() {
        let mut pool = BatchPool::new(128, 4, 0).unwrap();
        let (mut partition, ids) = sealed(&mut pool, 3);
        partition.acknowledged(-1, 0);
        assert_eq!([send(&mut partition, &mut pool), send(&mut partition, &mut pool)], [ids[0], ids[1]]);
        // The first has to be sent again.
        partition.landed();
        pool.get_mut(ids[0]).unwrap().stage = Stage::Ready;
        partition.again();
        assert!(!partition.may_send(1, 0), "the second one's answer is awaited");
        partition.landed();
        pool.get_mut(ids[1]).unwrap().stage = Stage::Ready;
        partition.again();
        for id in ids {
            assert_eq!(send(&mut partition, &mut pool), id);
        }
        assert_eq!(partition.next_to_send(&pool, 0), Next::Wait);
    }

    #[test]
    fn the_first_batch_for_a_broker_that_may_not_know_the_producer_travels_alone() {
        let mut pool = BatchPool::new(128, 4, 0).unwrap();
        let (mut partition, ids) = sealed(&mut pool, 3);
        assert_eq!(send(&mut partition, &mut pool), ids[0]);
        assert_eq!(partition.next_to_send(&pool, 0), Next::Wait);
        partition.acknowledged(5, 1_000);
        assert_eq!(partition.next_to_send(&pool, 600_999), Next::Sealed(ids[1]));
        assert_eq!(partition.next_to_send(&pool, 601_000), Next::Wait, "it may be forgotten");
        partition.adopt(Identity { id: 1, epoch: 1 });
        assert_eq!(partition.next_to_send(&pool, 1_000), Next::Wait, "a new identity is not known yet");
    }

    #[test]
    fn a_batch_leaves_the_order_from_any_place() {
        let mut pool = BatchPool::new(128, 4, 0).unwrap();
        for gone in 0..3 {
            let (mut partition, ids) = sealed(&mut pool, 3);
            partition.remove(&mut pool, ids[gone]);
            let fourth = pool.take().unwrap();
            partition.push(&mut pool, fourth);
            let mut left = Vec::new();
            while let Some(id) = partition.pop(&mut pool) {
                left.push(id);
            }
            let expected: Vec<_> = ids.iter().copied().filter(|id| *id != ids[gone]).chain([fourth]).collect();
            assert_eq!(left, expected);
            assert!(!partition.is_active());
            ids.into_iter().chain([fourth]).for_each(|id| pool.put_back(id));
        }
    }

    #[test]
    fn another_leader_gets_nothing_before_the_old_one_has_answered() {
        let mut pool = BatchPool::new(128, 2, 0).unwrap();
        let (mut partition, _) = sealed(&mut pool, 2);
        send(&mut partition, &mut pool);
        partition.leader = 2;
        assert!(!partition.may_send(1, 0) && !partition.may_send(2, 0));
        partition.landed();
        assert!(partition.may_send(2, 0));
        partition.retry_at_ms = 10;
        assert!(!partition.may_send(2, 9) && partition.may_send(2, 10));
    }

    #[test]
    fn a_newer_identity_is_taken_over_only_when_nothing_flies_and_starts_at_zero() {
        let (old, new) = (Identity { id: 5, epoch: 0 }, Identity { id: 5, epoch: 1 });
        let mut partition = Partition::new(1, 0, Backoff::new(100, 1_000, 1));
        assert_eq!(partition.adopt(old), old);
        assert_eq!((partition.take_sequence(10), partition.take_sequence(1)), (0, 10));
        partition.sent(1);
        assert_eq!(partition.adopt(new), old);
        assert_eq!(partition.take_sequence(1), 11);
        partition.landed();
        assert_eq!(partition.adopt(new), new);
        assert_eq!(partition.take_sequence(1), 0);
    }
}
