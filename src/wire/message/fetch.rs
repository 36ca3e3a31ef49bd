//! Fetch: record batches of many partitions in one response.
use super::api::{ApiKey, RequestHeader};
use super::items::{Item, Items};
use super::topics::{CurrentLeader, NodeEndpoint, TopicRef, TopicWalk, TopicsWriter};
use crate::wire::error::Result;
use crate::wire::{Batches, ErrorCode, Reader, Writer};

/// The first version that names topics by id.
const BY_ID: i16 = 13;

/// Asks the leader of partitions for records. Sessions (KIP-227) have their place in the two fields; forgotten topics
/// come with them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchRequest {
    /// How long the broker may wait for `min_bytes`, in ms.
    pub(crate) max_wait_ms: i32,
    /// The broker answers at once when it has this many bytes.
    pub(crate) min_bytes: i32,
    /// Bytes of records in the whole answer; the first batch is sent even if it alone is larger.
    pub(crate) max_bytes: i32,
    /// Whether the answer ends at the last stable offset and lists aborted transactions.
    pub(crate) read_committed: bool,
    /// 0: no session.
    pub(crate) session_id: i32,
    /// -1: no session.
    pub(crate) session_epoch: i32,
}

/// Where to read one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FetchPosition {
    /// The partition.
    pub(crate) partition: i32,
    /// The leader's epoch as the metadata has it, so that a fenced leader is noticed; -1: unchecked. Version 9.
    pub(crate) current_leader_epoch: i32,
    /// First offset wanted.
    pub(crate) offset: i64,
    /// Epoch of the record before `offset`, so that truncation is noticed (KIP-320); -1: unchecked. Version 12.
    pub(crate) last_fetched_epoch: i32,
    /// Bytes of records of this partition; the first batch of an answer is sent even if it is larger.
    pub(crate) max_bytes: i32,
}

impl FetchRequest {
    /// Begins the request, for `topics` topics: named up to version 12, by id from 13.
    pub(crate) fn begin<'b>(
        &self,
        buffer: &'b mut Vec<u8>,
        header: &RequestHeader<'_>,
        topics: usize,
    ) -> FetchWriter<'b> {
        let version = header.version;
        let mut out = Writer::request(buffer, header);
        if version < 15 {
            out.i32(-1); // a consumer; later a tagged field, for replicas
        }
        out.i32(self.max_wait_ms);
        out.i32(self.min_bytes);
        out.i32(self.max_bytes);
        out.i8(i8::from(self.read_committed));
        if version >= 7 {
            out.i32(self.session_id);
            out.i32(self.session_epoch);
        }
        FetchWriter { topics: TopicsWriter::new(out, version >= BY_ID, topics), version }
    }
}

/// Writes the partitions of a [`FetchRequest`].
#[derive(Debug)]
pub(crate) struct FetchWriter<'b> {
    topics: TopicsWriter<'b>,
    version: i16,
}

impl FetchWriter<'_> {
    /// Begins a topic of `partitions` partitions.
    pub(crate) fn topic(&mut self, topic: TopicRef<'_>, partitions: usize) {
        self.topics.topic(topic, partitions);
    }

    /// A partition of the topic.
    pub(crate) fn partition(&mut self, position: &FetchPosition) {
        let version = self.version;
        let out = self.topics.partition();
        out.i32(position.partition);
        if version >= 9 {
            out.i32(position.current_leader_epoch);
        }
        out.i64(position.offset);
        if version >= 12 {
            out.i32(position.last_fetched_epoch);
        }
        if version >= 5 {
            out.i64(-1); // log start offset: a replica's
        }
        out.i32(position.max_bytes);
        out.no_tags();
    }

    /// Ends the request, for a consumer in `rack` ("" none); answers the bytes of its frame with the prefix.
    pub(crate) fn finish(self, rack: &str) -> Result<usize> {
        let version = self.version;
        let mut out = self.topics.end();
        if version >= 7 {
            out.array_len(0); // forgotten topics
        }
        if version >= 11 {
            out.string(rack);
        }
        out.no_tags();
        out.finish(0)
    }
}

/// The broker's answer, visited partition by partition; `Copy`, so a first walk may look at headers alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchResponse<'a> {
    /// How long the broker holds back its answers, in ms.
    pub(crate) throttle_ms: i32,
    /// Error of the whole request: of its session, or `UnknownServerError`.
    pub(crate) error: ErrorCode,
    /// The session; 0 none.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) session_id: i32,
    walk: TopicWalk<'a>,
    version: i16,
}

