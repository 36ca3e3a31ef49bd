//! Against Apache Kafka, with librdkafka's producer as the writer.
use super::*;
use crate::client::{MetadataClient, MetadataSettings, OffsetQuery, OffsetSpec, list_offsets};
use crate::support;
use crate::support::broker::{Cluster, Options};
use crate::support::oracle::{self, Rec};
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

const RECORDS: i64 = 500;

struct Live {
    bench: Bench,
    metadata: MetadataClient,
}

impl Live {
    fn new(cluster: &Cluster, settings: FetcherSettings) -> Self {
        let bench = Bench::with(settings, 6, 0);
        let metadata = MetadataClient::new(MetadataSettings::new("test", cluster.bootstrap()), bench.metadata.clone());
        Self { bench, metadata }
    }

    fn turn(&mut self) {
        let bench = &mut self.bench;
        bench.polls.clear();
        let now = bench.now();
        let due = self.metadata.prepare(&mut bench.polls, now).min(bench.fetcher.prepare(&mut bench.polls, now));
        bench.polls.wait(Some(Duration::from_millis((due - now).clamp(0, 20) as u64))).unwrap();
        let now = bench.now();
        self.metadata.process(&bench.polls, now);
        bench.fetcher.process(&bench.polls, now);
    }

    fn until(&mut self, mut done: impl FnMut(&mut Bench) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !done(&mut self.bench) {
            assert!(Instant::now() < end, "nothing more comes; trouble: {:?}", self.bench.fetcher.trouble());
            self.turn();
        }
    }

    fn collect(&mut self, count: usize) -> Vec<Got> {
        let mut got = Vec::new();
        self.until(|bench| {
            got.extend(bench.take(false));
            got.len() >= count
        });
        assert_eq!(got.len(), count, "faults: {:?}", self.bench.faults);
        got
    }
}

fn records(partition: i32) -> impl Iterator<Item = Rec> {
    (0..RECORDS).map(move |offset| {
        let text = String::from_utf8(value(partition, offset)).unwrap();
        Rec::new(partition, 1_000 + offset, "k", &text)
    })
}

#[test]
fn every_codec_is_read_and_offsets_are_found_by_end_and_by_time() {
    let Some(kafka) = support::kafka() else { return };
    let codecs = ["none", "gzip", "snappy", "lz4", "zstd"];
    let mut live = Live::new(kafka, FetcherSettings { max_wait_ms: 100, ..FetcherSettings::default() });
    let mut slots = Vec::new();
    for codec in codecs {
        let topic = kafka.unique(codec);
        // Times of 1970 would be over the retention at once.
        oracle::create_topic(kafka.bootstrap(), &topic, 2, &[("retention.ms", "-1")]);
        let all: Vec<_> = records(0).chain(records(1)).collect();
        oracle::produce(kafka.bootstrap(), &topic, &all, &[("compression.type", codec)]);
        for partition in 0..2 {
            slots.push((live.bench.fetcher.add(&topic, partition, 0).unwrap(), partition, topic.clone()));
        }
    }
    let got = live.collect(slots.len() * RECORDS as usize);
    for (slot, partition, topic) in &slots {
        assert_eq!(of(&got, *slot), expected(*slot, *partition, 0..RECORDS), "{topic}");
        assert_eq!(live.bench.fetcher.high_watermark(*slot), Some(RECORDS));
    }
    let topic = &slots[0].2;
    for (spec, offset) in [
        (OffsetSpec::Earliest, Some(0)),
        (OffsetSpec::Latest, Some(RECORDS)),
        (OffsetSpec::At(1_017), Some(17)),
        (OffsetSpec::At(9_000_000), None),
    ] {
        let queries = [0, 1].map(|partition| OffsetQuery { topic, partition, spec });
        assert_eq!(list_offsets(&live.bench.metadata, "test", &queries, false, PATIENCE), [Ok(offset); 2]);
    }
    live.bench.assert_idle();
}

