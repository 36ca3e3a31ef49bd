//! The life of a cluster: topic ids, replicas in the client's rack, epochs, releases, idle connections, new partitions.
use super::*;
use crate::client::fake::UNKNOWN_ID;
use crate::client::{MetadataSnapshot, PartitionInfo};
use crate::wire::{Compression, WireError};

/// Brokers 1 and up, one partition of `t` led by 1, with this id.
fn known(brokers: &[&FakeBroker], id: u8) -> MetadataSnapshot {
    let addrs: Vec<_> = brokers.iter().map(|broker| broker.addr).collect();
    let mut known = snapshot(0, &addrs, &[("t", &[1])]);
    known.topics[0].id = [id; 16];
    known
}

#[test]
fn topics_are_asked_for_by_id_where_all_have_one_and_by_name_elsewhere() {
    for (fetch_max, id, expected_version) in
        [(17, 1, 17), (16, 1, 16), (13, 1, 13), (12, 1, 12), (11, 1, 11), (17, 0, 12)]
    {
        let broker = FakeBroker::start(1);
        broker.script().fetch_max = fetch_max;
        broker.script().ids.insert([1; 16], "t".into());
        fill(&broker, 0, 30, Compression::None);
        let mut bench = Bench::new(3, 0);
        bench.metadata.publish(known(&[&broker], id));
        let slot = bench.fetcher.add("t", 0, 0).unwrap();
        assert_eq!(bench.collect(30), expected(slot, 0, 0..30), "{fetch_max}");
        assert!(broker.script().fetches.iter().all(|seen| seen.version == expected_version), "{fetch_max} {id}");
        bench.assert_idle();
    }
}

#[test]
fn one_topic_without_an_id_makes_the_whole_request_name_its_topics() {
    let broker = FakeBroker::start(1);
    broker.script().fetch_max = 17;
    broker.script().ids.insert([1; 16], "t".into());
    fill(&broker, 0, 10, Compression::None);
    broker.log("u", 0, |log| log.append(&[b"u"], Compression::None));
    let mut bench = Bench::new(4, 0);
    let mut both = snapshot(0, &[broker.addr], &[("t", &[1]), ("u", &[1])]);
    both.topics[0].id = [1; 16];
    bench.metadata.publish(both);
    let (t, u) = (bench.fetcher.add("t", 0, 0).unwrap(), bench.fetcher.add("u", 0, 0).unwrap());
    let got = bench.collect(11);
    assert_eq!((of(&got, t), of(&got, u)), (expected(t, 0, 0..10), vec![(u, 0, b"u".to_vec())]));
    let both_asked = |seen: &&crate::client::fake::Seen| seen.partitions.len() == 2;
    assert_eq!(broker.script().fetches.iter().find(both_asked).unwrap().version, 12);
    bench.assert_idle();
}

#[test]
fn a_topic_made_anew_is_not_read_under_its_old_offsets() {
    let broker = FakeBroker::start(1);
    broker.script().fetch_max = 13;
    broker.script().ids.insert([1; 16], "t".into());
    fill(&broker, 0, 10, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.metadata.publish(known(&[&broker], 1));
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    assert_eq!(bench.collect(10), expected(slot, 0, 0..10));
    // The new topic has more records than were read of the old one; its id tells them apart.
    bench.metadata.take_request();
    broker.script().ids = [([2; 16], "t".to_owned())].into();
    fill(&broker, 0, 30, Compression::None);
    bench.turn_until(|bench| bench.metadata.is_requested());
    assert!(bench.take(false).is_empty());
    assert_eq!(broker.script().fetches.last().unwrap().partitions[0].0, UNKNOWN_ID);
    bench.metadata.publish(known(&[&broker], 2));
    assert_eq!(bench.until_fault(), (slot, FetchFault::TopicRecreated));
    bench.fetcher.seek(slot, 0);
    assert_eq!(bench.collect(30), expected(slot, 0, 0..30));
    bench.assert_idle();
}

#[test]
fn a_partition_added_to_a_topic_is_read_once_the_cluster_tells_of_it() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 10, Compression::None);
    fill(&broker, 1, 20, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    let slots = [bench.fetcher.add("t", 0, 0).unwrap(), bench.fetcher.add("t", 1, 0).unwrap()];
    assert_eq!(bench.collect(10), expected(slots[0], 0, 0..10));
    bench.leaders(&[&broker], &[1, 1]);
    assert_eq!(bench.collect(20), expected(slots[1], 1, 0..20));
    bench.assert_idle();
}

