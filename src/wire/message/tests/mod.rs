mod transactions;

use super::*;
use crate::wire::error::WireError;
use crate::wire::vectors::vector;
use crate::wire::{Batches, ErrorCode, TopicId, fuzz};

const TOPIC_ID: TopicId = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

fn header(api: ApiKey, version: i16) -> RequestHeader<'static> {
    RequestHeader { api, version, correlation_id: 7, client_id: "plimsoll" }
}

fn versions(api: ApiKey) -> std::ops::RangeInclusive<i16> {
    let (low, high) = api.spoken().unwrap();
    low..=high
}

/// `write` must produce the bytes of Kafka's client in every version spoken.
fn check_requests(api: ApiKey, write: impl Fn(&mut Vec<u8>, &RequestHeader<'_>) -> Result<usize, WireError>) {
    for version in versions(api) {
        let expected = vector(&format!("request {} {version}", api.name()));
        let mut buffer = Vec::with_capacity(4096);
        assert_eq!(write(&mut buffer, &header(api, version)), Ok(expected.len()), "{} {version}", api.name());
        assert_eq!(buffer, expected, "{} {version}", api.name());
        let mut small = Vec::with_capacity(expected.len() - 1);
        let capacity = small.capacity();
        if capacity < expected.len() {
            let full = Err(WireError::BufferFull { needed: expected.len(), capacity });
            assert_eq!(write(&mut small, &header(api, version)), full);
        }
    }
}

/// `check` reads the response of Kafka's client in every version spoken. Cut anywhere it must be an error, not a panic.
fn check_responses(api: ApiKey, check: impl Fn(&[u8], i16) -> Result<(), WireError>) {
    for version in versions(api) {
        let bytes = vector(&format!("response {} {version}", api.name()));
        assert_eq!(frame_len(&bytes), Ok(Some(bytes.len() - 4)));
        let frame = &bytes[4..];
        assert_eq!(correlation_id(frame), Ok(7));
        assert_eq!(check(frame, version), Ok(()), "{} {version}", api.name());
        assert_eq!(fuzz::response(api, version, frame), Ok(()), "{} {version}", api.name());
        // Some do not look at the tagged fields in the last byte.
        for cut in 0..frame.len() - 1 {
            let result = fuzz::response(api, version, &frame[..cut]);
            assert!(result.is_err(), "{} {version} cut at {cut}", api.name());
        }
    }
}

fn topic_ref(version: i16) -> TopicRef<'static> {
    if version >= 13 { TopicRef::Id(TOPIC_ID) } else { TopicRef::Name("orders") }
}

fn since<T>(version: i16, first: i16, value: T, before: T) -> T {
    if version >= first { value } else { before }
}

#[test]
fn fetch_requests() {
    check_requests(ApiKey::Fetch, |buffer, header| {
        let request = FetchRequest {
            max_wait_ms: 500,
            min_bytes: 1,
            max_bytes: 1_048_576,
            read_committed: true,
            session_id: 0,
            session_epoch: -1,
        };
        let mut writer = request.begin(buffer, header, 1);
        writer.topic(topic_ref(header.version), 2);
        for partition in [3, 4] {
            writer.partition(&FetchPosition {
                partition,
                current_leader_epoch: 7,
                offset: 40 + i64::from(partition),
                last_fetched_epoch: 6,
                max_bytes: 65_536,
            });
        }
        writer.finish("r1")
    });
}

#[test]
fn fetch_responses() {
    check_responses(ApiKey::Fetch, |frame, version| {
        let mut response = FetchResponse::read(frame, version)?;
        assert_eq!((response.throttle_ms, response.error, response.session_id), (11, ErrorCode::None, 0));
        let first = response.next()?.unwrap();
        assert_eq!((first.topic, first.partition, first.error), (topic_ref(version), 3, ErrorCode::None));
        assert_eq!((first.high_watermark, first.last_stable_offset), (100, 90));
        assert_eq!(first.log_start_offset, since(version, 5, 10, -1));
        assert_eq!(first.preferred_replica, since(version, 11, 2, -1));
        assert_eq!(first.aborted.collect::<Vec<_>>(), [AbortedTransaction { producer_id: 5, first_offset: 50 }]);
        assert_eq!((first.diverging_epoch, first.current_leader), (None, None));
        assert_eq!(first.records, vector("batch none"));
        assert_eq!(&frame[first.records_at..first.records_at + first.records.len()], first.records);
        assert_eq!(first.batches().next()?.unwrap().0.count, 3);
        let second = response.next()?.unwrap();
        assert_eq!((second.topic, second.partition), (topic_ref(version), 4));
        assert_eq!((second.error, second.high_watermark), (ErrorCode::NotLeaderOrFollower, -1));
        assert_eq!((second.aborted.len(), second.records.len()), (0, 0));
        let (leader, diverging) =
            (CurrentLeader { leader_id: 2, leader_epoch: 9 }, DivergingEpoch { epoch: 3, end_offset: 77 });
        assert_eq!(second.current_leader, since(version, 12, Some(leader), None));
        assert_eq!(second.diverging_epoch, since(version, 12, Some(diverging), None));
        assert!(response.next()?.is_none());
        assert!(response.next()?.is_none(), "and stays at the end");
        let endpoints: Vec<_> = response.endpoints()?.collect();
        let endpoint = NodeEndpoint { node_id: 2, host: "b2", port: 9093, rack: Some("r1") };
        assert_eq!(endpoints, since(version, 16, vec![endpoint], vec![]));
        assert_eq!(FetchResponse::read(frame, version)?.endpoints()?.count(), endpoints.len(), "also when not walked");
        Ok(())
    });
}

