//! Transactions against Apache Kafka, in both protocols, read by librdkafka's consumer.
use super::{Bench, numbers, settings};
use crate::client::metadata_thread::MetadataThread;
use crate::produce::{GroupMember, Producer, Successor, TxnError, TxnOffset, TxnSettings, TxnState};
use crate::support;
use crate::support::broker::{Cluster, Options};
use crate::support::oracle;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The group's coordinator takes offsets of a group that manages no members.
const NOBODY: GroupMember<'static> = GroupMember { group: "", generation: -1, member: "", instance: None };

/// The shared brokers: of transactions' version 2, the default, and of version 1.
fn clusters() -> Vec<&'static Cluster> {
    static FIRST: OnceLock<Option<Cluster>> = OnceLock::new();
    let first = FIRST.get_or_init(|| Cluster::start(&Options::default().feature("transaction.version", 1))).as_ref();
    support::kafka().into_iter().chain(first).collect()
}

struct Writer {
    bench: Bench,
    _control: MetadataThread,
}

impl Writer {
    fn new(cluster: &Cluster, id: &str) -> Self {
        Self::with(cluster, TxnSettings::new(id))
    }

    fn with(cluster: &Cluster, txn: TxnSettings) -> Self {
        let control = MetadataThread::start(cluster.bootstrap()).unwrap();
        let wanted = settings(1_024, 16);
        let bench = Bench::of(Producer::transactional(wanted, txn, control.metadata.clone(), 0).unwrap());
        Self { bench, _control: control }
    }

    /// As [`Bench::settle`], with the patience that a real broker needs.
    fn settle(&mut self) -> TxnState {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let state = self.bench.state();
            if !matches!(state, TxnState::Starting | TxnState::Committing | TxnState::Aborting) {
                return state;
            }
            assert!(Instant::now() < end, "stuck: {:#?}", self.bench.producer);
            self.bench.turn(50);
        }
    }

    fn begin(&mut self) {
        assert_eq!(self.settle(), TxnState::Ready);
        self.bench.producer.begin().unwrap();
    }

    fn write(&mut self, topic: &str, range: std::ops::Range<usize>) {
        let (topic, slot) = (self.bench.producer.topic(topic), self.bench.producer.ack_slot());
        for n in range {
            self.bench.append(topic, (n % 2) as u32, &n.to_string(), slot);
        }
    }

    fn send_offset(&mut self, group: &str, topic: &str, offset: i64) {
        let offset = TxnOffset { topic, partition: 0, offset, leader_epoch: -1, metadata: "note" };
        self.bench.producer.send_offsets(&GroupMember { group, ..NOBODY }, [offset].into_iter()).unwrap();
    }

    fn commit(&mut self) -> TxnState {
        self.bench.producer.commit().unwrap();
        self.settle()
    }

    fn abort(&mut self) -> TxnState {
        self.bench.producer.abort().unwrap();
        self.settle()
    }
}

/// The committed values of both partitions, by number.
fn committed(cluster: &Cluster, topic: &str) -> Vec<String> {
    let mut values: Vec<usize> = oracle::read_all(cluster.bootstrap(), topic)
        .into_iter()
        .map(|record| String::from_utf8(record.value.unwrap()).unwrap().parse().unwrap())
        .collect();
    values.sort_unstable();
    values.into_iter().map(|n| n.to_string()).collect()
}

#[test]
fn apache_kafka_shows_what_is_committed_and_nothing_else() {
    for cluster in clusters() {
        let (topic, group) = (cluster.unique("visible"), cluster.unique("group"));
        oracle::create_topic(cluster.bootstrap(), &topic, 2, &[]);
        let mut writer = Writer::new(cluster, &topic);
        for round in 0..6 {
            writer.begin();
            writer.write(&topic, round * 100..round * 100 + 100);
            writer.send_offset(&group, &topic, round as i64);
            let state = if round % 2 == 0 { writer.commit() } else { writer.abort() };
            assert_eq!(state, TxnState::Ready);
            // Markers are written behind the answer.
            let shown = round / 2 + 1;
            let expected: Vec<_> = (0..shown).flat_map(|n| numbers(n * 200..n * 200 + 100)).collect();
            oracle::wait("the markers", || (committed(cluster, &topic) == expected).then_some(()));
            let offset = (round - round % 2) as i64;
            oracle::wait("the offset", || {
                let found = oracle::committed(cluster.bootstrap(), &group, &topic, 1);
                (found == [Some((offset, "note".to_owned()))]).then_some(())
            });
        }
    }
}

#[test]
fn apache_kafka_fences_a_producer_whose_id_another_one_takes() {
    for cluster in clusters() {
        let topic = cluster.unique("fenced");
        oracle::create_topic(cluster.bootstrap(), &topic, 2, &[]);
        let mut old = Writer::new(cluster, &topic);
        old.begin();
        old.write(&topic, 0..100);
        old.bench.flush();
        let mut new = Writer::new(cluster, &topic);
        new.begin();
        new.write(&topic, 100..200);
        assert_eq!(new.commit(), TxnState::Ready);
        let state = old.commit();
        assert!(
            matches!(state, TxnState::Fatal(TxnError::Fenced { by: Successor::Another, .. })),
            "version {}: {state:?}",
            cluster.bootstrap()
        );
        oracle::wait("the markers", || (committed(cluster, &topic) == numbers(100..200)).then_some(()));
    }
}