#[test]
fn a_replica_in_the_clients_rack_is_read_from_until_it_fails() {
    let (leader, near) = (FakeBroker::start(1), FakeBroker::start(2));
    leader.script().fetch_max = 11;
    for broker in [&leader, &near] {
        fill(broker, 0, 30, Compression::None);
    }
    leader.log("t", 0, |log| log.replica = 2);
    let settings = FetcherSettings { rack: "west".into(), max_wait_ms: 100, ..FetcherSettings::default() };
    let mut bench = Bench::with(settings, 3, 0);
    bench.metadata.publish(known(&[&leader, &near], 0));
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    assert_eq!(bench.collect(30), expected(slot, 0, 0..30));
    let asked = leader.script().fetches.clone();
    assert_eq!((asked.len(), &*asked[0].rack), (1, "west"), "the leader only names the replica");
    assert!(!near.script().fetches.is_empty());
    // The replica lags behind what the leader has: the leader is asked, and nothing stands still.
    for broker in [&leader, &near] {
        broker.log("t", 0, |log| log.replica = 0);
    }
    fill(&leader, 0, 40, Compression::None);
    near.log("t", 0, |log| log.error = 1);
    assert_eq!(bench.collect(10), expected(slot, 0, 30..40));
    assert!(bench.faults.is_empty());
    bench.assert_idle();
}

#[test]
fn a_replica_that_is_away_or_unknown_is_left_for_the_leader() {
    for replica in [2, 9] {
        let leader = FakeBroker::start(1);
        let gone = FakeBroker::start(2).addr;
        fill(&leader, 0, 10, Compression::None);
        leader.log("t", 0, |log| log.replica = replica);
        let mut bench = Bench::new(3, 0);
        bench.metadata.publish(snapshot(0, &[leader.addr, gone], &[("t", &[1])]));
        let slot = bench.fetcher.add("t", 0, 0).unwrap();
        bench.metadata.take_request();
        bench.turn_until(|bench| {
            assert!(bench.take(false).is_empty());
            bench.metadata.is_requested() && leader.script().fetches.len() > 1
        });
        let asked = leader.script().fetches.len();
        assert!(asked < 50, "{asked} fetches: the leader is not asked in a tight loop");
        leader.log("t", 0, |log| log.replica = 0);
        assert_eq!(bench.collect(10), expected(slot, 0, 0..10));
        bench.assert_idle();
    }
}

#[test]
fn the_leader_is_asked_again_when_its_wish_is_old() {
    let (leader, near) = (FakeBroker::start(1), FakeBroker::start(2));
    fill(&leader, 0, 20, Compression::None);
    fill(&near, 0, 10, Compression::None);
    leader.log("t", 0, |log| log.replica = 2);
    let settings = FetcherSettings { replica_ms: 150, max_wait_ms: 20, ..FetcherSettings::default() };
    let mut bench = Bench::with(settings, 3, 0);
    bench.metadata.publish(known(&[&leader, &near], 0));
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    assert_eq!(bench.collect(10), expected(slot, 0, 0..10));
    leader.log("t", 0, |log| log.replica = 0);
    let start = Instant::now();
    assert_eq!(bench.collect(10), expected(slot, 0, 10..20));
    assert!(start.elapsed() < Duration::from_secs(5));
    bench.assert_idle();
}

