//! The broker harness itself: what the other tests rely on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod support;

use support::broker::{Cluster, Options};
use support::oracle::{self, Rec};

#[test]
fn what_is_written_is_read_and_administered() {
    let Some(kafka) = support::kafka() else { return };
    let topic = kafka.unique("harness");
    oracle::create_topic(kafka.bootstrap(), &topic, 2, &[("cleanup.policy", "compact")]);
    assert_eq!(oracle::partitions(kafka.bootstrap(), &topic), Some(2));
    assert_eq!(oracle::topic_config(kafka.bootstrap(), &topic, "cleanup.policy").as_deref(), Some("compact"));
    let mut second = Rec::new(1, 1_700_000_000_001, "k", "v");
    second.headers = vec![("a".to_owned(), Some(b"b".to_vec())), ("n".to_owned(), None)];
    let written = [Rec::new(0, 1_700_000_000_000, "a", "1"), second];
    oracle::produce(kafka.bootstrap(), &topic, &written, &[("compression.type", "zstd")]);
    assert_eq!(oracle::read_all(kafka.bootstrap(), &topic), written);
    assert_eq!(oracle::watermarks(kafka.bootstrap(), &topic, 1), (0, 1));
    assert_eq!(oracle::committed(kafka.bootstrap(), "nobody", &topic, 2), [None, None]);
    oracle::delete_topic(kafka.bootstrap(), &topic);
    oracle::wait("the deletion", || oracle::partitions(kafka.bootstrap(), &topic).is_none().then_some(()));
}

#[test]
fn a_killed_node_comes_back_with_its_log_and_nothing_stays_behind() {
    let Some(cluster) = Cluster::start(&Options::default()) else { return };
    oracle::create_topic(cluster.bootstrap(), "kept", 1, &[]);
    oracle::produce(cluster.bootstrap(), "kept", &[Rec::new(0, 7, "a", "1")], &[]);
    cluster.kill(0);
    assert!(std::net::TcpStream::connect(("127.0.0.1", cluster.port(0))).is_err());
    cluster.restart(0);
    assert_eq!(oracle::read_all(cluster.bootstrap(), "kept"), [Rec::new(0, 7, "a", "1")]);
    cluster.pause(0);
    cluster.resume(0);
    let port = cluster.port(0);
    drop(cluster);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}
