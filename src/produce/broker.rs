//! One broker: its connection, the requests on their way, and when it may be used.
//!
//! Owns the [`Link`] and the pooled requests. Invariant: answers are taken in the order of the requests; after a
//! failure every request is handed back, and nothing is sent before the pause has passed. Bound: [`MAX_IN_FLIGHT`]
//! requests that write and one that asks; an answer of [`ANSWER_BYTES`]. Called by the producer.
//! `Connecting` lasts until TLS and the login are done.
use super::partition::PartitionId;
use super::pool::BatchPool;
use super::request::{HEAD_BYTES, Kind, PIECES, Request};
use super::settings::ProducerSettings;
use crate::base::limits::MAX_IN_FLIGHT;
use crate::net::{Backoff, ConnState, Interest, Link, NetError, Peer, PollSet};
use crate::wire::message::Offered;
use std::io::IoSlice;

/// Largest answer that is read. Requests are kept small enough for their answers to fit, but for answers that refuse
/// many records one by one.
pub(super) const ANSWER_BYTES: usize = 32 << 10;
/// How long a connection attempt may take (`socket.connection.setup.timeout.ms`).
pub(super) const CONNECT_TIMEOUT_MS: i64 = 10_000;
/// After so long, in milliseconds, a broker that leaves a request unanswered may be out of the cluster: it is looked up
/// whether another one leads its partitions by now.
const SILENT_MS: i64 = 5_000;
/// Requests kept for a connection: those that write, and one that asks.
const REQUESTS: usize = MAX_IN_FLIGHT + 1;

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Not connected.
    Idle,
    /// Since this time.
    Connecting { since_ms: i64 },
    /// Connected; the versions are asked for, in this one.
    Greeting { version: i16 },
    /// To be used, in these versions of Produce and InitProducerId.
    Ready { produce: i16, identity: i16 },
}

/// A broker and what is on its way to it.
#[derive(Debug)]
pub(super) struct Broker {
    pub(super) node: i32,
    pub(super) phase: Phase,
    link: Link,
    /// In the order of their answers.
    requests: std::collections::VecDeque<Request>,
    spare: Vec<Request>,
    pub(super) answer: Box<[u8]>,
    pub(super) backoff: Backoff,
    pub(super) retry_at_ms: i64,
    /// The broker asked to be left alone until then (throttling).
    pub(super) quiet_until_ms: i64,
    /// Requests with batches that are not answered, and the bytes of their batches.
    pub(super) flying: usize,
    pub(super) flying_bytes: usize,
    /// Where the last request that could not take every partition ended.
    pub(super) cursor: Option<PartitionId>,
    /// Which of its addresses is tried next.
    pub(super) attempt: usize,
    /// Whether a partition that has a batch is led by it.
    pub(super) wanted: bool,
    /// The version in which the broker is greeted next.
    pub(super) greeting: i16,
    /// When the last request was sent.
    used_ms: i64,
    /// Not before this time is it looked up (again) whether a silent broker still leads.
    look_up_at_ms: i64,
    /// The connection has ended by a refusal: TLS or the login.
    refused: bool,
    /// The versions it speaks, once `Ready`.
    pub(super) offered: Offered,
}

impl Broker {
    /// A broker that is not connected. `batches` is the most that one request can hold.
    pub(super) fn new(node: i32, batches: usize, backoff: Backoff, greeting: i16) -> Self {
        Self {
            node,
            phase: Phase::Idle,
            link: Link::new(0),
            requests: std::collections::VecDeque::with_capacity(REQUESTS),
            spare: (0..REQUESTS).map(|_| Request::new(batches)).collect(),
            answer: vec![0; ANSWER_BYTES].into_boxed_slice(),
            backoff,
            retry_at_ms: i64::MIN,
            quiet_until_ms: i64::MIN,
            flying: 0,
            flying_bytes: 0,
            cursor: None,
            attempt: 0,
            wanted: false,
            greeting,
            used_ms: i64::MIN,
            look_up_at_ms: i64::MIN,
            refused: false,
            offered: Offered::NOTHING,
        }
    }

    /// Bytes that a connection to a broker holds, for the plan.
    #[allow(dead_code)] // for tests and the plan
    pub(super) fn bytes(batches: usize) -> usize {
        let request = HEAD_BYTES + batches * (size_of::<usize>() + size_of::<super::pool::BatchId>());
        size_of::<Self>() + ANSWER_BYTES + REQUESTS * (request + size_of::<Request>())
    }

    pub(super) fn connect(&mut self, peer: &Peer<'_>, now_ms: i64) -> Result<(), NetError> {
        self.phase = Phase::Connecting { since_ms: now_ms };
        let outcome = self.link.connect(peer);
        self.noted(outcome)
    }

    /// Whether a request may be sent: not while the login is being renewed.
    pub(super) fn may_send(&mut self, now_ms: i64) -> Result<bool, NetError> {
        let outcome = self.link.may_send(now_ms);
        self.noted(outcome)
    }

    /// The pause before the next attempt.
    pub(super) fn pause(&mut self) -> i64 {
        if std::mem::take(&mut self.refused) { self.backoff.refused() } else { self.backoff.failed() }
    }

    fn noted<T>(&mut self, outcome: Result<T, NetError>) -> Result<T, NetError> {
        self.refused |= outcome.as_ref().err().is_some_and(NetError::is_refusal);
        outcome
    }

    /// Ends the connection. The requests on their way are taken by [`Self::take_lost`].
    pub(super) fn disconnect(&mut self) {
        self.link.close();
        self.phase = Phase::Idle;
        self.cursor = None;
    }

