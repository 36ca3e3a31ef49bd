//! Without faults: order, sharing of requests, what is on its way, back-pressure.
use super::fake::{Act, FakeCluster};
use super::{Bench, numbers, settings, text};
use crate::client::SharedMetadata;
use crate::produce::{AppendError, Producer};
use crate::wire::Compression;
use std::time::Duration;

pub(super) const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

#[test]
fn records_arrive_in_order_with_consecutive_sequences_and_slots_tell_the_highest_offset() {
    let cluster = FakeCluster::start(2, &[("a", &[1, 2, 1]), ("b", &[2])]);
    let mut bench = Bench::new(settings(512, 16), &cluster.metadata);
    let (a, b) = (bench.producer.topic("a"), bench.producer.topic("b"));
    assert_eq!((bench.producer.topic("a"), bench.producer.topic_name(b)), (a, "b"));
    assert_eq!((bench.producer.partitions(a), bench.producer.partitions(b)), (Some(3), Some(1)));
    let (slot, other) = (bench.producer.ack_slot(), bench.producer.ack_slot());
    for n in 0..1_000 {
        let value = n.to_string();
        for partition in 0..3 {
            bench.append(a, partition, &value, slot);
        }
        bench.append(b, 0, &value, other);
    }
    bench.flush();
    for partition in 0..3 {
        cluster.holds("a", partition, &numbers(0..1_000));
    }
    cluster.holds("b", 0, &numbers(0..1_000));
    for slot in [slot, other] {
        let ack = bench.producer.ack(slot);
        assert_eq!((ack.highest, ack.outstanding, ack.error), (999, 0, None));
    }
    let state = cluster.state();
    for (topic, partition) in [("a", 0), ("a", 1), ("a", 2), ("b", 0)] {
        let mut next = 0;
        for seen in state.seen.iter().filter(|s| s.topic == topic && s.partition == partition) {
            assert_eq!((seen.sequence, seen.epoch), (next, 0));
            next += seen.count as i32;
        }
        assert_eq!(next, 1_000);
    }
    let shared = state.seen.chunk_by(|x, y| x.request == y.request).filter(|r| r.len() > 1).count();
    assert!(shared > 10, "partitions share requests: {shared}");
    let stats = bench.producer.stats();
    assert_eq!((stats.acked, stats.retried, stats.lost), (4_000, 0, 0));
    assert_eq!(state.connections, 2);
}

#[test]
fn at_most_five_requests_are_on_their_way() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    let mut bench = Bench::new(settings(256, 20), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    bench.append(topic, 0, "0", slot);
    bench.flush();
    cluster.state().paused = true;
    let mut taken = 1;
    loop {
        match bench.producer.append(topic, 0, &text(&taken.to_string()), slot) {
            Ok(()) => taken += 1,
            Err(AppendError::Full) => break,
            Err(other) => panic!("{other}"),
        }
        bench.turn(0);
    }
    bench.producer.begin_flush();
    for _ in 0..20 {
        bench.turn(5);
    }
    assert_eq!(cluster.state().most_waiting, 5);
    assert!(bench.producer.ack(slot).outstanding > 5);
    cluster.state().paused = false;
    bench.flush();
    assert_eq!(cluster.state().most_waiting, 5);
    cluster.holds("a", 0, &numbers(0..taken));
}

#[test]
fn however_small_the_pool_every_partition_gets_its_turn() {
    for buffers in [1, 2, 3] {
        let cluster = FakeCluster::start(2, &[("a", &[1, 2, 1, 2, 1, 2, 1, 2])]);
        for linger_ms in [0, 60_000] {
            let mut wanted = settings(256, buffers);
            wanted.linger_ms = linger_ms;
            let mut bench = Bench::new(wanted, &cluster.metadata);
            let topic = bench.producer.topic("a");
            let slot = bench.producer.ack_slot();
            for n in 0..50 {
                for partition in 0..8 {
                    bench.append(topic, partition, &n.to_string(), slot);
                }
            }
            bench.flush();
            assert_eq!(bench.producer.ack(slot).error, None);
            assert!(bench.producer.stats().full > 0);
        }
        for partition in 0..8 {
            let twice = [numbers(0..50), numbers(0..50)].concat();
            cluster.holds("a", partition, &twice);
        }
    }
}

