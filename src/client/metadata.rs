//! Keeps the process's picture of the cluster up to date.
//!
//! Owns: one connection, to any broker that answers. Invariant: it never gives up; while no broker answers it says so
//! ([`Reach`](super::Reach)) and tries on, with growing pauses. It does not block but for resolving host names, which
//! happens only here. Bound: answers of at most [`MAX_ANSWER_BYTES`]; topics by
//! [`MAX_TOPICS`](super::shared::MAX_TOPICS). Called by: the control thread, in its poll loop
//! ([`MetadataClient::prepare`], wait, [`MetadataClient::process`]).
use super::{Broker, LinkFault, MetadataSnapshot, PartitionInfo, SharedMetadata, TopicInfo, TopicState};
use crate::net::{Backoff, ConnState, Interest, Link, NetError, Peer, PollSet, jitter_seed};
use crate::wire::message::{
    API_VERSIONS_FALLBACK, API_VERSIONS_FIRST, ApiKey, ApiVersionsRequest, ApiVersionsResponse, MetadataRequest,
    MetadataResponse, MetadataTopic, RequestHeader, TopicRef,
};
use crate::wire::{ErrorCode, WireError};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// Longest answer, in bytes: about 60,000 partitions.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// The answer's buffer is given back when it grew beyond this.
const KEPT_ANSWER_BYTES: usize = 64 << 10;
/// Bytes of a request before its topics.
const REQUEST_BYTES: usize = 256;
/// How long the first answer is waited for, in milliseconds: any broker can give it, so a silent one is left soon.
/// Twice as long after each failure, up to the request time-out.
const PATIENCE_MS: i64 = 5_000;
/// Addresses taken of one host.
const MAX_ADDRS: usize = 4;

/// Settings of the metadata client; times in milliseconds.
#[derive(Debug, Clone)]
pub(crate) struct MetadataSettings {
    /// `client.id`.
    pub(crate) client_id: String,
    /// `bootstrap.servers`, each `host:port`.
    pub(crate) bootstrap: Vec<String>,
    /// `metadata.max.age.ms`: refreshed after that without being asked.
    pub(crate) max_age_ms: i64,
    /// `request.timeout.ms`.
    pub(crate) request_timeout_ms: i64,
    /// `socket.connection.setup.timeout.ms`.
    pub(crate) connect_timeout_ms: i64,
    /// `retry.backoff.ms`: shortest time between two refreshes.
    pub(crate) retry_backoff_ms: u32,
    /// `retry.backoff.max.ms`.
    pub(crate) retry_backoff_max_ms: u32,
}

