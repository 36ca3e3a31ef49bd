//! The control plane's memory: every byte of librdkafka's handle is module Consumer's, and how much that is.
//!
//! A test program of its own, so that nothing else moves the counters. It takes the sources of the handle as they
//! are, since none of this is public.
#![cfg(target_os = "linux")]
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../src/base"]
mod base {
    pub(crate) mod partition;
    pub(crate) mod secret;
    pub(crate) mod token;
}
#[path = "../src/ffi"]
mod ffi {
    pub(crate) mod kafka;
    pub(crate) mod kafka_conf;
    pub(crate) mod kafka_error;
    pub(crate) mod kafka_event;
    pub(crate) mod kafka_list;
    pub(crate) mod kafka_mock;
}

use std::time::{Duration, Instant};

use ffi::kafka::Handle;
use ffi::kafka_conf::HandleSettings;
use ffi::kafka_event::Event;
use ffi::kafka_mock::MockCluster;
use plimsoll_alloc::{Module, live_all};

plimsoll_alloc::install!();

/// Partitions of the topic, as many as a mid-sized application reads.
const PARTITIONS: u32 = 100;
/// Live bytes that the handle may hold, joined to a group of its own with that many partitions.
const MOST_LIVE: i64 = 2 << 20;
/// The same with the allocator's slack: six threads, each with its cache.
const MOST_COMMITTED: u64 = 4 << 20;

fn consumer_live() -> u64 {
    live_all()[Module::Consumer as usize]
}

#[test]
fn the_handles_memory_is_the_consumers_and_small() {
    assert!(plimsoll_alloc::is_installed());
    let mock = MockCluster::start(3).unwrap();
    mock.create_topic("words", PARTITIONS).unwrap();
    // What librdkafka makes once a process, and keeps, belongs to the first round.
    // A group each: the mock cluster does not take up one that became empty.
    let first = round(mock.bootstrap_servers(), "first");
    let second = round(mock.bootstrap_servers(), "second");
    println!("{first:?} then {second:?}");
    assert!(second.joined > 50_000, "the handle's memory is missing");
    assert!(second.joined < MOST_LIVE, "{second:?}");
    assert!(second.committed < MOST_COMMITTED, "{second:?}");
    assert!(first.left < 128 << 10, "{first:?}");
    assert!(second.left < 4 << 10, "a closed handle left memory behind: {second:?}");
}

/// Live bytes of module Consumer, over those before the handle was made.
#[derive(Debug)]
struct Round {
    started: i64,
    joined: i64,
    /// Committed bytes of the module when joined: what the plan's row must hold.
    committed: u64,
    left: i64,
}

fn round(bootstrap: &str, group_id: &str) -> Round {
    let before = live_all();
    let live = || i64::try_from(consumer_live()).unwrap() - i64::try_from(before[Module::Consumer as usize]).unwrap();
    let user = [("bootstrap.servers".to_owned(), bootstrap.to_owned())];
    let settings =
        HandleSettings { user: &user, owned: &[], group_id, client_id: "c", instance_id: None, read_committed: false };
    let handle = Handle::start(&settings).unwrap();
    let started = live();
    handle.subscribe(&["words"]).unwrap();
    join(&handle);
    let joined = live();
    let committed = plimsoll_alloc::committed(Module::Consumer);

    let threads = plimsoll_alloc::threads();
    let consumers = threads.iter().filter(|(_, _, module)| *module == Module::Consumer).count();
    assert!(consumers >= 4, "main, three brokers and more: {threads:?}");
    let after = live_all();
    for module in Module::ALL {
        // The mock cluster and this test are App's.
        if !matches!(module, Module::Consumer | Module::App) {
            assert_eq!(after[module as usize], before[module as usize], "{module:?}");
        }
    }
    leave(handle);
    Round { started, joined, committed, left: live() }
}

fn leave(handle: Handle) {
    let closing = handle.begin_close().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !closing.is_closed() {
        assert!(Instant::now() < deadline, "it does not close");
        if let Some(Event::Revoke { .. }) = closing.poll(Duration::from_millis(20)) {
            handle.unassign().unwrap();
        }
    }
    drop(closing);
    drop(handle);
}

fn join(handle: &Handle) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        assert!(Instant::now() < deadline, "no assignment");
        if let Some(Event::Assign(partitions)) = handle.poll(Duration::from_millis(50)) {
            assert_eq!(partitions.len(), PARTITIONS as usize);
            handle.assign_nothing().unwrap();
            break;
        }
    }
    // Whatever the first round of metadata and heartbeats allocates and frees is over.
    let settled = Instant::now() + Duration::from_secs(1);
    while Instant::now() < settled {
        handle.poll(Duration::from_millis(50));
    }
}
