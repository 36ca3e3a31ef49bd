//! A processor of the user's on a real Apache Kafka: its store, its timer on the wall clock, its commit requests; and
//! that it goes on with what its changelog holds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod support;

use plimsoll::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use support::oracle::{self, Rec};

plimsoll::install_allocator!();

/// How long the application may take; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts the records of each key, commits with every tenth, and tells all counts five times a second.
struct Counts {
    counts: KeyValueStore<Utf8, I64>,
    seen: u32,
}

impl Processor for Counts {
    type KIn = Utf8;
    type VIn = Utf8;
    type KOut = Utf8;
    type VOut = Text;

    fn init(&mut self, cx: &mut Init<'_, '_, Self>) -> Processed {
        cx.schedule(Duration::from_millis(200), PunctuationType::WallClock, |me, cx, now| {
            let mut rows = cx.store(&me.counts)?.all();
            while let Some((key, count)) = rows.next(cx)? {
                let count = count.to_string();
                cx.forward(Record::new(key, count.as_str(), now))?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
        self.seen += 1;
        if self.seen.is_multiple_of(10) {
            cx.commit();
        }
        let counts = cx.store(&self.counts)?;
        let count = counts.get(record.key)?.unwrap_or(0) + 1;
        counts.put(record.key, count)
    }
}

fn topology() -> Topology {
    let builder = StreamsBuilder::new();
    let counts = builder.add_state_store(Stores::key_value("counts", Utf8, I64));
    let how = Processing::new().stores(&[&counts]);
    builder
        .stream("in", Consumed::with(Utf8, Utf8))
        .process_with(Utf8, Text, move || Counts { counts: counts.clone(), seen: 0 }, how)
        .to("out");
    builder.build().unwrap()
}

/// The last count of each key that was told.
fn told(bootstrap: &str) -> BTreeMap<String, String> {
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap_or_default()).unwrap();
    oracle::read_all(bootstrap, "out").into_iter().map(|record| (text(record.key), text(record.value))).collect()
}

/// Runs until these counts are told; offsets are committed on request alone.
fn run(bootstrap: &str, application: &str, state: &Path, wanted: &[(&str, &str)]) {
    let app = App::builder(application, bootstrap)
        .memory(Memory::total(128 * MIB))
        .state_dir(state)
        .commit_interval(Duration::from_secs(600))
        .start(topology())
        .unwrap();
    let wanted: BTreeMap<String, String> = wanted.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let deadline = Instant::now() + PATIENCE;
    while told(bootstrap) != wanted {
        assert!(!app.state().is_final(), "{:?}", app.failure());
        assert!(Instant::now() < deadline, "{:?} instead of {wanted:?}", told(bootstrap));
        std::thread::sleep(Duration::from_millis(100));
    }
    let committed = oracle::committed(bootstrap, application, "in", 1)[0].as_ref().map_or(0, |(offset, _)| *offset);
    assert!(committed >= 20, "a commit was asked for, but {committed} is committed");
    app.close(Duration::from_secs(30)).unwrap();
}

#[test]
fn a_processor_is_called_by_the_clock_and_goes_on_with_its_changelog() {
    let Some(kafka) = support::kafka() else { return };
    let (bootstrap, application) = (kafka.bootstrap(), kafka.unique("processor"));
    for topic in ["in", "out"] {
        oracle::create_topic(bootstrap, topic, 1, &[]);
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    let records: Vec<Rec> = (0..20).map(|n| Rec::new(0, now + n, if n % 4 == 0 { "a" } else { "b" }, "x")).collect();
    for wanted in [[("a", "5"), ("b", "15")], [("a", "10"), ("b", "30")]] {
        oracle::produce(bootstrap, "in", &records, &[]);
        // Each time with an empty directory.
        let state = tempfile::tempdir().unwrap();
        run(bootstrap, &application, state.path(), &wanted);
    }
}
