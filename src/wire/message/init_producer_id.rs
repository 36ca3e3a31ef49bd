//! InitProducerId: the identity of an idempotent or transactional producer.
use super::api::{ApiKey, RequestHeader};
use crate::wire::error::Result;
use crate::wire::{ErrorCode, Writer};

/// Asks for a producer id, or for the next epoch of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitProducerIdRequest<'a> {
    /// The transactional id; none for idempotence alone.
    pub(crate) transactional_id: Option<&'a str>,
    /// When the coordinator aborts a transaction that was left open, in ms. Without a transactional id it has no
    /// meaning.
    pub(crate) transaction_timeout_ms: i32,
    /// The id whose epoch is to be raised (KIP-360, version 3); -1: a new one.
    pub(crate) producer_id: i64,
    /// Its epoch; -1: a new one.
    pub(crate) producer_epoch: i16,
}

impl InitProducerIdRequest<'_> {
    /// A new id for idempotence alone.
    pub(crate) const IDEMPOTENT: InitProducerIdRequest<'static> = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: i32::MAX,
        producer_id: -1,
        producer_epoch: -1,
    };

    /// Writes the request; answers the bytes of its frame with the prefix.
    pub(crate) fn write(&self, buffer: &mut Vec<u8>, header: &RequestHeader<'_>) -> Result<usize> {
        let mut out = Writer::request(buffer, header);
        out.nullable_string(self.transactional_id);
        out.i32(self.transaction_timeout_ms);
        if header.version >= 3 {
            out.i64(self.producer_id);
            out.i16(self.producer_epoch);
        }
        out.no_tags();
        out.finish(0)
    }
}

/// The broker's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InitProducerIdResponse {
    /// How long the broker holds back its answers, in ms.
    pub(crate) throttle_ms: i32,
    /// `CoordinatorLoadInProgress` and its like: ask again.
    pub(crate) error: ErrorCode,
    /// The producer's id; -1 after an error.
    pub(crate) producer_id: i64,
    /// Its epoch; -1 after an error.
    pub(crate) producer_epoch: i16,
}

impl InitProducerIdResponse {
    /// Reads the answer to a request of `version`.
    pub(crate) fn read(frame: &[u8], version: i16) -> Result<InitProducerIdResponse> {
        let mut reader = super::response(frame, ApiKey::InitProducerId, version)?;
        let answer = InitProducerIdResponse {
            throttle_ms: reader.i32()?,
            error: ErrorCode::from_code(reader.i16()?),
            producer_id: reader.i64()?,
            producer_epoch: reader.i16()?,
        };
        reader.skip_tags()?;
        Ok(answer)
    }
}