#[test]
fn a_partial_batch_leaves_at_once_without_a_timer_and_after_the_linger_time_with_one() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    for (linger_ms, least, most) in [(0, 0, 90), (120, 100, 2_000)] {
        let mut wanted = settings(4_096, 4);
        wanted.linger_ms = linger_ms;
        let mut bench = Bench::new(wanted, &cluster.metadata);
        let topic = bench.producer.topic("a");
        let slot = bench.producer.ack_slot();
        bench.append(topic, 0, "warm", slot);
        bench.flush();
        let begun = bench.now_ms();
        bench.append(topic, 0, "x", slot);
        bench.until(|p| p.is_flushed());
        let took = bench.now_ms() - begun;
        assert!((least..most).contains(&took), "linger {linger_ms}: {took} ms");
    }
}

#[test]
fn under_load_batches_grow_by_themselves() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    cluster.script(|_| {
        std::thread::sleep(Duration::from_millis(5));
        Act::Normal
    });
    let mut bench = Bench::new(settings(16 << 10, 8), &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    for n in 0..40_000 {
        bench.append(topic, 0, &n.to_string(), slot);
        if n % 10 == 0 {
            bench.turn(0);
        }
    }
    bench.flush();
    cluster.holds("a", 0, &numbers(0..40_000));
    let stats = bench.producer.stats();
    let per_batch = stats.acked / stats.batches;
    assert!(per_batch > 100, "{per_batch} records a batch, {stats:?}");
}

#[test]
fn records_that_do_not_fit_name_the_row_and_the_large_buffer_takes_some() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    let mut wanted = settings(512, 3);
    wanted.oversize_bytes = 2_048;
    let mut bench = Bench::new(wanted, &cluster.metadata);
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    let (fits, large, too_large) = ("x".repeat(400), "y".repeat(1_900), "z".repeat(2_000));
    for _ in 0..3 {
        bench.append(topic, 0, &fits, slot);
        bench.append(topic, 0, &large, slot);
    }
    let refused = bench.try_append(topic, 0, &too_large, slot);
    assert_eq!(refused, Err(AppendError::TooLarge { needed: 2_070, limit: 2_048, row: "producer batch pool" }));
    bench.append(topic, 0, "after", slot);
    bench.flush();
    let expected = [&*fits, &large, &fits, &large, &fits, &large, "after"];
    assert_eq!(cluster.values("a", 0), expected);
    assert_eq!(bench.producer.ack(slot).highest, 6);
}

#[test]
fn a_topic_is_awaited_then_refused_and_a_partition_that_is_not_there_named() {
    let cluster = FakeCluster::start(1, &[("a", &[1])]);
    let mut wanted = settings(512, 2);
    wanted.topic_timeout_ms = 100;
    let mut bench = Bench::new(wanted, &cluster.metadata);
    let slot = bench.producer.ack_slot();
    let (known, unknown) = (bench.producer.topic("a"), bench.producer.topic("nowhere"));
    assert_eq!(bench.producer.append(unknown, 0, &text("x"), slot), Err(AppendError::NotReady));
    assert_eq!(bench.producer.partitions(unknown), None);
    match bench.try_append(unknown, 0, "x", slot) {
        Err(AppendError::UnknownTopic { waited_ms }) => assert!((100..2_000).contains(&waited_ms)),
        other => panic!("{other:?}"),
    }
    let beyond = bench.producer.append(known, 1, &text("x"), slot);
    assert_eq!(beyond, Err(AppendError::NoSuchPartition { partition: 1, partitions: 1 }));
    // Once it exists it can be written to.
    cluster.state().logs.insert(("nowhere".to_owned(), 0), super::log::Log::led_by(1));
    cluster.publish();
    bench.turn(0);
    bench.append(unknown, 0, "x", slot);
    bench.flush();
    assert_eq!(cluster.values("nowhere", 0), ["x"]);
}

