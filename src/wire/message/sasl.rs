//! SaslHandshake and SaslAuthenticate: the conversation in front of all others where a listener asks who is there.
//!
//! Both are spoken before the versions are known, in version 1, which every broker since Kafka 2.2 has; it tells how
//! long the session lasts (KIP-368).
use super::api::{ApiKey, RequestHeader};
use crate::wire::error::Result;
use crate::wire::{ErrorCode, Reader, Writer};

/// The version of both.
pub(crate) const SASL_VERSION: i16 = 1;

/// Names the mechanism.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaslHandshakeRequest<'a> {
    /// SASL's name of it.
    pub(crate) mechanism: &'a str,
}

impl SaslHandshakeRequest<'_> {
    /// Writes the request; answers the bytes of its frame with the prefix.
    pub(crate) fn write(&self, buffer: &mut Vec<u8>, header: &RequestHeader<'_>) -> Result<usize> {
        let mut out = Writer::request(buffer, header);
        out.string(self.mechanism);
        out.finish(0)
    }
}

/// Whether the broker takes the mechanism.
#[derive(Clone, Debug)]
pub(crate) struct SaslHandshakeResponse<'a> {
    /// `UnsupportedSaslMechanism`, or `IllegalSaslState` from a listener without SASL.
    pub(crate) error: ErrorCode,
    mechanisms: Reader<'a>,
    count: usize,
}

impl<'a> SaslHandshakeResponse<'a> {
    /// Reads the answer.
    pub(crate) fn read(frame: &'a [u8]) -> Result<Self> {
        let mut reader = super::response(frame, ApiKey::SaslHandshake, SASL_VERSION)?;
        let error = ErrorCode::from_code(reader.i16()?);
        let count = reader.array_len()?;
        Ok(Self { error, mechanisms: reader, count })
    }

    /// Calls `visit` with each mechanism that the listener takes.
    pub(crate) fn mechanisms(mut self, mut visit: impl FnMut(&'a str)) -> Result<()> {
        for _ in 0..self.count {
            visit(self.mechanisms.string()?);
        }
        Ok(())
    }
}

/// One message of the mechanism. No `Debug`: it may hold a password.
#[derive(Clone, Copy)]
pub(crate) struct SaslAuthenticateRequest<'a> {
    /// The mechanism's bytes.
    pub(crate) message: &'a [u8],
}

impl SaslAuthenticateRequest<'_> {
    /// Writes the request; answers the bytes of its frame with the prefix.
    pub(crate) fn write(&self, buffer: &mut Vec<u8>, header: &RequestHeader<'_>) -> Result<usize> {
        let mut out = Writer::request(buffer, header);
        out.bytes(self.message);
        out.finish(0)
    }
}

/// The broker's side of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SaslAuthenticateResponse<'a> {
    /// `SaslAuthenticationFailed` when who is there may not come in.
    pub(crate) error: ErrorCode,
    /// The mechanism's bytes.
    pub(crate) message: &'a [u8],
    /// How long the session lasts, in ms; 0: as long as the connection.
    pub(crate) session_lifetime_ms: i64,
}

impl<'a> SaslAuthenticateResponse<'a> {
    /// Reads the answer. The broker's own words are left out: they are not ours to vouch for.
    pub(crate) fn read(frame: &'a [u8]) -> Result<Self> {
        let mut reader = super::response(frame, ApiKey::SaslAuthenticate, SASL_VERSION)?;
        let error = ErrorCode::from_code(reader.i16()?);
        reader.nullable_string()?;
        let message = reader.nullable_bytes()?.unwrap_or_default();
        Ok(Self { error, message, session_lifetime_ms: reader.i64()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(api: ApiKey) -> RequestHeader<'static> {
        RequestHeader { api, version: SASL_VERSION, correlation_id: 7, client_id: "c" }
    }

    #[test]
    fn requests_have_the_bytes_of_version_1() {
        let mut out = Vec::with_capacity(64);
        SaslHandshakeRequest { mechanism: "PLAIN" }.write(&mut out, &header(ApiKey::SaslHandshake)).unwrap();
        assert_eq!(out, b"\0\0\0\x12\0\x11\0\x01\0\0\0\x07\0\x01c\0\x05PLAIN");
        out.clear();
        SaslAuthenticateRequest { message: b"\0u\0p" }.write(&mut out, &header(ApiKey::SaslAuthenticate)).unwrap();
        assert_eq!(out, b"\0\0\0\x13\0\x24\0\x01\0\0\0\x07\0\x01c\0\0\0\x04\0u\0p");
    }

    #[test]
    fn answers_are_read_and_short_ones_are_errors() {
        let frame = b"\0\0\0\x07\0\x21\0\0\0\x02\0\x05PLAIN\0\x06GSSAPI";
        let answer = SaslHandshakeResponse::read(frame).unwrap();
        assert_eq!(answer.error, ErrorCode::UnsupportedSaslMechanism);
        let mut names = Vec::new();
        answer.mechanisms(|name| names.push(name)).unwrap();
        assert_eq!(names, ["PLAIN", "GSSAPI"]);
        let frame = b"\0\0\0\x07\0\0\xff\xff\0\0\0\x02ok\0\0\0\0\0\x01\0\0";
        let answer = SaslAuthenticateResponse::read(frame).unwrap();
        assert_eq!((answer.error, answer.message, answer.session_lifetime_ms), (ErrorCode::None, &b"ok"[..], 65_536));
        for len in 0..frame.len() {
            assert!(SaslAuthenticateResponse::read(&frame[..len]).is_err(), "{len}");
        }
    }
}
