//! FindCoordinator: the broker that looks after a group or a transactional id.
use super::api::{ApiKey, RequestHeader};
use crate::wire::error::Result;
use crate::wire::{ErrorCode, Writer};

/// What is coordinated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoordinatorKind {
    /// A consumer group.
    Group = 0,
    /// A transactional id.
    Transaction = 1,
}

/// Asks any broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FindCoordinatorRequest<'a> {
    /// The group or transactional id.
    pub(crate) key: &'a str,
    /// Which of the two.
    pub(crate) kind: CoordinatorKind,
}

impl FindCoordinatorRequest<'_> {
    /// Writes the request; answers the bytes of its frame with the prefix.
    pub(crate) fn write(&self, buffer: &mut Vec<u8>, header: &RequestHeader<'_>) -> Result<usize> {
        let mut out = Writer::request(buffer, header);
        out.string(self.key);
        out.i8(self.kind as i8);
        out.no_tags();
        out.finish(0)
    }
}

/// The broker's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FindCoordinatorResponse<'a> {
    /// How long the broker holds back its answers, in ms.
    pub(crate) throttle_ms: i32,
    /// `CoordinatorNotAvailable`: ask again.
    pub(crate) error: ErrorCode,
    /// The error in words.
    pub(crate) error_message: Option<&'a str>,
    /// Node id of the coordinator; -1 after an error.
    pub(crate) node_id: i32,
    /// Its host.
    pub(crate) host: &'a str,
    /// Its port.
    pub(crate) port: i32,
}

impl<'a> FindCoordinatorResponse<'a> {
    /// Reads the answer to a request of `version`.
    pub(crate) fn read(frame: &'a [u8], version: i16) -> Result<FindCoordinatorResponse<'a>> {
        let mut reader = super::response(frame, ApiKey::FindCoordinator, version)?;
        let answer = FindCoordinatorResponse {
            throttle_ms: reader.i32()?,
            error: ErrorCode::from_code(reader.i16()?),
            error_message: reader.nullable_string()?,
            node_id: reader.i32()?,
            host: reader.string()?,
            port: reader.i32()?,
        };
        reader.skip_tags()?;
        Ok(answer)
    }
}
