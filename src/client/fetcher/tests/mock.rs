//! Against librdkafka's mock cluster, with librdkafka's producer as the writer: every codec.
use super::*;
use crate::client::{MetadataClient, MetadataSettings, OffsetQuery, OffsetSpec, list_offsets};
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::collections::BTreeMap;

const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];
const PARTITIONS: i32 = 3;
const RECORDS: i64 = 300;

fn write(bootstrap: &str, topic: &str, codec: &str) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("compression.type", codec)
        .set("linger.ms", "20")
        .create()
        .unwrap();
    for offset in 0..RECORDS {
        for partition in 0..PARTITIONS {
            let value = value(partition, offset);
            let record: BaseRecord<'_, str, Vec<u8>> = BaseRecord::to(topic).partition(partition).payload(&value);
            producer.send(record).map_err(|(error, _)| error).unwrap();
        }
    }
    producer.flush(PATIENCE).unwrap();
}

#[test]
fn every_codec_of_librdkafkas_producer_is_read_back() {
    let cluster = MockCluster::new(3).unwrap();
    let bootstrap = cluster.bootstrap_servers();
    for codec in CODECS {
        cluster.create_topic(codec, PARTITIONS, 1).unwrap();
        write(&bootstrap, codec, codec);
    }
    let mut bench = Bench::new(6, 0);
    let mut metadata = MetadataClient::new(MetadataSettings::new("test", &bootstrap), bench.metadata.clone());
    let mut slots = BTreeMap::new();
    for codec in CODECS {
        for partition in 0..PARTITIONS {
            slots.insert(bench.fetcher.add(codec, partition, 0).unwrap(), (codec, partition));
        }
    }
    let mut got = Vec::new();
    let total = CODECS.len() * PARTITIONS as usize * RECORDS as usize;
    bench.turn_until(|bench| {
        bench.polls.clear();
        let now = bench.now();
        let due = metadata.prepare(&mut bench.polls, now).min(bench.fetcher.prepare(&mut bench.polls, now));
        bench.polls.wait(Some(Duration::from_millis((due - now).clamp(0, 20) as u64))).unwrap();
        let now = bench.now();
        metadata.process(&bench.polls, now);
        bench.fetcher.process(&bench.polls, now);
        got.extend(bench.take(false));
        got.len() >= total
    });
    assert_eq!(got.len(), total);
    for (slot, (codec, partition)) in &slots {
        assert_eq!(of(&got, *slot), expected(*slot, *partition, 0..RECORDS), "{codec} {partition}");
    }
    for (spec, offset) in [(OffsetSpec::Earliest, 0), (OffsetSpec::Latest, RECORDS)] {
        let query = |partition| OffsetQuery { topic: "lz4", partition, spec };
        let queries = [query(0), query(1), query(2)];
        assert_eq!(list_offsets(&bench.metadata, "test", &queries, false, PATIENCE), [Ok(Some(offset)); 3]);
    }
    bench.assert_idle();
}