/// Reads 20 records from broker 1, moves the leader to broker 2, which answers the question about epochs like this.
fn moved(answer: (i16, i32, i64)) -> (Bench, Slot, FakeBroker, FakeBroker) {
    let (one, two) = (FakeBroker::start(1), FakeBroker::start(2));
    for (broker, end) in [(&one, 20), (&two, 40)] {
        broker.script().fetch_max = 11;
        fill(broker, 0, end, Compression::None);
        // The epoch of a batch is not covered by its checksum.
        broker.log("t", 0, |log| log.batches.iter_mut().for_each(|b| b.2[12..16].copy_from_slice(&3i32.to_be_bytes())));
    }
    two.log("t", 0, |log| log.epoch_end = answer);
    let mut bench = Bench::new(3, 0);
    bench.metadata.publish(known(&[&one, &two], 0));
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    assert_eq!(bench.collect(20), expected(slot, 0, 0..20));
    let mut next = known(&[&one, &two], 0);
    next.topics[0].partitions[0] = PartitionInfo { leader: 2, leader_epoch: 4 };
    bench.metadata.publish(next);
    (bench, slot, one, two)
}

#[test]
fn a_new_leader_is_asked_for_its_epochs_first_where_fetches_do_not_tell() {
    let (mut bench, slot, one, two) = moved((0, 3, 20));
    assert_eq!(bench.collect(20), expected(slot, 0, 20..40));
    assert_eq!(two.script().epochs, [(0, 4, 3)], "partition, the leader's epoch, the epoch of the last batch");
    assert!(one.script().epochs.is_empty(), "nothing was read before");
    bench.assert_idle();
}

#[test]
fn a_log_that_parted_from_what_was_read_is_a_fault_before_anything_is_fetched_of_it() {
    for (answer, end_offset) in [((0, 2, 13), 13), ((0, 3, 19), 19), ((0, -1, -1), -1)] {
        let (mut bench, slot, _one, two) = moved(answer);
        let (at, fault) = bench.until_fault();
        assert_eq!((at, fault), (slot, FetchFault::Truncated { offset: 20, epoch: answer.1, end_offset }));
        assert!(two.script().fetches.is_empty());
        bench.fetcher.seek(slot, 13);
        assert_eq!(bench.collect(27), expected(slot, 0, 13..40), "sought, it is read on");
        bench.assert_idle();
    }
}

#[test]
fn a_leader_that_cannot_tell_its_epochs_yet_is_asked_again() {
    let (mut bench, slot, _one, two) = moved((75, -1, -1));
    bench.turn_until(|_| two.script().epochs.len() == 3);
    assert!(two.script().fetches.is_empty());
    two.log("t", 0, |log| log.epoch_end = (0, 3, 20));
    assert_eq!(bench.collect(20), expected(slot, 0, 20..40));
    bench.assert_idle();
}

#[test]
fn a_broker_older_than_kafka_2_4_is_refused_by_name() {
    let broker = FakeBroker::start(1);
    broker.script().metadata_max = 8;
    fill(&broker, 0, 10, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    let (at, fault) = bench.until_fault();
    assert_eq!((at, fault), (slot, FetchFault::Unsupported(WireError::TooOld { metadata: 8 })));
    assert!(fault.to_string().contains("upgrade it to kafka 2.4 or later"), "{fault}");
    bench.assert_idle();
}

#[test]
fn an_idle_connection_is_ended_by_either_side_without_a_fault() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 10, Compression::None);
    let settings = FetcherSettings { max_idle_ms: 60, max_wait_ms: 20, ..FetcherSettings::default() };
    let mut bench = Bench::with(settings, 3, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    bench.collect(10);
    let idle = |bench: &Bench| bench.fetcher.brokers[0].phase == super::super::broker::Phase::Down;
    for by_broker in [false, true] {
        bench.fetcher.demand(slot, false);
        bench.metadata.take_request();
        let start = Instant::now();
        if by_broker {
            bench.turn_until(|bench| bench.fetcher.brokers[0].phase == super::super::broker::Phase::Idle);
            broker.drop_connections();
        }
        bench.turn_until(|bench| idle(bench));
        assert!(by_broker || start.elapsed() >= Duration::from_millis(60), "{:?}", start.elapsed());
        assert!(!bench.metadata.is_requested() && bench.fetcher.trouble().is_none());
        fill(&broker, 0, broker_end(&broker) + 10, Compression::None);
        bench.fetcher.demand(slot, true);
        bench.collect(10);
    }
    assert_eq!(broker.script().connections, 3);
    bench.assert_idle();
}

fn broker_end(broker: &FakeBroker) -> i64 {
    broker.script().logs[&("t".to_owned(), 0)].end()
}
