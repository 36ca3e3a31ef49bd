//! A connection as Kafka's protocol uses it: requests with correlation ids out, frames with a length in front in.
//!
//! Owns: one [`Conn`], its login if the listener asks for one, the list of requests that wait for an answer, and a
//! staging buffer for one small request.
//! Invariant: the four bytes of length are read first, alone; only then does the caller choose a buffer for the rest,
//! or none yet, and then the frame waits in the socket. Answers come in the order of the requests; anything else ends
//! the connection.
//! Bound: [`MAX_OUTSTANDING`] requests; the staging buffer's fixed capacity; no allocation but that of the connection
//! itself.
//! Called by: the fetcher, the producer's sender and [`BlockingCall`](super::BlockingCall).
use super::sasl::Login;
use super::{Conn, ConnState, Interest, NetError, Peer, PollSet, Ready, Security, Token};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Most requests without an answer on one connection.
pub(crate) const MAX_OUTSTANDING: usize = 8;
/// Bytes of a correlation id, with which every response begins.
pub(crate) const RESPONSE_HEADER_BYTES: usize = 4;
/// A session is renewed after so many hundredths of its life (KIP-368: between 85 and 95).
const RENEW_HUNDREDTHS: i64 = 85;
/// How long a renewal may take, in milliseconds.
const RENEWAL_TIMEOUT_MS: i64 = 10_000;
/// Answers on a connection after which its end no longer hints at a listener of another kind.
const ACQUAINTED: u32 = 2;

#[derive(Debug, Clone, Copy)]
enum Incoming {
    /// Some bytes of the length.
    Length { bytes: [u8; 4], have: usize },
    /// The length is known, `have` bytes of the frame are in the caller's buffer.
    Frame { len: usize, have: usize },
}

const NOTHING: Incoming = Incoming::Length { bytes: [0; 4], have: 0 };

/// A connection to a broker with its framing. It can be connected again and again.
#[derive(Debug)]
pub(crate) struct Link {
    conn: Option<Conn>,
    token: Option<Token>,
    correlation: i32,
    outstanding: VecDeque<i32>,
    incoming: Incoming,
    stage: Vec<u8>,
    sent: usize,
    security: Security,
    /// The login that is on its way.
    login: Option<Box<Login>>,
    session: Session,
    /// Answers on this connection.
    answers: u32,
}

/// How long the login holds (KIP-368).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    /// As long as the connection.
    Unlimited,
    /// So many milliseconds from a moment that the next call with a time will give.
    Begun { lifetime_ms: i64 },
    /// To be renewed at this time.
    Until { renew_ms: i64 },
    /// Being renewed, until this time at most.
    Renewing { deadline_ms: i64 },
}

impl Link {
    /// A link that is not connected, with room to stage a request of up to `stage_bytes`.
    pub(crate) fn new(stage_bytes: usize) -> Self {
        Self {
            conn: None,
            token: None,
            correlation: 0,
            outstanding: VecDeque::with_capacity(MAX_OUTSTANDING),
            incoming: NOTHING,
            stage: Vec::with_capacity(stage_bytes),
            sent: 0,
            security: Security::default(),
            login: None,
            session: Session::Unlimited,
            answers: 0,
        }
    }

    /// Drops the present connection and everything half sent or half received, and starts a new attempt, TLS and login
    /// included. Correlation ids run on.
    pub(crate) fn connect(&mut self, peer: &Peer<'_>) -> Result<(), NetError> {
        self.close();
        self.security = peer.security.clone();
        self.conn = Some(Conn::connect(peer)?);
        self.begin_login()?;
        let outcome = self.advance_login();
        if outcome.is_err() {
            self.close();
        }
        outcome
    }

    fn begin_login(&mut self) -> Result<(), NetError> {
        let security = self.security.clone();
        if let Some(credentials) = security.credentials() {
            let correlation = self.begin()?;
            self.login = Some(Box::new(Login::start(credentials, correlation)?));
        }
        Ok(())
    }

    /// Whether a new request may be sent on a link that is ready. Not while a session that ends is renewed: then
    /// answers are awaited first, and the login goes on by [`Self::register`] and [`Self::advance`]. To be asked before
    /// each request on a connection that may be old.
    pub(crate) fn may_send(&mut self, now_ms: i64) -> Result<bool, NetError> {
        match self.session {
            Session::Unlimited => Ok(true),
            Session::Begun { lifetime_ms } => {
                let renew_ms = now_ms.saturating_add(lifetime_ms / 100 * RENEW_HUNDREDTHS);
                self.session = Session::Until { renew_ms };
                Ok(true)
            }
            Session::Until { renew_ms } if now_ms < renew_ms => Ok(true),
            Session::Until { .. } => {
                let quiet = self.outstanding.is_empty() && self.sent >= self.stage.len();
                if quiet && self.state() == ConnState::Ready {
                    self.session = Session::Renewing { deadline_ms: now_ms.saturating_add(RENEWAL_TIMEOUT_MS) };
                    self.begin_login()?;
                    self.advance_login()?;
                }
                Ok(false)
            }
            Session::Renewing { deadline_ms } if now_ms >= deadline_ms => {
                self.close();
                Err(NetError::TimedOut { ms: RENEWAL_TIMEOUT_MS.unsigned_abs() })
            }
            Session::Renewing { .. } => Ok(false),
        }
    }

