//! Records in, counts out: what the tests write and what must come of it.
use crate::process::{Kind, Spec};
use crate::support::broker::Cluster;
use crate::support::oracle::{self, Rec};
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A topology over topics of its own: made, with so many partitions.
pub(crate) fn made(kafka: &Cluster, kind: Kind, name: &str, partitions: i32, state: &std::path::Path) -> Spec {
    let spec = Spec::new(kind, kafka.bootstrap(), &kafka.unique(name), state);
    oracle::create_topic(kafka.bootstrap(), &spec.input, partitions, &[]);
    oracle::create_topic(kafka.bootstrap(), &spec.output, partitions, &[]);
    spec
}

/// `count` records over `keys` keys, each key in the partition of its number, with the value `v`.
pub(crate) fn of_keys(count: usize, keys: usize, partitions: usize) -> Vec<Rec> {
    let partition = |key: usize| i32::try_from(key % partitions).unwrap();
    let now = now();
    (0..count).map(|i| Rec::new(partition(i % keys), now, &format!("k{}", i % keys), "v")).collect()
}

/// One record in partition 0.
pub(crate) fn one(key: &str, value: &str) -> Rec {
    Rec::new(0, now(), key, value)
}

/// Milliseconds since the epoch. Old records would be deleted by the broker while the tests run.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}

pub(crate) fn write(spec: &Spec, records: &[Rec]) {
    oracle::produce(&spec.bootstrap, &spec.input, records, &[]);
}

/// How often each key is in the input: the truth.
pub(crate) fn truth(spec: &Spec) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for record in oracle::read_all(&spec.bootstrap, &spec.input) {
        *counts.entry(text(record.key.as_deref())).or_insert(0) += 1;
    }
    counts
}

/// The last count of each key in the output.
pub(crate) fn counts(spec: &Spec) -> BTreeMap<String, i64> {
    let last = |record: Rec| {
        let value: [u8; 8] = record.value.unwrap().try_into().unwrap();
        (text(record.key.as_deref()), i64::from_be_bytes(value))
    };
    oracle::read_all(&spec.bootstrap, &spec.output).into_iter().map(last).collect()
}

/// The values of the output, in order.
pub(crate) fn values(spec: &Spec) -> Vec<String> {
    oracle::read_all(&spec.bootstrap, &spec.output).into_iter().map(|r| text(r.value.as_deref())).collect()
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8(bytes.unwrap_or_default().to_vec()).unwrap()
}

/// Waits until everything that is in the input is committed by the application's group.
pub(crate) fn await_committed(spec: &Spec) {
    let partitions = i32::try_from(oracle::partitions(&spec.bootstrap, &spec.input).unwrap()).unwrap();
    let ends: Vec<i64> =
        (0..partitions).map(|partition| oracle::watermarks(&spec.bootstrap, &spec.input, partition).1).collect();
    until("everything to be committed", || {
        let committed = oracle::committed(&spec.bootstrap, &spec.application, &spec.input, partitions);
        committed.iter().zip(&ends).all(|(at, end)| at.as_ref().map_or(0, |(offset, _)| *offset) >= *end)
    });
}

/// Committed offset of partition 0 of the input, 0 when there is none.
pub(crate) fn committed(spec: &Spec) -> i64 {
    oracle::committed(&spec.bootstrap, &spec.application, &spec.input, 1)[0].as_ref().map_or(0, |(offset, _)| *offset)
}

/// Waits up to a minute: the machine may be busy.
pub(crate) fn until(what: &str, probe: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !probe() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
