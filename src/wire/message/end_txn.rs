//! EndTxn: commits or aborts a transaction. From version 5 (KIP-890) the answer brings the identity for the next one.
use super::api::{ApiKey, RequestHeader};
use crate::wire::error::Result;
use crate::wire::{ErrorCode, Writer};

/// The first version that raises the epoch with each transaction.
const RAISES_EPOCH: i16 = 5;

/// Ends the open transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndTxnRequest<'a> {
    /// The transactional id.
    pub(crate) transactional_id: &'a str,
    /// From InitProducerId, or from the last EndTxn.
    pub(crate) producer_id: i64,
    /// From InitProducerId, or from the last EndTxn.
    pub(crate) producer_epoch: i16,
    /// Whether it is committed; else aborted.
    pub(crate) commit: bool,
}

impl EndTxnRequest<'_> {
    /// Writes the request; answers the bytes of its frame with the prefix.
    pub(crate) fn write(&self, buffer: &mut Vec<u8>, header: &RequestHeader<'_>) -> Result<usize> {
        let mut out = Writer::request(buffer, header);
        out.string(self.transactional_id);
        out.i64(self.producer_id);
        out.i16(self.producer_epoch);
        out.bool(self.commit);
        out.no_tags();
        out.finish(0)
    }
}

/// The coordinator's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndTxnResponse {
    /// How long the broker holds back its answers, in ms.
    pub(crate) throttle_ms: i32,
    /// Whether the transaction is ended.
    pub(crate) error: ErrorCode,
    /// The producer's id from now on; -1 after an error and before version 5.
    pub(crate) producer_id: i64,
    /// Its epoch from now on; -1 after an error and before version 5.
    pub(crate) producer_epoch: i16,
}

impl EndTxnResponse {
    /// Reads the answer to a request of `version`.
    pub(crate) fn read(frame: &[u8], version: i16) -> Result<EndTxnResponse> {
        let mut reader = super::response(frame, ApiKey::EndTxn, version)?;
        let (throttle_ms, error) = (reader.i32()?, ErrorCode::from_code(reader.i16()?));
        let (producer_id, producer_epoch) = match version >= RAISES_EPOCH {
            true => (reader.i64()?, reader.i16()?),
            false => (-1, -1),
        };
        reader.skip_tags()?;
        Ok(EndTxnResponse { throttle_ms, error, producer_id, producer_epoch })
    }
}