#[test]
fn only_committed_transactions_are_read_when_asked_for() {
    let Some(kafka) = support::kafka() else { return };
    let topic = kafka.unique("transactions");
    oracle::create_topic(kafka.bootstrap(), &topic, 1, &[]);
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap())
        .set("transactional.id", &topic)
        .create()
        .unwrap();
    producer.init_transactions(PATIENCE).unwrap();
    for (text, commit) in [("one", true), ("void", false), ("two", true), ("void", false)] {
        producer.begin_transaction().unwrap();
        for _ in 0..3 {
            let record: BaseRecord<'_, str, str> = BaseRecord::to(&topic).partition(0).payload(text);
            producer.send(record).map_err(|(error, _)| error).unwrap();
        }
        producer.flush(PATIENCE).unwrap();
        let ended = if commit { producer.commit_transaction(PATIENCE) } else { producer.abort_transaction(PATIENCE) };
        ended.unwrap();
    }
    for (read_committed, count) in [(true, 6), (false, 12)] {
        let settings = FetcherSettings { max_wait_ms: 100, read_committed, ..FetcherSettings::default() };
        let mut live = Live::new(kafka, settings);
        let slot = live.bench.fetcher.add(&topic, 0, 0).unwrap();
        let got = live.collect(count);
        live.until(|bench| bench.take(false).is_empty() && bench.fetcher.position(slot) == 16);
        assert_eq!(got.iter().all(|(.., value)| value != b"void"), read_committed);
        live.bench.assert_idle();
    }
}

#[test]
fn an_open_transaction_holds_back_what_is_behind_it_until_it_ends() {
    let Some(kafka) = support::kafka() else { return };
    for commit in [true, false] {
        let topic = kafka.unique("open");
        oracle::create_topic(kafka.bootstrap(), &topic, 1, &[]);
        oracle::produce(kafka.bootstrap(), &topic, &[Rec::new(0, 1_700_000_000_000, "k", "before")], &[]);
        let producer: BaseProducer = ClientConfig::new()
            .set("bootstrap.servers", kafka.bootstrap())
            .set("transactional.id", &topic)
            .create()
            .unwrap();
        producer.init_transactions(PATIENCE).unwrap();
        producer.begin_transaction().unwrap();
        let record: BaseRecord<'_, str, str> = BaseRecord::to(&topic).partition(0).payload("within");
        producer.send(record).map_err(|(error, _)| error).unwrap();
        producer.flush(PATIENCE).unwrap();
        oracle::produce(kafka.bootstrap(), &topic, &[Rec::new(0, 1_700_000_000_000, "k", "behind")], &[]);
        let settings = FetcherSettings { max_wait_ms: 50, read_committed: true, ..FetcherSettings::default() };
        let mut live = Live::new(kafka, settings);
        let slot = live.bench.fetcher.add(&topic, 0, 0).unwrap();
        assert_eq!(live.collect(1)[0].2, b"before");
        let end = Instant::now() + Duration::from_millis(400);
        live.until(|bench| {
            assert!(bench.take(false).is_empty(), "nothing behind the open transaction");
            Instant::now() > end && bench.fetcher.high_watermark(slot) == Some(3)
        });
        assert_eq!((live.bench.fetcher.last_stable_offset(slot), live.bench.fetcher.position(slot)), (Some(1), 1));
        let ended = if commit { producer.commit_transaction(PATIENCE) } else { producer.abort_transaction(PATIENCE) };
        ended.unwrap();
        let expected: &[&[u8]] = if commit { &[b"within", b"behind"] } else { &[b"behind"] };
        let got = live.collect(expected.len());
        assert_eq!(got.iter().map(|(.., value)| value.as_slice()).collect::<Vec<_>>(), expected);
        live.until(|bench| bench.take(false).is_empty() && bench.fetcher.position(slot) == 4);
        live.bench.assert_idle();
    }
}