/// The answer for one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchedPartition<'a> {
    /// Name or id of the topic, as in the request.
    pub(crate) topic: TopicRef<'a>,
    /// The partition.
    pub(crate) partition: i32,
    /// The partition's error.
    pub(crate) error: ErrorCode,
    /// Next offset that will be replicated to all; -1 unknown. What is below may be read uncommitted.
    pub(crate) high_watermark: i64,
    /// First offset of an open transaction, or the high watermark; -1 unknown. What is below may be read committed.
    pub(crate) last_stable_offset: i64,
    /// First offset still there; -1 unknown.
    pub(crate) log_start_offset: i64,
    /// Transactions whose records must be dropped, read committed only.
    pub(crate) aborted: Items<'a, AbortedTransaction>,
    /// Node id of a replica to read from instead; -1 none.
    pub(crate) preferred_replica: i32,
    /// Batches; the last may be cut. Walk them with [`FetchedPartition::batches`].
    pub(crate) records: &'a [u8],
    /// Position of `records` in the frame (which is without its length prefix), so that they can be found again
    /// without the response.
    pub(crate) records_at: usize,
    /// Set when the log was truncated below the position: read on at its end.
    pub(crate) diverging_epoch: Option<DivergingEpoch>,
    /// With `NotLeaderOrFollower` or `FencedLeaderEpoch`: the leader now, with its address in
    /// [`FetchResponse::endpoints`].
    pub(crate) current_leader: Option<CurrentLeader>,
}

impl<'a> FetchedPartition<'a> {
    /// Walks the batches.
    pub(crate) fn batches(&self) -> Batches<'a> {
        Batches::new(self.records)
    }
}

/// A transaction that was aborted: its producer's records from `first_offset` to the producer's next abort marker are
/// void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AbortedTransaction {
    /// The producer.
    pub(crate) producer_id: i64,
    /// First offset of the transaction in this partition.
    pub(crate) first_offset: i64,
}

impl<'a> Item<'a> for AbortedTransaction {
    fn read(reader: &mut Reader<'a>, _version: i16) -> Result<Self> {
        let aborted = AbortedTransaction { producer_id: reader.i64()?, first_offset: reader.i64()? };
        reader.skip_tags()?;
        Ok(aborted)
    }
}

/// The largest epoch and offset at which the leader's log agrees with the one that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DivergingEpoch {
    /// The epoch; -1 unknown.
    pub(crate) epoch: i32,
    /// First offset behind it; -1 unknown.
    pub(crate) end_offset: i64,
}

impl<'a> FetchResponse<'a> {
    /// Reads the answer to a request of `version`.
    pub(crate) fn read(frame: &'a [u8], version: i16) -> Result<FetchResponse<'a>> {
        let mut reader = super::response(frame, ApiKey::Fetch, version)?;
        let throttle_ms = reader.i32()?;
        let (error, session_id) = match version >= 7 {
            true => (ErrorCode::from_code(reader.i16()?), reader.i32()?),
            false => (ErrorCode::None, 0),
        };
        let walk = TopicWalk::new(reader, version >= BY_ID)?;
        Ok(FetchResponse { throttle_ms, error, session_id, walk, version })
    }

    /// The next partition.
    pub(crate) fn next(&mut self) -> Result<Option<FetchedPartition<'a>>> {
        let version = self.version;
        let Some((topic, reader)) = self.walk.next()? else { return Ok(None) };
        let partition = reader.i32()?;
        let error = ErrorCode::from_code(reader.i16()?);
        let (high_watermark, last_stable_offset) = (reader.i64()?, reader.i64()?);
        let log_start_offset = if version >= 5 { reader.i64()? } else { -1 };
        let aborted = Items::read(reader, version)?;
        let preferred_replica = if version >= 11 { reader.i32()? } else { -1 };
        let records = reader.nullable_bytes()?.unwrap_or(&[]);
        let records_at = reader.at() - records.len();
        let (mut diverging_epoch, mut current_leader) = (None, None);
        reader.tags(|tag, field| {
            match tag {
                0 => diverging_epoch = read_diverging(field)?,
                1 => current_leader = Some(CurrentLeader::read(field)?).filter(|leader| leader.leader_id >= 0),
                _ => {}
            }
            Ok(())
        })?;
        Ok(Some(FetchedPartition {
            topic,
            partition,
            error,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            aborted,
            preferred_replica,
            records,
            records_at,
            diverging_epoch,
            current_leader,
        }))
    }

    /// Addresses of the leaders named in the partitions (version 16); goes over the partitions that are left.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) fn endpoints(mut self) -> Result<Items<'a, NodeEndpoint<'a>>> {
        while self.next()?.is_some() {}
        let mut endpoints = Items::empty();
        self.walk.behind().tags(|tag, mut field| {
            if tag == 0 {
                endpoints = Items::read(&mut field, self.version)?;
            }
            Ok(())
        })?;
        Ok(endpoints)
    }
}

/// The tagged field; its default, -1, means none.
fn read_diverging(mut field: Reader<'_>) -> Result<Option<DivergingEpoch>> {
    let diverging = DivergingEpoch { epoch: field.i32()?, end_offset: field.i64()? };
    field.skip_tags()?;
    Ok(Some(diverging).filter(|diverging| diverging.epoch >= 0 || diverging.end_offset >= 0))
}
