//! Looks offsets up: the ends of partitions, and where a time is.
//!
//! Owns nothing: a call connects to the leaders, asks and hangs up. Bound: answers of at most [`MAX_ANSWER_BYTES`], the
//! caller's time-out over all. It blocks, so it is for assignments, resets and restore targets; never for a turn.
use super::{Broker, LinkFault, SharedMetadata};
use crate::net::{BlockingCall, NetError, Peer, Security};
use crate::wire::message::{
    API_VERSIONS_FALLBACK, API_VERSIONS_FIRST, ApiKey, ApiVersionsRequest, ApiVersionsResponse, EARLIEST, LATEST,
    ListOffsetsRequest, ListOffsetsResponse, RequestHeader, TopicRef,
};
use crate::wire::{ErrorCode, WireError};
use std::time::{Duration, Instant};

/// Longest answer, in bytes: about 30,000 partitions.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Bytes of a request before its partitions, and for each: every one may name its topic.
const REQUEST_BYTES: usize = 256;
const REQUEST_PARTITION_BYTES: usize = 300;

/// Which offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OffsetSpec {
    /// The first one of the log.
    Earliest,
    /// The one behind the last record; reading committed, the last stable offset.
    Latest,
    /// The first record with this timestamp or a later one, in milliseconds since the epoch.
    At(i64),
}

/// One offset to look up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OffsetQuery<'a> {
    /// Name of the topic.
    pub(crate) topic: &'a str,
    /// Number of the partition.
    pub(crate) partition: i32,
    /// Which offset.
    pub(crate) spec: OffsetSpec,
}

/// Why an offset could not be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum OffsetFault {
    /// Nobody is known to lead the partition (yet).
    #[error("the partition has no known leader")]
    NoLeader,
    /// The leader could not be asked.
    #[error(transparent)]
    Link(#[from] LinkFault),
    /// The leader refused.
    #[error("the broker answered {0}")]
    Broker(ErrorCode),
    /// The leader said nothing about it.
    #[error("the broker's answer does not mention the partition")]
    NotAnswered,
}

impl OffsetFault {
    /// Whether the same may succeed later, with newer metadata (which has been asked for).
    pub(crate) fn is_retriable(&self) -> bool {
        match self {
            Self::NoLeader | Self::NotAnswered | Self::Link(LinkFault::Net(_)) => true,
            Self::Link(_) => false,
            Self::Broker(code) => code.is_retriable(),
        }
    }
}

/// An answer: the offset, or `None` when no record is that late.
pub(crate) type OffsetAnswer = Result<Option<i64>, OffsetFault>;

/// Looks all these offsets up, once, within `timeout`; answers in the order of the queries, which must not name a
/// partition twice (brokers refuse that). Topics must be wanted
/// ([`SharedMetadata::want_topic`]). What failed for a reason that may pass can be asked again after a pause.
pub(crate) fn list_offsets(
    metadata: &SharedMetadata,
    client_id: &str,
    queries: &[OffsetQuery<'_>],
    read_committed: bool,
    timeout: Duration,
) -> Vec<OffsetAnswer> {
    let end = Instant::now() + timeout;
    let snapshot = metadata.latest();
    let leader = |q: &OffsetQuery<'_>| snapshot.partition(q.topic, q.partition);
    let mut answers: Vec<OffsetAnswer> = vec![Err(OffsetFault::NoLeader); queries.len()];
    for broker in &snapshot.brokers {
        let led = |q: &OffsetQuery<'_>| leader(q).is_some_and(|p| p.leader == broker.id);
        let mine: Vec<(usize, i32)> = (0..)
            .zip(queries)
            .filter(|(_, q)| led(q))
            .map(|(at, q)| (at, leader(q).map_or(-1, |p| p.leader_epoch)))
            .collect();
        if mine.is_empty() {
            continue;
        }
        for (at, _) in &mine {
            answers[*at] = Err(OffsetFault::NotAnswered);
        }
        let security = metadata.security();
        let ask = Ask { broker, security, client_id, queries, mine: &mine, read_committed, end };
        if let Err(fault) = ask.run(&mut answers) {
            for (at, _) in &mine {
                answers[*at] = Err(fault.into());
            }
            metadata.report_unreachable();
        }
    }
    let stale = |fault: &OffsetFault| match fault {
        OffsetFault::NoLeader => true,
        OffsetFault::Broker(code) => code.needs_metadata(),
        _ => false,
    };
    if answers.iter().any(|answer| answer.as_ref().is_err_and(stale)) {
        metadata.request_refresh();
    }
    answers
}

/// One broker's part.
struct Ask<'a> {
    broker: &'a Broker,
    security: &'a Security,
    client_id: &'a str,
    queries: &'a [OffsetQuery<'a>],
    /// Its queries by number, with the leader's epoch.
    mine: &'a [(usize, i32)],
    read_committed: bool,
    end: Instant,
}