#[test]
fn produce_requests() {
    for version in versions(ApiKey::Produce) {
        let records = vector("batch none");
        let expected = vector(&format!("request Produce {version}"));
        let mut buffer = b"an earlier request".to_vec();
        buffer.reserve(500);
        let start = buffer.len();
        let transactional_id = if version % 2 == 0 { Some("tx") } else { None };
        let request = ProduceRequest { transactional_id, acks: -1, timeout_ms: 30_000 };
        let mut writer = request.begin(&mut buffer, &header(ApiKey::Produce, version), 1);
        writer.topic(topic_ref(version), 2);
        let cuts = [writer.partition(0, records.len()), writer.partition(5, records.len())];
        assert_eq!(writer.finish(), Ok(expected.len()));
        let pieces = &buffer[start..];
        let mut sent = Vec::new();
        sent.extend_from_slice(&pieces[..cuts[0]]);
        sent.extend_from_slice(&records);
        sent.extend_from_slice(&pieces[cuts[0]..cuts[1]]);
        sent.extend_from_slice(&records);
        sent.extend_from_slice(&pieces[cuts[1]..]);
        assert_eq!(sent, expected, "version {version}");
    }
}

#[test]
fn produce_responses() {
    check_responses(ApiKey::Produce, |frame, version| {
        let mut response = ProduceResponse::read(frame, version)?;
        let first = response.next()?.unwrap();
        assert_eq!((first.topic, first.partition, first.error), (topic_ref(version), 0, ErrorCode::None));
        assert_eq!((first.base_offset, first.log_append_time_ms), (1234, -1));
        assert_eq!(first.log_start_offset, since(version, 5, 10, -1));
        assert_eq!((first.record_errors.len(), first.error_message, first.current_leader), (0, None, None));
        let second = response.next()?.unwrap();
        assert_eq!((second.partition, second.error), (5, ErrorCode::NotLeaderOrFollower));
        assert_eq!(second.error_message, since(version, 8, Some("moved"), None));
        let errors: Vec<_> = second.record_errors.collect();
        assert_eq!(errors, since(version, 8, vec![RecordError { index: 2, message: Some("bad") }], vec![]));
        let leader = CurrentLeader { leader_id: 2, leader_epoch: 9 };
        assert_eq!(second.current_leader, since(version, 10, Some(leader), None));
        assert!(response.next()?.is_none());
        let tail = response.tail()?;
        assert_eq!((tail.throttle_ms, tail.endpoints.len()), (11, since(version, 10, 1, 0)));
        Ok(())
    });
}

#[test]
fn api_versions() {
    check_requests(ApiKey::ApiVersions, |buffer, header| {
        ApiVersionsRequest { software_name: "plimsoll", software_version: "0.1.0" }.write(buffer, header)
    });
    check_responses(ApiKey::ApiVersions, |frame, version| {
        let response = ApiVersionsResponse::read(frame, version)?;
        assert_eq!((response.error, response.throttle_ms), (ErrorCode::None, since(version, 1, 11, 0)));
        assert_eq!(response.transaction_version, since(version, 3, Some(2), None));
        assert_eq!(response.offered.range(ApiKey::Fetch), Some((4, 17)));
        assert_eq!(response.offered.range(ApiKey::ApiVersions), Some((0, 4)));
        assert_eq!(response.offered.range(ApiKey::Metadata), None);
        Ok(())
    });
}

