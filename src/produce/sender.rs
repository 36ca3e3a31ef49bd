//! The turn of the connections: who is connected, which batches share a request, when partial batches leave.
//!
//! Invariant: at most five requests with batches are on their way on a connection, one batch of a partition in each,
//! and a partition's batches leave in order. Partial batches leave when few bytes are on their way, so that batches
//! grow by themselves under load and nothing waits for a timer when there is none (`linger_ms` adds one). Bound: a
//! request's head, its expected answer and its bytes. Called by the producer's turn.
use super::broker::{ANSWER_BYTES, Broker, CONNECT_TIMEOUT_MS, Phase};
use super::error::Cause;
use super::identity::Standing;
use super::partition::{NO_LEADER, Next, PartitionId};
use super::pool::{Batch, BatchId, Stage};
use super::producer::Producer;
use super::request::{HEAD_BYTES, Kind, Request};
use crate::net::{Peer, PollSet};
use crate::wire::message::{
    API_VERSIONS_FALLBACK, API_VERSIONS_FIRST, ApiKey, ApiVersionsRequest, InitProducerIdRequest, ProduceRequest,
    RequestHeader, TopicRef,
};
use crate::wire::{Stamp, WireError, restamp};
use plimsoll_alloc::{Module, scope};

/// With fewer bytes than this on their way to a broker, partial batches leave too.
const EAGER_BYTES: usize = 16 << 10;
/// Sealed bytes that are worth another request while more is on its way; a quarter of the pool if that is less.
const WORTHWHILE_BYTES: usize = 192 << 10;
/// So long, in milliseconds, sealed bytes that are worth no request of their own wait for company while more is on its
/// way. Longer than a nearby broker takes to answer; where answers take their time, requests follow each other.
const COMPANY_MS: i64 = 5;
/// Part of a request's head, and of its answer, that one topic takes beside its name.
const TOPIC_BYTES: usize = 16;
/// Part of a request's head that one partition takes.
const PARTITION_BYTES: usize = 16;
/// Part of an answer that one partition takes, with an error in words.
const ANSWERED_BYTES: usize = 160;
/// Acknowledged by all replicas in sync.
const ACKS_ALL: i16 = -1;

impl Producer {
    /// Connects, asks for what is missing, and sends what may leave, broker by broker.
    pub(super) fn serve_brokers(&mut self) {
        self.plan_transaction();
        self.note_wanted();
        self.company_until_ms = i64::MAX;
        for index in 0..self.brokers.len() {
            self.check_time(index);
            self.connect(index);
            if self.may_send(index) {
                self.ask_identity(index);
                self.ask_transaction(index);
                while self.form(index) {}
            }
            self.write(index);
        }
    }

    /// Whether new requests may leave: not while the login is renewed.
    fn may_send(&mut self, index: usize) -> bool {
        let now_ms = self.now_ms;
        match self.brokers.get_mut(index).map(|broker| broker.may_send(now_ms)) {
            Some(Ok(may)) => may,
            Some(Err(_)) => {
                self.lose(index);
                false
            }
            None => false,
        }
    }

    /// Marks the brokers that lead a partition with batches; new ones get their entry.
    fn note_wanted(&mut self) {
        self.brokers.iter_mut().for_each(|b| b.wanted = false);
        let mut leaderless = false;
        for place in 0..self.active.len() {
            let leader = self.active.get(place).and_then(|at| self.partition(*at)).map_or(NO_LEADER, |p| p.leader);
            if leader == NO_LEADER {
                leaderless = true;
                continue;
            }
            match self.brokers.iter_mut().find(|b| b.node == leader) {
                Some(broker) => broker.wanted = true,
                None => self.add_broker(leader),
            }
        }
        if leaderless {
            self.metadata.request_refresh();
        }
        self.note_coordinator();
    }

    pub(super) fn add_broker(&mut self, node: i32) {
        let _scope = scope(Module::Producer);
        if self.brokers.len() >= crate::base::limits::MAX_BROKERS {
            // A broker that is needed no longer makes room; else this one waits until one is.
            let Some(place) = self.brokers.iter().position(|b| b.phase == Phase::Idle && !b.wanted) else { return };
            self.brokers.remove(place);
        }
        let mut broker = Broker::new(node, self.pool.len(), self.pause.clone(), API_VERSIONS_FIRST);
        broker.wanted = true;
        self.brokers.push(broker);
    }

