//! The conversation around a mechanism: SaslHandshake, then SaslAuthenticate until the broker is content.
//!
//! Owns the frames on their way; the link that owns the login moves their bytes. Bound: [`MAX_FRAME_BYTES`] each way,
//! and the memory goes with the login.
use super::{Credentials, Exchange, MAX_MESSAGE_BYTES, MechanismSet, SaslFault, Turn};
use crate::net::NetError;
use crate::wire::message::{
    ApiKey, RequestHeader, SASL_VERSION, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest,
    SaslHandshakeResponse,
};
use crate::wire::{ErrorCode, WireError};
use std::fmt;

/// Longest frame either way: a message and what is around it.
const MAX_FRAME_BYTES: usize = MAX_MESSAGE_BYTES + 4_096;
/// Bytes of a request beside its message.
const HEADER_BYTES: usize = 128;
/// `client.id` of these requests.
const CLIENT_ID: &str = "plimsoll";

/// A login on its way.
pub(in crate::net) struct Login {
    credentials: Credentials,
    /// `None` until the broker has taken the mechanism.
    exchange: Option<Exchange>,
    /// The frame that is being sent, and how much of it has left.
    out: Vec<u8>,
    sent: usize,
    answer: Vec<u8>,
    message: Vec<u8>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mechanism = self.credentials.mechanism();
        f.debug_struct("Login").field("mechanism", &mechanism).finish_non_exhaustive()
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        // They may hold a password or a token.
        for bytes in [&mut self.out, &mut self.message] {
            bytes.fill(0);
            std::hint::black_box(&*bytes);
        }
    }
}

impl Login {
    /// Starts a login; its first request has this correlation id.
    pub(in crate::net) fn start(credentials: &Credentials, correlation_id: i32) -> Result<Self, NetError> {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        let mechanism = credentials.mechanism().name();
        let header = header(ApiKey::SaslHandshake, correlation_id);
        SaslHandshakeRequest { mechanism }.write(&mut out, &header).map_err(unreadable)?;
        let (answer, message) = (Vec::new(), Vec::new());
        Ok(Self { credentials: credentials.clone(), exchange: None, out, sent: 0, answer, message })
    }

    /// What has still to be sent.
    pub(in crate::net) fn unsent(&self) -> &[u8] {
        self.out.get(self.sent..).unwrap_or_default()
    }

    /// So much of it has been sent.
    pub(in crate::net) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Where an answer of `len` bytes goes.
    pub(in crate::net) fn buffer(&mut self, len: usize) -> Result<&mut [u8], NetError> {
        if len > MAX_FRAME_BYTES {
            return Err(NetError::ResponseTooLarge { needed: len, have: MAX_FRAME_BYTES });
        }
        self.answer.resize(len, 0);
        Ok(&mut self.answer)
    }

    /// Takes the answer that is in the buffer. `Some`: the login is done, and the session lasts so many milliseconds,
    /// or, 0, as long as the connection. `None`: the next request, with the correlation id of `next`, is to be sent.
    pub(in crate::net) fn take(
        &mut self,
        next: impl FnOnce() -> Result<i32, NetError>,
    ) -> Result<Option<i64>, NetError> {
        self.message.clear();
        match &mut self.exchange {
            None => {
                check_handshake(&self.answer, &self.credentials)?;
                self.exchange = Some(Exchange::start(&self.credentials, &mut self.message)?);
            }
            Some(exchange) => {
                let answer = SaslAuthenticateResponse::read(&self.answer).map_err(unreadable)?;
                match answer.error {
                    ErrorCode::None => {}
                    ErrorCode::SaslAuthenticationFailed => return Err(refused(&self.credentials).into()),
                    code => return Err(SaslFault::Broker { code }.into()),
                }
                if exchange.next(answer.message, &mut self.message)? == Turn::Done {
                    return Ok(Some(answer.session_lifetime_ms.max(0)));
                }
            }
        }
        // A new buffer rather than a larger one, so that no copy of a secret is left behind.
        self.out.fill(0);
        self.out = Vec::with_capacity(HEADER_BYTES + self.message.len());
        self.sent = 0;
        let header = header(ApiKey::SaslAuthenticate, next()?);
        SaslAuthenticateRequest { message: &self.message }.write(&mut self.out, &header).map_err(unreadable)?;
        Ok(None)
    }
}

