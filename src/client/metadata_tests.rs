//! The metadata client against scripted brokers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::client::Reach;
use crate::client::fake::FakeBroker;
use std::time::{Duration, Instant};

struct Bench {
    client: MetadataClient,
    shared: SharedMetadata,
    polls: PollSet,
    start: Instant,
}

impl Bench {
    fn new(bootstrap: &[SocketAddr]) -> Self {
        let list = bootstrap.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let shared = SharedMetadata::new();
        let polls = PollSet::new().unwrap();
        shared.attach(polls.waker());
        let settings = MetadataSettings { retry_backoff_ms: 10, ..MetadataSettings::new("test", &list) };
        Self { client: MetadataClient::new(settings, shared.clone()), shared, polls, start: Instant::now() }
    }

    fn turn(&mut self) {
        self.polls.clear();
        let now = self.start.elapsed().as_millis() as i64;
        let due = self.client.prepare(&mut self.polls, now);
        self.polls.wait(Some(Duration::from_millis((due - now).clamp(0, 20) as u64))).unwrap();
        self.client.process(&self.polls, self.start.elapsed().as_millis() as i64);
    }

    fn until(&mut self, mut done: impl FnMut(&SharedMetadata) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !done(&self.shared) {
            assert!(Instant::now() < end, "{:?}", self.shared.latest());
            self.turn();
        }
    }
}

fn unused() -> SocketAddr {
    FakeBroker::start(1).addr
}

#[test]
fn leaders_are_published_and_a_missing_topic_is_asked_for_until_it_is_there() {
    let broker = FakeBroker::start(1);
    broker.script().brokers = vec![(1, broker.addr), (2, unused())];
    broker.script().topics.insert("t".into(), Err(3));
    let mut bench = Bench::new(&[broker.addr]);
    bench.shared.want_topic("t").unwrap();
    bench.until(|shared| shared.latest().topic("t").is_some_and(|t| t.state == TopicState::Missing));
    broker.script().topics.insert("t".into(), Ok(vec![2, 1]));
    bench.until(|shared| shared.latest().partitions("t") == Some(2));
    let snapshot = bench.shared.latest();
    assert_eq!(snapshot.partition("t", 0), Some(PartitionInfo { leader: 2, leader_epoch: 7 }));
    assert_eq!(snapshot.broker(1).unwrap().addrs, [broker.addr]);
    assert_eq!(bench.shared.reach(), Reach::Reachable);
    // Complete: nothing more is asked for, until somebody wants to know more.
    let (asked, version) = (broker.script().metadata, bench.shared.version());
    for _ in 0..5 {
        bench.turn();
    }
    assert_eq!(broker.script().metadata, asked);
    broker.script().topics.insert("u".into(), Ok(vec![1]));
    bench.shared.want_topic("u").unwrap();
    bench.until(|shared| shared.latest().partitions("u") == Some(1));
    assert_eq!(bench.shared.version(), version + 1);
}

#[test]
fn an_unreachable_cluster_is_reported_and_found_when_it_comes() {
    let addr = unused();
    let mut bench = Bench::new(&[addr]);
    bench.until(|shared| matches!(shared.reach(), Reach::Unreachable { attempts: 3.., .. }));
    assert_eq!(bench.shared.version(), 0);
    let broker = FakeBroker::start_at(1, addr);
    broker.script().brokers = vec![(1, addr)];
    bench.until(|shared| shared.version() > 0);
    assert_eq!(bench.shared.reach(), Reach::Reachable);
}

#[test]
fn the_next_bootstrap_server_is_tried_at_once() {
    let broker = FakeBroker::start(1);
    broker.script().brokers = vec![(1, broker.addr)];
    let mut bench = Bench::new(&[unused(), broker.addr]);
    bench.until(|shared| shared.version() > 0);
    assert!(bench.start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_lost_connection_is_replaced_at_the_next_refresh() {
    let broker = FakeBroker::start(1);
    broker.script().brokers = vec![(1, broker.addr)];
    let mut bench = Bench::new(&[broker.addr]);
    bench.until(|shared| shared.version() == 1);
    broker.drop_connections();
    bench.turn();
    bench.shared.request_refresh();
    bench.until(|shared| shared.version() == 2);
}

#[test]
fn an_older_leader_epoch_is_no_news() {
    let broker = FakeBroker::start(1);
    broker.script().brokers = vec![(1, broker.addr), (2, broker.addr)];
    broker.script().topics.insert("t".into(), Ok(vec![1]));
    let mut bench = Bench::new(&[broker.addr]);
    bench.shared.want_topic("t").unwrap();
    bench.until(|shared| shared.latest().partitions("t") == Some(1));
    bench.shared.hint(&crate::client::Hint { topic: "t", partition: 0, leader: 2, leader_epoch: 8 });
    let version = bench.shared.version();
    bench.until(|shared| shared.version() > version);
    let newest = PartitionInfo { leader: 2, leader_epoch: 8 };
    assert_eq!(bench.shared.latest().partition("t", 0), Some(newest));
}