#[test]
fn a_topic_made_anew_is_told_from_the_old_one_though_it_has_more_records() {
    let Some(kafka) = support::kafka() else { return };
    let topic = kafka.unique("anew");
    let write = |count: i64| {
        oracle::create_topic(kafka.bootstrap(), &topic, 1, &[("retention.ms", "-1")]);
        let all: Vec<_> = records(0).take(count as usize).collect();
        oracle::produce(kafka.bootstrap(), &topic, &all, &[]);
    };
    write(10);
    let mut live = Live::new(kafka, FetcherSettings { max_wait_ms: 100, ..FetcherSettings::default() });
    let slot = live.bench.fetcher.add(&topic, 0, 0).unwrap();
    assert_eq!(live.collect(10), expected(slot, 0, 0..10));
    oracle::delete_topic(kafka.bootstrap(), &topic);
    oracle::wait("the topic is gone", || oracle::partitions(kafka.bootstrap(), &topic).is_none().then_some(()));
    write(20);
    live.until(|bench| {
        assert!(bench.take(false).is_empty(), "offsets of the old topic do not apply");
        !bench.faults.is_empty()
    });
    assert_eq!(live.bench.faults, [(slot, FetchFault::TopicRecreated)]);
    live.bench.fetcher.seek(slot, 0);
    assert_eq!(live.collect(20), expected(slot, 0, 0..20));
    live.bench.assert_idle();
}

#[test]
fn a_log_cut_at_its_start_is_out_of_range_and_a_deleted_topic_is_unknown() {
    let Some(kafka) = support::kafka() else { return };
    let topic = kafka.unique("deleted");
    oracle::create_topic(kafka.bootstrap(), &topic, 1, &[]);
    oracle::produce(kafka.bootstrap(), &topic, &[Rec::new(0, 1_700_000_000_000, "k", "v")], &[]);
    let settings = FetcherSettings { max_wait_ms: 100, missing_topic_ms: 500, ..FetcherSettings::default() };
    let mut live = Live::new(kafka, settings);
    let slot = live.bench.fetcher.add(&topic, 0, 77).unwrap();
    live.until(|bench| bench.take(false).is_empty() && !bench.faults.is_empty());
    let (at, fault) = live.bench.faults.remove(0);
    assert_eq!(at, slot);
    assert!(matches!(fault, FetchFault::OffsetOutOfRange { offset: 77, .. }), "{fault}");
    live.bench.fetcher.seek(slot, 0);
    live.collect(1);
    oracle::delete_topic(kafka.bootstrap(), &topic);
    live.until(|bench| bench.take(false).is_empty() && !bench.faults.is_empty());
    assert_eq!(live.bench.faults, [(slot, FetchFault::UnknownTopic)]);
    live.bench.assert_idle();
}

#[test]
fn leaders_that_are_killed_are_followed_without_loss_or_repetition() {
    let Some(cluster) = Cluster::start(&Options { heap_mib: 256, ..Options::brokers(3) }) else { return };
    let topic = "moving";
    oracle::create_topic_replicated(cluster.bootstrap(), topic, 3, 3, &[("min.insync.replicas", "1")]);
    let mut live = Live::new(&cluster, FetcherSettings { max_wait_ms: 100, ..FetcherSettings::default() });
    let slots: Vec<_> = (0..3).map(|p| live.bench.fetcher.add(topic, p, 0).unwrap()).collect();
    let batch = |round: i64| -> Vec<Rec> {
        let of = |p| move |o| Rec::new(p, 1_700_000_000_000 + o, "k", std::str::from_utf8(&value(p, o)).unwrap());
        (0..3).flat_map(|p| (round * 100..round * 100 + 100).map(of(p))).collect()
    };
    let mut got = Vec::new();
    for round in 0..3 {
        // From the second round on one node is away while records are written and read; two of three are a quorum.
        let away = usize::try_from(round - 1).ok();
        away.inspect(|node| cluster.kill(*node));
        oracle::produce(cluster.bootstrap(), topic, &batch(round), &[("compression.type", "lz4")]);
        got.extend(live.collect(300));
        away.inspect(|node| cluster.restart(*node));
    }
    for (partition, slot) in (0..).zip(slots) {
        assert_eq!(of(&got, slot), expected(slot, partition, 0..300));
    }
    live.bench.assert_idle();
}
