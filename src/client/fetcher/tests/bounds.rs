//! Bounds: frames, shares, reserve, oversize; and that none of them is a dead end.
use super::*;
use crate::client::fake::batch;
use crate::wire::{Compression, Stamp};

#[test]
fn a_pool_without_free_frames_leaves_answers_in_the_socket_and_loses_nothing() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 5_000, Compression::None);
    let mut bench = Bench::new(4, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    let mut got = Vec::new();
    bench.turn_until(|bench| {
        got.extend(bench.take(true));
        bench.fetcher.pool().free() == 0
    });
    let asked = broker.script().fetches.len();
    for _ in 0..10 {
        bench.turn();
        got.extend(bench.take(true));
    }
    assert!(broker.script().fetches.len() <= asked + 1, "one answer may wait in the socket, no more is asked for");
    assert!(got.len() < 4 * FRAME / 100, "{} records in three frames", got.len());
    assert_eq!(bench.fetcher.pool().free(), 0);
    bench.turn_until(|bench| {
        bench.release_all();
        got.extend(bench.take(true));
        got.len() >= 5_000
    });
    assert_eq!(got, expected(slot, 0, 0..5_000));
    bench.assert_idle();
}

#[test]
fn an_urgent_partition_gets_its_record_while_its_neighbour_fills_all_frames() {
    // Well compressible batches fill many frames from one answer; others fill them one by one.
    for (codec, noisy) in [(Compression::None, true), (Compression::Lz4, true), (Compression::Lz4, false)] {
        let broker = FakeBroker::start(1);
        let mut random = fastrand::Rng::with_seed(1);
        broker.log("t", 0, |log| {
            for _ in 0..400 {
                let noise: Vec<u8> = (0..4_000).map(|_| if noisy { random.u8(..) } else { 7 }).collect();
                log.append(&[&noise], codec);
            }
        });
        broker.log("t", 1, |_| {});
        let mut bench = Bench::new(3, 0);
        bench.leaders(&[&broker], &[1, 1]);
        let flooding = bench.fetcher.add("t", 0, 0).unwrap();
        let waited = bench.fetcher.add("t", 1, 0).unwrap();
        let mut got = Vec::new();
        // The task keeps what it got of partition 0: it waits for partition 1.
        for _ in 0..20 {
            bench.turn();
            got.extend(bench.take(true));
        }
        assert!(bench.fetcher.pool().free() <= usize::from(codec == Compression::Lz4));
        fill(&broker, 1, 10, codec);
        let start = Instant::now();
        bench.turn_until(|bench| {
            bench.fetcher.urgent(waited);
            got.extend(bench.take(true));
            of(&got, waited).len() == 10
        });
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        assert_eq!(of(&got, waited), expected(waited, 1, 0..10));
        assert!(got.len() < 400, "the neighbour is still held back");
        bench.turn_until(|bench| {
            bench.release_all();
            got.extend(bench.take(true));
            got.len() >= 410
        });
        let offsets: Vec<_> = of(&got, flooding).iter().map(|(_, offset, _)| *offset).collect();
        assert_eq!(offsets, (0..400).collect::<Vec<_>>(), "what was put aside for the urgent one came again");
        bench.assert_idle();
    }
}

#[test]
fn partitions_share_a_frame_and_each_gets_sixteen_kib_at_least() {
    let broker = FakeBroker::start(1);
    for partition in 0..8 {
        fill(&broker, partition, 10, Compression::None);
    }
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1; 8]);
    let slots: Vec<_> = (0..8).map(|p| bench.fetcher.add("t", p, 0).unwrap()).collect();
    for slot in &slots[2..] {
        bench.fetcher.demand(*slot, false);
    }
    bench.collect(20);
    bench.fetcher.demand(slots[7], true);
    bench.collect(10);
    for slot in &slots {
        bench.fetcher.demand(*slot, true);
    }
    bench.collect(50);
    let fetches = broker.script().fetches.clone();
    let (two, all) = (&fetches[0], fetches.iter().rev().find(|f| f.partitions.len() == 8).unwrap());
    assert_eq!(two.partitions.len(), 2, "a partition that is not wanted is left out");
    assert_eq!(two.max_wait_ms, 20, "and the broker may not wait long then");
    assert!(two.max_bytes < FRAME as i32 && two.max_bytes > FRAME as i32 - 2_048, "{}", two.max_bytes);
    assert!(two.partitions.iter().all(|p| p.4 == two.max_bytes / 2));
    assert_eq!(all.max_wait_ms, 100);
    assert!(all.partitions.iter().all(|p| p.4 == 16 << 10));
    bench.assert_idle();
}

