//! Lost connections, moved leaders, silence: order and exactly one copy over all of them.
use super::fake::{Act, FakeCluster};
use super::{Bench, numbers, settings};
use crate::produce::{AppendError, Cause};
use crate::wire::ErrorCode;

#[test]
fn a_connection_lost_with_unread_answers_sends_the_same_sequences_again() {
    let cluster = FakeCluster::start(1, &[("a", &[1, 1])]);
    let mut count = 0;
    cluster.script(move |_| {
        count += 1;
        match count % 7 {
            3 => Act::WriteThenHangUp,
            6 => Act::HangUp,
            _ => Act::Normal,
        }
    });
    let mut bench = Bench::new(settings(256, 12), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    for n in 0..1_500 {
        for partition in 0..2 {
            bench.append(topic, partition, &n.to_string(), slot);
        }
    }
    bench.flush();
    for partition in 0..2 {
        cluster.holds("a", partition, &numbers(0..1_500));
    }
    let ack = bench.producer.ack(slot);
    assert_eq!((ack.highest, ack.outstanding, ack.error), (1_499, 0, None));
    let state = cluster.state();
    assert!(state.connections > 20, "{} connections", state.connections);
    assert!(state.seen.iter().all(|s| s.epoch == 0), "the epoch was never raised");
    assert_eq!(state.identities, 1);
}

#[test]
fn a_moved_leader_gets_everything_in_order_with_and_without_a_hint() {
    for hints in [true, false] {
        let mut cluster = FakeCluster::start(3, &[("a", &[1, 2])]);
        cluster.state().hints = hints;
        if !hints {
            cluster.publish_on();
        }
        let mut bench = Bench::new(settings(256, 8), &cluster.metadata);
        let topic = bench.producer.topic("a");
        let slot = bench.producer.ack_slot();
        for n in 0..900 {
            if n % 150 == 75 {
                cluster.move_leader("a", 0, 1 + (n / 150 + 1) % 3);
            }
            for partition in 0..2 {
                bench.append(topic, partition, &n.to_string(), slot);
            }
        }
        bench.flush();
        for partition in 0..2 {
            cluster.holds("a", partition, &numbers(0..900));
        }
        assert_eq!(bench.producer.ack(slot).error, None);
        let state = cluster.state();
        let nodes: Vec<i32> = state.seen.iter().filter(|s| s.partition == 0).map(|s| s.node).collect();
        assert!([1, 2, 3].iter().all(|n| nodes.contains(n)), "{nodes:?}");
        assert!(state.seen.iter().all(|s| s.epoch == 0));
    }
}

#[test]
fn a_batch_that_must_be_sent_again_holds_up_those_behind_it() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    let (mut refused, mut refusing) = (0, 0);
    cluster.script(move |seen| match seen.sequence {
        // One batch is refused four times, each time in another way; the ones behind it get what Kafka tells them.
        30.. if refused < 4 => {
            if refused == 0 {
                refusing = seen.sequence;
            } else if seen.sequence != refusing {
                return Act::Normal;
            }
            refused += 1;
            [Act::Error(19), Act::WriteThenError(7), Act::WriteThenError(20), Act::Error(2)][refused - 1]
        }
        _ => Act::Normal,
    });
    let mut bench = Bench::new(settings(256, 8), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    for n in 0..300 {
        bench.append(topic, 0, &n.to_string(), slot);
    }
    bench.flush();
    cluster.holds("a", 0, &numbers(0..300));
    assert_eq!(bench.producer.ack(slot).highest, 299);
    let stats = bench.producer.stats();
    assert!(stats.retried > 4, "those behind it were refused, too: {stats:?}");
    assert_eq!(bench.producer.ack(slot).error, None);
}

#[test]
fn a_silent_broker_is_given_up_after_the_request_time_out() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    let mut silent = false;
    cluster.script(move |_| match std::mem::replace(&mut silent, true) {
        false => Act::Silence,
        true => Act::Normal,
    });
    let mut wanted = settings(256, 4);
    wanted.request_timeout_ms = 100;
    let mut bench = Bench::new(wanted, &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    for n in 0..100 {
        bench.append(topic, 0, &n.to_string(), slot);
    }
    bench.flush();
    assert!(bench.now_ms() >= 100);
    cluster.holds("a", 0, &numbers(0..100));
    assert_eq!(bench.producer.ack(slot).error, None);
}

#[test]
fn a_delivery_time_out_poisons_the_slot_and_nothing_behind_it_is_written() {
    let cluster = FakeCluster::start(2, &[("a", &[1, 2])]);
    cluster.script(|seen| if seen.partition == 0 { Act::Error(19) } else { Act::Normal });
    let mut wanted = settings(256, 8);
    wanted.delivery_timeout_ms = 300;
    let mut bench = Bench::new(wanted, &cluster.metadata);
    let topic = bench.producer.topic("a");
    let (bad, good) = (bench.producer.ack_slot(), bench.producer.ack_slot());
    for n in 0..20 {
        bench.append(topic, 0, &n.to_string(), bad);
        bench.append(topic, 1, &n.to_string(), good);
    }
    bench.flush();
    assert!(bench.now_ms() >= 300);
    let error = bench.producer.ack(bad).error.unwrap();
    let last = ErrorCode::NotEnoughReplicas;
    assert_eq!((error.partition, error.cause), (0, Cause::TimedOut { timeout_ms: 300, last }));
    assert_eq!(bench.producer.ack(bad).outstanding, 0);
    assert_eq!((bench.producer.ack(good).highest, bench.producer.ack(good).error), (19, None));
    // Nothing is skipped: the slot takes no further record before it is reset.
    cluster.script(|_| Act::Normal);
    assert_eq!(bench.try_append(topic, 0, "lost?", bad), Err(AppendError::Failed(error)));
    assert_eq!(bench.try_append(topic, 1, "lost?", bad), Err(AppendError::Failed(error)));
    bench.flush();
    assert!(cluster.values("a", 0).is_empty());
    // The task begins again: a new epoch, from sequence 0.
    bench.producer.reset(bad);
    for n in 0..20 {
        bench.append(topic, 0, &n.to_string(), bad);
    }
    bench.flush();
    cluster.holds("a", 0, &numbers(0..20));
    assert_eq!((bench.producer.ack(bad).highest, bench.producer.ack(bad).error), (19, None));
    let state = cluster.state();
    let first = state.seen.iter().find(|s| s.partition == 0 && s.epoch == 1).unwrap();
    assert_eq!(first.sequence, 0);
}

#[test]
fn a_late_answer_after_the_time_out_frees_the_buffer_and_nothing_else() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    let mut wanted = settings(256, 2);
    wanted.delivery_timeout_ms = 150;
    let mut bench = Bench::new(wanted, &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(topic, 0, "0", slot);
    bench.flush();
    cluster.state().paused = true;
    bench.append(topic, 0, "late", slot);
    bench.flush();
    let ack = bench.producer.ack(slot);
    assert!(matches!(ack.error.unwrap().cause, Cause::TimedOut { timeout_ms: 150, last: ErrorCode::None }));
    bench.producer.reset(slot);
    cluster.state().paused = false;
    for n in 1..100 {
        bench.append(topic, 0, &n.to_string(), slot);
    }
    bench.flush();
    // The broker wrote what we gave up: at least once, and the order of the new epoch is whole.
    let values = cluster.values("a", 0);
    assert_eq!(values[..2], ["0", "late"]);
    assert_eq!(values[2..], numbers(1..100));
    assert_eq!((bench.producer.ack(slot).highest, bench.producer.ack(slot).error), (100, None));
}

#[test]
fn a_broker_that_is_down_holds_back_its_partitions_only_and_is_found_again() {
    let cluster = FakeCluster::start(1, &[("a", &[1]), ("b", &[2])]);
    // Broker 2 has no address yet.
    let mut bench = Bench::new(settings(256, 4), &cluster.metadata);
    let (a, b) = (bench.producer.topic("a"), bench.producer.topic("b"));
    let slot = bench.producer.ack_slot();
    bench.append(b, 0, "waits", slot);
    for n in 0..200 {
        bench.append(a, 0, &n.to_string(), slot);
    }
    bench.until(|p| p.ack(slot).outstanding == 1);
    cluster.holds("a", 0, &numbers(0..200));
    cluster.move_leader("b", 0, 1);
    cluster.publish();
    bench.flush();
    assert_eq!(cluster.values("b", 0), ["waits"]);
}

#[test]
fn closing_tells_every_slot_that_its_records_are_not_acknowledged() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    cluster.state().paused = true;
    let mut bench = Bench::new(settings(256, 4), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    for n in 0..10 {
        bench.append(topic, 0, &n.to_string(), slot);
    }
    bench.turn(5);
    bench.producer.close();
    let ack = bench.producer.ack(slot);
    assert_eq!((ack.highest, ack.outstanding, ack.error.map(|e| e.cause)), (-1, 0, Some(Cause::Closed)));
    assert!(bench.producer.is_flushed());
}

/// A broker that has not heard of a producer takes any sequence, so the second batch must not leave before the first
/// one is written.
#[test]
fn the_very_first_batch_may_be_refused_without_losing_the_order() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    let mut refused = 0;
    cluster.script(move |_| {
        refused += 1;
        if refused <= 2 { Act::Error(19) } else { Act::Normal }
    });
    let mut bench = Bench::new(settings(256, 8), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    for n in 0..300 {
        bench.append(topic, 0, &n.to_string(), slot);
    }
    bench.flush();
    cluster.holds("a", 0, &numbers(0..300));
}

#[test]
fn sequences_wrap_from_their_highest_to_zero() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    let mut bench = Bench::new(settings(256, 8), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(topic, 0, "0", slot);
    bench.flush();
    let near = i32::MAX - 40;
    bench.producer.start_sequence_for_test(topic, 0, near);
    cluster.state().logs.get_mut(&("a".to_owned(), 0)).unwrap().expect(near);
    for n in 1..200 {
        bench.append(topic, 0, &n.to_string(), slot);
    }
    bench.flush();
    cluster.holds("a", 0, &numbers(0..200));
    assert_eq!(bench.producer.ack(slot).error, None);
    let state = cluster.state();
    let sequences: Vec<i32> = state.seen.iter().map(|s| s.sequence).collect();
    assert!(sequences.iter().any(|s| *s > near) && sequences[2..].iter().any(|s| *s < 200), "{sequences:?}");
}
