//! The messages of transactions.
use super::{check_requests, check_responses, since};
use crate::wire::ErrorCode;
use crate::wire::message::*;

#[test]
fn add_partitions_to_txn() {
    check_requests(ApiKey::AddPartitionsToTxn, |buffer, header| {
        let request = AddPartitionsToTxnRequest { transactional_id: "tx", producer_id: 77, producer_epoch: 3 };
        let mut writer = request.begin(buffer, header, 2);
        writer.topic("orders", 2);
        writer.partition(0);
        writer.partition(5);
        writer.topic("other", 1);
        writer.partition(2);
        writer.finish()
    });
    check_responses(ApiKey::AddPartitionsToTxn, |frame, version| {
        let mut response = AddPartitionsToTxnResponse::read(frame, version)?;
        assert_eq!(response.throttle_ms, 11);
        assert_eq!(response.next()?, Some((TopicRef::Name("orders"), 0, ErrorCode::None)));
        assert_eq!(response.next()?, Some((TopicRef::Name("orders"), 5, ErrorCode::ConcurrentTransactions)));
        assert_eq!(response.next()?, None);
        Ok(())
    });
}

#[test]
fn add_offsets_to_txn() {
    check_requests(ApiKey::AddOffsetsToTxn, |buffer, header| {
        AddOffsetsToTxnRequest { transactional_id: "tx", producer_id: 77, producer_epoch: 3, group_id: "g" }
            .write(buffer, header)
    });
    check_responses(ApiKey::AddOffsetsToTxn, |frame, version| {
        let response = AddOffsetsToTxnResponse::read(frame, version)?;
        let expected = AddOffsetsToTxnResponse { throttle_ms: 11, error: ErrorCode::ConcurrentTransactions };
        assert_eq!(response, expected);
        Ok(())
    });
}

#[test]
fn end_txn() {
    check_requests(ApiKey::EndTxn, |buffer, header| {
        EndTxnRequest { transactional_id: "tx", producer_id: 77, producer_epoch: 3, commit: true }.write(buffer, header)
    });
    check_responses(ApiKey::EndTxn, |frame, version| {
        let response = EndTxnResponse::read(frame, version)?;
        assert_eq!((response.throttle_ms, response.error), (11, ErrorCode::None));
        let identity = (response.producer_id, response.producer_epoch);
        assert_eq!(identity, since(version, 5, (77, 4), (-1, -1)));
        Ok(())
    });
}

#[test]
fn txn_offset_commit() {
    check_requests(ApiKey::TxnOffsetCommit, |buffer, header| {
        let request = TxnOffsetCommitRequest {
            transactional_id: "tx",
            group_id: "g",
            producer_id: 77,
            producer_epoch: 3,
            generation_id: 9,
            member_id: "m",
            instance_id: Some("i"),
        };
        let mut writer = request.begin(buffer, header, 1);
        writer.topic("orders", 2);
        writer.partition(0, 42, 6, "x");
        writer.partition(1, 43, -1, "");
        writer.finish()
    });
    check_responses(ApiKey::TxnOffsetCommit, |frame, version| {
        let mut response = TxnOffsetCommitResponse::read(frame, version)?;
        assert_eq!(response.throttle_ms, 11);
        assert_eq!(response.next()?, Some((TopicRef::Name("orders"), 0, ErrorCode::None)));
        assert_eq!(response.next()?, Some((TopicRef::Name("orders"), 1, ErrorCode::IllegalGeneration)));
        assert_eq!(response.next()?, None);
        Ok(())
    });
}
