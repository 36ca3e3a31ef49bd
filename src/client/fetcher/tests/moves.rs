//! Leaders that move, connections that break, offsets that are gone.
use super::*;
use crate::wire::Compression;

#[test]
fn a_leader_that_moved_is_followed_by_its_hint_without_loss() {
    let (one, two) = (FakeBroker::start(1), FakeBroker::start(2));
    fill(&one, 0, 50, Compression::None);
    fill(&two, 0, 100, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&one, &two], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    let mut got = bench.collect(50);
    one.log("t", 0, |log| (log.error, log.hint) = (6, Some((2, 9))));
    got.extend(bench.collect(50));
    assert_eq!(got, expected(slot, 0, 0..100));
    let first = two.script().fetches[0].partitions[0].clone();
    assert_eq!((first.2, first.3), (9, 50), "epoch of the hint, offset behind what was read");
    assert!(bench.metadata.is_requested());
    bench.assert_idle();
}

#[test]
fn a_leader_that_moved_without_a_hint_is_followed_by_the_next_snapshot() {
    let (one, two) = (FakeBroker::start(1), FakeBroker::start(2));
    fill(&one, 0, 50, Compression::None);
    fill(&two, 0, 100, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&one, &two], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    assert_eq!(bench.collect(50), expected(slot, 0, 0..50));
    one.log("t", 0, |log| log.error = 74);
    bench.metadata.take_request();
    bench.turn_until(|bench| bench.metadata.is_requested());
    let mut next = snapshot(0, &[one.addr, two.addr], &[("t", &[2])]);
    next.topics[0].partitions[0].leader_epoch = 4;
    bench.metadata.publish(next);
    assert_eq!(bench.collect(50), expected(slot, 0, 50..100));
    bench.assert_idle();
}

#[test]
fn connections_that_break_at_any_byte_lose_and_repeat_nothing() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 300, Compression::Lz4);
    fill(&broker, 1, 300, Compression::None);
    broker.script().cuts = vec![0, 1, 3, 4, 5, 60, 61, 200, 5_000, 20_000];
    let settings = FetcherSettings { max_wait_ms: 100, reconnect_backoff_ms: 1, ..FetcherSettings::default() };
    let mut bench = Bench::with(settings, 4, 0);
    bench.leaders(&[&broker], &[1, 1]);
    let slots = [bench.fetcher.add("t", 0, 0).unwrap(), bench.fetcher.add("t", 1, 0).unwrap()];
    let got = bench.collect(600);
    for (partition, slot) in (0..).zip(slots) {
        assert_eq!(of(&got, slot), expected(slot, partition, 0..300));
    }
    assert!(broker.script().cuts.is_empty(), "the connection did break");
    bench.assert_idle();
}

#[test]
fn a_broker_that_is_away_is_tried_again_and_reported() {
    let addr = {
        let gone = FakeBroker::start(1);
        gone.addr
    };
    let mut bench = Bench::new(3, 0);
    bench.metadata.publish(snapshot(0, &[addr], &[("t", &[1])]));
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    bench.turn_until(|bench| bench.fetcher.trouble().is_some());
    assert!(bench.metadata.take_resolve());
    let broker = FakeBroker::start_at(1, addr);
    fill(&broker, 0, 10, Compression::None);
    assert_eq!(bench.collect(10), expected(slot, 0, 0..10));
    assert_eq!(bench.fetcher.trouble(), None);
    bench.assert_idle();
}

#[test]
fn a_silent_broker_is_given_up_after_the_time_out() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = FetcherSettings { request_timeout_ms: 50, ..FetcherSettings::default() };
    let mut bench = Bench::with(settings, 3, 0);
    bench.metadata.publish(snapshot(0, &[listener.local_addr().unwrap()], &[("t", &[1])]));
    bench.fetcher.add("t", 0, 0).unwrap();
    bench.turn_until(|bench| bench.fetcher.trouble().is_some());
    let timed_out = crate::net::NetError::TimedOut { ms: 50 };
    assert_eq!(bench.fetcher.trouble(), Some((1, timed_out.into())));
    bench.assert_idle();
}