    pub(super) fn register(&mut self, polls: &mut PollSet) -> Result<(), NetError> {
        let write = self.phase != Phase::Idle && self.requests.back().is_some_and(|r| !r.is_sent());
        self.link.register(polls, Interest { read: true, write })
    }

    /// Takes what the wait reported. Answers whether there may be something to read.
    pub(super) fn advance(&mut self, polls: &PollSet) -> Result<bool, NetError> {
        let outcome = self.link.advance(polls);
        Ok(self.noted(outcome)?.readable)
    }

    pub(super) fn is_connected(&self) -> bool {
        self.link.state() == ConnState::Ready
    }

    /// A pooled request with a new correlation id, to be filled and put on its way by [`Self::send`].
    pub(super) fn begin(&mut self, kind: Kind, version: i16, now_ms: i64) -> Option<(Request, i32)> {
        let mut request = self.spare.pop()?;
        request.clear();
        self.used_ms = now_ms;
        (request.kind, request.version, request.sent_ms) = (kind, version, now_ms);
        match self.link.begin() {
            Ok(correlation) => Some((request, correlation)),
            Err(_) => {
                self.spare.push(request);
                None
            }
        }
    }

    /// Puts a filled request behind the others.
    pub(super) fn send(&mut self, request: Request) {
        if request.kind == Kind::Batches {
            self.flying += 1;
            self.flying_bytes += request.bytes;
        }
        self.requests.push_back(request);
    }

    /// Gives an unused or answered request back to the pool of them.
    pub(super) fn recycle(&mut self, request: Request) {
        if self.spare.len() < REQUESTS {
            self.spare.push(request);
        }
    }

    /// Writes as much as there is room for.
    pub(super) fn write(&mut self, pool: &BatchPool) -> Result<(), NetError> {
        for request in &mut self.requests {
            while !request.is_sent() {
                let mut slices = [IoSlice::new(&[]); PIECES];
                let used = request.gather(pool, &mut slices);
                match self.link.write(slices.get(..used).unwrap_or_default())? {
                    0 => return Ok(()),
                    sent => request.advance(pool, sent),
                }
            }
        }
        Ok(())
    }

    /// Reads the next answer into [`Self::answer`] and takes the request it belongs to, once it is there.
    pub(super) fn read(&mut self) -> Result<Option<(Request, usize)>, NetError> {
        let outcome = self.link.read_frame(&mut self.answer);
        let Some(len) = self.noted(outcome)? else { return Ok(None) };
        Ok(self.take_request().map(|request| (request, len)))
    }

    fn take_request(&mut self) -> Option<Request> {
        let request = self.requests.pop_front()?;
        if request.kind == Kind::Batches {
            self.flying = self.flying.saturating_sub(1);
            self.flying_bytes = self.flying_bytes.saturating_sub(request.bytes);
        }
        Some(request)
    }

    /// After [`Self::disconnect`]: the requests that will not be answered, oldest first.
    pub(super) fn take_lost(&mut self) -> Option<Request> {
        self.take_request()
    }

    /// When the oldest request was sent.
    pub(super) fn oldest_ms(&self) -> Option<i64> {
        self.requests.front().map(|r| r.sent_ms)
    }

    /// When the oldest request has been unanswered for suspiciously long; `i64::MAX`: none is on its way.
    pub(super) fn silent_at_ms(&self) -> i64 {
        self.oldest_ms().map_or(i64::MAX, |sent_ms| sent_ms.saturating_add(SILENT_MS))
    }

    /// Whether the broker is silent and that has not been asked lately.
    pub(super) fn is_silent(&mut self, now_ms: i64) -> bool {
        let silent = self.silent_at_ms().max(self.look_up_at_ms) <= now_ms;
        if silent {
            self.look_up_at_ms = now_ms.saturating_add(SILENT_MS);
        }
        silent
    }

    /// Whether everything on its way are batches, which another broker can take over.
    pub(super) fn has_batches(&self) -> bool {
        self.requests.iter().all(|request| request.kind == Kind::Batches)
    }

    /// When a connection without a request is ended.
    pub(super) fn idle_until_ms(&self, max_idle_ms: i64) -> i64 {
        self.used_ms.saturating_add(max_idle_ms)
    }

    /// When it must be served though nothing happens on its socket; `i64::MAX`: never.
    pub(super) fn due_ms(&self, now_ms: i64, settings: &ProducerSettings) -> i64 {
        let later = |ms: i64| if ms > now_ms { ms } else { i64::MAX };
        match self.phase {
            Phase::Idle if self.wanted => later(self.retry_at_ms),
            Phase::Idle => i64::MAX,
            Phase::Connecting { since_ms } => since_ms.saturating_add(CONNECT_TIMEOUT_MS),
            Phase::Greeting { .. } | Phase::Ready { .. } => {
                let answer = match self.oldest_ms() {
                    None => self.idle_until_ms(settings.max_idle_ms),
                    Some(sent_ms) => sent_ms.saturating_add(settings.request_timeout_ms),
                };
                let look_up = later(self.silent_at_ms().max(self.look_up_at_ms));
                answer.min(look_up).min(later(self.quiet_until_ms))
            }
        }
    }

    /// Whether a request may be formed: everything before it has left, and there is room for one more.
    pub(super) fn takes_request(&self, now_ms: i64) -> bool {
        self.flying < MAX_IN_FLIGHT && self.quiet_until_ms <= now_ms && matches!(self.phase, Phase::Ready { .. })
    }
}