/// A producer that is gone at any step leaves nothing behind but what was committed.
#[test]
fn apache_kafka_lets_a_successor_recover_from_a_crash_at_every_step() {
    for cluster in clusters() {
        let (topic, group) = (cluster.unique("crashed"), cluster.unique("group"));
        oracle::create_topic(cluster.bootstrap(), &topic, 2, &[]);
        let mut expected = Vec::new();
        for step in 0..6 {
            let first = step * 100;
            let mut writer = Writer::new(cluster, &topic);
            if step > 0 {
                writer.begin();
            }
            if step > 1 {
                writer.write(&topic, first..first + 50);
            }
            if step > 2 {
                writer.bench.flush();
                writer.send_offset(&group, &topic, first as i64);
            }
            if step > 3 {
                (0..20).for_each(|_| writer.bench.turn(5));
            }
            if step > 4 {
                // Asked to commit; whether it is depends on how far that got.
                writer.bench.producer.commit().unwrap();
                writer.bench.turn(0);
            }
            drop(writer);
            let mut next = Writer::new(cluster, &topic);
            next.begin();
            next.write(&topic, first + 50..first + 100);
            assert_eq!(next.commit(), TxnState::Ready, "step {step}");
            expected.extend(numbers(first + 50..first + 100));
        }
        let with_last: Vec<_> = [&expected[..250], &numbers(500..550), &expected[250..]].concat();
        let mut read = Vec::new();
        let all = oracle::wait_quietly(|| {
            read = committed(cluster, &topic);
            (read == expected || read == with_last).then_some(())
        });
        let hundreds = |values: &[String]| {
            let mut counts = std::collections::BTreeMap::new();
            values.iter().for_each(|v| *counts.entry(v.parse::<u32>().unwrap() / 50 * 50).or_insert(0) += 1);
            counts
        };
        assert!(all.is_some(), "committed, by the fifty: {:?}", hundreds(&read));
        let offset = oracle::committed(cluster.bootstrap(), &group, &topic, 1);
        let whole = committed(cluster, &topic) == with_last;
        assert_eq!(offset, [whole.then(|| (500, "note".to_owned()))]);
    }
}

#[test]
fn apache_kafka_aborts_a_transaction_that_stays_open_and_the_producer_says_so() {
    for cluster in clusters() {
        let topic = cluster.unique("late");
        oracle::create_topic(cluster.bootstrap(), &topic, 2, &[]);
        let txn = TxnSettings { timeout_ms: 1_000, ..TxnSettings::new(&topic) };
        let mut writer = Writer::with(cluster, txn);
        writer.begin();
        writer.write(&topic, 0..100);
        writer.bench.flush();
        // The coordinator looks every second (`transaction.abort.timed.out.transaction.cleanup.interval.ms`).
        let end = Instant::now() + Duration::from_millis(4_000);
        while Instant::now() < end {
            writer.bench.turn(50);
        }
        let state = writer.commit();
        assert!(
            matches!(state, TxnState::Fatal(TxnError::Fenced { by: Successor::TimeOut { timeout_ms: 1_000, .. }, .. })),
            "{state:?}"
        );
        assert_eq!(committed(cluster, &topic), numbers(0..0));
        let long = TxnSettings { timeout_ms: i32::MAX, ..TxnSettings::new(&topic) };
        let TxnState::Fatal(error) = Writer::with(cluster, long).settle() else { panic!("a time-out without bound") };
        assert_eq!(
            error.to_string(),
            "InitProducerId was answered with INVALID_TRANSACTION_TIMEOUT (50): lower transaction.timeout.ms to the \
             brokers' transaction.max.timeout.ms or raise that"
        );
    }
}

#[test]
fn apache_kafka_killed_in_a_transaction_of_version_1_commits_it_whole_or_not_at_all() {
    killed_in_a_transaction(1);
}

#[test]
fn apache_kafka_killed_in_a_transaction_of_version_2_commits_it_whole_or_not_at_all() {
    killed_in_a_transaction(2);
}

/// The broker is killed between the records of one transaction and while another one is committed.
fn killed_in_a_transaction(version: u16) {
    let options = Options::default().feature("transaction.version", version);
    let Some(cluster) = Cluster::start(&options) else { return };
    oracle::create_topic(cluster.bootstrap(), "killed", 2, &[]);
    let mut writer = Writer::new(&cluster, "killed");
    let mut expected = Vec::new();
    for round in 0..4 {
        writer.begin();
        writer.write("killed", round * 500..round * 500 + 250);
        if round == 1 {
            cluster.kill(0);
            cluster.restart(0);
        }
        writer.write("killed", round * 500 + 250..round * 500 + 500);
        writer.bench.producer.commit().unwrap();
        if round == 2 {
            writer.bench.turn(5);
            cluster.kill(0);
            cluster.restart(0);
        }
        match writer.settle() {
            TxnState::Ready => expected.extend(numbers(round * 500..round * 500 + 500)),
            TxnState::Failed(_) => assert_eq!(writer.abort(), TxnState::Ready),
            other => panic!("version {version}, round {round}: {other:?}"),
        }
    }
    assert!(expected.len() >= 1_000, "version {version}: {}", expected.len());
    oracle::wait("the markers", || (committed(&cluster, "killed") == expected).then_some(()));
}
