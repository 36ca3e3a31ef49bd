//! Transactions against scripted brokers: what is asked in which order, what an abort drops, lost answers.
use super::coordinator::{ADD_OFFSETS, ADD_PARTITIONS, COMMIT_OFFSETS, END, FIND, Fault, INIT};
use super::fake::{Act, FakeCluster};
use super::{Bench, numbers, settings, text};
use crate::produce::{AppendError, Cause, GroupMember, Producer, TxnError, TxnOffset, TxnSettings, TxnState};
use crate::wire::ErrorCode;

pub(super) const WHO: GroupMember<'static> =
    GroupMember { group: "readers", generation: 7, member: "member-1", instance: Some("instance-1") };

pub(super) fn offset(partition: i32, offset: i64) -> TxnOffset<'static> {
    TxnOffset { topic: "in", partition, offset, leader_epoch: 3, metadata: "note" }
}

impl Bench {
    /// A transactional producer that has not started.
    pub(super) fn transactional(cluster: &FakeCluster, id: &str) -> Self {
        Self::of(Producer::transactional(settings(256, 8), TxnSettings::new(id), cluster.metadata.clone(), 0).unwrap())
    }

    pub(super) fn state(&self) -> TxnState {
        self.producer.txn_state().unwrap()
    }

    /// Turns until there is no transaction, or none can be.
    pub(super) fn settle(&mut self) -> TxnState {
        self.until(|p| {
            let waits = [TxnState::Starting, TxnState::Committing, TxnState::Aborting];
            !waits.contains(&p.txn_state().unwrap())
        });
        self.state()
    }

    /// Turns until a transaction can be begun, and begins it.
    pub(super) fn begin(&mut self) {
        assert_eq!(self.settle(), TxnState::Ready);
        self.producer.begin().unwrap();
    }

    pub(super) fn commit(&mut self) -> TxnState {
        self.producer.commit().unwrap();
        self.settle()
    }

    pub(super) fn abort(&mut self) -> TxnState {
        self.producer.abort().unwrap();
        self.settle()
    }
}

/// A cluster whose brokers speak version 1 or 2 of transactions.
pub(super) fn cluster(version: i16) -> FakeCluster {
    let cluster = FakeCluster::start(2, &[("a", &[1, 2]), ("b", &[2])]);
    let mut state = cluster.state();
    state.transactions.level = version;
    state.versions.1 = 12;
    drop(state);
    cluster
}