    /// Gives a connection up whose attempt or oldest request takes too long, or that nobody uses any more.
    fn check_time(&mut self, index: usize) {
        let now_ms = self.now_ms;
        let Some(broker) = self.brokers.get_mut(index) else { return };
        let late = match broker.phase {
            Phase::Idle => false,
            Phase::Connecting { since_ms } => since_ms.saturating_add(CONNECT_TIMEOUT_MS) <= now_ms,
            Phase::Greeting { .. } | Phase::Ready { .. } => match broker.oldest_ms() {
                None => broker.idle_until_ms(self.settings.max_idle_ms) <= now_ms,
                Some(sent_ms) => {
                    if broker.is_silent(now_ms) {
                        self.metadata.request_refresh();
                    }
                    let left = !broker.wanted && broker.has_batches() && broker.silent_at_ms() <= now_ms;
                    left || sent_ms.saturating_add(self.settings.request_timeout_ms) <= now_ms
                }
            },
        };
        if late {
            self.lose(index);
        }
    }

    /// Starts a connection that is wanted, or finishes one whose attempt succeeded.
    fn connect(&mut self, index: usize) {
        let now_ms = self.now_ms;
        let Some(broker) = self.brokers.get_mut(index) else { return };
        if broker.phase == Phase::Idle && broker.wanted && broker.retry_at_ms <= now_ms {
            let snapshot = self.metadata.latest();
            let (host, addrs) =
                snapshot.broker(broker.node).map_or(("", &[][..]), |b| (b.host.as_str(), b.addrs.as_slice()));
            let Some(addr) = addrs.get(broker.attempt % addrs.len().max(1)) else {
                broker.retry_at_ms = now_ms.saturating_add(broker.backoff.failed());
                return self.metadata.report_unreachable();
            };
            broker.attempt = broker.attempt.wrapping_add(1);
            let peer = Peer { addr: *addr, host, security: self.metadata.security() };
            if broker.connect(&peer, now_ms).is_err() {
                return self.lose(index);
            }
        }
        self.greet(index);
    }

    /// Asks a broker that has just been connected for its versions.
    pub(super) fn greet(&mut self, index: usize) {
        let now_ms = self.now_ms;
        let Some(broker) = self.brokers.get_mut(index) else { return };
        if !matches!(broker.phase, Phase::Connecting { .. }) || !broker.is_connected() {
            return;
        }
        let version = broker.greeting;
        let Some((mut request, correlation_id)) = broker.begin(Kind::Versions, version, now_ms) else { return };
        let client_id = &*self.settings.client_id;
        let header = RequestHeader { api: ApiKey::ApiVersions, version, correlation_id, client_id };
        let who = ApiVersionsRequest { software_name: "plimsoll", software_version: env!("CARGO_PKG_VERSION") };
        let written = who.write(&mut request.head, &header);
        broker.phase = Phase::Greeting { version };
        broker.send(request);
        if written.is_err() {
            self.lose(index);
        }
    }

    /// The broker does not speak the version it was greeted in: connects anew and greets in the oldest one.
    pub(super) fn greet_simply(&mut self, index: usize) {
        if let Some(broker) = self.brokers.get_mut(index) {
            broker.greeting = API_VERSIONS_FALLBACK;
        }
        self.lose(index);
    }

    /// Asks for the producer's identity if there is none, on any connection that can be used.
    fn ask_identity(&mut self, index: usize) {
        let now_ms = self.now_ms;
        let Standing::Unknown { retry_at_ms } = self.standing else { return };
        let Some(broker) = self.brokers.get_mut(index) else { return };
        let Phase::Ready { identity: version, .. } = broker.phase else { return };
        if retry_at_ms > now_ms || self.active.is_empty() || self.txn.is_some() {
            return;
        }
        let Some((mut request, correlation_id)) = broker.begin(Kind::Identity, version, now_ms) else { return };
        let client_id = &*self.settings.client_id;
        let header = RequestHeader { api: ApiKey::InitProducerId, version, correlation_id, client_id };
        let written = InitProducerIdRequest::IDEMPOTENT.write(&mut request.head, &header);
        broker.send(request);
        self.standing = Standing::Asked;
        if written.is_err() {
            self.lose(index);
        }
    }

