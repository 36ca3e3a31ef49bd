//! Versions against a map of maps, and Kafka Streams' answers at the edges.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::super::tests::Bench;
use super::*;
use crate::codec::Utf8;
use std::collections::BTreeMap;

const HISTORY: i64 = 1_000;

fn bench() -> (Bench<Version<Utf8>>, Versions<Utf8>) {
    let bench = Bench::made(make_versioned(Utf8, StoreKind::versioned(HISTORY)), true, 1 << 20);
    let versions = Versions::new(Rc::clone(&bench.store));
    (bench, versions)
}

fn key(text: &str) -> Vec<u8> {
    [&0u32.to_be_bytes()[..], text.as_bytes()].concat()
}

fn as_of(bench: &Bench<Version<Utf8>>, versions: &Versions<Utf8>, text: &str, time: i64) -> Option<(String, i64)> {
    let owned = |found: Option<(&str, i64, Option<i64>)>| found.map(|(value, time, _)| (value.to_owned(), time));
    versions.get_as_of(&bench.cx(0), &key(text), time, owned).unwrap()
}

#[test]
fn a_version_says_whether_it_is_the_latest_and_every_one_is_logged_with_its_time() {
    let (bench, versions) = bench();
    let put = |value, time| versions.put(&bench.cx(0), &key("k"), value, time).unwrap();
    assert_eq!(put(Some("a"), 5_000), Put::Latest);
    assert_eq!(put(Some("b"), 6_000), Put::Latest);
    assert_eq!(put(Some("between"), 5_500), Put::Until(6_000));
    assert_eq!(put(None, 5_700), Put::Until(6_000));
    assert_eq!(put(Some("late"), 4_999), Put::Dropped);
    assert_eq!(put(Some("just"), 5_000), Put::Until(5_500));
    let value = |text: &str| Some(text.as_bytes().to_vec());
    let k = || b"k".to_vec();
    let expected = [
        (0, k(), value("a"), 5_000),
        (0, k(), value("b"), 6_000),
        (0, k(), value("between"), 5_500),
        (0, k(), None, 5_700),
        (0, k(), value("late"), 4_999),
        (0, k(), value("just"), 5_000),
    ];
    assert_eq!(bench.logged(), expected);
    for commits in [false, true] {
        if commits {
            bench.commit(0);
        }
        let at = |time| as_of(&bench, &versions, "k", time).map(|(value, _)| value);
        assert_eq!(at(i64::MAX).as_deref(), Some("b"));
        assert_eq!((at(5_499).as_deref(), at(5_500).as_deref()), (Some("just"), Some("between")));
        assert_eq!((at(5_700), at(5_999)), (None, None), "deleted meanwhile");
        assert_eq!(at(4_999), None, "before the history");
    }
}

#[test]
fn the_latest_is_found_however_old_it_is() {
    let (bench, versions) = bench();
    versions.put(&bench.cx(0), &key("old"), Some("v"), 10).unwrap();
    versions.put(&bench.cx(0), &key("new"), Some("w"), 100_000).unwrap();
    bench.commit(0);
    assert_eq!(as_of(&bench, &versions, "old", 50), Some(("v".to_owned(), 10)));
    assert_eq!(as_of(&bench, &versions, "old", 9), None);
}

#[test]
fn versions_equal_a_map_of_maps_and_old_ones_go() {
    let (bench, versions) = bench();
    let mut random = fastrand::Rng::with_seed(5);
    let mut model: BTreeMap<String, BTreeMap<i64, Option<String>>> = BTreeMap::new();
    let (mut observed, mut puts) = (-1i64, 0);
    for round in 0..6_000i64 {
        let text = random.u32(..20).to_string();
        let time = (round * 3 - random.i64(0..400)).max(0);
        if random.u32(..3) == 0 {
            let at = observed - random.i64(0..HISTORY);
            let of_key = model.get(&text);
            let expected = of_key.and_then(|all| all.range(..=at).next_back());
            let expected = expected.and_then(|(time, value)| Some((value.clone()?, *time)));
            assert_eq!(as_of(&bench, &versions, &text, at), expected, "{text} at {at} of {observed}");
            continue;
        }
        let value = (random.u32(..4) > 0).then(|| format!("v{round}"));
        let put = versions.put(&bench.cx(0), &key(&text), value.as_deref(), time).unwrap();
        let all = model.entry(text).or_default();
        let next = all.range(time + 1..).next().map(|(time, _)| *time);
        assert_eq!(put, next.map_or(Put::Latest, Put::Until));
        all.insert(time, value);
        (observed, puts) = (observed.max(time), puts + 1);
        if round % 50 == 0 {
            bench.commit(0);
        }
    }
    bench.commit(0);
    let mut rows = 0;
    let mut count = |_: &[u8], _: &[u8]| {
        rows += 1;
        true
    };
    let (from, to) = (0u32.to_be_bytes(), 1u32.to_be_bytes());
    let backend: &dyn crate::store::backend::Backend = &*bench.backend;
    backend.scan(crate::base::id::StoreId(0), &from, &to, Order::Forward, &mut count).unwrap();
    // Some 220 puts fall into the history.
    assert!(puts > 3_500 && rows < 700, "{rows} rows of {puts} versions are left");
}
