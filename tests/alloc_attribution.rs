//! Whose memory it is, in a whole application on a real broker: every thread of the process has its module, what
//! librdkafka and RocksDB allocate moves theirs and nobody else's, and a closed application leaves little.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
mod support;

use plimsoll::prelude::*;
use plimsoll_alloc::{Module, live_all, purge, rss_identity, threads};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::load::{self, Load, Order};
use support::oracle;

plimsoll::install_allocator!();

const LOAD: Load = Load { partitions: 4, keys: 20_000, records: 200_000, order: Order::InTurn };
const PATIENCE: Duration = Duration::from_secs(60);
const KIB: i64 = 1024;

/// Live bytes by module, after what was freed is out of this thread's caches.
fn live() -> [i64; Module::COUNT] {
    Module::ALL.into_iter().for_each(purge);
    live_all().map(|bytes| i64::try_from(bytes).unwrap())
}

/// Runs a count over all records, calls `look` while the application still runs, and closes it.
fn count_words(bootstrap: &str, name: &str, look: impl FnOnce(&App)) {
    let out = format!("{name}-out");
    oracle::create_topic(bootstrap, &out, LOAD.partitions, &[]);
    let state = tempfile::tempdir().unwrap();
    let builder = StreamsBuilder::new();
    let counts = builder.stream("in", Consumed::with(Bytes, Bytes)).group_by_key();
    counts.count(Materialized::named("counts")).to_stream().to(&out);
    let app = App::builder(name, bootstrap)
        .memory(Memory::total(96 * MIB))
        .state_dir(state.path())
        .commit_interval(Duration::from_millis(100))
        .start(builder.build().unwrap())
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    while app.stats().records_in < LOAD.records || app.stats().commits == 0 {
        assert!(!app.state().is_final(), "{:?}", app.failure());
        assert!(Instant::now() < deadline, "{:?} {:?}", app.stats(), app.waiting_for());
        std::thread::sleep(Duration::from_millis(5));
    }
    look(&app);
    app.close(Duration::from_secs(30)).unwrap();
}

/// The module that a thread with this name must have; `None` for those that are the host's.
fn expected(name: &str) -> Option<Module> {
    match name {
        _ if name.starts_with("rdk:") => Some(Module::Consumer),
        _ if name.starts_with("rocksdb:") => Some(Module::Store),
        "plimsoll-restor" => Some(Module::Restore), // the kernel keeps 15 bytes of a name
        _ if name.starts_with("plimsoll") => Some(Module::Engine),
        _ => None,
    }
}

#[test]
fn every_thread_and_every_byte_has_its_module() {
    let Some(kafka) = support::kafka() else { return };
    let bootstrap = kafka.bootstrap();
    oracle::create_topic(bootstrap, "in", LOAD.partitions, &[]);
    load::write(bootstrap, "in", LOAD, 0);
    // What the libraries make once a process, and keep, belongs to the first run.
    count_words(bootstrap, "first", |_| ());
    let before = live();
    count_words(bootstrap, "second", |app| {
        every_thread_has_its_module();
        let grown: [i64; Module::COUNT] = {
            let now = live();
            std::array::from_fn(|i| now[i] - before[i])
        };
        let by_name: BTreeMap<_, _> = Module::ALL.into_iter().map(|m| (m.name(), grown[m.index()])).collect();
        println!("live bytes of a running count: {by_name:?}");
        for (module, at_least) in [
            (Module::Engine, 64 * KIB),
            (Module::Consumer, 64 * KIB),
            (Module::Producer, 256 * KIB),
            (Module::Batch, 1024 * KIB),
            (Module::Cache, 512 * KIB),
            (Module::Store, 256 * KIB),
        ] {
            assert!(grown[module.index()] >= at_least, "{module}: {by_name:?}");
        }
        // The host's own: builder, topology, closures, the thread-local data of threads; and the threads' caches.
        let caches = app.plan().unwrap().row(plimsoll::RowId::ThreadCaches).unwrap().bytes;
        assert!(grown[Module::App.index()] <= caches.cast_signed() + 256 * KIB, "{by_name:?}, caches {caches}");
        let rss = rss_identity().unwrap();
        assert!(rss.unexplained().unsigned_abs() * 100 <= rss.anonymous, "{rss:?}: {}", rss.unexplained());
    });
    let left: [i64; Module::COUNT] = {
        let now = live();
        std::array::from_fn(|i| now[i] - before[i])
    };
    println!("left behind: {left:?}");
    for module in Module::ALL {
        assert!(left[module.index()].abs() <= 128 * KIB, "{module} of a closed application: {left:?}");
    }
}

fn every_thread_has_its_module() {
    let all = threads();
    println!("{all:?}");
    for (_, name, module) in &all {
        if (name.as_str(), *module) == ("plimsoll-contro", Module::Store) {
            continue; // RocksDB's timer: born in Store, named like the thread that opened the database
        }
        if let Some(expected) = expected(name) {
            assert_eq!(*module, expected, "thread {name}: {all:?}");
        }
    }
    for needed in ["rdk:", "rocksdb:", "plimsoll-stream", "plimsoll-restor", "plimsoll-contro", "plimsoll-govern"] {
        let found = all.iter().find(|(_, name, module)| name.starts_with(needed) && Some(*module) == expected(name));
        assert!(found.is_some(), "no thread {needed}: {all:?}");
    }
}