impl Ask<'_> {
    fn run(&self, answers: &mut [OffsetAnswer]) -> Result<(), LinkFault> {
        let mut call = self.connect()?;
        let version = self.version(&mut call)?;
        let answer = call.call(self.left(), |correlation_id, into| self.write(version, correlation_id, into))?;
        let mut response = ListOffsetsResponse::read(answer, version)?;
        while let Some(listed) = response.next()? {
            let named = |(at, _): &&(usize, i32)| {
                let query = &self.queries[*at];
                query.partition == listed.partition && listed.topic == TopicRef::Name(query.topic)
            };
            let Some((at, _)) = self.mine.iter().find(named) else { continue };
            answers[*at] = match listed.error {
                ErrorCode::None => Ok((listed.offset >= 0).then_some(listed.offset)),
                code => Err(OffsetFault::Broker(code)),
            };
        }
        Ok(())
    }

    fn connect(&self) -> Result<BlockingCall, NetError> {
        let bytes = REQUEST_BYTES + self.client_id.len() + self.mine.len() * REQUEST_PARTITION_BYTES;
        let mut last = NetError::NotConnected;
        for addr in &self.broker.addrs {
            let peer = Peer { addr: *addr, host: &self.broker.host, security: self.security };
            match BlockingCall::connect(&peer, bytes, MAX_ANSWER_BYTES, self.left()) {
                Ok(call) => return Ok(call),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn version(&self, call: &mut BlockingCall) -> Result<i16, LinkFault> {
        for version in [API_VERSIONS_FIRST, API_VERSIONS_FALLBACK] {
            let answer = call.call(self.left(), |correlation_id, into| {
                let client_id = self.client_id;
                let header = RequestHeader { api: ApiKey::ApiVersions, version, correlation_id, client_id };
                let software_version = env!("CARGO_PKG_VERSION");
                let request = ApiVersionsRequest { software_name: "plimsoll", software_version };
                request.write(into, &header).map(|_| ()).map_err(LinkFault::from)
            })?;
            let answer = ApiVersionsResponse::read(answer, version)?;
            match answer.error {
                ErrorCode::None => return Ok(answer.offered.choose(ApiKey::ListOffsets)?),
                ErrorCode::UnsupportedVersion => {}
                code => return Err(WireError::Broker { api: ApiKey::ApiVersions.name(), code }.into()),
            }
        }
        let code = ErrorCode::UnsupportedVersion;
        Err(WireError::Broker { api: ApiKey::ApiVersions.name(), code }.into())
    }

    fn write(&self, version: i16, correlation_id: i32, into: &mut Vec<u8>) -> Result<(), LinkFault> {
        let header = RequestHeader { api: ApiKey::ListOffsets, version, correlation_id, client_id: self.client_id };
        let request = ListOffsetsRequest { read_committed: self.read_committed };
        let mut writer = request.begin(into, &header, self.mine.len());
        for (at, leader_epoch) in self.mine {
            let query = &self.queries[*at];
            let timestamp = match query.spec {
                OffsetSpec::Earliest => EARLIEST,
                OffsetSpec::Latest => LATEST,
                OffsetSpec::At(ms) => ms.max(0),
            };
            writer.topic(query.topic, 1);
            writer.partition(query.partition, *leader_epoch, timestamp);
        }
        writer.finish()?;
        Ok(())
    }

    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}