    /// Puts one request with batches on its way, if there is one worth it. Answers whether there was.
    fn form(&mut self, index: usize) -> bool {
        let Some(broker) = self.brokers.get(index) else { return false };
        let (Phase::Ready { produce, .. }, Some(_)) = (broker.phase, self.standing.known()) else { return false };
        if !broker.takes_request(self.now_ms) {
            return false;
        }
        let partials = self.flushing || broker.flying == 0 || broker.flying_bytes < EAGER_BYTES;
        let bytes = self.pick(index, partials);
        let pool_bytes = self.settings.batch_bytes.saturating_mul(self.settings.batches);
        if self.picked.is_empty() {
            return false;
        }
        if !partials && bytes < WORTHWHILE_BYTES.min(pool_bytes / 4) {
            let opened_ms = self.picked.iter().filter_map(|id| self.pool.get(*id)).map(|b| b.opened_ms).min();
            let until_ms = opened_ms.unwrap_or(self.now_ms).saturating_add(COMPANY_MS);
            if until_ms > self.now_ms {
                self.company_until_ms = self.company_until_ms.min(until_ms);
                return false;
            }
        }
        self.stamp_picked();
        if self.picked.is_empty() {
            return false;
        }
        let Some(broker) = self.brokers.get_mut(index) else { return false };
        let node = broker.node;
        // Transactions of version 2 need a version of their own.
        let up_to = self.txn.as_ref().map_or(produce, |txn| txn.produce_up_to());
        let produce = broker.offered.choose_up_to(ApiKey::Produce, up_to).unwrap_or(produce);
        let Some((mut request, correlation_id)) = broker.begin(Kind::Batches, produce, self.now_ms) else {
            return false;
        };
        if let Some(txn) = self.txn.as_deref_mut() {
            txn.batches_left();
        }
        std::mem::swap(&mut request.batches, &mut self.picked);
        let client_id = &*self.settings.client_id;
        let header = RequestHeader { api: ApiKey::Produce, version: produce, correlation_id, client_id };
        let written = self.write_head(&mut request, &header);
        for id in &request.batches {
            let Some(Batch { stage, at, .. }) = self.pool.get_mut(*id) else { continue };
            *stage = Stage::Flying;
            let at = *at;
            if let Some(partition) = self.partition_mut(at) {
                partition.sent(node);
            }
        }
        self.stats.requests += 1;
        self.stats.batches += request.batches.len() as u64;
        self.stats.bytes += request.bytes as u64;
        if let Some(broker) = self.brokers.get_mut(index) {
            broker.send(request);
        }
        if written.is_err() {
            // Cannot be: what is picked fits the head.
            self.lose(index);
        }
        written.is_ok()
    }

    /// Chooses the batches of the next request to a broker: of each partition it leads at most one, in the order of
    /// topics. Answers their bytes.
    fn pick(&mut self, index: usize, partials: bool) -> usize {
        self.picked.clear();
        let Some(broker) = self.brokers.get(index) else { return 0 };
        let (node, cursor) = (broker.node, broker.cursor);
        let start = cursor.map_or(0, |last| self.active.partition_point(|at| *at <= last));
        let transactional_id = self.txn.as_ref().map_or(0, |txn| txn.id().len());
        let (mut bytes, mut head, mut answer) = (0, self.settings.client_id.len() + transactional_id + 64, 64);
        let mut topic = None;
        let mut last = None;
        for place in start..self.active.len() {
            let Some(at) = self.active.get(place).copied() else { break };
            let Some(id) = self.sendable(at, node, partials) else { continue };
            let Some(size) = self.pool.get(id).map(|b| b.builder.len()) else { continue };
            let name = if topic == Some(at.topic) { 0 } else { self.topic_name(at.topic).len() + TOPIC_BYTES };
            head += name + PARTITION_BYTES;
            answer += name + ANSWERED_BYTES;
            let full = head > HEAD_BYTES || answer > ANSWER_BYTES || bytes + size > self.settings.request_bytes;
            if full && !self.picked.is_empty() {
                last = self.picked.last().and_then(|id| self.pool.get(*id)).map(|b| b.at);
                break;
            }
            topic = Some(at.topic);
            bytes += size;
            self.picked.push(id);
        }
        let again = self.picked.is_empty() && start > 0;
        if let Some(broker) = self.brokers.get_mut(index) {
            broker.cursor = last;
        }
        // Nothing behind the cursor: from the beginning.
        if again { self.pick(index, partials) } else { bytes }
    }

