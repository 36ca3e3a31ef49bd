//! The fetch connection to one broker: connected, versions agreed on, one fetch on its way.
//!
//! Bound: one request in flight, so one frame in the hands of the connection; the staging buffer holds one request for
//! all partitions that the broker leads.
use super::{FetcherSettings, Slot};
use crate::arena::FrameBuf;
use crate::client::Broker;
use crate::net::{Backoff, Link, NetError, Peer, Security, jitter_seed};
use crate::wire::message::{API_VERSIONS_FALLBACK, API_VERSIONS_FIRST, ApiKey, ApiVersionsRequest, RequestHeader};
use crate::wire::{WireError, message::ApiVersionsResponse};
use std::net::SocketAddr;

/// Most addresses of one broker that are tried.
const MAX_ADDRS: usize = 4;
/// Bytes of a request before its first partition: header, client id, and the fetch's own fields.
pub(super) const REQUEST_HEADER_BYTES: usize = 128;

/// After so long, in milliseconds, a broker that leaves a fetch unanswered may be out of the cluster: it is looked up
/// whether another one leads its partitions by now.
pub(super) const SILENT_MS: i64 = 5_000;

/// What the connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing; connect again when there is something to fetch, not before `retry_at`.
    Down,
    /// Connecting, until `deadline`: TLS and the login included.
    Connecting,
    /// ApiVersions is on its way, in this version, until `deadline`.
    Versions(i16),
    /// Ready for a fetch.
    Idle,
    /// A fetch is on its way, until `deadline`.
    Fetching,
    /// The question where epochs end is on its way, until `deadline`.
    Proving,
}

/// One partition of the fetch on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) slot: Slot,
    /// [`super::slot::SlotState::ask`] at that time.
    pub(super) ask: u32,
}

/// Why a connection was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinkFault {
    /// The connection itself.
    #[error(transparent)]
    Net(#[from] NetError),
    /// What came over it, or could not be sent.
    #[error(transparent)]
    Wire(#[from] WireError),
}

#[derive(Debug)]
pub(super) struct FetchBroker {
    /// Id in the cluster.
    pub(super) id: i32,
    pub(super) link: Link,
    pub(super) phase: Phase,
    /// Partitions it leads, by topic and number.
    pub(super) slots: Vec<Slot>,
    /// Bytes that a request for all of them may take.
    pub(super) request_bytes: usize,
    /// The fetch on its way.
    pub(super) asked: Vec<Asked>,
    /// The buffer into which its answer is being read.
    pub(super) buf: Option<FrameBuf>,
    /// Whether that buffer is out of the reserve, so that only urgent partitions may use it.
    pub(super) reserved: bool,
    /// The answer is waiting in the socket for a buffer.
    pub(super) blocked: bool,
    /// Where in `slots` the next fetch begins, so that a small total starves nobody.
    pub(super) first: usize,
    /// So many fetches still ask for one partition each, to find the one whose batch no buffer holds.
    pub(super) isolate: usize,
    /// End of patience with the present phase.
    pub(super) deadline: i64,
    /// When it is looked up whether a broker that does not answer still leads; goes on with each look.
    pub(super) look_up_at: i64,
    /// No attempt to connect before this.
    pub(super) retry_at: i64,
    /// No fetch before this, by the broker's wish.
    pub(super) throttled_until: i64,
    /// Highest version of Fetch agreed on.
    pub(super) version: i16,
    /// The version of the request on its way: topics have no ids in every cluster.
    pub(super) asked_version: i16,
    /// Version of OffsetForLeaderEpoch agreed on; `None` where fetches find out themselves, or it is not offered.
    pub(super) epochs: Option<i16>,
    /// Why the last connection was given up.
    pub(super) last_fault: Option<LinkFault>,
    host: String,
    addrs: Vec<SocketAddr>,
    addr: usize,
    backoff: Backoff,
}

impl LinkFault {
    /// Whether settings or certificates have to change first: see [`NetError::is_refusal`].
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Net(error) if error.is_refusal())
    }

    /// The pause before the next attempt, longer with each failure.
    pub(crate) fn pause(&self, backoff: &mut Backoff) -> i64 {
        match self {
            Self::Net(error) => backoff.failed_by(error),
            Self::Wire(_) => backoff.failed(),
        }
    }
}

impl FetchBroker {
    pub(super) fn new(id: i32, settings: &FetcherSettings) -> Self {
        Self {
            id,
            link: Link::new(REQUEST_HEADER_BYTES + settings.client_id.len()),
            phase: Phase::Down,
            slots: Vec::new(),
            request_bytes: 0,
            asked: Vec::new(),
            buf: None,
            reserved: false,
            blocked: false,
            first: 0,
            isolate: 0,
            deadline: i64::MAX,
            look_up_at: i64::MAX,
            retry_at: 0,
            throttled_until: 0,
            version: 0,
            asked_version: 0,
            epochs: None,
            last_fault: None,
            host: String::new(),
            addrs: Vec::new(),
            addr: 0,
            backoff: Backoff::new(
                settings.reconnect_backoff_ms,
                settings.reconnect_backoff_max_ms,
                id.unsigned_abs() ^ jitter_seed(),
            ),
        }
    }