#[test]
fn a_transaction_of_records_and_offsets_asks_in_the_order_of_its_protocol() {
    for version in [1, 2] {
        let cluster = cluster(version);
        let mut bench = Bench::transactional(&cluster, "tx");
        let (a, b) = (bench.producer.topic("a"), bench.producer.topic("b"));
        let slot = bench.producer.ack_slot();
        for round in 0..3 {
            bench.begin();
            for n in round * 100..round * 100 + 100 {
                bench.append(a, 0, &n.to_string(), slot);
                bench.append(a, 1, &n.to_string(), slot);
                bench.append(b, 0, &n.to_string(), slot);
            }
            let offsets = [offset(0, round as i64), offset(1, round as i64)];
            bench.producer.send_offsets(&WHO, offsets.into_iter()).unwrap();
            assert_eq!(bench.commit(), TxnState::Ready);
            let state = cluster.state();
            assert_eq!(state.transactions.ended.len(), round + 1);
            assert!(state.transactions.ended.iter().all(|commit| *commit) && !state.transactions.open);
            assert_eq!(state.transactions.epoch, if version == 2 { round as i16 + 1 } else { 0 });
        }
        for (topic, partition) in [("a", 0), ("a", 1), ("b", 0)] {
            cluster.holds(topic, partition, &numbers(0..300));
        }
        assert_eq!(bench.producer.ack(slot).error, None);
        let state = cluster.state();
        let committed: Vec<_> = state.transactions.offsets.iter().map(|o| (o.5, o.6)).collect();
        assert_eq!(committed, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
        let text = |text: &str| text.to_owned();
        let first = (text("readers"), 7, text("member-1"), Some(text("instance-1")), text("in"), 0, 0, 3, text("note"));
        assert_eq!(state.transactions.offsets[0], first);
        let asked = &state.transactions.asked;
        let count = |api| asked.iter().filter(|a| **a == api).count();
        assert_eq!(asked[..2], [FIND, INIT]);
        assert_eq!((count(FIND), count(INIT), count(END), count(COMMIT_OFFSETS)), (2, 1, 3, 3));
        match version {
            1 => assert!((3..=9).contains(&count(ADD_PARTITIONS)) && count(ADD_OFFSETS) == 3),
            _ => assert_eq!((count(ADD_PARTITIONS), count(ADD_OFFSETS)), (0, 0)),
        }
        // Sequences go on in version 1, and start anew with each epoch in version 2.
        let seen: Vec<_> = state.seen.iter().filter(|s| (&*s.topic, s.partition) == ("b", 0)).collect();
        let mut next = (0, 0);
        for batch in seen {
            if batch.epoch != next.0 {
                next = (batch.epoch, 0);
            }
            assert_eq!((batch.epoch, batch.sequence), next);
            next.1 += batch.count as i32;
        }
        assert_eq!(next, if version == 2 { (2, 100) } else { (0, 300) });
    }
}

#[test]
fn a_transaction_without_anything_in_it_asks_nothing() {
    for version in [1, 2] {
        let cluster = cluster(version);
        let mut bench = Bench::transactional(&cluster, "tx");
        bench.begin();
        assert_eq!(bench.commit(), TxnState::Ready);
        bench.begin();
        assert_eq!(bench.abort(), TxnState::Ready);
        assert_eq!(cluster.state().transactions.asked, [FIND, INIT]);
    }
}

#[test]
fn calls_that_do_not_fit_the_state_change_nothing() {
    let cluster = cluster(2);
    let mut bench = Bench::transactional(&cluster, "tx");
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    let misplaced = |call, state| Err(TxnError::Misplaced { call, state });
    assert_eq!(bench.producer.begin(), misplaced("begin", "starting"));
    let none = "without an open transaction";
    assert_eq!(bench.settle(), TxnState::Ready);
    assert_eq!(bench.producer.commit(), misplaced("commit", none));
    assert_eq!(bench.producer.abort(), misplaced("abort", none));
    let refused = bench.producer.append(topic, 0, &text("x"), slot);
    assert_eq!(
        refused,
        Err(AppendError::Transaction(TxnError::Misplaced { call: "append", state: "without an open transaction" }))
    );
    bench.producer.begin().unwrap();
    assert_eq!(bench.producer.begin(), misplaced("begin", "in a transaction"));
    bench.append(topic, 0, "x", slot);
    bench.producer.commit().unwrap();
    // Also the batch under construction takes nothing more.
    let refused = bench.producer.append(topic, 0, &text("y"), slot);
    assert!(matches!(refused, Err(AppendError::Transaction(TxnError::Misplaced { state: "committing", .. }))));
    assert_eq!(bench.producer.abort(), misplaced("abort", "committing"));
    assert_eq!(bench.settle(), TxnState::Ready);
    cluster.holds("a", 0, &["x".to_owned()]);
    let mut plain = Bench::new(settings(256, 8), &cluster.metadata);
    assert_eq!(plain.producer.begin(), misplaced("begin", "without a transactional.id"));
    let long = TxnSettings::new(&"x".repeat(513));
    let refused = Producer::transactional(settings(256, 8), long, cluster.metadata.clone(), 0).unwrap_err();
    assert_eq!(refused.to_string(), "a transactional.id of 513 bytes is too long; at most 512 are sent");
}

#[test]
fn a_commit_waits_for_every_batch_and_is_never_sent_over_a_failed_one() {
    for version in [1, 2] {
        let cluster = cluster(version);
        cluster.script(|seen| if seen.topic == "b" { Act::Error(87) } else { Act::Normal });
        let mut bench = Bench::transactional(&cluster, "tx");
        let (a, b) = (bench.producer.topic("a"), bench.producer.topic("b"));
        let slot = bench.producer.ack_slot();
        bench.begin();
        for n in 0..50 {
            bench.append(a, 0, &n.to_string(), slot);
        }
        bench.append(b, 0, "refused", slot);
        bench.producer.send_offsets(&WHO, [offset(0, 5)].into_iter()).unwrap();
        let TxnState::Failed(TxnError::Delivery(error)) = bench.commit() else { panic!("{:?}", bench.state()) };
        assert_eq!(error.cause, Cause::Refused { code: ErrorCode::InvalidRecord });
        assert_eq!(bench.producer.commit(), Err(TxnError::Delivery(error)));
        assert!(cluster.state().transactions.ended.is_empty());
        assert_eq!(bench.abort(), TxnState::Ready);
        assert_eq!(cluster.state().transactions.ended, [false]);
        assert!(cluster.state().transactions.offsets.is_empty());
        // And on it goes, in a new epoch.
        cluster.script(|_| Act::Normal);
        bench.producer.reset(slot);
        bench.begin();
        bench.append(b, 0, "taken", slot);
        assert_eq!(bench.commit(), TxnState::Ready);
        assert_eq!(cluster.values("b", 0), ["taken"]);
        assert_eq!(cluster.state().transactions.epoch, if version == 2 { 2 } else { 1 });
    }
}

#[test]
fn an_abort_drops_what_has_not_left_and_waits_for_what_has() {
    for version in [1, 2] {
        let cluster = cluster(version);
        let mut bench = Bench::transactional(&cluster, "tx");
        let a = bench.producer.topic("a");
        let (first, second) = (bench.producer.ack_slot(), bench.producer.ack_slot());
        bench.begin();
        bench.append(a, 0, "first", first);
        bench.until(|p| p.is_flushed());
        cluster.state().paused = true;
        bench.append(a, 0, "flies", first);
        (0..20).for_each(|_| bench.turn(5));
        bench.append(a, 1, "never leaves", second);
        bench.producer.abort().unwrap();
        (0..10).for_each(|_| bench.turn(5));
        assert_eq!(bench.state(), TxnState::Aborting, "a batch flies");
        let dropped = bench.producer.ack(second);
        assert_eq!((dropped.outstanding, dropped.error.unwrap().cause), (0, Cause::Aborted));
        cluster.state().paused = false;
        assert_eq!(bench.settle(), TxnState::Ready);
        assert_eq!((cluster.values("a", 0).len(), cluster.values("a", 1).len()), (2, 0));
        assert_eq!(cluster.state().transactions.ended, [false]);
        bench.producer.reset(second);
        bench.begin();
        bench.append(a, 0, "third", first);
        bench.append(a, 1, "now", second);
        assert_eq!(bench.commit(), TxnState::Ready);
        assert_eq!((bench.producer.ack(first).error, bench.producer.ack(second).error), (None, None));
        assert_eq!(cluster.values("a", 0), ["first", "flies", "third"]);
        assert_eq!(cluster.values("a", 1), ["now"]);
    }
}

/// Whatever answer is lost, the transaction takes effect once.
#[test]
fn a_lost_answer_at_any_step_changes_nothing() {
    for version in [1, 2] {
        for api in [FIND, INIT, ADD_PARTITIONS, ADD_OFFSETS, COMMIT_OFFSETS, END] {
            for fault in [Fault::HangUp, Fault::DoThenHangUp] {
                let cluster = cluster(version);
                cluster.state().transactions.fault(api, fault);
                let mut bench = Bench::transactional(&cluster, "tx");
                let a = bench.producer.topic("a");
                let slot = bench.producer.ack_slot();
                for round in 0..2 {
                    bench.begin();
                    for n in 0..10 {
                        bench.append(a, n % 2, &(round * 10 + n).to_string(), slot);
                    }
                    bench.producer.send_offsets(&WHO, [offset(0, round.into())].into_iter()).unwrap();
                    assert_eq!(bench.commit(), TxnState::Ready, "{version} {api} {fault:?}");
                }
                let state = cluster.state();
                assert_eq!(state.transactions.ended, [true, true], "{version} {api} {fault:?}");
                assert_eq!(state.transactions.offsets.len(), 2);
                drop(state);
                assert_eq!(cluster.values("a", 0).len() + cluster.values("a", 1).len(), 20);
            }
        }
    }
}

#[test]
fn an_abort_after_a_lost_answer_ends_what_may_have_begun() {
    for fault in [Fault::HangUp, Fault::DoThenHangUp] {
        let cluster = cluster(1);
        let mut bench = Bench::transactional(&cluster, "tx");
        let a = bench.producer.topic("a");
        let slot = bench.producer.ack_slot();
        bench.begin();
        cluster.state().transactions.fault(ADD_PARTITIONS, fault);
        bench.append(a, 0, "x", slot);
        while !cluster.state().transactions.faults[&ADD_PARTITIONS].is_empty() {
            bench.turn(5);
        }
        assert_eq!(bench.abort(), TxnState::Ready);
        assert!(!cluster.state().transactions.open, "{fault:?}");
        bench.producer.reset(slot);
        bench.begin();
        bench.append(a, 0, "y", slot);
        assert_eq!(bench.commit(), TxnState::Ready);
        assert_eq!(cluster.values("a", 0), ["y"]);
    }
}

#[test]
fn a_coordinator_that_moves_is_found_again() {
    for version in [1, 2] {
        let cluster = cluster(version);
        let mut bench = Bench::transactional(&cluster, "tx");
        let a = bench.producer.topic("a");
        let slot = bench.producer.ack_slot();
        for round in 0..4 {
            bench.begin();
            bench.append(a, 0, &round.to_string(), slot);
            bench.producer.send_offsets(&WHO, [offset(0, round.into())].into_iter()).unwrap();
            cluster.state().transactions.node = 1 + (round + 1) % 2;
            assert_eq!(bench.commit(), TxnState::Ready);
        }
        cluster.holds("a", 0, &numbers(0..4));
        assert_eq!(cluster.state().transactions.ended, [true; 4]);
    }
}

#[test]
fn a_second_producer_fences_the_first_which_says_so() {
    for version in [1, 2] {
        let cluster = cluster(version);
        let mut old = Bench::transactional(&cluster, "tx");
        let a = old.producer.topic("a");
        let slot = old.producer.ack_slot();
        old.begin();
        old.append(a, 0, "old", slot);
        old.until(|p| p.is_flushed());
        let mut new = Bench::transactional(&cluster, "tx");
        assert_eq!(new.settle(), TxnState::Ready);
        assert_eq!(cluster.state().transactions.ended, [false], "what was open is aborted");
        let TxnState::Fatal(error) = old.commit() else { panic!("{:?}", old.state()) };
        assert_eq!(
            error.to_string(),
            "producer 9000 was fenced at epoch 0: another producer with the same transactional.id took over"
        );
        assert_eq!(old.producer.begin(), Err(error));
        let refused = old.producer.append(a, 0, &text("more"), slot);
        assert_eq!(refused, Err(AppendError::Transaction(error)));
        new.producer.begin().unwrap();
        let a = new.producer.topic("a");
        let slot = new.producer.ack_slot();
        new.append(a, 0, "new", slot);
        assert_eq!(new.commit(), TxnState::Ready);
    }
}

#[test]
fn an_expired_batch_fails_the_transaction_and_the_epoch_is_renewed() {
    for version in [1, 2] {
        let cluster = cluster(version);
        let wanted = crate::produce::ProducerSettings { delivery_timeout_ms: 150, ..settings(256, 8) };
        let txn = TxnSettings::new("tx");
        let mut bench = Bench::of(Producer::transactional(wanted, txn, cluster.metadata.clone(), 0).unwrap());
        let a = bench.producer.topic("a");
        let slot = bench.producer.ack_slot();
        bench.begin();
        cluster.script(|_| Act::Error(19));
        bench.append(a, 0, "late", slot);
        let TxnState::Failed(TxnError::Delivery(error)) = bench.commit() else { panic!("{:?}", bench.state()) };
        assert!(matches!(error.cause, Cause::TimedOut { timeout_ms: 150, .. }));
        cluster.script(|_| Act::Normal);
        let before = cluster.state().transactions.epoch;
        assert_eq!(bench.abort(), TxnState::Ready);
        assert_eq!(cluster.state().transactions.epoch, before + 1);
        assert_eq!(bench.producer.epoch(), Some(before + 1));
        bench.producer.reset(slot);
        bench.begin();
        bench.append(a, 0, "again", slot);
        assert_eq!(bench.commit(), TxnState::Ready);
        assert_eq!(cluster.values("a", 0), ["again"]);
    }
}

#[test]
fn brokers_without_the_versions_of_transactions_are_refused() {
    let cluster = cluster(1);
    cluster.state().versions = (2, 8);
    let mut bench = Bench::transactional(&cluster, "tx");
    // Version 2 of ApiVersions tells no features: version 1 of transactions, which is enough.
    bench.begin();
    let a = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(a, 0, "x", slot);
    assert_eq!(bench.commit(), TxnState::Ready);
    assert_eq!(cluster.values("a", 0), ["x"]);
}

/// From the begin to the commit: no allocation on this thread, once everything has been used once.
#[test]
fn nothing_is_allocated_by_a_transaction_in_steady_state() {
    use plimsoll_alloc::testing::allocations;
    assert!(plimsoll_alloc::is_installed(), "the gate counts nothing without the allocator");
    for version in [1, 2] {
        let cluster = cluster(version);
        cluster.state().keep = false;
        let mut bench = Bench::transactional(&cluster, "tx");
        let a = bench.producer.topic("a");
        let slot = bench.producer.ack_slot();
        assert_eq!(bench.settle(), TxnState::Ready);
        let mut run = |transactions: i64| {
            for n in 0..transactions {
                bench.producer.begin().unwrap();
                for record in 0..200 {
                    bench.append(a, record % 2, "value", slot);
                }
                bench.producer.send_offsets(&WHO, (0..8).map(|p| offset(p, n))).unwrap();
                assert_eq!(bench.commit(), TxnState::Ready);
            }
        };
        run(20);
        let ((), seen) = allocations(|| run(200));
        assert_eq!((seen.calls(), seen.bytes), (0, 0), "version {version}: {seen:?}");
        assert_eq!(cluster.state().transactions.ended.len(), 220);
    }
}
