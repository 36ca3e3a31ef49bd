//! OffsetForLeaderEpoch: where a leader's epoch ended, to find out whether a log was truncated (KIP-320).
use super::api::{ApiKey, RequestHeader};
use super::topics::{TopicRef, TopicWalk, TopicsWriter};
use crate::wire::error::Result;
use crate::wire::{ErrorCode, Writer};

/// Asks the leader of partitions. Topics are named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OffsetForLeaderEpochRequest;

/// One question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EpochQuery {
    /// The partition.
    pub(crate) partition: i32,
    /// The leader's epoch as the metadata has it; -1: unchecked.
    pub(crate) current_leader_epoch: i32,
    /// The epoch of the last record read.
    pub(crate) leader_epoch: i32,
}

impl OffsetForLeaderEpochRequest {
    /// Begins the request, for `topics` topics.
    pub(crate) fn begin<'b>(
        &self,
        buffer: &'b mut Vec<u8>,
        header: &RequestHeader<'_>,
        topics: usize,
    ) -> OffsetForLeaderEpochWriter<'b> {
        let mut out = Writer::request(buffer, header);
        if header.version >= 3 {
            out.i32(-1); // a consumer
        }
        OffsetForLeaderEpochWriter { topics: TopicsWriter::new(out, false, topics) }
    }
}

/// Writes the partitions of an [`OffsetForLeaderEpochRequest`].
#[derive(Debug)]
pub(crate) struct OffsetForLeaderEpochWriter<'b> {
    topics: TopicsWriter<'b>,
}

impl OffsetForLeaderEpochWriter<'_> {
    /// Begins a topic of `partitions` partitions.
    pub(crate) fn topic(&mut self, name: &str, partitions: usize) {
        self.topics.topic(TopicRef::Name(name), partitions);
    }

    /// A partition of the topic.
    pub(crate) fn partition(&mut self, query: &EpochQuery) {
        let out = self.topics.partition();
        out.i32(query.partition);
        out.i32(query.current_leader_epoch);
        out.i32(query.leader_epoch);
        out.no_tags();
    }

    /// Ends the request; answers the bytes of its frame with the prefix.
    pub(crate) fn finish(self) -> Result<usize> {
        self.topics.finish()
    }
}

/// The broker's answer, visited partition by partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OffsetForLeaderEpochResponse<'a> {
    /// How long the broker holds back its answers, in ms.
    pub(crate) throttle_ms: i32,
    walk: TopicWalk<'a>,
}

/// The answer for one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EpochEnd<'a> {
    /// Name of the topic.
    pub(crate) topic: TopicRef<'a>,
    /// The partition.
    pub(crate) partition: i32,
    /// The partition's error.
    pub(crate) error: ErrorCode,
    /// The largest epoch of the leader's log that is not above the one asked for; -1 none.
    pub(crate) leader_epoch: i32,
    /// First offset behind that epoch; -1 unknown. Below the consumer's position: the log was truncated there.
    pub(crate) end_offset: i64,
}

impl<'a> OffsetForLeaderEpochResponse<'a> {
    /// Reads the answer to a request of `version`.
    pub(crate) fn read(frame: &'a [u8], version: i16) -> Result<OffsetForLeaderEpochResponse<'a>> {
        let mut reader = super::response(frame, ApiKey::OffsetForLeaderEpoch, version)?;
        let throttle_ms = reader.i32()?;
        Ok(OffsetForLeaderEpochResponse { throttle_ms, walk: TopicWalk::new(reader, false)? })
    }

    /// The next partition.
    pub(crate) fn next(&mut self) -> Result<Option<EpochEnd<'a>>> {
        let Some((topic, reader)) = self.walk.next()? else { return Ok(None) };
        let error = ErrorCode::from_code(reader.i16()?);
        let partition = reader.i32()?;
        let (leader_epoch, end_offset) = (reader.i32()?, reader.i64()?);
        reader.skip_tags()?;
        Ok(Some(EpochEnd { topic, partition, error, leader_epoch, end_offset }))
    }
}