#[test]
fn fetches_rotate_so_that_no_partition_is_always_last() {
    let broker = FakeBroker::start(1);
    for partition in 0..3 {
        fill(&broker, partition, 2_000, Compression::None);
    }
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1; 3]);
    for partition in 0..3 {
        bench.fetcher.add("t", partition, 0).unwrap();
    }
    bench.collect(6_000);
    let firsts: Vec<_> = broker.script().fetches.iter().take(6).map(|f| f.partitions[0].1).collect();
    assert!((0..3).all(|p| firsts.contains(&p)), "{firsts:?}");
    bench.assert_idle();
}

#[test]
fn a_batch_no_buffer_holds_is_a_typed_error_for_its_partition_alone() {
    let broker = FakeBroker::start(1);
    let huge = vec![7; 2 * FRAME];
    fill(&broker, 0, 10, Compression::None);
    broker.log("t", 0, |log| log.append(&[&huge], Compression::None));
    for partition in 1..3 {
        fill(&broker, partition, 500, Compression::None);
    }
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1; 3]);
    let slots: Vec<_> = (0..3).map(|p| bench.fetcher.add("t", p, 0).unwrap()).collect();
    let mut got = Vec::new();
    bench.turn_until(|bench| {
        got.extend(bench.take(false));
        got.len() >= 1_010 && !bench.faults.is_empty()
    });
    for (partition, slot) in (0..).zip(&slots) {
        assert_eq!(of(&got, *slot), expected(*slot, partition, 0..if partition == 0 { 10 } else { 500 }));
    }
    let [(slot, FetchFault::TooLarge { offset: 10, needed, row })] = bench.faults[..] else {
        panic!("{:?}", bench.faults)
    };
    assert_eq!((slot, row), (slots[0], FRAME));
    assert!(needed > 2 * FRAME, "{needed}");
    bench.assert_idle();
}

#[test]
fn the_oversize_buffer_takes_what_no_frame_holds_and_comes_back() {
    let broker = FakeBroker::start(1);
    let huge = vec![7; 2 * FRAME];
    fill(&broker, 0, 10, Compression::None);
    broker.log("t", 0, |log| log.append(&[&huge], Compression::None));
    broker.log("t", 0, |log| log.append(&[&huge], Compression::Lz4));
    fill(&broker, 1, 500, Compression::None);
    let mut bench = Bench::new(3, 3 * FRAME);
    bench.leaders(&[&broker], &[1; 2]);
    let slots: Vec<_> = (0..2).map(|p| bench.fetcher.add("t", p, 0).unwrap()).collect();
    let got = bench.collect(512);
    assert_eq!(of(&got, slots[1]), expected(slots[1], 1, 0..500));
    let of_zero = of(&got, slots[0]);
    assert_eq!(of_zero[..10], expected(slots[0], 0, 0..10));
    assert!(of_zero[10..].iter().all(|(.., value)| *value == huge), "plain and decompressed");
    bench.assert_idle();
    assert!(bench.fetcher.pool.take_oversize(3 * FRAME).is_ok());
}

#[test]
fn a_batch_that_decompresses_beyond_its_limit_is_refused() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 10, Compression::Lz4);
    broker.log("t", 0, |log| log.append(&[&vec![0; 4 * FRAME]], Compression::Lz4));
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    assert_eq!(bench.collect(10), expected(slot, 0, 0..10));
    let (_, fault) = bench.until_fault();
    assert_eq!(fault, FetchFault::TooLarge { offset: 10, needed: FRAME + 1, row: FRAME });
    bench.assert_idle();
}

#[test]
fn compressed_answers_of_two_brokers_do_not_block_each_other_with_three_frames() {
    let (one, two) = (FakeBroker::start(1), FakeBroker::start(2));
    fill(&one, 0, 3_000, Compression::Lz4);
    fill(&two, 1, 3_000, Compression::Lz4);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&one, &two], &[1, 2]);
    let slots = [bench.fetcher.add("t", 0, 0).unwrap(), bench.fetcher.add("t", 1, 0).unwrap()];
    // Both answers are received before anything is taken: no frame is left to decompress into.
    bench.turn_until(|bench| bench.fetcher.inbox.queue.len() == 2);
    assert_eq!(bench.fetcher.pool().free(), 0);
    let got = bench.collect(6_000);
    for (partition, slot) in (0..).zip(slots) {
        assert_eq!(of(&got, slot), expected(slot, partition, 0..3_000));
    }
    bench.assert_idle();
}