fn header(api: ApiKey, correlation_id: i32) -> RequestHeader<'static> {
    RequestHeader { api, version: SASL_VERSION, correlation_id, client_id: CLIENT_ID }
}

fn check_handshake(frame: &[u8], credentials: &Credentials) -> Result<(), NetError> {
    let answer = SaslHandshakeResponse::read(frame).map_err(unreadable)?;
    match answer.error {
        ErrorCode::None => Ok(()),
        ErrorCode::UnsupportedSaslMechanism => {
            let mut offered = MechanismSet::default();
            answer.mechanisms(|name| offered.add(name)).map_err(unreadable)?;
            Err(SaslFault::Mechanism { asked: credentials.mechanism(), offered }.into())
        }
        ErrorCode::IllegalSaslState => Err(SaslFault::NoSasl.into()),
        code => Err(SaslFault::Broker { code }.into()),
    }
}

fn refused(credentials: &Credentials) -> SaslFault {
    match credentials {
        Credentials::Token(_) => SaslFault::TokenRefused,
        Credentials::Password { mechanism, .. } => SaslFault::Refused { mechanism: *mechanism },
    }
}

fn unreadable(_: WireError) -> NetError {
    SaslFault::Unreadable.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::secret::Secret;
    use crate::net::sasl::Mechanism;

    fn plain() -> Credentials {
        let (username, password) = ("me".to_owned(), Secret::new("hush-hush"));
        Credentials::Password { mechanism: Mechanism::Plain, username, password }
    }

    fn answer(login: &mut Login, frame: &[u8]) -> Result<Option<i64>, NetError> {
        login.buffer(frame.len()).unwrap().copy_from_slice(frame);
        login.take(|| Ok(8))
    }

    const TAKEN: &[u8] = b"\0\0\0\x07\0\0\0\0\0\0";

    #[test]
    fn plain_is_two_requests_and_the_session_s_life_is_told() {
        let mut login = Login::start(&plain(), 7).unwrap();
        assert!(login.unsent().ends_with(b"\0\x05PLAIN"));
        assert_eq!(answer(&mut login, TAKEN), Ok(None));
        assert!(login.unsent().ends_with(b"\0me\0hush-hush"));
        login.sent(login.unsent().len());
        assert_eq!(login.unsent(), b"");
        let done = b"\0\0\0\x08\0\0\xff\xff\0\0\0\0\0\0\0\0\0\0\x0e\x10";
        assert_eq!(answer(&mut login, done), Ok(Some(3_600)));
        assert!(!format!("{login:?} {:?}", plain()).contains("hush"));
    }

    #[test]
    fn each_refusal_has_its_error() {
        let mut login = Login::start(&plain(), 7).unwrap();
        let others = b"\0\0\0\x07\0\x21\0\0\0\x02\0\x0dSCRAM-SHA-512\0\x06GSSAPI";
        let error = answer(&mut login, others).unwrap_err().to_string();
        assert!(error.contains("PLAIN but SCRAM-SHA-512, others that are not supported here"), "{error}");
        let mut login = Login::start(&plain(), 7).unwrap();
        assert_eq!(answer(&mut login, b"\0\0\0\x07\0\x22\0\0\0\0"), Err(SaslFault::NoSasl.into()));
        let mut login = Login::start(&plain(), 7).unwrap();
        answer(&mut login, TAKEN).unwrap();
        let wrong = b"\0\0\0\x08\0\x3a\0\x05wrong\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(answer(&mut login, wrong), Err(SaslFault::Refused { mechanism: Mechanism::Plain }.into()));
        let mut login = Login::start(&plain(), 7).unwrap();
        assert_eq!(answer(&mut login, b"\0\0\0\x07\0"), Err(SaslFault::Unreadable.into()));
        let too_large = NetError::ResponseTooLarge { needed: 1 << 20, have: MAX_FRAME_BYTES };
        assert_eq!(login.buffer(1 << 20).unwrap_err(), too_large);
    }
}