#[test]
fn records_without_a_key_stick_to_a_partition_for_a_batch() {
    let cluster = FakeCluster::start(1, &[("a", &[1, -1, 1])]);
    let mut bench = Bench::new(settings(1_000, 8), &cluster.metadata);
    assert_eq!(bench.producer.sticky_partition(crate::produce::OutTopic(9), 10), None);
    let topic = bench.producer.topic("a");
    let chosen: Vec<u32> = (0..200).map(|_| bench.producer.sticky_partition(topic, 100).unwrap()).collect();
    assert!(chosen.chunks(10).all(|ten| ten.iter().all(|p| *p == ten[0])));
    assert!(chosen.contains(&0) && chosen.contains(&2) && !chosen.contains(&1), "only partitions with a leader");
}

/// From the append to the acknowledgement: no allocation on this thread, once everything has been used once.
#[test]
fn nothing_is_allocated_between_append_and_acknowledgement_in_steady_state() {
    use plimsoll_alloc::testing::allocations;
    assert!(plimsoll_alloc::is_installed(), "the gate counts nothing without the allocator");
    let (_one, seen) = allocations(|| Box::new(1));
    assert_eq!(seen.calls(), 1, "and would see a single one");
    let cluster = FakeCluster::start(2, &[("a", &[1, 2, 1, 2]), ("b", &[2])]);
    for codec in CODECS {
        cluster.state().keep = false;
        let wanted = crate::produce::ProducerSettings { compression: codec, ..settings(4_096, 16) };
        let mut bench = Bench::new(wanted, &cluster.metadata);
        let (a, b) = (bench.producer.topic("a"), bench.producer.topic("b"));
        let slots = [bench.producer.ack_slot(), bench.producer.ack_slot()];
        let mut run = |records: usize| {
            for n in 0..records {
                let value = ["value one", "another value"][n % 2];
                bench.append(a, (n % 4) as u32, value, slots[n % 2]);
                if n % 3 == 0 {
                    bench.append(b, 0, value, slots[0]);
                }
                if n % 5_000 == 4_999 {
                    bench.flush();
                }
            }
            bench.flush();
        };
        run(20_000);
        let ((), seen) = allocations(|| run(200_000));
        assert_eq!((seen.calls(), seen.bytes), (0, 0), "{codec:?}: {seen:?}");
        let stats = bench.producer.stats();
        assert_eq!(stats.acked, 220_000 + 6_667 + 66_667);
        assert!(stats.requests > 100 && stats.full > 0, "{stats:?}");
        assert!(slots.iter().all(|s| bench.producer.ack(*s).error.is_none()));
    }
}

#[test]
fn a_producer_takes_its_memory_at_the_start_and_the_plan_knows_how_much() {
    use plimsoll_alloc::testing::allocations;
    for codec in CODECS {
        let mut wanted = crate::produce::ProducerSettings { compression: codec, ..settings(16 << 10, 32) };
        wanted.oversize_bytes = 100 << 10;
        let planned = wanted.bytes(0) as u64;
        let (_producer, seen) = allocations(|| Producer::new(wanted, SharedMetadata::new(), 0).unwrap());
        let (least, most) = (planned * 9 / 10, planned * 11 / 10);
        let held = seen.bytes - seen.freed;
        assert!((least..=most).contains(&held), "{held} held, {planned} planned");
        let module = seen.by_module[plimsoll_alloc::Module::Producer as usize];
        assert_eq!(module, seen.calls() - seen.by_module[plimsoll_alloc::Module::App as usize]);
        assert!(module > 32);
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let refused = |wanted| Producer::new(wanted, SharedMetadata::new(), 0).unwrap_err().to_string();
    assert_eq!(refused(settings(100, 4)), "a batch buffer of 100 bytes holds no record; at least 125 are needed");
    let mut wanted = settings(1_000, 4);
    wanted.client_id = "x".repeat(1_025);
    assert_eq!(refused(wanted), "a client id of 1025 bytes is too long; at most 1024 are sent with each request");
}