    /// Ends the connection and forgets the requests on their way.
    pub(crate) fn close(&mut self) {
        self.conn = None;
        self.token = None;
        self.outstanding.clear();
        self.incoming = NOTHING;
        self.stage.clear();
        self.sent = 0;
        self.login = None;
        self.session = Session::Unlimited;
        self.answers = 0;
    }

    /// How far the connection is; it is not ready before its first login is.
    pub(crate) fn state(&self) -> ConnState {
        match self.conn.as_ref().map_or(ConnState::Closed, Conn::state) {
            ConnState::Ready if self.login.is_some() && !matches!(self.session, Session::Renewing { .. }) => {
                ConnState::Connecting
            }
            state => state,
        }
    }

    /// Requests that wait for their answers.
    #[allow(dead_code)] // for tests
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Enters the link into this turn's poll set. It waits for room to write while staged bytes are left or
    /// `interest.write`, for bytes to read if `interest.read`, and for the connection while that is being made.
    pub(crate) fn register(&mut self, polls: &mut PollSet, interest: Interest) -> Result<(), NetError> {
        self.token = None;
        if let Some(conn) = &self.conn {
            let unsent = self.login.as_ref().is_some_and(|login| !login.unsent().is_empty());
            let write = interest.write || unsent || self.sent < self.stage.len();
            let read = interest.read || self.login.is_some();
            self.token = Some(conn.register(polls, Interest { read, write })?);
        }
        Ok(())
    }

    /// After the wait: what is ready. Ends a connection attempt and sends staged bytes. An error has closed the link.
    pub(crate) fn advance(&mut self, polls: &PollSet) -> Result<Ready, NetError> {
        let ready = self.token.map_or(Ready::default(), |token| polls.ready(token));
        let outcome = self.advance_by(ready);
        if outcome.is_err() {
            self.close();
        }
        outcome
    }

    fn advance_by(&mut self, ready: Ready) -> Result<Ready, NetError> {
        let Some(conn) = &mut self.conn else { return Ok(Ready::default()) };
        if conn.state() == ConnState::Connecting {
            let moved = ready.writable || (conn.is_attached() && ready.readable);
            if !moved {
                return Ok(Ready::default());
            }
            conn.finish()?;
        }
        if self.login.is_some() {
            self.advance_login()?;
        }
        if ready.writable {
            self.flush()?;
        }
        Ok(ready)
    }

    /// Goes on with the login as far as the connection lets it.
    fn advance_login(&mut self) -> Result<(), NetError> {
        let Some(mut login) = self.login.take() else { return Ok(()) };
        let done = self.drive(&mut login)?;
        if !done {
            self.login = Some(login);
        }
        Ok(())
    }

