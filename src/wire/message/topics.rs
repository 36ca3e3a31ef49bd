//! What several messages share: partitions grouped by topic, and hints about leaders (KIP-951).
use super::items::Item;
use crate::wire::error::{Result, WireError};
use crate::wire::{Reader, TopicId, Writer};

/// A topic as a message names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopicRef<'a> {
    /// By name.
    Name(&'a str),
    /// By id: Fetch and Produce from version 13.
    Id(TopicId),
}

/// Reads the structure that Fetch, Produce, ListOffsets and OffsetForLeaderEpoch responses share, topics of
/// partitions, one partition at a time and without going over it twice.
#[derive(Clone, Copy, Debug)]
pub(super) struct TopicWalk<'a> {
    reader: Reader<'a>,
    by_id: bool,
    topic: TopicRef<'a>,
    open: bool,
    topics: usize,
    partitions: usize,
}

impl<'a> TopicWalk<'a> {
    /// `reader` stands at the array of topics.
    pub(super) fn new(mut reader: Reader<'a>, by_id: bool) -> Result<TopicWalk<'a>> {
        let topics = reader.array_len()?;
        Ok(TopicWalk { reader, by_id, topic: TopicRef::Name(""), open: false, topics, partitions: 0 })
    }

    /// The topic of the next partition, and a reader at that partition, which the caller reads to its end; `None`
    /// behind the last.
    pub(super) fn next(&mut self) -> Result<Option<(TopicRef<'a>, &mut Reader<'a>)>> {
        while self.partitions == 0 {
            if std::mem::take(&mut self.open) {
                self.reader.skip_tags()?;
            }
            if self.topics == 0 {
                return Ok(None);
            }
            self.topic = match self.by_id {
                true => TopicRef::Id(self.reader.array()?),
                false => TopicRef::Name(self.reader.string()?),
            };
            self.partitions = self.reader.array_len()?;
            self.topics -= 1;
            self.open = true;
        }
        self.partitions -= 1;
        Ok(Some((self.topic, &mut self.reader)))
    }

    /// What is behind the array; right only after the last partition.
    pub(super) fn behind(&mut self) -> &mut Reader<'a> {
        &mut self.reader
    }
}

/// Writes the same structure of a request: announce the number of topics, then for each its partitions.
#[derive(Debug)]
pub(super) struct TopicsWriter<'b> {
    pub(super) out: Writer<'b>,
    by_id: bool,
    open: bool,
    topics: usize,
    partitions: usize,
}

impl<'b> TopicsWriter<'b> {
    pub(super) fn new(mut out: Writer<'b>, by_id: bool, topics: usize) -> TopicsWriter<'b> {
        out.array_len(topics);
        TopicsWriter { out, by_id, open: false, topics, partitions: 0 }
    }

    /// Begins a topic of `partitions` partitions.
    pub(super) fn topic(&mut self, topic: TopicRef<'_>, partitions: usize) {
        self.close();
        match (topic, self.by_id) {
            (TopicRef::Name(name), false) => self.out.string(name),
            (TopicRef::Id(id), true) => self.out.raw(&id),
            _ => self.out.fail(WireError::Malformed { what: "topic: this version names topics otherwise", at: 0 }),
        }
        self.out.array_len(partitions);
        match self.topics.checked_sub(1) {
            Some(left) => self.topics = left,
            None => self.miscounted(),
        }
        self.partitions = partitions;
        self.open = true;
    }

    /// The writer, for the next partition.
    pub(super) fn partition(&mut self) -> &mut Writer<'b> {
        match self.partitions.checked_sub(1) {
            Some(left) => self.partitions = left,
            None => self.miscounted(),
        }
        &mut self.out
    }

    /// Ends the array. Fewer or more topics or partitions than announced become the request's error.
    pub(super) fn end(mut self) -> Writer<'b> {
        self.close();
        if self.topics > 0 {
            self.miscounted();
        }
        self.out
    }

    /// Ends a request that has nothing behind the array; answers the bytes of its frame with the prefix.
    pub(super) fn finish(self) -> Result<usize> {
        let mut out = self.end();
        out.no_tags();
        out.finish(0)
    }

    fn close(&mut self) {
        if self.partitions > 0 {
            self.miscounted();
        }
        if std::mem::take(&mut self.open) {
            self.out.no_tags();
        }
    }

    #[cold]
    fn miscounted(&mut self) {
        self.out.fail(WireError::Malformed { what: "request: not as many topics and partitions as announced", at: 0 });
    }
}

/// The leader of a partition as a broker that is no longer it knows it (KIP-951).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CurrentLeader {
    /// Its node id; -1 unknown.
    pub(crate) leader_id: i32,
    /// Its epoch; -1 unknown.
    pub(crate) leader_epoch: i32,
}

impl CurrentLeader {
    /// Reads the tagged field.
    pub(super) fn read(mut field: Reader<'_>) -> Result<CurrentLeader> {
        let leader = CurrentLeader { leader_id: field.i32()?, leader_epoch: field.i32()? };
        field.skip_tags()?;
        Ok(leader)
    }
}

/// Where a node named in a [`CurrentLeader`] listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeEndpoint<'a> {
    /// Node id.
    pub(crate) node_id: i32,
    /// Host name or address.
    pub(crate) host: &'a str,
    /// Port.
    pub(crate) port: i32,
    /// Its rack.
    pub(crate) rack: Option<&'a str>,
}

impl<'a> Item<'a> for NodeEndpoint<'a> {
    fn read(reader: &mut Reader<'a>, _version: i16) -> Result<Self> {
        let endpoint = NodeEndpoint {
            node_id: reader.i32()?,
            host: reader.string()?,
            port: reader.i32()?,
            rack: reader.nullable_string()?,
        };
        reader.skip_tags()?;
        Ok(endpoint)
    }
}