    /// Takes over where the broker listens. Answers whether it moved, so that the present connection is of no use.
    pub(super) fn set_addrs(&mut self, broker: &Broker) -> bool {
        let new = broker.addrs.get(..MAX_ADDRS).unwrap_or(&broker.addrs);
        if self.addrs == new && self.host == broker.host {
            return false;
        }
        self.host.clone_from(&broker.host);
        self.addrs.clear();
        self.addrs.extend_from_slice(new);
        self.addr = 0;
        true
    }

    /// Starts a connection attempt, to the next of the broker's addresses.
    pub(super) fn connect(
        &mut self,
        now_ms: i64,
        settings: &FetcherSettings,
        security: &Security,
    ) -> Result<(), LinkFault> {
        let Some(addr) = self.addrs.get(self.addr) else { return Err(NetError::NotConnected.into()) };
        self.addr = (self.addr + 1) % self.addrs.len().max(1);
        self.phase = Phase::Connecting;
        self.deadline = now_ms.saturating_add(settings.connect_timeout_ms);
        self.link.connect(&Peer { addr: *addr, host: &self.host, security })?;
        Ok(())
    }

    /// Asks which versions the broker offers.
    pub(super) fn ask_versions(
        &mut self,
        version: i16,
        now_ms: i64,
        settings: &FetcherSettings,
    ) -> Result<(), LinkFault> {
        let header = RequestHeader {
            api: ApiKey::ApiVersions,
            version,
            correlation_id: self.link.begin()?,
            client_id: &settings.client_id,
        };
        let request = ApiVersionsRequest { software_name: "plimsoll", software_version: env!("CARGO_PKG_VERSION") };
        let stage = self.link.stage().ok_or(NetError::NotConnected)?;
        request.write(stage, &header)?;
        self.link.flush()?;
        self.phase = Phase::Versions(version);
        self.deadline = now_ms.saturating_add(settings.request_timeout_ms);
        self.look_up_at = now_ms.saturating_add(SILENT_MS);
        Ok(())
    }

    /// Takes the answer to that; asks once more in the version every broker knows if need be.
    pub(super) fn take_versions(
        &mut self,
        frame: &[u8],
        now_ms: i64,
        settings: &FetcherSettings,
    ) -> Result<(), LinkFault> {
        let Phase::Versions(asked) = self.phase else { return Ok(()) };
        let answer = ApiVersionsResponse::read(frame, asked)?;
        if answer.error == crate::wire::ErrorCode::UnsupportedVersion && asked != API_VERSIONS_FALLBACK {
            return self.ask_versions(API_VERSIONS_FALLBACK, now_ms, settings);
        }
        if !answer.error.is_none() {
            return Err(WireError::Broker { api: ApiKey::ApiVersions.name(), code: answer.error }.into());
        }
        answer.offered.check_release()?;
        self.version = answer.offered.choose(ApiKey::Fetch)?;
        let epochs = answer.offered.choose(ApiKey::OffsetForLeaderEpoch).ok();
        self.epochs = epochs.filter(|_| self.version < FETCH_WITH_EPOCHS);
        self.phase = Phase::Idle;
        (self.deadline, self.look_up_at) = (i64::MAX, i64::MAX);
        self.throttle(answer.throttle_ms, now_ms);
        Ok(())
    }

    /// Starts the conversation on a connection that has just been made.
    pub(super) fn greet(&mut self, now_ms: i64, settings: &FetcherSettings) -> Result<(), LinkFault> {
        self.ask_versions(API_VERSIONS_FIRST, now_ms, settings)
    }

    /// Notes a wish of the broker for a pause.
    pub(super) fn throttle(&mut self, ms: i32, now_ms: i64) {
        if ms > 0 {
            self.throttled_until = now_ms.saturating_add(ms.into());
        }
    }

    /// An answer came: the connection is good.
    pub(super) fn answered(&mut self) {
        self.phase = Phase::Idle;
        (self.deadline, self.look_up_at) = (i64::MAX, i64::MAX);
        self.backoff.succeeded();
        self.last_fault = None;
    }

    /// Gives the connection up and answers the buffer it had. The next attempt waits, longer with each failure.
    pub(super) fn disconnect(&mut self, fault: LinkFault, now_ms: i64) -> Option<FrameBuf> {
        self.retry_at = now_ms.saturating_add(fault.pause(&mut self.backoff));
        self.last_fault = Some(fault);
        self.hang_up()
    }

    /// Ends a connection that was not in use. The next one may be made at once.
    pub(super) fn end_idle(&mut self) {
        let unused = self.hang_up();
        debug_assert!(unused.is_none(), "a connection without a request has no buffer");
        self.retry_at = 0;
    }

    /// Ends the connection without fault, and answers the buffer it had.
    pub(super) fn hang_up(&mut self) -> Option<FrameBuf> {
        self.link.close();
        self.phase = Phase::Down;
        (self.deadline, self.look_up_at) = (i64::MAX, i64::MAX);
        self.asked.clear();
        (self.reserved, self.blocked) = (false, false);
        self.buf.take()
    }
}

/// The last version of Fetch that names topics; later ones use ids.
pub(super) const FETCH_BY_NAME: i16 = 12;
/// The first version of Fetch that tells itself where the log and what was read part (KIP-320 by KIP-595).
pub(super) const FETCH_WITH_EPOCHS: i16 = 12;