#[test]
fn an_old_broker_is_asked_in_the_version_every_broker_knows() {
    let broker = FakeBroker::start(1);
    broker.script().versions_max = 2;
    fill(&broker, 0, 10, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    assert_eq!(bench.collect(10), expected(slot, 0, 0..10));
    bench.assert_idle();
}

#[test]
fn an_offset_out_of_range_stands_still_until_it_is_sought() {
    let broker = FakeBroker::start(1);
    broker.log("t", 0, |log| log.start = 40);
    fill(&broker, 0, 60, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 7).unwrap();
    assert_eq!(bench.until_fault(), (slot, FetchFault::OffsetOutOfRange { offset: 7, log_start: 40 }));
    let asked = broker.script().fetches.len();
    for _ in 0..5 {
        bench.turn();
    }
    assert_eq!(broker.script().fetches.len(), asked, "not asked again");
    bench.fetcher.seek(slot, 40);
    assert_eq!(bench.collect(20), expected(slot, 0, 40..60));
    bench.assert_idle();
}

#[test]
fn a_fault_is_told_only_after_what_was_received_before_it() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 20, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    bench.turn_until(|bench| !bench.fetcher.inbox.queue.is_empty());
    broker.log("t", 0, |log| {
        log.batches.clear();
        log.start = 40;
    });
    bench.turn_until(|bench| bench.fetcher.slots.get(slot).unwrap().stopped);
    assert_eq!(bench.fetcher.next_fault(), None);
    assert_eq!(bench.take(false), expected(slot, 0, 0..20));
    assert_eq!(bench.faults, [(slot, FetchFault::OffsetOutOfRange { offset: 20, log_start: 40 })]);
    assert_eq!(bench.fetcher.position(slot), 20);
    bench.assert_idle();
}

#[test]
fn a_truncated_log_is_a_fault_with_the_last_common_offset() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 20, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    bench.collect(20);
    broker.log("t", 0, |log| log.diverging = Some((2, 15)));
    assert_eq!(bench.until_fault(), (slot, FetchFault::Truncated { offset: 20, epoch: 2, end_offset: 15 }));
    bench.assert_idle();
}

#[test]
fn a_topic_made_anew_and_a_missing_one_are_faults() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 10, Compression::None);
    let settings = FetcherSettings { missing_topic_ms: 30, ..FetcherSettings::default() };
    let mut bench = Bench::with(settings, 3, 0);
    let mut known = snapshot(0, &[broker.addr], &[("t", &[1])]);
    known.topics[0].id = [1; 16];
    bench.metadata.publish(known.clone());
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    bench.collect(10);
    known.topics[0].id = [2; 16];
    bench.metadata.publish(known.clone());
    assert_eq!(bench.until_fault(), (slot, FetchFault::TopicRecreated));
    bench.fetcher.seek(slot, 0);
    known.topics[0].state = crate::client::TopicState::Missing;
    known.topics[0].partitions.clear();
    let start = Instant::now();
    bench.turn_until(|bench| {
        bench.metadata.publish(known.clone());
        bench.take(false);
        !bench.faults.is_empty()
    });
    assert_eq!(bench.faults, [(slot, FetchFault::UnknownTopic)]);
    assert!(start.elapsed() >= Duration::from_millis(30));
    bench.assert_idle();
}

#[test]
fn a_throttled_client_waits() {
    let broker = FakeBroker::start(1);
    broker.script().throttle_ms = 80;
    fill(&broker, 0, 10, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    bench.fetcher.add("t", 0, 0).unwrap();
    bench.collect(10);
    let start = Instant::now();
    bench.turn_until(|_| broker.script().fetches.len() == 2);
    assert!(start.elapsed() >= Duration::from_millis(70), "{:?}", start.elapsed());
    bench.assert_idle();
}