    fn drive(&mut self, login: &mut Login) -> Result<bool, NetError> {
        while self.conn.as_ref().is_some_and(|conn| conn.state() == ConnState::Ready) {
            let conn = self.conn.as_mut().ok_or(NetError::NotConnected)?;
            conn.flush()?;
            while !login.unsent().is_empty() {
                match conn.write(&[IoSlice::new(login.unsent())])? {
                    0 => return Ok(false),
                    n => login.sent(n),
                }
            }
            let Some(len) = self.frame_len()? else { break };
            if self.read_frame(login.buffer(len)?)?.is_none() {
                break;
            }
            if let Some(lifetime_ms) = login.take(|| self.begin())? {
                self.answers = 0;
                self.session = if lifetime_ms > 0 { Session::Begun { lifetime_ms } } else { Session::Unlimited };
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Notes a new request and answers its correlation id. The request must then leave whole, through the staging
    /// buffer or by [`Self::write`].
    pub(crate) fn begin(&mut self) -> Result<i32, NetError> {
        if self.outstanding.len() >= MAX_OUTSTANDING {
            return Err(NetError::Outstanding { limit: MAX_OUTSTANDING });
        }
        self.correlation = self.correlation.wrapping_add(1) & i32::MAX;
        self.outstanding.push_back(self.correlation);
        Ok(self.correlation)
    }

    /// Makes room to stage requests of up to `bytes`, if no request is waiting. Allocates when that is more than
    /// before.
    pub(crate) fn reserve_stage(&mut self, bytes: usize) {
        if let Some(stage) = self.stage() {
            stage.reserve_exact(bytes);
        }
    }

    /// The staging buffer, empty, if no request is waiting in it. Fill it with a whole request (its length in front
    /// included) and call [`Self::flush`]; its capacity must not be exceeded.
    pub(crate) fn stage(&mut self) -> Option<&mut Vec<u8>> {
        (self.sent >= self.stage.len()).then(|| {
            self.stage.clear();
            self.sent = 0;
            &mut self.stage
        })
    }

    /// Sends staged bytes as far as there is room; what is left leaves by [`Self::advance`].
    pub(crate) fn flush(&mut self) -> Result<(), NetError> {
        let conn = self.conn.as_mut().ok_or(NetError::NotConnected)?;
        conn.flush()?;
        while self.sent < self.stage.len() && conn.state() == ConnState::Ready {
            match conn.write(&[IoSlice::new(&self.stage[self.sent..])])? {
                0 => break,
                n => self.sent += n,
            }
        }
        Ok(())
    }

    /// Writes bytes of a request that the caller keeps, as far as there is room now. 0 while staged bytes are in front.
    pub(crate) fn write(&mut self, from: &[IoSlice<'_>]) -> Result<usize, NetError> {
        self.flush()?;
        if self.sent < self.stage.len() {
            return Ok(0);
        }
        self.conn.as_mut().ok_or(NetError::NotConnected)?.write(from)
    }

    /// Length of the frame that is arriving, in bytes without the four of the length itself, once that is known. None
    /// while frames are those of a login.
    pub(crate) fn frame_len(&mut self) -> Result<Option<usize>, NetError> {
        if self.login.is_some() {
            return Ok(None);
        }
        let conn = self.conn.as_mut().ok_or(NetError::NotConnected)?;
        while let Incoming::Length { bytes, have } = &mut self.incoming {
            let got = conn.read(&mut bytes[*have..]);
            match got.map_err(|error| ended(error, self.answers, self.outstanding.len()))? {
                0 => return Ok(None),
                n => *have += n,
            }
            if *have == bytes.len() {
                if is_tls_alert(*bytes) && self.answers == 0 && !self.security.is_tls() {
                    return Err(NetError::SpeaksTls);
                }
                let len = i32::from_be_bytes(*bytes);
                let frame = usize::try_from(len).ok().filter(|len| *len >= RESPONSE_HEADER_BYTES);
                self.incoming = Incoming::Frame { len: frame.ok_or(NetError::FrameLength { len })?, have: 0 };
            }
        }
        match self.incoming {
            Incoming::Frame { len, .. } => Ok(Some(len)),
            Incoming::Length { .. } => Ok(None),
        }
    }

    /// Reads on into the buffer chosen for the arriving frame (the same one in every call for a frame, at least as
    /// long as the frame). When the frame is whole, checks that it answers the oldest request and returns its length;
    /// the answer begins with the correlation id.
    pub(crate) fn read_frame(&mut self, into: &mut [u8]) -> Result<Option<usize>, NetError> {
        let Some(len) = self.frame_len()? else { return Ok(None) };
        let room = into.len();
        let into = into.get_mut(..len).ok_or(NetError::ResponseTooLarge { needed: len, have: room })?;
        let conn = self.conn.as_mut().ok_or(NetError::NotConnected)?;
        let Incoming::Frame { have, .. } = &mut self.incoming else { return Ok(None) };
        while *have < len {
            match conn.read(&mut into[*have..])? {
                0 => return Ok(None),
                n => *have += n,
            }
        }
        self.incoming = NOTHING;
        self.answers = self.answers.saturating_add(1);
        let expected = self.outstanding.pop_front().unwrap_or(-1);
        match into.first_chunk::<RESPONSE_HEADER_BYTES>().map(|b| i32::from_be_bytes(*b)) {
            Some(got) if got == expected => Ok(Some(len)),
            got => Err(NetError::Correlation { expected, got: got.unwrap_or(-1) }),
        }
    }
}

/// An alert record of TLS (RFC 8446, 5.1): what a TLS port says to plaintext.
fn is_tls_alert(bytes: [u8; 4]) -> bool {
    matches!(bytes, [0x15, 0x03, 0x00..=0x04, 0x00])
}

/// A connection that ends before it was of any use may have met a listener of another kind.
fn ended(error: NetError, answers: u32, outstanding: usize) -> NetError {
    match error {
        NetError::Closed if answers < ACQUAINTED && outstanding > 0 => NetError::ClosedEarly,
        error => error,
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
