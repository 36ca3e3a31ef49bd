//! What is read is what was written, whatever the way.
use super::*;
use crate::client::fake::{batch, marker};
use crate::wire::message::AbortedTransaction;
use crate::wire::{Compression, Stamp};

#[test]
fn records_arrive_in_order_when_the_answer_trickles_byte_by_byte() {
    let broker = FakeBroker::start(1);
    broker.script().dribble = true;
    fill(&broker, 0, 30, Compression::None);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    assert_eq!(bench.collect(30), expected(slot, 0, 0..30));
    assert_eq!((bench.fetcher.position(slot), bench.fetcher.high_watermark(slot)), (30, Some(30)));
    bench.assert_idle();
}

#[test]
fn several_brokers_are_read_at_once_each_for_what_it_leads() {
    let (one, two) = (FakeBroker::start(1), FakeBroker::start(2));
    for partition in 0..4 {
        fill([&one, &two][partition as usize % 2], partition, 200, Compression::Lz4);
    }
    let mut bench = Bench::new(4, 0);
    bench.leaders(&[&one, &two], &[1, 2, 1, 2]);
    let slots: Vec<_> = (0..4).map(|p| bench.fetcher.add("t", p, 0).unwrap()).collect();
    let got = bench.collect(800);
    for (partition, slot) in (0..).zip(&slots) {
        assert_eq!(of(&got, *slot), expected(*slot, partition, 0..200));
    }
    let asked = |broker: &FakeBroker| broker.script().fetches[0].partitions.iter().map(|p| p.1).sum::<i32>();
    assert_eq!((asked(&one), asked(&two)), (2, 1 + 3));
    bench.assert_idle();
}

#[test]
fn reading_begins_inside_a_batch_where_it_was_told_to() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 30, Compression::Lz4);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 17).unwrap();
    assert_eq!(bench.collect(13), expected(slot, 0, 17..30));
    bench.fetcher.seek(slot, 4);
    assert_eq!(bench.collect(26), expected(slot, 0, 4..30));
    bench.assert_idle();
}

#[test]
fn a_corrupt_batch_is_a_fault_after_the_good_ones_before_it() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 30, Compression::None);
    broker.log("t", 0, |log| log.batches[2].2[80] ^= 1);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    assert_eq!(bench.collect(20), expected(slot, 0, 0..20));
    fill(&broker, 0, 60, Compression::None);
    for _ in 0..20 {
        bench.turn();
        assert!(bench.take(false).is_empty(), "nothing behind the fault");
    }
    let (at, fault) = bench.faults.remove(0);
    assert_eq!(at, slot);
    assert!(matches!(fault, FetchFault::Undecodable { offset: 20, error: crate::wire::WireError::BadCrc { .. } }));
    assert_eq!(bench.fetcher.position(slot), 20);
    broker.log("t", 0, |log| log.batches[2].2[80] ^= 1);
    bench.fetcher.seek(slot, 20);
    assert_eq!(bench.collect(40), expected(slot, 0, 20..60));
    bench.assert_idle();
}

#[test]
fn an_old_message_format_is_refused_by_name() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 10, Compression::None);
    broker.log("t", 0, |log| log.batches[0].2[16] = 1);
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    bench.fetcher.add("t", 0, 0).unwrap();
    let (_, fault) = bench.until_fault();
    assert!(fault.to_string().contains("message format 1"), "{fault}");
    bench.assert_idle();
}

#[test]
fn markers_are_passed_over_and_move_the_position() {
    let broker = FakeBroker::start(1);
    fill(&broker, 0, 10, Compression::None);
    broker.log("t", 0, |log| log.batches.push((10, 11, marker(10, 7, true))));
    fill(&broker, 0, 21, Compression::None);
    broker.log("t", 0, |log| log.batches.push((21, 22, marker(21, 7, true))));
    let mut bench = Bench::new(3, 0);
    bench.leaders(&[&broker], &[1]);
    let slot = bench.fetcher.add("t", 0, 0).unwrap();
    let got = bench.collect(20);
    assert_eq!(got, [expected(slot, 0, 0..10), expected(slot, 0, 11..21)].concat());
    bench.turn_until(|bench| bench.take(false).is_empty() && bench.fetcher.position(slot) == 22);
    bench.assert_idle();
}

#[test]
fn aborted_transactions_are_left_out_when_reading_committed_only() {
    let broker = FakeBroker::start(1);
    let transactional = |base, producer_id, text: &str| {
        let stamp = Stamp { producer_id, producer_epoch: 0, base_sequence: 0, transactional: true };
        (base, base + 1, batch(base, &[text.as_bytes()], Compression::None, &stamp))
    };
    broker.log("t", 0, |log| {
        log.batches = vec![
            transactional(0, 7, "void"),
            transactional(1, 8, "good"),
            (2, 3, marker(2, 7, false)),
            transactional(3, 7, "later"),
            (4, 5, marker(4, 7, true)),
            (5, 6, marker(5, 8, true)),
        ];
        log.aborted = vec![AbortedTransaction { producer_id: 7, first_offset: 0 }];
    });
    for (read_committed, texts) in [(true, &["good", "later"][..]), (false, &["void", "good", "later"])] {
        let settings = FetcherSettings { max_wait_ms: 100, read_committed, ..FetcherSettings::default() };
        let mut bench = Bench::with(settings, 3, 0);
        bench.leaders(&[&broker], &[1]);
        let slot = bench.fetcher.add("t", 0, 0).unwrap();
        let mut got = Vec::new();
        bench.turn_until(|bench| {
            got.extend(bench.take(false).into_iter().map(|(.., value)| String::from_utf8(value).unwrap()));
            bench.fetcher.position(slot) == 6
        });
        assert_eq!(got, texts);
        bench.assert_idle();
    }
}
