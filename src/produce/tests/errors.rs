//! What each class of error does.
use super::fake::{Act, FakeCluster};
use super::{Bench, numbers, settings};
use crate::produce::{AppendError, Cause, ProducerSettings, TxnState};
use crate::wire::{ErrorCode, WireError};

#[test]
fn a_batch_too_large_for_the_broker_is_halved_until_it_fits_in_order_and_in_sequence() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    cluster.state().max_batch = 300;
    let mut bench = Bench::new(settings(4_096, 4), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let (even, odd) = (bench.producer.ack_slot(), bench.producer.ack_slot());
    for n in 0..2_000 {
        bench.append(topic, 0, &n.to_string(), if n % 2 == 0 { even } else { odd });
    }
    bench.flush();
    cluster.holds("a", 0, &numbers(0..2_000));
    let (even, odd) = (bench.producer.ack(even), bench.producer.ack(odd));
    assert_eq!((even.highest, even.outstanding, even.error), (1_998, 0, None));
    assert_eq!((odd.highest, odd.outstanding, odd.error), (1_999, 0, None));
    assert!(bench.producer.stats().halved > 0);
    assert!(cluster.state().seen.iter().all(|s| s.epoch == 0));
}

#[test]
fn a_single_record_too_large_for_the_broker_is_a_typed_error() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    cluster.state().max_batch = 300;
    let mut bench = Bench::new(settings(1_024, 4), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(topic, 0, "small", slot);
    bench.append(topic, 0, &"x".repeat(500), slot);
    bench.append(topic, 0, "behind", slot);
    bench.flush();
    let ack = bench.producer.ack(slot);
    assert!(matches!(ack.error.unwrap().cause, Cause::TooLarge { bytes: 570 }), "{ack:?}");
    assert_eq!(cluster.values("a", 0), ["small"]);
}

#[test]
fn a_refused_topic_fails_its_slots_and_no_other() {
    let cluster = FakeCluster::start(1, &[("a", &[1]), ("b", &[1])]);
    cluster.script(|seen| if seen.topic == "a" { Act::Error(29) } else { Act::Normal });
    let mut bench = Bench::new(settings(256, 8), &cluster.metadata);
    let (a, b) = (bench.producer.topic("a"), bench.producer.topic("b"));
    let (refused, fine) = (bench.producer.ack_slot(), bench.producer.ack_slot());
    bench.append(a, 0, "x", refused);
    for n in 0..100 {
        bench.append(b, 0, &n.to_string(), fine);
    }
    bench.flush();
    let cause = Cause::Refused { code: ErrorCode::TopicAuthorizationFailed };
    let error = bench.producer.ack(refused).error.unwrap();
    assert_eq!((bench.producer.topic_name(error.topic), error.cause), ("a", cause));
    assert_eq!(bench.producer.ack(fine).highest, 99);
    assert_eq!(bench.try_append(a, 0, "y", refused), Err(AppendError::Failed(error)));
}

#[test]
fn a_duplicate_is_a_success_without_an_offset() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    cluster.script(|_| Act::WriteThenError(46));
    let mut bench = Bench::new(settings(256, 2), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(topic, 0, "x", slot);
    bench.flush();
    let ack = bench.producer.ack(slot);
    assert_eq!((ack.highest, ack.outstanding, ack.error), (-1, 0, None));
    assert_eq!(cluster.values("a", 0), ["x"]);
}

#[test]
fn acknowledged_records_that_the_broker_lost_raise_the_epoch_and_all_that_follow_are_written_once() {
    // A lost answer before does not change that: the broker would know the batch.
    for unclear in [false, true] {
        let cluster = FakeCluster::start(1, &[("a", &[1, 1])]);
        let mut bench = Bench::new(settings(256, 8), &cluster.metadata);
        let topic = bench.producer.topic("a");
        let slot = bench.producer.ack_slot();
        for partition in 0..2 {
            bench.append(topic, partition, "acknowledged", slot);
        }
        bench.flush();
        let mut attempts = 0;
        cluster.script(move |seen| {
            attempts += u32::from(seen.partition == 0);
            match attempts {
                _ if seen.partition == 1 || seen.epoch > 0 => Act::Normal,
                1 if unclear => Act::Error(7),
                _ => Act::Error(45),
            }
        });
        for n in 0..100 {
            for partition in 0..2 {
                bench.append(topic, partition, &n.to_string(), slot);
            }
        }
        bench.flush();
        assert_eq!(bench.producer.ack(slot).error, None);
        let expected = [vec!["acknowledged".to_owned()], numbers(0..100)].concat();
        for partition in 0..2 {
            cluster.holds("a", partition, &expected);
        }
        let state = cluster.state();
        let raised: Vec<_> = state.seen.iter().filter(|s| s.partition == 0 && s.epoch == 1).collect();
        assert_eq!(raised[0].sequence, 0);
        assert_eq!((state.identities, bench.producer.stats().renumbered), (1, 1), "no new id was asked for");
    }
}

