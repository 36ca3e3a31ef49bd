//! TxnOffsetCommit: offsets of a group that become visible with the transaction. Spoken from version 3, the first that
//! names generation and member, so that a member the group has left behind cannot commit (KIP-447).
use super::api::{ApiKey, RequestHeader};
use super::topics::{TopicRef, TopicWalk, TopicsWriter};
use crate::wire::error::Result;
use crate::wire::{ErrorCode, Writer};

/// Commits offsets within the open transaction. From version 5 it also adds the group to the transaction (KIP-890).
#[derive(Clone, Copy, Debug)]
pub(crate) struct TxnOffsetCommitRequest<'a> {
    /// The transactional id.
    pub(crate) transactional_id: &'a str,
    /// The group.
    pub(crate) group_id: &'a str,
    /// From InitProducerId, or from the last EndTxn.
    pub(crate) producer_id: i64,
    /// From InitProducerId, or from the last EndTxn.
    pub(crate) producer_epoch: i16,
    /// Generation of the group, or the member's epoch (KIP-848); -1 outside of group management.
    pub(crate) generation_id: i32,
    /// The member within the generation; empty outside of group management.
    pub(crate) member_id: &'a str,
    /// `group.instance.id` of a static member.
    pub(crate) instance_id: Option<&'a str>,
}

impl TxnOffsetCommitRequest<'_> {
    /// Begins the request, for `topics` topics.
    pub(crate) fn begin<'b>(
        &self,
        buffer: &'b mut Vec<u8>,
        header: &RequestHeader<'_>,
        topics: usize,
    ) -> TxnOffsetCommitWriter<'b> {
        let mut out = Writer::request(buffer, header);
        out.string(self.transactional_id);
        out.string(self.group_id);
        out.i64(self.producer_id);
        out.i16(self.producer_epoch);
        out.i32(self.generation_id);
        out.string(self.member_id);
        out.nullable_string(self.instance_id);
        TxnOffsetCommitWriter { topics: TopicsWriter::new(out, false, topics) }
    }
}

/// Writes the partitions of a [`TxnOffsetCommitRequest`].
#[derive(Debug)]
pub(crate) struct TxnOffsetCommitWriter<'b> {
    topics: TopicsWriter<'b>,
}

impl TxnOffsetCommitWriter<'_> {
    /// Begins a topic of `partitions` partitions.
    pub(crate) fn topic(&mut self, name: &str, partitions: usize) {
        self.topics.topic(TopicRef::Name(name), partitions);
    }

    /// The next offset to be read of a partition, the leader epoch of the last record read (-1 unknown), and a text
    /// for the member that goes on from there.
    pub(crate) fn partition(&mut self, index: i32, offset: i64, leader_epoch: i32, metadata: &str) {
        let out = self.topics.partition();
        out.i32(index);
        out.i64(offset);
        out.i32(leader_epoch);
        out.string(metadata);
        out.no_tags();
    }

    /// Ends the request; answers the bytes of its frame with the prefix.
    pub(crate) fn finish(self) -> Result<usize> {
        self.topics.finish()
    }
}

/// The group coordinator's answer, visited partition by partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TxnOffsetCommitResponse<'a> {
    /// How long the broker holds back its answers, in ms.
    pub(crate) throttle_ms: i32,
    walk: TopicWalk<'a>,
}

impl<'a> TxnOffsetCommitResponse<'a> {
    /// Reads the answer to a request of `version`.
    pub(crate) fn read(frame: &'a [u8], version: i16) -> Result<TxnOffsetCommitResponse<'a>> {
        let mut reader = super::response(frame, ApiKey::TxnOffsetCommit, version)?;
        let throttle_ms = reader.i32()?;
        Ok(TxnOffsetCommitResponse { throttle_ms, walk: TopicWalk::new(reader, false)? })
    }

    /// The next partition: its topic, number and error.
    pub(crate) fn next(&mut self) -> Result<Option<(TopicRef<'a>, i32, ErrorCode)>> {
        let Some((topic, reader)) = self.walk.next()? else { return Ok(None) };
        let (partition, error) = (reader.i32()?, ErrorCode::from_code(reader.i16()?));
        reader.skip_tags()?;
        Ok(Some((topic, partition, error)))
    }
}
