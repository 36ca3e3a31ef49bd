//! AddOffsetsToTxn: tells the coordinator that a transaction will commit offsets of a group. Transactions of version 2
//! (KIP-890) do without.
use super::api::{ApiKey, RequestHeader};
use crate::wire::error::Result;
use crate::wire::{ErrorCode, Writer};

/// Adds a group to the open transaction, or opens it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddOffsetsToTxnRequest<'a> {
    /// The transactional id.
    pub(crate) transactional_id: &'a str,
    /// From InitProducerId.
    pub(crate) producer_id: i64,
    /// From InitProducerId.
    pub(crate) producer_epoch: i16,
    /// The group whose offsets will be committed.
    pub(crate) group_id: &'a str,
}

impl AddOffsetsToTxnRequest<'_> {
    /// Writes the request; answers the bytes of its frame with the prefix.
    pub(crate) fn write(&self, buffer: &mut Vec<u8>, header: &RequestHeader<'_>) -> Result<usize> {
        let mut out = Writer::request(buffer, header);
        out.string(self.transactional_id);
        out.i64(self.producer_id);
        out.i16(self.producer_epoch);
        out.string(self.group_id);
        out.no_tags();
        out.finish(0)
    }
}

/// The coordinator's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddOffsetsToTxnResponse {
    /// How long the broker holds back its answers, in ms.
    pub(crate) throttle_ms: i32,
    /// Whether the group was added.
    pub(crate) error: ErrorCode,
}

impl AddOffsetsToTxnResponse {
    /// Reads the answer to a request of `version`.
    pub(crate) fn read(frame: &[u8], version: i16) -> Result<AddOffsetsToTxnResponse> {
        let mut reader = super::response(frame, ApiKey::AddOffsetsToTxn, version)?;
        let answer = AddOffsetsToTxnResponse { throttle_ms: reader.i32()?, error: ErrorCode::from_code(reader.i16()?) };
        reader.skip_tags()?;
        Ok(answer)
    }
}
