//! AddPartitionsToTxn: tells the coordinator which partitions a transaction will write to, before the first batch goes
//! there. Transactions of version 2 (KIP-890) do without. Versions from 4 are for brokers among themselves.
use super::api::{ApiKey, RequestHeader};
use super::topics::{TopicRef, TopicWalk, TopicsWriter};
use crate::wire::error::Result;
use crate::wire::{ErrorCode, Writer};

/// Adds partitions to the open transaction, or opens it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddPartitionsToTxnRequest<'a> {
    /// The transactional id.
    pub(crate) transactional_id: &'a str,
    /// From InitProducerId.
    pub(crate) producer_id: i64,
    /// From InitProducerId.
    pub(crate) producer_epoch: i16,
}

impl AddPartitionsToTxnRequest<'_> {
    /// Begins the request, for `topics` topics.
    pub(crate) fn begin<'b>(
        &self,
        buffer: &'b mut Vec<u8>,
        header: &RequestHeader<'_>,
        topics: usize,
    ) -> AddPartitionsToTxnWriter<'b> {
        let mut out = Writer::request(buffer, header);
        out.string(self.transactional_id);
        out.i64(self.producer_id);
        out.i16(self.producer_epoch);
        AddPartitionsToTxnWriter { topics: TopicsWriter::new(out, false, topics) }
    }
}

/// Writes the partitions of an [`AddPartitionsToTxnRequest`].
#[derive(Debug)]
pub(crate) struct AddPartitionsToTxnWriter<'b> {
    topics: TopicsWriter<'b>,
}

impl AddPartitionsToTxnWriter<'_> {
    /// Begins a topic of `partitions` partitions.
    pub(crate) fn topic(&mut self, name: &str, partitions: usize) {
        self.topics.topic(TopicRef::Name(name), partitions);
    }

    /// A partition of the topic.
    pub(crate) fn partition(&mut self, index: i32) {
        self.topics.partition().i32(index);
    }

    /// Ends the request; answers the bytes of its frame with the prefix.
    pub(crate) fn finish(self) -> Result<usize> {
        self.topics.finish()
    }
}

/// The coordinator's answer, visited partition by partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddPartitionsToTxnResponse<'a> {
    /// How long the broker holds back its answers, in ms.
    pub(crate) throttle_ms: i32,
    walk: TopicWalk<'a>,
}

impl<'a> AddPartitionsToTxnResponse<'a> {
    /// Reads the answer to a request of `version`.
    pub(crate) fn read(frame: &'a [u8], version: i16) -> Result<AddPartitionsToTxnResponse<'a>> {
        let mut reader = super::response(frame, ApiKey::AddPartitionsToTxn, version)?;
        let throttle_ms = reader.i32()?;
        Ok(AddPartitionsToTxnResponse { throttle_ms, walk: TopicWalk::new(reader, false)? })
    }

    /// The next partition: its topic, number and error.
    pub(crate) fn next(&mut self) -> Result<Option<(TopicRef<'a>, i32, ErrorCode)>> {
        let Some((topic, reader)) = self.walk.next()? else { return Ok(None) };
        let (partition, error) = (reader.i32()?, ErrorCode::from_code(reader.i16()?));
        reader.skip_tags()?;
        Ok(Some((topic, partition, error)))
    }
}