#[test]
fn a_version_of_api_versions_that_the_broker_does_not_know_is_no_decode_error() {
    // Kafka answers in version 0, with its range of ApiVersions; librdkafka's mock with a count of one byte.
    let kafka = [0, 0, 0, 7, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 2];
    let mock = [0, 0, 0, 7, 0, 35, 1, 0, 18, 0, 0, 0, 2, 0, 0, 0, 0];
    for (frame, range) in [(&kafka[..], Some((0, 2))), (&mock[..], None)] {
        let response = ApiVersionsResponse::read(frame, API_VERSIONS_FIRST).unwrap();
        assert_eq!(response.error, ErrorCode::UnsupportedVersion);
        assert_eq!(response.offered.range(ApiKey::ApiVersions), range);
    }
}

#[test]
fn metadata() {
    check_requests(ApiKey::Metadata, |buffer, header| {
        let other = if header.version >= 12 { TopicRef::Id(TOPIC_ID) } else { TopicRef::Name("other") };
        let topics = [TopicRef::Name("orders"), other];
        MetadataRequest { topics: Some(&topics), allow_auto_creation: false }.write(buffer, header)
    });
    check_responses(ApiKey::Metadata, |frame, version| {
        let response = MetadataResponse::read(frame, version)?;
        assert_eq!((response.throttle_ms, response.cluster_id, response.controller_id), (11, Some("cluster"), 2));
        let brokers: Vec<_> = response.brokers.collect();
        let broker = |node_id, host, port, rack| Broker { node_id, host, port, rack };
        assert_eq!(brokers, [broker(1, "b1", 9092, Some("r1")), broker(2, "b2", 9093, None)]);
        let topics: Vec<_> = response.topics.collect();
        assert_eq!(topics.len(), 2);
        assert_eq!((topics[0].error, topics[0].name, topics[0].is_internal), (ErrorCode::None, Some("orders"), false));
        assert_eq!(topics[0].id, since(version, 10, TOPIC_ID, [0; 16]));
        let partitions: Vec<_> = topics[0].partitions.collect();
        assert_eq!((partitions[0].index, partitions[0].leader_id, partitions[0].error), (1, 2, ErrorCode::None));
        assert_eq!(partitions[0].leader_epoch, since(version, 7, 9, -1));
        assert_eq!(partitions[0].replicas.collect::<Vec<_>>(), [2, 1]);
        assert_eq!(partitions[0].in_sync.collect::<Vec<_>>(), [2]);
        assert_eq!((partitions[1].error, partitions[1].leader_id), (ErrorCode::LeaderNotAvailable, -1));
        assert_eq!((topics[1].error, topics[1].name), (ErrorCode::UnknownTopicOrPartition, Some("other")));
        Ok(())
    });
}

#[test]
fn all_topics_and_ids_before_their_version() {
    let mut buffer = Vec::with_capacity(200);
    let all = MetadataRequest { topics: None, allow_auto_creation: true };
    all.write(&mut buffer, &header(ApiKey::Metadata, 7)).unwrap();
    assert_eq!(buffer[buffer.len() - 5..], [0xff, 0xff, 0xff, 0xff, 1]);
    let by_id = MetadataRequest { topics: Some(&[TopicRef::Id(TOPIC_ID)]), allow_auto_creation: true };
    assert!(matches!(by_id.write(&mut buffer, &header(ApiKey::Metadata, 11)), Err(WireError::Malformed { .. })));
}

#[test]
fn list_offsets() {
    check_requests(ApiKey::ListOffsets, |buffer, header| {
        let mut writer = ListOffsetsRequest { read_committed: true }.begin(buffer, header, 1);
        writer.topic("orders", 2);
        writer.partition(0, 9, LATEST);
        writer.partition(1, -1, EARLIEST);
        writer.finish()
    });
    check_responses(ApiKey::ListOffsets, |frame, version| {
        let mut response = ListOffsetsResponse::read(frame, version)?;
        assert_eq!(response.throttle_ms, 11);
        let first = ListedOffset {
            topic: TopicRef::Name("orders"),
            partition: 0,
            error: ErrorCode::None,
            timestamp: -1,
            offset: 42,
            leader_epoch: 9,
        };
        assert_eq!(response.next()?, Some(first));
        let second = response.next()?.unwrap();
        assert_eq!((second.partition, second.error, second.offset), (1, ErrorCode::NotLeaderOrFollower, -1));
        assert_eq!(response.next()?, None);
        Ok(())
    });
}

#[test]
fn init_producer_id() {
    check_requests(ApiKey::InitProducerId, |buffer, header| {
        InitProducerIdRequest {
            transactional_id: Some("tx"),
            transaction_timeout_ms: 60_000,
            producer_id: 77,
            producer_epoch: 3,
        }
        .write(buffer, header)
    });
    check_responses(ApiKey::InitProducerId, |frame, version| {
        let response = InitProducerIdResponse::read(frame, version)?;
        let expected =
            InitProducerIdResponse { throttle_ms: 11, error: ErrorCode::None, producer_id: 77, producer_epoch: 4 };
        assert_eq!(response, expected);
        Ok(())
    });
}

