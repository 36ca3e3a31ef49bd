//! Produce: one batch for each of many partitions.
use super::api::{ApiKey, RequestHeader};
use super::items::{Item, Items};
use super::topics::{CurrentLeader, NodeEndpoint, TopicRef, TopicWalk, TopicsWriter};
use crate::wire::error::Result;
use crate::wire::{ErrorCode, Reader, Writer};

/// The first version that names topics by id.
const BY_ID: i16 = 13;

/// Sends batches to the leader of their partitions. From version 12 a transactional request adds its partitions to
/// the transaction (KIP-890); without transactions versions 11 and 12 are the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProduceRequest<'a> {
    /// The transactional id, when the batches belong to a transaction.
    pub(crate) transactional_id: Option<&'a str>,
    /// -1: answered when all replicas in sync have the batches; 1: when the leader has them.
    pub(crate) acks: i16,
    /// How long the broker waits for the replicas, in ms.
    pub(crate) timeout_ms: i32,
}

impl ProduceRequest<'_> {
    /// Begins the request, for `topics` topics: named up to version 12, by id from 13.
    pub(crate) fn begin<'b>(
        &self,
        buffer: &'b mut Vec<u8>,
        header: &RequestHeader<'_>,
        topics: usize,
    ) -> ProduceWriter<'b> {
        let mut out = Writer::request(buffer, header);
        out.nullable_string(self.transactional_id);
        out.i16(self.acks);
        out.i32(self.timeout_ms);
        ProduceWriter { topics: TopicsWriter::new(out, header.version >= BY_ID, topics), outside: 0, open: false }
    }
}

/// Writes all of a [`ProduceRequest`] but the batches, which are sent from where they were built: each one belongs at
/// the position that [`ProduceWriter::partition`] answers, between the bytes before and behind it.
#[derive(Debug)]
pub(crate) struct ProduceWriter<'b> {
    topics: TopicsWriter<'b>,
    outside: usize,
    open: bool,
}

impl ProduceWriter<'_> {
    /// Begins a topic of `partitions` partitions.
    pub(crate) fn topic(&mut self, topic: TopicRef<'_>, partitions: usize) {
        self.close();
        self.topics.topic(topic, partitions);
    }

    /// A partition of the topic, with a batch of `batch_len` bytes. Answers the position of the batch in the buffer,
    /// from the start of this request: what comes before goes out before the batch.
    pub(crate) fn partition(&mut self, index: i32, batch_len: usize) -> usize {
        self.close();
        let out = self.topics.partition();
        out.i32(index);
        out.bytes_length(batch_len);
        self.outside = self.outside.saturating_add(batch_len);
        self.open = true;
        self.topics.out.len()
    }

    /// Ends the request; answers the bytes of its frame with the prefix and the batches.
    pub(crate) fn finish(mut self) -> Result<usize> {
        self.close();
        let mut out = self.topics.end();
        out.no_tags();
        out.finish(self.outside)
    }

    /// What follows a batch.
    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            self.topics.out.no_tags();
        }
    }
}

/// The broker's answer, visited partition by partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProduceResponse<'a> {
    walk: TopicWalk<'a>,
    version: i16,
}

/// The answer for one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProducedPartition<'a> {
    /// Name or id of the topic, as in the request.
    pub(crate) topic: TopicRef<'a>,
    /// The partition.
    pub(crate) partition: i32,
    /// The partition's error.
    pub(crate) error: ErrorCode,
    /// Offset of the batch's first record; -1 after an error, and for a duplicate that the broker no longer remembers.
    pub(crate) base_offset: i64,
    /// The broker's append time in ms when the topic uses it; -1 otherwise.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) log_append_time_ms: i64,
    /// First offset still there; -1 unknown.
    pub(crate) log_start_offset: i64,
    /// With `InvalidRecord` and its like: the records that made the broker refuse the batch. Version 8.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) record_errors: Items<'a, RecordError<'a>>,
    /// The error in words. Version 8.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) error_message: Option<&'a str>,
    /// With `NotLeaderOrFollower`: the leader now, with its address in [`ProduceTail::endpoints`]. Version 10.
    pub(crate) current_leader: Option<CurrentLeader>,
}

/// What a broker has against one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordError<'a> {
    /// Position of the record in its batch.
    pub(crate) index: i32,
    /// In words.
    pub(crate) message: Option<&'a str>,
}

impl<'a> Item<'a> for RecordError<'a> {
    fn read(reader: &mut Reader<'a>, _version: i16) -> Result<Self> {
        let error = RecordError { index: reader.i32()?, message: reader.nullable_string()? };
        reader.skip_tags()?;
        Ok(error)
    }
}

/// What comes behind the partitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProduceTail<'a> {
    /// How long the broker holds back its answers, in ms.
    pub(crate) throttle_ms: i32,
    /// Addresses of the leaders named in the partitions. Version 10.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) endpoints: Items<'a, NodeEndpoint<'a>>,
}

impl<'a> ProduceResponse<'a> {
    /// Reads the answer to a request of `version`. There is none for acks 0, which this library does not send.
    pub(crate) fn read(frame: &'a [u8], version: i16) -> Result<ProduceResponse<'a>> {
        let reader = super::response(frame, ApiKey::Produce, version)?;
        Ok(ProduceResponse { walk: TopicWalk::new(reader, version >= BY_ID)?, version })
    }

    /// The next partition.
    pub(crate) fn next(&mut self) -> Result<Option<ProducedPartition<'a>>> {
        let version = self.version;
        let Some((topic, reader)) = self.walk.next()? else { return Ok(None) };
        let partition = reader.i32()?;
        let error = ErrorCode::from_code(reader.i16()?);
        let (base_offset, log_append_time_ms) = (reader.i64()?, reader.i64()?);
        let log_start_offset = if version >= 5 { reader.i64()? } else { -1 };
        let (record_errors, error_message) = match version >= 8 {
            true => (Items::read(reader, version)?, reader.nullable_string()?),
            false => (Items::empty(), None),
        };
        let mut current_leader = None;
        reader.tags(|tag, field| {
            if tag == 0 {
                current_leader = Some(CurrentLeader::read(field)?).filter(|leader| leader.leader_id >= 0);
            }
            Ok(())
        })?;
        Ok(Some(ProducedPartition {
            topic,
            partition,
            error,
            base_offset,
            log_append_time_ms,
            log_start_offset,
            record_errors,
            error_message,
            current_leader,
        }))
    }

    /// What comes behind the partitions; goes over those that are left.
    pub(crate) fn tail(mut self) -> Result<ProduceTail<'a>> {
        while self.next()?.is_some() {}
        let reader = self.walk.behind();
        let throttle_ms = reader.i32()?;
        let mut endpoints = Items::empty();
        reader.tags(|tag, mut field| {
            if tag == 0 {
                endpoints = Items::read(&mut field, self.version)?;
            }
            Ok(())
        })?;
        Ok(ProduceTail { throttle_ms, endpoints })
    }
}
