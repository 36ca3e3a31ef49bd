//! ApiVersions: what a broker offers. The first request on every connection.
use super::api::{ApiKey, Offered, RequestHeader};
use crate::wire::error::Result;
use crate::wire::{ErrorCode, Reader, Writer};

/// The version to ask in first: every broker since Kafka 2.4 answers it.
pub(crate) const API_VERSIONS_FIRST: i16 = 3;
/// The version to ask in after `UNSUPPORTED_VERSION`: every broker answers it.
pub(crate) const API_VERSIONS_FALLBACK: i16 = 0;
const _: () = assert!(API_VERSIONS_FALLBACK == 0, "a broker answers a version it does not know in version 0");

/// Asks for the versions that the broker offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiVersionsRequest<'a> {
    /// Name of the client library, `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`; sent from version 3.
    pub(crate) software_name: &'a str,
    /// Its version, in the same characters.
    pub(crate) software_version: &'a str,
}

impl ApiVersionsRequest<'_> {
    /// Writes the request; answers the bytes of its frame with the prefix.
    pub(crate) fn write(&self, buffer: &mut Vec<u8>, header: &RequestHeader<'_>) -> Result<usize> {
        let mut out = Writer::request(buffer, header);
        if header.version >= 3 {
            out.string(self.software_name);
            out.string(self.software_version);
            out.no_tags();
        }
        out.finish(0)
    }
}

/// The broker's answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiVersionsResponse {
    /// `UnsupportedVersion`: ask again in [`API_VERSIONS_FALLBACK`].
    pub(crate) error: ErrorCode,
    /// The versions. After an error perhaps only those of ApiVersions itself, or none.
    pub(crate) offered: Offered,
    /// How long the broker holds back its answers, in ms; 0 in version 0.
    pub(crate) throttle_ms: i32,
    /// Level of the cluster's finalized feature `transaction.version` (KIP-890), when it has one: 2 allows adding
    /// partitions to a transaction by producing to them.
    pub(crate) transaction_version: Option<i16>,
}

impl ApiVersionsResponse {
    /// Reads the answer to a request of `version`.
    pub(crate) fn read(frame: &[u8], version: i16) -> Result<ApiVersionsResponse> {
        let mut reader = super::response(frame, ApiKey::ApiVersions, version)?;
        let mut answer = ApiVersionsResponse {
            error: ErrorCode::from_code(reader.i16()?),
            offered: Offered::NOTHING,
            throttle_ms: 0,
            transaction_version: None,
        };
        if answer.error == ErrorCode::UnsupportedVersion {
            // In version 0, whatever was asked; some peers send less than that, so what cannot be read is not missed.
            reader.set_flexible(false);
            let _ = answer.read_offered(&mut reader);
            return Ok(answer);
        }
        answer.read_offered(&mut reader)?;
        if version >= 1 {
            answer.throttle_ms = reader.i32()?;
        }
        let mut transaction_version = None;
        reader.tags(|tag, field| {
            if tag == FINALIZED_FEATURES {
                transaction_version = finalized_level(field, "transaction.version")?;
            }
            Ok(())
        })?;
        answer.transaction_version = transaction_version;
        Ok(answer)
    }

    fn read_offered(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        for _ in 0..reader.array_len()? {
            let code = reader.i16()?;
            let range = (reader.i16()?, reader.i16()?);
            reader.skip_tags()?;
            self.offered.set(code, range);
        }
        Ok(())
    }
}

/// Tag of the finalized features; 0 are the supported ones, 1 is the epoch of these.
const FINALIZED_FEATURES: u32 = 2;

/// The highest level of the feature `name` in the tagged field.
fn finalized_level(mut field: Reader<'_>, name: &str) -> Result<Option<i16>> {
    let mut level = None;
    for _ in 0..field.array_len()? {
        let feature = field.string()?;
        let (highest, _lowest) = (field.i16()?, field.i16()?);
        field.skip_tags()?;
        if feature == name {
            level = Some(highest);
        }
    }
    Ok(level)
}
