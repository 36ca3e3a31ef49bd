//! ListOffsets: offsets by timestamp, and the ends of partitions.
use super::api::{ApiKey, RequestHeader};
use super::topics::{TopicRef, TopicWalk, TopicsWriter};
use crate::wire::error::Result;
use crate::wire::{ErrorCode, Writer};

/// Instead of a timestamp: the next offset to be written (or, read committed, the last stable one).
pub(crate) const LATEST: i64 = -1;
/// Instead of a timestamp: the first offset still there.
pub(crate) const EARLIEST: i64 = -2;
/// Instead of a timestamp: the record with the largest one (version 7).
#[allow(dead_code)] // messages are read and written whole
pub(crate) const MAX_TIMESTAMP: i64 = -3;

/// Asks the leader of partitions for offsets. Topics are named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListOffsetsRequest {
    /// Whether `LATEST` means the last stable offset.
    pub(crate) read_committed: bool,
}

impl ListOffsetsRequest {
    /// Begins the request, for `topics` topics.
    pub(crate) fn begin<'b>(
        &self,
        buffer: &'b mut Vec<u8>,
        header: &RequestHeader<'_>,
        topics: usize,
    ) -> ListOffsetsWriter<'b> {
        let mut out = Writer::request(buffer, header);
        out.i32(-1); // a consumer
        out.i8(i8::from(self.read_committed));
        ListOffsetsWriter { topics: TopicsWriter::new(out, false, topics) }
    }
}

/// Writes the partitions of a [`ListOffsetsRequest`].
#[derive(Debug)]
pub(crate) struct ListOffsetsWriter<'b> {
    topics: TopicsWriter<'b>,
}

impl ListOffsetsWriter<'_> {
    /// Begins a topic of `partitions` partitions.
    pub(crate) fn topic(&mut self, name: &str, partitions: usize) {
        self.topics.topic(TopicRef::Name(name), partitions);
    }

    /// A partition of the topic, the leader's epoch as the metadata has it (-1: unchecked), and a timestamp in ms:
    /// the answer is the first record at or behind it.
    pub(crate) fn partition(&mut self, index: i32, leader_epoch: i32, timestamp: i64) {
        let out = self.topics.partition();
        out.i32(index);
        out.i32(leader_epoch);
        out.i64(timestamp);
        out.no_tags();
    }

    /// Ends the request; answers the bytes of its frame with the prefix.
    pub(crate) fn finish(self) -> Result<usize> {
        self.topics.finish()
    }
}

/// The broker's answer, visited partition by partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListOffsetsResponse<'a> {
    /// How long the broker holds back its answers, in ms.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) throttle_ms: i32,
    walk: TopicWalk<'a>,
}

/// The answer for one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedOffset<'a> {
    /// Name of the topic.
    pub(crate) topic: TopicRef<'a>,
    /// The partition.
    pub(crate) partition: i32,
    /// The partition's error.
    pub(crate) error: ErrorCode,
    /// Timestamp of the record found; -1 for the ends.
    pub(crate) timestamp: i64,
    /// The offset; -1 when no record is at or behind the timestamp.
    pub(crate) offset: i64,
    /// Epoch of the leader that wrote it; -1 unknown.
    pub(crate) leader_epoch: i32,
}

impl<'a> ListOffsetsResponse<'a> {
    /// Reads the answer to a request of `version`.
    pub(crate) fn read(frame: &'a [u8], version: i16) -> Result<ListOffsetsResponse<'a>> {
        let mut reader = super::response(frame, ApiKey::ListOffsets, version)?;
        let throttle_ms = reader.i32()?;
        Ok(ListOffsetsResponse { throttle_ms, walk: TopicWalk::new(reader, false)? })
    }

    /// The next partition.
    pub(crate) fn next(&mut self) -> Result<Option<ListedOffset<'a>>> {
        let Some((topic, reader)) = self.walk.next()? else { return Ok(None) };
        let listed = ListedOffset {
            topic,
            partition: reader.i32()?,
            error: ErrorCode::from_code(reader.i16()?),
            timestamp: reader.i64()?,
            offset: reader.i64()?,
            leader_epoch: reader.i32()?,
        };
        reader.skip_tags()?;
        Ok(Some(listed))
    }
}
