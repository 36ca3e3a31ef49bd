//! Administration against a real broker, and what the mock cluster lacks.
use super::*;
use crate::client::offered::ask_offered;
use crate::client::test_admin::admin;
use crate::ffi::kafka_admin::probe::{GroupState, OffsetOf};
use crate::ffi::kafka_conf::HandleSettings;
use crate::ffi::kafka_mock::MockCluster;
use crate::net::Security;
use crate::support;

fn new<'a>(name: &'a str, partitions: u32, configs: &'a [(String, String)]) -> NewTopic<'a> {
    NewTopic { name, partitions, replication: -1, configs }
}

#[test]
fn topics_are_created_described_and_deleted() {
    let Some(kafka) = support::kafka() else { return };
    let admin = admin(kafka.bootstrap(), "admin");
    let (name, absent) = (kafka.unique("made"), kafka.unique("absent"));
    let configs = [("cleanup.policy".to_owned(), "compact".to_owned())];
    assert_eq!(admin.create(&[new(&name, 3, &configs)]).unwrap(), [(name.clone(), Ok(()))]);
    support::oracle::wait("the topic", || (admin.topics(&[&name]) == Ok(vec![Some(3)])).then_some(()));
    assert_eq!(admin.topics(&[&absent, &name]).unwrap(), [None, Some(3)]);
    assert!(admin.all_topics().unwrap().contains(&(name.clone(), 3)));
    assert_eq!(admin.configs(&[&name]).unwrap()[0].get("cleanup.policy").map(String::as_str), Some("compact"));
    assert!(matches!(admin.configs(&[&absent]), Err(AdminError::Topic { topic, .. }) if topic == absent));
    let (_, again) = admin.create(&[new(&name, 3, &configs)]).unwrap().remove(0);
    assert_eq!(again.unwrap_err().code(), Some(Code::TOPIC_ALREADY_EXISTS));
    assert_eq!(admin.delete(&[&name]).unwrap(), [(name.clone(), Ok(()))]);
    support::oracle::wait("the deletion", || (admin.topics(&[&name]) == Ok(vec![None])).then_some(()));
}

#[test]
fn offsets_are_looked_up_and_records_deleted() {
    let Some(kafka) = support::kafka() else { return };
    let admin = admin(kafka.bootstrap(), "admin");
    let name = kafka.unique("offsets");
    support::oracle::create_topic(kafka.bootstrap(), &name, 2, &[]);
    let record = |timestamp| support::oracle::Rec::new(1, timestamp, "k", "v");
    support::oracle::produce(kafka.bootstrap(), &name, &[record(1000), record(2000), record(3000)], &[]);
    let (zero, one) = (TopicPartition::new(name.as_str(), 0), TopicPartition::new(name.as_str(), 1));
    let ask = [(&one, OffsetOf::Latest), (&zero, OffsetOf::Latest)];
    assert_eq!(admin.list_offsets(&ask, false).unwrap(), [Some(3), Some(0)]);
    assert_eq!(admin.list_offsets(&[(&one, OffsetOf::Timestamp(1500))], false).unwrap(), [Some(1)]);
    assert_eq!(admin.list_offsets(&[(&one, OffsetOf::Timestamp(9000))], false).unwrap(), [None]);
    admin.delete_records(&[(&one, 2)]).unwrap();
    assert_eq!(admin.list_offsets(&[(&one, OffsetOf::Earliest)], true).unwrap(), [Some(2)]);
}

#[test]
fn a_group_without_members_is_described() {
    let Some(kafka) = support::kafka() else { return };
    let admin = admin(kafka.bootstrap(), "admin");
    let nobody = kafka.unique("nobody");
    let found = support::oracle::wait("the coordinator", || match admin.group(&nobody) {
        Err(AdminError::Kafka(error)) if error.is_retriable() => None,
        found => Some(found),
    });
    // Kafka 4 answers GROUP_ID_NOT_FOUND (69), older brokers a dead group.
    match found {
        Ok(group) => assert_eq!((group.state, group.members), (GroupState::Dead, vec![])),
        Err(AdminError::Kafka(error)) => assert_eq!(error.code().map(Code::number), Some(69)),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_the_mock_cluster_lacks_is_known_before_it_is_tried() {
    let mock = MockCluster::start(1).unwrap();
    mock.create_topic("words", 2).unwrap();
    let admin = admin(mock.bootstrap_servers(), "admin");
    assert!(admin.offered(ApiKey::Fetch));
    for api in [ApiKey::CreateTopics, ApiKey::DescribeConfigs, ApiKey::DescribeGroups, ApiKey::DeleteRecords] {
        assert!(!admin.offered(api), "{api:?}");
    }
    assert_eq!(admin.create(&[new("x", 1, &[])]), Err(AdminError::NotOffered { api: "CreateTopics" }));
    assert_eq!(admin.topics(&["words", "absent"]).unwrap(), [Some(2), None]);
    let words = TopicPartition::new("words", 0);
    assert_eq!(admin.list_offsets(&[(&words, OffsetOf::Latest)], false).unwrap(), [Some(0)]);
}

#[test]
fn an_unreachable_broker_is_an_error_within_the_deadline() {
    assert!(ask_offered(&["127.0.0.1:1".to_owned()], &Security::default(), "c", Duration::from_secs(1)).is_err());
    let user = [("bootstrap.servers".to_owned(), "127.0.0.1:1".to_owned())];
    let settings = HandleSettings {
        user: &user,
        owned: &[],
        group_id: "g",
        client_id: "c",
        instance_id: None,
        read_committed: false,
    };
    let handle = Arc::new(Handle::start(&settings).unwrap());
    let admin = Admin::new(handle, Offered::NOTHING, Duration::from_millis(300));
    let asked = std::time::Instant::now();
    assert!(matches!(admin.topics(&["words"]), Err(AdminError::Kafka(KafkaError::TimedOut { .. }))));
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
}