impl MetadataSettings {
    /// The defaults of Kafka's clients, for these servers.
    pub(crate) fn new(client_id: &str, bootstrap: &str) -> Self {
        Self {
            client_id: client_id.into(),
            bootstrap: bootstrap.split(',').map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect(),
            max_age_ms: 300_000,
            request_timeout_ms: 30_000,
            connect_timeout_ms: 10_000,
            retry_backoff_ms: 100,
            retry_backoff_max_ms: 1_000,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Down,
    Connecting,
    Versions(i16),
    Idle,
    Asking,
}

/// The connection that keeps [`SharedMetadata`] up to date.
#[derive(Debug)]
pub(crate) struct MetadataClient {
    settings: MetadataSettings,
    shared: SharedMetadata,
    link: Link,
    phase: Phase,
    /// Version of Metadata agreed on.
    version: i16,
    /// Addresses to try in this round with the host that each belongs to, the next one last.
    candidates: Vec<(SocketAddr, Arc<str>)>,
    /// Failures since the last answer.
    failures: u32,
    backoff: Backoff,
    /// End of patience with the present phase.
    deadline: i64,
    /// When to refresh without being asked.
    next_at: i64,
    /// Earliest time of the next refresh when asked.
    not_before: i64,
    answer: Vec<u8>,
    wanted: Vec<Arc<str>>,
}

impl MetadataClient {
    /// A client that will connect in its first turn.
    pub(crate) fn new(settings: MetadataSettings, shared: SharedMetadata) -> Self {
        let backoff = Backoff::new(settings.retry_backoff_ms, settings.retry_backoff_max_ms, jitter_seed());
        Self {
            link: Link::new(REQUEST_BYTES + settings.client_id.len()),
            settings,
            shared,
            phase: Phase::Down,
            version: 0,
            candidates: Vec::new(),
            failures: 0,
            backoff,
            deadline: i64::MAX,
            next_at: i64::MIN,
            not_before: i64::MIN,
            answer: Vec::new(),
            wanted: Vec::new(),
        }
    }

    /// Before the wait. Answers when [`Self::process`] must be called at the latest, on the clock of `now_ms`.
    pub(crate) fn prepare(&mut self, polls: &mut PollSet, now_ms: i64) -> i64 {
        if self.shared.is_requested() {
            self.next_at = self.next_at.min(self.not_before);
        }
        let outcome = match self.phase {
            _ if self.deadline <= now_ms => {
                let ms = match self.phase {
                    Phase::Connecting => self.settings.connect_timeout_ms,
                    _ => self.patience_ms(),
                };
                Err(NetError::TimedOut { ms: u64::try_from(ms).unwrap_or(0) }.into())
            }
            Phase::Down if self.next_at <= now_ms => self.connect(now_ms),
            Phase::Idle if self.next_at <= now_ms => self.ask(now_ms),
            _ => Ok(()),
        };
        let interest = Interest { read: true, write: false };
        let outcome = outcome.and_then(|()| Ok(self.link.register(polls, interest)?));
        if let Err(fault) = outcome {
            self.failed(fault, now_ms);
        }
        match self.phase {
            Phase::Down | Phase::Idle => self.next_at.max(now_ms + 1),
            _ => self.deadline,
        }
    }

    /// After the wait.
    pub(crate) fn process(&mut self, polls: &PollSet, now_ms: i64) {
        if let Err(fault) = self.serve(polls, now_ms) {
            self.failed(fault, now_ms);
        }
    }

    fn serve(&mut self, polls: &PollSet, now_ms: i64) -> Result<(), LinkFault> {
        let ready = self.link.advance(polls)?;
        if self.phase == Phase::Connecting && self.link.state() == ConnState::Ready {
            return self.ask_versions(API_VERSIONS_FIRST, now_ms);
        }
        if !ready.readable {
            return Ok(());
        }
        let Some(len) = self.link.frame_len()? else { return Ok(()) };
        if len > MAX_ANSWER_BYTES {
            return Err(NetError::ResponseTooLarge { needed: len, have: MAX_ANSWER_BYTES }.into());
        }
        self.answer.resize(len, 0);
        if self.link.read_frame(&mut self.answer)?.is_none() {
            return Ok(());
        }
        let answer = std::mem::take(&mut self.answer);
        let outcome = match self.phase {
            Phase::Versions(version) => self.take_versions(&answer, version, now_ms),
            Phase::Asking => self.take_metadata(&answer, now_ms),
            _ => Ok(()),
        };
        if answer.capacity() <= KEPT_ANSWER_BYTES {
            self.answer = answer;
        }
        outcome
    }

    fn connect(&mut self, now_ms: i64) -> Result<(), LinkFault> {
        if self.candidates.is_empty() {
            self.find_candidates();
        }
        let (addr, host) = self.candidates.pop().ok_or(NetError::NotConnected)?;
        self.phase = Phase::Connecting;
        self.deadline = now_ms.saturating_add(self.settings.connect_timeout_ms);
        Ok(self.link.connect(&Peer { addr, host: &host, security: self.shared.security() })?)
    }

    /// All addresses worth trying: brokers known, then the bootstrap servers, which may have moved.
    fn find_candidates(&mut self) {
        let snapshot = self.shared.latest();
        let mut add = |host: &str, addrs: &[SocketAddr]| {
            let host: Arc<str> = host.into();
            self.candidates.extend(addrs.iter().map(|addr| (*addr, Arc::clone(&host))));
        };
        for broker in &snapshot.brokers {
            add(&broker.host, &broker.addrs);
        }
        for server in &self.settings.bootstrap {
            let mut addrs = Vec::new();
            resolve(server.as_str(), &mut addrs);
            add(host_of(server), &addrs);
        }
        self.candidates.reverse();
    }

    fn ask_versions(&mut self, version: i16, now_ms: i64) -> Result<(), LinkFault> {
        let correlation_id = self.link.begin()?;
        let client_id = &self.settings.client_id;
        let header = RequestHeader { api: ApiKey::ApiVersions, version, correlation_id, client_id };
        let request = ApiVersionsRequest { software_name: "plimsoll", software_version: env!("CARGO_PKG_VERSION") };
        request.write(self.link.stage().ok_or(NetError::NotConnected)?, &header)?;
        self.sent(Phase::Versions(version), now_ms)
    }

    fn take_versions(&mut self, answer: &[u8], version: i16, now_ms: i64) -> Result<(), LinkFault> {
        let answer = ApiVersionsResponse::read(answer, version)?;
        if answer.error == ErrorCode::UnsupportedVersion && version != API_VERSIONS_FALLBACK {
            return self.ask_versions(API_VERSIONS_FALLBACK, now_ms);
        }
        if !answer.error.is_none() {
            return Err(WireError::Broker { api: ApiKey::ApiVersions.name(), code: answer.error }.into());
        }
        answer.offered.check_release()?;
        self.version = answer.offered.choose(ApiKey::Metadata)?;
        self.ask(now_ms)
    }

    fn ask(&mut self, now_ms: i64) -> Result<(), LinkFault> {
        if !self.link.may_send(now_ms)? {
            return Ok(()); // the login is renewed first
        }
        // What is asked for from here on is for the next refresh.
        self.shared.take_request();
        self.shared.wanted(&mut self.wanted);
        let topics: Vec<TopicRef<'_>> = self.wanted.iter().map(|name| TopicRef::Name(name)).collect();
        let bytes: usize = self.wanted.iter().map(|name| name.len() + 24).sum();
        self.link.reserve_stage(REQUEST_BYTES + self.settings.client_id.len() + bytes);
        let correlation_id = self.link.begin()?;
        let client_id = &self.settings.client_id;
        let header = RequestHeader { api: ApiKey::Metadata, version: self.version, correlation_id, client_id };
        let request = MetadataRequest { topics: Some(&topics), allow_auto_creation: false };
        request.write(self.link.stage().ok_or(NetError::NotConnected)?, &header)?;
        self.sent(Phase::Asking, now_ms)
    }

    fn sent(&mut self, phase: Phase, now_ms: i64) -> Result<(), LinkFault> {
        self.link.flush()?;
        self.phase = phase;
        self.deadline = now_ms.saturating_add(self.patience_ms());
        Ok(())
    }

    /// How long an answer is waited for.
    fn patience_ms(&self) -> i64 {
        (PATIENCE_MS << self.failures.min(10)).min(self.settings.request_timeout_ms)
    }

    fn take_metadata(&mut self, answer: &[u8], now_ms: i64) -> Result<(), LinkFault> {
        let response = MetadataResponse::read(answer, self.version)?;
        let old = self.shared.latest();
        let fresh = self.shared.take_resolve();
        let mut next = MetadataSnapshot {
            version: 0,
            cluster_id: response.cluster_id.map(str::to_owned),
            brokers: response.brokers.filter_map(|b| broker(&old, b.node_id, b.host, b.port, fresh)).collect(),
            topics: response.topics.filter_map(|topic| merge_topic(&old, &topic)).collect(),
        };
        next.sort();
        let complete = is_complete(&next);
        self.shared.publish(next);
        (self.phase, self.deadline, self.failures) = (Phase::Idle, i64::MAX, 0);
        self.candidates.clear();
        if complete {
            self.backoff.succeeded();
            self.next_at = now_ms.saturating_add(self.settings.max_age_ms);
            self.not_before = now_ms.saturating_add(self.settings.retry_backoff_ms.into());
        } else {
            self.next_at = now_ms.saturating_add(self.backoff.failed());
            self.not_before = self.next_at;
        }
        // The broker would only let us wait.
        let quiet_until = now_ms.saturating_add(response.throttle_ms.max(0).into());
        (self.next_at, self.not_before) = (self.next_at.max(quiet_until), self.not_before.max(quiet_until));
        Ok(())
    }

    /// Tries the next address at once, or all of them again after a pause.
    fn failed(&mut self, fault: LinkFault, now_ms: i64) {
        let idle = self.phase == Phase::Idle;
        self.link.close();
        (self.phase, self.deadline) = (Phase::Down, i64::MAX);
        if idle {
            return; // an idle connection may end; the next refresh makes a new one
        }
        self.failures = self.failures.saturating_add(1);
        self.next_at = now_ms;
        // Whoever refuses us does so on all brokers: one attempt a round is enough.
        if fault.is_refusal() {
            self.candidates.clear();
        }
        if self.candidates.is_empty() {
            self.next_at = now_ms.saturating_add(fault.pause(&mut self.backoff));
            self.shared.unreachable(self.failures, fault);
        }
        self.not_before = self.next_at;
    }
}

/// The host of a `host:port`; brackets around an address are not its part.
pub(super) fn host_of(server: &str) -> &str {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Adds what a `host:port` resolves to.
fn resolve(server: impl ToSocketAddrs, into: &mut Vec<SocketAddr>) {
    // A name that does not resolve now may do so in the next round.
    if let Ok(addrs) = server.to_socket_addrs() {
        into.extend(addrs.take(MAX_ADDRS));
    }
}

fn broker(old: &MetadataSnapshot, id: i32, host: &str, port: i32, fresh: bool) -> Option<Broker> {
    let port = u16::try_from(port).ok()?;
    let mut addrs = Vec::new();
    match old.broker(id).filter(|known| known.host == host && known.port == port && !known.addrs.is_empty()) {
        Some(known) if !fresh => addrs.clone_from(&known.addrs),
        _ => resolve((host, port), &mut addrs),
    }
    Some(Broker { id, host: host.to_owned(), port, addrs })
}

/// What the answer says of a topic; what was known stays where the answer knows less.
fn merge_topic(old: &MetadataSnapshot, topic: &MetadataTopic<'_>) -> Option<TopicInfo> {
    let name = topic.name?;
    let known = old.topic(name).filter(|known| known.id == topic.id || topic.id == [0; 16]);
    let state = match topic.error {
        ErrorCode::None => TopicState::Known,
        ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId => TopicState::Missing,
        code => TopicState::Failed(code),
    };
    let mut partitions = Vec::new();
    match state {
        TopicState::Known => {
            // Kafka numbers partitions without holes.
            partitions.resize(topic.partitions.len(), PartitionInfo::UNKNOWN);
            for partition in topic.partitions {
                let place = usize::try_from(partition.index).ok().and_then(|at| partitions.get_mut(at));
                if let Some(place) = place {
                    *place = PartitionInfo { leader: partition.leader_id, leader_epoch: partition.leader_epoch };
                }
            }
        }
        TopicState::Failed(code) if code.is_retriable() => {
            partitions.extend(known.iter().flat_map(|known| known.partitions.iter().copied()));
        }
        TopicState::Failed(_) | TopicState::Missing => {}
    }
    for (new, old) in partitions.iter_mut().zip(known.iter().flat_map(|known| &known.partitions)) {
        // A broker that lags behind tells of an older leader.
        if new.leader_epoch >= 0 && new.leader_epoch < old.leader_epoch {
            *new = *old;
        }
    }
    let name = known.map_or_else(|| name.into(), |known| Arc::clone(&known.name));
    Some(TopicInfo { name, id: topic.id, state, partitions })
}

/// Whether every topic is there with a leader for every partition; if not, the next answer may know more.
fn is_complete(snapshot: &MetadataSnapshot) -> bool {
    let led = |topic: &TopicInfo| topic.partitions.iter().all(|p| snapshot.broker(p.leader).is_some());
    !snapshot.brokers.is_empty()
        && snapshot.topics.iter().all(|topic| match topic.state {
            TopicState::Known => led(topic),
            TopicState::Missing => false,
            TopicState::Failed(code) => !code.is_retriable(),
        })
}

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod tests;