#[test]
fn find_coordinator() {
    check_requests(ApiKey::FindCoordinator, |buffer, header| {
        FindCoordinatorRequest { key: "tx", kind: CoordinatorKind::Transaction }.write(buffer, header)
    });
    check_responses(ApiKey::FindCoordinator, |frame, version| {
        let response = FindCoordinatorResponse::read(frame, version)?;
        assert_eq!((response.error, response.error_message), (ErrorCode::CoordinatorNotAvailable, Some("later")));
        assert_eq!((response.node_id, response.host, response.port), (2, "b2", 9093));
        Ok(())
    });
}

#[test]
fn offset_for_leader_epoch() {
    check_requests(ApiKey::OffsetForLeaderEpoch, |buffer, header| {
        let mut writer = OffsetForLeaderEpochRequest.begin(buffer, header, 1);
        writer.topic("orders", 1);
        writer.partition(&EpochQuery { partition: 1, current_leader_epoch: 9, leader_epoch: 6 });
        writer.finish()
    });
    check_responses(ApiKey::OffsetForLeaderEpoch, |frame, version| {
        let mut response = OffsetForLeaderEpochResponse::read(frame, version)?;
        assert_eq!(response.throttle_ms, 11);
        let end = response.next()?.unwrap();
        assert_eq!((end.topic, end.partition, end.error), (TopicRef::Name("orders"), 1, ErrorCode::None));
        assert_eq!((end.leader_epoch, end.end_offset), (6, 321));
        assert_eq!(response.next()?, None);
        Ok(())
    });
}

#[test]
fn the_highest_common_version_is_chosen() {
    let mut offered = Offered::NOTHING;
    offered.set(1, (0, 16));
    offered.set(3, (0, 4));
    offered.set(0, (3, 99));
    offered.set(-1, (0, 1));
    offered.set(i16::MAX, (0, 1));
    assert_eq!(offered.choose(ApiKey::Fetch), Ok(16));
    assert_eq!(offered.choose_up_to(ApiKey::Fetch, 12), Ok(12));
    assert_eq!(offered.choose(ApiKey::Produce), Ok(13));
    let too_old = WireError::Unsupported { api: "Metadata", lowest: 0, highest: 4 };
    assert_eq!(offered.choose(ApiKey::Metadata), Err(too_old));
    let missing = WireError::Unsupported { api: "ListOffsets", lowest: 0, highest: -1 };
    assert_eq!(offered.choose(ApiKey::ListOffsets), Err(missing));
    offered.set(8, (0, 9));
    assert!(offered.has(ApiKey::OffsetCommit) && !offered.has(ApiKey::CreateTopics));
    assert!(offered.choose(ApiKey::OffsetCommit).is_err(), "known by name only");
}

#[test]
fn counts_that_do_not_match_what_was_written_are_errors() {
    let h = header(ApiKey::ListOffsets, 7);
    let request = ListOffsetsRequest { read_committed: false };
    let mut buffer = Vec::with_capacity(500);
    let too_few_topics = request.begin(&mut buffer, &h, 1).finish();
    assert!(matches!(too_few_topics, Err(WireError::Malformed { .. })));
    let mut writer = request.begin(&mut buffer, &h, 1);
    writer.topic("a", 1);
    writer.partition(0, -1, LATEST);
    writer.partition(1, -1, LATEST);
    assert!(matches!(writer.finish(), Err(WireError::Malformed { .. })));
    let mut writer = request.begin(&mut buffer, &h, 2);
    writer.topic("a", 1);
    writer.topic("b", 0);
    assert!(matches!(writer.finish(), Err(WireError::Malformed { .. })));
    let mut writer = FetchRequest {
        max_wait_ms: 1,
        min_bytes: 1,
        max_bytes: 1,
        read_committed: false,
        session_id: 0,
        session_epoch: -1,
    }
    .begin(&mut buffer, &header(ApiKey::Fetch, 13), 1);
    writer.topic(TopicRef::Name("a"), 0);
    assert!(matches!(writer.finish(""), Err(WireError::Malformed { .. })), "version 13 names topics by id");
    assert!(buffer.is_empty());
}

#[test]
fn frame_lengths() {
    assert_eq!(frame_len(&[0, 0, 1]), Ok(None));
    assert_eq!(frame_len(&[0, 0, 1, 0]), Ok(Some(256)));
    assert_eq!(frame_len(&[0, 0, 0, 3]), Err(WireError::Malformed { what: "frame length", at: 0 }));
    assert_eq!(frame_len(&[0xff; 4]), Err(WireError::Malformed { what: "frame length", at: 0 }));
    assert!(Batches::new(&[]).next().unwrap().is_none());
}
