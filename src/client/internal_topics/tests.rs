//! Settings and demands as Kafka Streams has them; making and checking against a real broker.
use super::*;
use crate::client::test_admin::admin;
use crate::ffi::kafka_mock::MockCluster;
use crate::support;

const PATIENCE: Duration = Duration::from_secs(30);

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_settings_are_those_of_kafka_streams_and_the_users_win() {
    let configs = |topic: InternalTopic| topic.configs;
    let kv = [("cleanup.policy", "compact"), ("message.timestamp.type", "CreateTime")];
    assert_eq!(configs(InternalTopic::changelog("c".into(), 4, &[])), pairs(&kv));
    let windowed =
        [("cleanup.policy", "compact,delete"), ("message.timestamp.type", "CreateTime"), ("retention.ms", "86460000")];
    assert_eq!(configs(InternalTopic::windowed_changelog("c".into(), 4, 60_000, &[])), pairs(&windowed));
    let endless = InternalTopic::windowed_changelog("c".into(), 4, i64::MAX, &[]);
    assert_eq!(endless.config("retention.ms"), Some("9223372036854775807"));
    let versioned = [
        ("cleanup.policy", "compact"),
        ("message.timestamp.type", "CreateTime"),
        ("min.compaction.lag.ms", "86460000"),
    ];
    assert_eq!(configs(InternalTopic::versioned_changelog("c".into(), 4, 60_000, &[])), pairs(&versioned));
    let repartition = [
        ("cleanup.policy", "delete"),
        ("message.timestamp.type", "CreateTime"),
        ("retention.ms", "-1"),
        ("segment.bytes", "1048576"),
    ];
    let user = pairs(&[("segment.bytes", "1048576")]);
    assert_eq!(configs(InternalTopic::repartition("r".into(), 4, &user)), pairs(&repartition));
}

#[test]
fn an_existing_topic_must_keep_what_is_still_needed() {
    let check = |topic: &InternalTopic, found: &[(&str, &str)]| {
        let found: Configs = pairs(found).into_iter().collect();
        match check(topic, &found) {
            Ok(()) => None,
            Err(InternalTopicError::Config { name, .. }) => Some(name),
            Err(error) => panic!("{error}"),
        }
    };
    let kv = InternalTopic::changelog("c".into(), 1, &[]);
    assert_eq!(check(&kv, &[(CLEANUP, "compact")]), None);
    assert_eq!(check(&kv, &[(CLEANUP, "delete")]), Some(CLEANUP));
    assert_eq!(check(&kv, &[(CLEANUP, "compact,delete")]), Some(CLEANUP));
    let windowed = InternalTopic::windowed_changelog("c".into(), 1, 60_000, &[]);
    let found = |retention| [(CLEANUP, "compact,delete"), (RETENTION_MS, retention), (RETENTION_BYTES, "-1")];
    assert_eq!(check(&windowed, &found("86460000")), None);
    assert_eq!(check(&windowed, &found("-1")), None);
    assert_eq!(check(&windowed, &found("86459999")), Some(RETENTION_MS));
    let bounded = [(CLEANUP, "delete"), (RETENTION_MS, "-1"), (RETENTION_BYTES, "1000")];
    assert_eq!(check(&windowed, &bounded), Some(RETENTION_BYTES));
    let versioned = InternalTopic::versioned_changelog("c".into(), 1, 60_000, &[]);
    assert_eq!(check(&versioned, &[(CLEANUP, "compact"), (MIN_LAG_MS, "86460000")]), None);
    assert_eq!(check(&versioned, &[(CLEANUP, "compact"), (MIN_LAG_MS, "0")]), Some(MIN_LAG_MS));
    let repartition = InternalTopic::repartition("r".into(), 1, &[]);
    assert_eq!(check(&repartition, &[(CLEANUP, "delete"), (RETENTION_MS, "-1"), (RETENTION_BYTES, "-1")]), None);
    assert_eq!(check(&repartition, &[(CLEANUP, "compact")]), Some(CLEANUP));
    assert_eq!(check(&repartition, &[(CLEANUP, "delete"), (RETENTION_MS, "604800000")]), Some(RETENTION_MS));
}

#[test]
fn missing_topics_are_made_and_found_again() {
    let Some(kafka) = support::kafka() else { return };
    let admin = admin(kafka.bootstrap(), "internal");
    let app = kafka.unique("app");
    let topics = [
        InternalTopic::changelog(format!("{app}-counts-changelog"), 3, &[]),
        InternalTopic::windowed_changelog(format!("{app}-windows-changelog"), 3, 60_000, &[]),
        InternalTopic::repartition(format!("{app}-words-repartition"), 3, &[]),
    ];
    let mut made = ensure(&admin, &topics, -1, PATIENCE).unwrap();
    made.sort();
    assert_eq!(made, topics.iter().map(|topic| topic.name.clone()).collect::<Vec<_>>());
    for topic in &topics {
        for (name, value) in &topic.configs {
            let found = support::oracle::topic_config(kafka.bootstrap(), &topic.name, name);
            assert_eq!(found.as_ref(), Some(value), "{} {name}", topic.name);
        }
    }
    assert_eq!(ensure(&admin, &topics, -1, PATIENCE).unwrap(), Vec::<String>::new());
}

#[test]
fn a_topic_of_another_shape_is_refused_by_name() {
    let Some(kafka) = support::kafka() else { return };
    let admin = admin(kafka.bootstrap(), "internal");
    let (fewer, lossy) = (kafka.unique("fewer"), kafka.unique("lossy"));
    support::oracle::create_topic(kafka.bootstrap(), &fewer, 2, &[("cleanup.policy", "compact")]);
    support::oracle::create_topic(kafka.bootstrap(), &lossy, 4, &[("cleanup.policy", "delete")]);
    let error = ensure(&admin, &[InternalTopic::changelog(fewer.clone(), 4, &[])], -1, PATIENCE).unwrap_err();
    assert_eq!(error, InternalTopicError::Partitions { topic: fewer, expected: 4, found: 2 });
    let error = ensure(&admin, &[InternalTopic::changelog(lossy.clone(), 4, &[])], -1, PATIENCE).unwrap_err();
    let (expected, found) = ("no `delete`".to_owned(), "delete".to_owned());
    assert_eq!(error, InternalTopicError::Config { topic: lossy, name: "cleanup.policy", expected, found });
    let many = InternalTopic::changelog(kafka.unique("replicated"), 1, &[]);
    let error = ensure(&admin, std::slice::from_ref(&many), 5, PATIENCE).unwrap_err();
    assert!(matches!(&error, InternalTopicError::Create { topic, .. } if *topic == many.name), "{error}");
}

#[test]
fn without_create_topics_the_missing_ones_are_named() {
    let mock = MockCluster::start(1).unwrap();
    mock.create_topic("app-counts-changelog", 2).unwrap();
    let admin = admin(mock.bootstrap_servers(), "internal");
    let changelog = InternalTopic::changelog("app-counts-changelog".into(), 2, &[]);
    assert_eq!(ensure(&admin, std::slice::from_ref(&changelog), -1, PATIENCE).unwrap(), Vec::<String>::new());
    let repartition = InternalTopic::repartition("app-words-repartition".into(), 2, &[]);
    let error = ensure(&admin, &[changelog, repartition], -1, PATIENCE).unwrap_err();
    assert_eq!(error, InternalTopicError::NotCreatable { topics: "`app-words-repartition` (2 partitions)".to_owned() });
}