    /// The batch that a partition can send to `node` now.
    fn sendable(&self, at: PartitionId, node: i32, partials: bool) -> Option<BatchId> {
        let partition = self.partition(at).filter(|p| p.may_send(node, self.now_ms))?;
        if self.txn.as_ref().is_some_and(|txn| !txn.may_send(partition.txn_serial)) {
            return None;
        }
        match partition.next_to_send(&self.pool, self.now_ms) {
            Next::Sealed(id) => Some(id),
            Next::Open(id) => {
                let batch = self.pool.get(id).filter(|_| partials)?;
                let due = batch.opened_ms.saturating_add(self.settings.linger_ms) <= self.now_ms;
                (due || self.flushing || self.starved).then_some(id)
            }
            Next::Wait => None,
        }
    }

    /// Seals the chosen batches that are still under construction, and gives each its identity and sequence. What was
    /// sent before keeps them.
    fn stamp_picked(&mut self) {
        let mut kept = 0;
        for place in 0..self.picked.len() {
            let Some(id) = self.picked.get(place).copied() else { break };
            let Some((at, open)) = self.pool.get(id).map(|b| (b.at, b.stage == Stage::Open)) else { continue };
            if open {
                self.seal(at);
            }
            match self.stamp(id, at) {
                Ok(()) => {
                    self.picked.swap(kept, place);
                    kept += 1;
                }
                Err(_) => self.fail_partition(at, Cause::Encoding),
            }
        }
        self.picked.truncate(kept);
    }

    fn stamp(&mut self, id: BatchId, at: PartitionId) -> Result<(), WireError> {
        let missing = WireError::Malformed { what: "batch to stamp", at: 0 };
        let topic = self.topics.get_mut(at.topic.0 as usize).ok_or(missing)?;
        let partition = topic.partitions.get_mut(at.partition as usize).ok_or(missing)?;
        let batch = self.pool.get_mut(id).ok_or(missing)?;
        if batch.stamp.is_some() && !batch.outdated {
            return Ok(());
        }
        let identity = partition.adopt(self.standing.known().ok_or(missing)?);
        let stamp = Stamp {
            producer_id: identity.id,
            producer_epoch: identity.epoch,
            base_sequence: partition.take_sequence(batch.builder.count()),
            transactional: self.txn.is_some(),
        };
        if batch.stamp.is_none() {
            batch.builder.seal(&mut batch.bytes, &stamp, &mut self.compressor)?;
        } else {
            let len = batch.builder.len();
            restamp(batch.bytes.get_mut(..len).ok_or(missing)?, &stamp)?;
        }
        batch.stamp = Some(stamp);
        batch.outdated = false;
        Ok(())
    }

    /// Writes everything of the request but its batches.
    fn write_head(&self, request: &mut Request, header: &RequestHeader<'_>) -> Result<(), WireError> {
        let Request { head, cuts, batches, bytes, .. } = request;
        let at = |id: &BatchId| self.pool.get(*id).map(|b| b.at);
        let by_topic = |a: &BatchId, b: &BatchId| at(a).map(|at| at.topic) == at(b).map(|at| at.topic);
        let timeout_ms = i32::try_from(self.settings.request_timeout_ms).unwrap_or(i32::MAX);
        let transactional_id = self.txn.as_ref().map(|txn| txn.id());
        let produce = ProduceRequest { transactional_id, acks: ACKS_ALL, timeout_ms };
        let mut out = produce.begin(head, header, batches.chunk_by(by_topic).count());
        for group in batches.chunk_by(by_topic) {
            let name = group.first().and_then(at).map_or("", |at| self.topic_name(at.topic));
            out.topic(TopicRef::Name(name), group.len());
            for batch in group.iter().filter_map(|id| self.pool.get(*id)) {
                let len = batch.builder.len();
                *bytes += len;
                cuts.push(out.partition(i32::try_from(batch.at.partition).unwrap_or(i32::MAX), len));
            }
        }
        out.finish().map(|_| ())
    }

    /// Writes what is on its way to a broker as far as the socket takes it.
    pub(super) fn write(&mut self, index: usize) {
        let Some(broker) = self.brokers.get_mut(index) else { return };
        if broker.is_connected() && broker.write(&self.pool).is_err() {
            self.lose(index);
        }
    }

    /// Enters the connections into the poll set.
    pub(super) fn register(&mut self, polls: &mut PollSet) {
        for index in 0..self.brokers.len() {
            if self.brokers.get_mut(index).is_some_and(|b| b.register(polls).is_err()) {
                self.lose(index);
            }
        }
    }
}