#[test]
fn acknowledged_records_that_the_broker_lost_fail_a_transaction() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    let mut bench = Bench::transactional(&cluster, "lost");
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    assert_eq!(bench.settle(), TxnState::Ready);
    bench.producer.begin().unwrap();
    bench.append(topic, 0, "acknowledged", slot);
    bench.flush();
    cluster.script(|_| Act::Error(45));
    bench.append(topic, 0, "next", slot);
    bench.flush();
    let code = ErrorCode::OutOfOrderSequenceNumber;
    assert_eq!(bench.producer.ack(slot).error.unwrap().cause, Cause::SequenceLost { code });
    assert!(matches!(bench.state(), TxnState::Failed(_)), "{:?}", bench.state());
}

#[test]
fn a_producer_forgotten_by_retention_raises_its_epoch_and_loses_nothing() {
    let cluster = FakeCluster::start(1, &[("a", &[1, 1])]);
    let mut bench = Bench::new(settings(256, 8), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    for partition in 0..2 {
        bench.append(topic, partition, "0", slot);
    }
    bench.flush();
    cluster.state().logs.get_mut(&("a".to_owned(), 0)).unwrap().start = 1;
    cluster.script(|seen| if seen.partition == 0 && seen.epoch == 0 { Act::Error(59) } else { Act::Normal });
    for n in 1..100 {
        for partition in 0..2 {
            bench.append(topic, partition, &n.to_string(), slot);
        }
    }
    bench.flush();
    assert_eq!(bench.producer.ack(slot).error, None);
    for partition in 0..2 {
        cluster.holds("a", partition, &numbers(0..100));
    }
    let state = cluster.state();
    let raised: Vec<_> = state.seen.iter().filter(|s| s.partition == 0 && s.epoch == 1).collect();
    assert_eq!(raised[0].sequence, 0);
    assert_eq!(state.identities, 1, "no new id was asked for");
}

#[test]
fn an_epoch_that_the_broker_refuses_is_raised_only_if_nothing_may_have_been_written() {
    for unclear in [false, true] {
        let cluster = FakeCluster::start(1, &[("a", &[1])]);
        let mut attempts = 0;
        cluster.script(move |seen| {
            attempts += 1;
            match attempts {
                1 if unclear => Act::WriteThenError(7),
                1 | 2 if seen.epoch == 0 => Act::Error(47),
                _ => Act::Normal,
            }
        });
        let mut bench = Bench::new(settings(256, 2), &cluster.metadata);
        let topic = bench.producer.topic("a");
        let slot = bench.producer.ack_slot();
        bench.append(topic, 0, "x", slot);
        bench.flush();
        let code = ErrorCode::InvalidProducerEpoch;
        let expected = unclear.then_some(Cause::SequenceLost { code });
        assert_eq!(bench.producer.ack(slot).error.map(|e| e.cause), expected);
        assert_eq!(cluster.values("a", 0), ["x"]);
    }
}

#[test]
fn an_identity_is_asked_for_until_it_is_given_and_a_refusal_is_final() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    cluster.state().identity_errors = vec![14, 15];
    let mut bench = Bench::new(settings(256, 2), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(topic, 0, "x", slot);
    bench.flush();
    assert_eq!(cluster.values("a", 0), ["x"]);

    cluster.state().identity_errors = vec![31];
    let mut bench = Bench::new(settings(256, 2), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let (slot, other) = (bench.producer.ack_slot(), bench.producer.ack_slot());
    bench.append(topic, 0, "y", slot);
    bench.flush();
    let code = ErrorCode::ClusterAuthorizationFailed;
    assert_eq!(bench.producer.ack(slot).error.unwrap().cause, Cause::Fatal { code });
    let refused = bench.try_append(topic, 0, "z", other);
    assert!(matches!(refused, Err(AppendError::Failed(e)) if e.cause == Cause::Fatal { code }));
    assert_eq!(cluster.values("a", 0), ["x"]);
}

#[test]
fn a_throttled_producer_leaves_the_broker_alone() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    let mut bench = Bench::new(settings(256, 2), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(topic, 0, "0", slot);
    cluster.state().throttle_ms = 200;
    bench.flush();
    let begun = bench.now_ms();
    cluster.state().throttle_ms = 0;
    bench.append(topic, 0, "1", slot);
    bench.flush();
    let took = bench.now_ms() - begun;
    assert!((150..2_000).contains(&took), "{took} ms");
    cluster.holds("a", 0, &numbers(0..2));
}

#[test]
fn brokers_of_every_version_are_met_and_too_old_ones_refused() {
    for (versions, produce) in [(4, 11), (3, 9), (3, 8), (0, 7), (2, 3)] {
        let cluster = FakeCluster::start(1, &[("a", &[1])]);
        cluster.state().versions = (versions, produce);
        let mut bench = Bench::new(settings(256, 2), &cluster.metadata);
        let topic = bench.producer.topic("a");
        let slot = bench.producer.ack_slot();
        bench.append(topic, 0, "x", slot);
        bench.flush();
        assert_eq!(bench.producer.ack(slot).error, None);
        assert_eq!(cluster.values("a", 0), ["x"], "produce {produce}");
    }
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    cluster.state().versions = (0, 2);
    let mut bench = Bench::new(settings(256, 2), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(topic, 0, "x", slot);
    bench.flush();
    let cause = bench.producer.ack(slot).error.unwrap().cause;
    assert!(matches!(cause, Cause::Unsupported(WireError::Unsupported { api: "Produce", .. })), "{cause:?}");
}

#[test]
fn a_broker_before_2_4_is_refused_by_its_release() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    cluster.state().metadata_version = 8;
    let mut bench = Bench::new(settings(256, 2), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(topic, 0, "x", slot);
    bench.flush();
    let error = bench.producer.ack(slot).error.unwrap();
    assert_eq!(error.cause, Cause::Unsupported(WireError::TooOld { metadata: 8 }));
    assert!(error.to_string().contains("2.4 or later"), "{error}");
    assert!(matches!(bench.try_append(topic, 0, "y", slot), Err(AppendError::Failed(e)) if e == error));
}

#[test]
fn a_connection_that_nobody_uses_is_ended_and_made_anew_without_a_pause() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    let wanted = ProducerSettings { max_idle_ms: 60, retry_backoff_ms: 60_000, ..settings(256, 2) };
    let mut bench = Bench::new(wanted, &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(topic, 0, "x", slot);
    bench.flush();
    let begun = bench.now_ms();
    bench.until(|p| p.connections() == 0);
    assert!((40..5_000).contains(&(bench.now_ms() - begun)), "{} ms", bench.now_ms() - begun);
    bench.append(topic, 0, "y", slot);
    bench.flush();
    assert_eq!(cluster.values("a", 0), ["x", "y"]);
    assert_eq!((cluster.state().connections, bench.producer.stats().lost), (2, 0));
}

#[test]
fn a_silent_broker_is_left_as_soon_as_another_one_leads() {
    let cluster = FakeCluster::start(2, &[("a", &[1])]);
    let mut bench = Bench::new(settings(256, 8), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(topic, 0, "0", slot);
    bench.flush();
    cluster.script(|seen| if seen.node == 1 { Act::Silence } else { Act::Normal });
    for n in 1..20 {
        bench.append(topic, 0, &n.to_string(), slot);
    }
    bench.producer.begin_flush();
    bench.until(|p| p.stats().requests > 1);
    let begun = bench.now_ms();
    cluster.move_leader("a", 0, 2);
    cluster.publish();
    cluster.metadata.take_request();
    bench.until(|p| p.is_flushed());
    // Not after the time-out of a request, which is 30 seconds.
    assert!((4_000..9_000).contains(&(bench.now_ms() - begun)), "{} ms", bench.now_ms() - begun);
    assert!(cluster.metadata.take_request(), "it was looked up who leads");
    cluster.holds("a", 0, &numbers(0..20));
}

#[test]
fn a_topic_that_metadata_refuses_fails_at_once() {
    use crate::client::{MetadataSnapshot, SharedMetadata, TopicInfo, TopicState};
    let metadata = SharedMetadata::new();
    let state = TopicState::Failed(ErrorCode::TopicAuthorizationFailed);
    let info = TopicInfo { name: "secret".into(), id: [0; 16], state, partitions: Vec::new() };
    metadata.publish(MetadataSnapshot { topics: vec![info], ..MetadataSnapshot::default() });
    let mut bench = Bench::new(settings(256, 2), &metadata);
    let topic = bench.producer.topic("secret");
    let slot = bench.producer.ack_slot();
    let cause = Cause::Refused { code: ErrorCode::TopicAuthorizationFailed };
    assert!(matches!(bench.try_append(topic, 0, "x", slot), Err(AppendError::Failed(e)) if e.cause == cause));
}