#[test]
fn taking_one_partition_only_is_no_dead_end_and_keeps_the_order_of_the_others() {
    let (one, two) = (FakeBroker::start(1), FakeBroker::start(2));
    fill(&one, 0, 3_000, Compression::Lz4);
    fill(&two, 1, 3_000, Compression::Lz4);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&one, &two], &[1, 2]);
    let slots = [bench.fetcher.add("t", 0, 0).unwrap(), bench.fetcher.add("t", 1, 0).unwrap()];
    let mut got = Vec::new();
    for (partition, slot) in [(1, slots[1]), (0, slots[0])] {
        bench.turn_until(|bench| {
            while let Some(batch) = bench.fetcher.next_batch(slot) {
                got.extend(read(&bench.fetcher, &batch));
                bench.fetcher.release(batch.frame);
            }
            bench.fetcher.position(slot) == 3_000
        });
        assert_eq!(of(&got, slot), expected(slot, partition, 0..3_000));
    }
    bench.assert_idle();
}

#[test]
fn removing_a_partition_gives_its_frames_back_and_its_place_is_clean_for_the_next() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 1_000, Compression::None);
    fill(&broker, 1, 20, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1, 1]);
    let old = bench.fetcher.add("t", 0, 0).unwrap();
    bench.turn_until(|bench| !bench.fetcher.inbox.queue.is_empty());
    bench.fetcher.remove(old);
    assert_eq!(bench.fetcher.pool().free(), 2);
    let new = bench.fetcher.add("t", 1, 0).unwrap();
    assert_eq!(old, new, "the number is used again");
    assert_eq!(bench.collect(20), expected(new, 1, 0..20));
    bench.assert_idle();
}

#[test]
fn a_pool_too_small_to_make_progress_is_refused() {
    let error = |frames, bytes, reserved| {
        let pool = FramePool::new(frames, bytes, reserved, Oversize::none());
        Fetcher::new(FetcherSettings::default(), pool, SharedMetadata::new()).unwrap_err()
    };
    assert_eq!(error(2, FRAME, 1), FetcherError::Frames { frames: 2, reserved: 1 });
    assert_eq!(error(3, FRAME, 0), FetcherError::Frames { frames: 3, reserved: 0 });
    assert_eq!(error(3, 1_024, 1), FetcherError::FrameBytes { frame_bytes: 1_024, needed: 32_768 });
}

#[test]
fn stamped_batches_keep_their_header() {
    let broker = FakeBroker::start(1);
    let stamp = Stamp { producer_id: 5, producer_epoch: 2, base_sequence: 9, transactional: false };
    broker.log("t", 0, |log| log.batches.push((0, 1, batch(0, &[b"v"], Compression::None, &stamp))));
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    bench.fetcher.add("t", 0, 0).unwrap();
    let mut header = None;
    bench.turn_until(|bench| {
        if let Some(Fetched::Batch(batch)) = bench.fetcher.next() {
            header = Some(batch.header);
            bench.fetcher.release(batch.frame);
        }
        header.is_some()
    });
    let header = header.unwrap();
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence, header.count), (5, 2, 9, 1));
    bench.assert_idle();
}

#[test]
fn nothing_is_allocated_from_socket_to_record() {
    assert!(plimsoll_alloc::is_installed());
    for codec in [Compression::None, Compression::Lz4] {
        let (one, two) = (FakeBroker::start(1), FakeBroker::start(2));
        for partition in 0..4 {
            fill(if partition % 2 == 0 { &one } else { &two }, partition, 20_000, codec);
        }
        let mut bench = Bench::new(6, 0);
        bench.leaders(&[&one, &two], &[1, 2, 1, 2]);
        let slots = [0, 1, 2, 3].map(|partition| bench.fetcher.add("t", partition, 0).unwrap());
        let mut read_until = |offset: i64| {
            let mut records = 0;
            while slots.iter().any(|slot| bench.fetcher.position(*slot) < offset) {
                bench.turn();
                while let Some(Fetched::Batch(batch)) = bench.fetcher.next() {
                    let mut cursor = RecordCursor::new(&batch.header);
                    while cursor.next(bench.fetcher.records_of(&batch)).unwrap().is_some() {
                        records += 1;
                    }
                    bench.fetcher.release(batch.frame);
                }
            }
            records
        };
        let warm = read_until(1_000);
        let (records, seen) = plimsoll_alloc::testing::allocations(|| read_until(20_000));
        assert_eq!(warm + records, 80_000);
        assert_eq!((seen.calls(), seen.bytes), (0, 0), "{codec:?}");
        bench.assert_idle();
    }
}
