//! Error by step: what becomes of a transaction whose request is answered with each code once. Scripted brokers, both
//! protocols, the whole way through the producer.
use super::Bench;
use super::coordinator::{ADD_OFFSETS, ADD_PARTITIONS, COMMIT_OFFSETS, END, FIND, Fault, INIT};
use super::fake::Act;
use super::transactions::{WHO, cluster, offset};
use crate::produce::{TxnError, TxnState};

/// What becomes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// Tried again, committed.
    Committed,
    /// Must be aborted; the next one is committed.
    Aborted,
    /// The producer is at its end.
    Fatal,
    /// So, and it was told that it was fenced.
    Fenced,
}

use Fate::{Aborted, Committed, Fatal, Fenced};

/// A transaction of one record and one offset, with one fault; then, if it can be, another one.
fn fate(version: i16, api: i16, code: i16) -> Fate {
    let cluster = cluster(version);
    cluster.state().transactions.fault(api, Fault::Error(code));
    let mut bench = Bench::transactional(&cluster, "tx");
    let fate = run(&mut bench, 0);
    let used = cluster.state().transactions.faults[&api].is_empty();
    assert!(used, "version {version}, api {api}: the fault was never met");
    let expected: &[bool] = match fate {
        Committed => &[true, true],
        // Without EndTxn when the coordinator does not know the producer: it aborts by the new epoch.
        Aborted => &[false, true],
        Fatal | Fenced => return fate,
    };
    assert_eq!(run(&mut bench, 1), Committed, "version {version}, api {api}, code {code}");
    let state = cluster.state();
    let ended: Vec<bool> = state.transactions.ended.clone();
    // A transaction of which the coordinator has not heard anything needs no abort.
    assert!(ended == expected || (fate == Aborted && ended == [true]), "{version} {api} {code}: {ended:?}");
    assert_eq!(state.transactions.offsets.last().unwrap().6, 1);
    fate
}

fn run(bench: &mut Bench, round: i64) -> Fate {
    let topic = bench.producer.topic("a");
    let slot = bench.producer.ack_slot();
    match bench.settle() {
        TxnState::Ready => {}
        state => return over(state),
    }
    bench.producer.begin().unwrap();
    bench.append(topic, 0, &round.to_string(), slot);
    bench.producer.send_offsets(&WHO, [offset(0, round)].into_iter()).unwrap();
    match bench.commit() {
        TxnState::Ready => Committed,
        TxnState::Failed(error) => {
            assert!(matches!(error, TxnError::Refused { .. } | TxnError::Delivery(_)), "{error}");
            match bench.abort() {
                TxnState::Ready => Aborted,
                state => over(state),
            }
        }
        state => over(state),
    }
}

fn over(state: TxnState) -> Fate {
    match state {
        TxnState::Fatal(TxnError::Fenced { .. }) => Fenced,
        TxnState::Fatal(_) => Fatal,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn all(version: i16, api: i16, codes: &[i16], expected: Fate) {
    for code in codes {
        assert_eq!(fate(version, api, *code), expected, "version {version}, api {api}, code {code}");
    }
}

#[test]
fn finding_and_starting() {
    for version in [1, 2] {
        all(version, FIND, &[15, 14], Committed);
        all(version, FIND, &[53, -1], Fatal);
        all(version, INIT, &[14, 15, 16, 51], Committed);
        all(version, INIT, &[50, 53, 31, -1, 35], Fatal);
        all(version, INIT, &[90, 47], Fenced);
    }
}

#[test]
fn adding_partitions_and_offsets() {
    for api in [ADD_PARTITIONS, ADD_OFFSETS] {
        all(1, api, &[14, 15, 16, 51], Committed);
        all(1, api, &[49, 59, 120], Aborted);
        all(1, api, &[48, 53], Fatal);
        all(1, api, &[47, 90], Fenced);
    }
    all(1, ADD_PARTITIONS, &[3], Committed);
    all(1, ADD_PARTITIONS, &[29, 55, -1], Aborted);
    all(1, ADD_OFFSETS, &[30], Aborted);
    all(1, ADD_OFFSETS, &[-1], Fatal);
}

#[test]
fn committing_offsets() {
    for version in [1, 2] {
        all(version, COMMIT_OFFSETS, &[3, 7, 14, 15, 16, 51], Committed);
        all(version, COMMIT_OFFSETS, &[22, 25, 82, 113, 30, 120, 49], Aborted);
        all(version, COMMIT_OFFSETS, &[43, 53, -1], Fatal);
        all(version, COMMIT_OFFSETS, &[47, 90], Fenced);
    }
}

#[test]
fn ending() {
    for version in [1, 2] {
        all(version, END, &[14, 15, 16, 51], Committed);
        all(version, END, &[120, 49, 59], Aborted);
        all(version, END, &[48, 53, -1], Fatal);
        all(version, END, &[47, 90], Fenced);
    }
}

/// Codes of Produce, within a transaction.
#[test]
fn producing() {
    for version in [1, 2] {
        let produced = |code: i16| {
            let cluster = cluster(version);
            let mut left = 1;
            cluster.script(move |_| match left {
                0 => Act::Normal,
                _ => {
                    left -= 1;
                    Act::Error(code)
                }
            });
            let mut bench = Bench::transactional(&cluster, "tx");
            let fate = run(&mut bench, 0);
            if matches!(fate, Committed | Aborted) {
                assert_eq!(run(&mut bench, 1), Committed, "version {version}, code {code}");
                let values = cluster.values("a", 0);
                let expected: &[&str] = if fate == Committed { &["0", "1"] } else { &["1"] };
                assert_eq!(values, expected, "version {version}, code {code}");
            }
            fate
        };
        for code in [6, 19, 51, 14] {
            assert_eq!(produced(code), Committed, "version {version}, code {code}");
        }
        for code in [29, 48, 120, 45, 47, 87] {
            assert_eq!(produced(code), Aborted, "version {version}, code {code}");
        }
        // A log whose beginning is gone, and with it the producer: from sequence 0, within the transaction.
        assert_eq!(produced(59), Committed);
        for code in [31, 49, 53] {
            assert_eq!(produced(code), Fatal, "version {version}, code {code}");
        }
        assert_eq!(produced(90), Fenced);
    }
}
