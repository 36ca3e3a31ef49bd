//! The same fetcher, sender and metadata client as everywhere, over a simulated network and simulated brokers, in
//! virtual time: every record exactly once and in order per partition, whatever a seed makes of the weather.
//!
//! `PLIMSOLL_SIM=FIRST:COUNT` chooses the seeds, `PLIMSOLL_SIM=SEED` runs one. A failure names its seed, and the seed
//! is all there is to a run: it fails again in the same way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unnecessary_operation)]
mod cluster;
mod log;
mod run;
mod serve;

use log::Planted;
use run::{Report, run};
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds without being told otherwise.
const SEEDS: (u64, u64) = (0, 2_000);

/// The seeds to run: the first, and how many.
fn seeds() -> (u64, u64) {
    let Ok(text) = std::env::var("PLIMSOLL_SIM") else { return SEEDS };
    let number = |text: &str| text.parse().expect("PLIMSOLL_SIM is SEED or FIRST:COUNT");
    match text.split_once(':') {
        Some((first, count)) => (number(first), number(count)),
        None => (number(&text), 1),
    }
}

/// One seed; panics become failures.
fn try_one(seed: u64, planted: Option<Planted>) -> Result<Report, String> {
    catch_unwind(|| run(seed, planted)).unwrap_or_else(|panic| Err(text(&*panic)))
}

/// What a panic said.
fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[test]
fn every_record_is_written_and_read_once_and_in_order_on_every_seed() {
    let (first, count) = seeds();
    let next = AtomicU64::new(first);
    let outcome: Mutex<(Report, Vec<String>)> = Mutex::default();
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count || outcome.lock().unwrap().1.len() >= 5 {
                return;
            }
            match try_one(seed, None) {
                Ok(report) => outcome.lock().unwrap().0.add(&report),
                Err(why) => outcome.lock().unwrap().1.push(format!("seed {seed}: {why} (again: PLIMSOLL_SIM={seed})")),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let (report, failures) = outcome.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {count} seeds failed:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(report.seeds, count);
    println!("{report:?}");
    if count >= 100 {
        // What was to be survived did happen.
        let Report { moves, crashes, cut, duplicates, lost, retried, .. } = report;
        for happened in [moves, crashes, cut, duplicates, lost, retried] {
            assert!(happened >= count / 100, "{report:?}");
        }
    }
}

#[test]
fn a_seed_repeats_itself_to_the_last_counter() {
    for seed in 0..10 {
        assert_eq!(try_one(seed, None), try_one(seed, None), "seed {seed}");
    }
}

#[test]
fn bugs_put_into_the_brokers_are_found() {
    for planted in [Planted::AnySequence, Planted::LosesWritten, Planted::RepeatsFetched] {
        let found: Vec<String> = (0..60).filter_map(|seed| try_one(seed, Some(planted)).err()).collect();
        println!("{planted:?}: {} of 60 seeds, {:?}", found.len(), found.first());
        assert!(found.len() >= 5, "{planted:?} is found by {} of 60 seeds: {found:?}", found.len());
        // Found by what was written, acknowledged or read, not by a broker that fell over.
        let told =
            |why: &String| ["read:", "written:", "acknowledged:", "not written:"].iter().any(|w| why.starts_with(w));
        assert!(found.iter().all(told), "{planted:?}: {found:?}");
    }
}
