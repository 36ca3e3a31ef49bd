//! A committed offset that the log does not have: what each reset policy makes of it.
use crate::process::{Kind, Process, Spec};
use crate::records::{made, one, until, values, write};
use crate::support;
use crate::support::broker::Cluster;
use crate::support::oracle;
use rdkafka::consumer::{CommitMode, Consumer as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

/// Five records in the input, and offset 1000 committed.
fn astray(kafka: &Cluster, policy: &str, state: &std::path::Path) -> Spec {
    let spec = made(kafka, Kind::Pass, policy, 1, state).set("auto.offset.reset", policy);
    write(&spec, &[0, 1, 2, 3, 4].map(|n| one("k", &format!("before {n}"))));
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(&spec.input, 0, Offset::Offset(1_000)).unwrap();
    oracle::consumer(&spec.bootstrap, &spec.application, &[]).commit(&list, CommitMode::Sync).unwrap();
    spec
}

#[test]
fn an_offset_out_of_range_begins_again_at_the_logs_start_with_earliest() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let spec = astray(kafka, "earliest", state.path());
    let process = Process::running(&spec);
    until("all records", || values(&spec).len() == 5);
    process.close();
    assert_eq!(values(&spec), ["before 0", "before 1", "before 2", "before 3", "before 4"]);
}

#[test]
fn an_offset_out_of_range_goes_to_the_logs_end_with_latest() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let spec = astray(kafka, "latest", state.path());
    let process = Process::running(&spec);
    until("a record behind the reset", || {
        write(&spec, &[one("k", "after")]);
        !values(&spec).is_empty()
    });
    process.close();
    assert!(values(&spec).iter().all(|value| value == "after"), "{:?}", values(&spec));
}

#[test]
fn an_offset_out_of_range_is_an_error_that_names_it_with_none() {
    let Some(kafka) = support::kafka() else { return };
    let state = tempfile::tempdir().unwrap();
    let spec = astray(kafka, "none", state.path());
    let mut process = Process::start(&spec);
    process.expect("state ERROR");
    let why = "offset 1000 is out of range and no reset policy is set; set auto.offset.reset";
    assert_eq!(process.ask("failure"), format!("{}-0: {why}", spec.input));
    assert!(values(&spec).is_empty());
}
