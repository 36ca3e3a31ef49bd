//! Kafka's requests and responses, as far as the data path speaks them. One API a file.
//!
//! A request is written into a buffer of the caller ([`super::Writer`]); a response is read in place, by values that
//! borrow its frame. Reading a response never allocates. Which version is spoken is chosen by [`Offered`], from the
//! broker's ApiVersions. Format: Kafka's message definitions (`clients/src/main/resources/common/message`).
#![allow(unused_imports)] // the room's face: some types are only named where they are written down
mod add_offsets_to_txn;
mod add_partitions_to_txn;
mod api;
mod api_versions;
mod end_txn;
mod fetch;
mod find_coordinator;
mod init_producer_id;
mod items;
mod list_offsets;
mod metadata;
mod offset_for_leader_epoch;
mod produce;
mod sasl;
#[cfg(test)]
mod tests;
mod topics;
mod txn_offset_commit;

pub(crate) use add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};
pub(crate) use add_partitions_to_txn::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, AddPartitionsToTxnWriter,
};
pub(crate) use api::{ApiKey, Offered, RequestHeader, VersionRange, correlation_id, frame_len, response};
pub(crate) use api_versions::{API_VERSIONS_FALLBACK, API_VERSIONS_FIRST, ApiVersionsRequest, ApiVersionsResponse};
pub(crate) use end_txn::{EndTxnRequest, EndTxnResponse};
pub(crate) use fetch::{
    AbortedTransaction, DivergingEpoch, FetchPosition, FetchRequest, FetchResponse, FetchWriter, FetchedPartition,
};
pub(crate) use find_coordinator::{CoordinatorKind, FindCoordinatorRequest, FindCoordinatorResponse};
pub(crate) use init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
pub(crate) use items::Items;
pub(crate) use list_offsets::{
    EARLIEST, LATEST, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsWriter, ListedOffset, MAX_TIMESTAMP,
};
pub(crate) use metadata::{Broker, MetadataPartition, MetadataRequest, MetadataResponse, MetadataTopic};
pub(crate) use offset_for_leader_epoch::{
    EpochEnd, EpochQuery, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderEpochWriter,
};
pub(crate) use produce::{ProduceRequest, ProduceResponse, ProduceTail, ProduceWriter, ProducedPartition, RecordError};
pub(crate) use sasl::{
    SASL_VERSION, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};
pub(crate) use topics::{CurrentLeader, NodeEndpoint, TopicRef};
pub(crate) use txn_offset_commit::{TxnOffsetCommitRequest, TxnOffsetCommitResponse, TxnOffsetCommitWriter};
