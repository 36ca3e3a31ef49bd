//! Metadata: brokers, topics and the leaders of partitions.
use super::api::{ApiKey, RequestHeader};
use super::items::{Item, Items};
use super::topics::TopicRef;
use crate::wire::error::{Result, WireError};
use crate::wire::{ErrorCode, Reader, TopicId, Writer};

/// Asks for topics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataRequest<'a> {
    /// The topics, or `None` for all. Ids are understood from version 12.
    pub(crate) topics: Option<&'a [TopicRef<'a>]>,
    /// Whether the broker may create missing topics.
    pub(crate) allow_auto_creation: bool,
}

impl MetadataRequest<'_> {
    /// Writes the request; answers the bytes of its frame with the prefix.
    pub(crate) fn write(&self, buffer: &mut Vec<u8>, header: &RequestHeader<'_>) -> Result<usize> {
        let version = header.version;
        let mut out = Writer::request(buffer, header);
        match self.topics {
            None => out.null_array(),
            Some(topics) => {
                out.array_len(topics.len());
                for topic in topics {
                    write_topic(&mut out, version, topic);
                }
            }
        }
        out.bool(self.allow_auto_creation);
        if (8..=10).contains(&version) {
            out.bool(false); // no authorized operations of the cluster
        }
        if version >= 8 {
            out.bool(false); // nor of the topics
        }
        out.no_tags();
        out.finish(0)
    }
}

fn write_topic(out: &mut Writer<'_>, version: i16, topic: &TopicRef<'_>) {
    let (name, id) = match topic {
        TopicRef::Name(name) => (Some(*name), [0; 16]),
        TopicRef::Id(id) => (None, *id),
    };
    if name.is_none() && version < 12 {
        out.fail(WireError::Malformed { what: "topic: ids need metadata version 12", at: 0 });
    }
    if version >= 10 {
        out.raw(&id);
    }
    out.nullable_string(name);
    out.no_tags();
}

/// The broker's answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataResponse<'a> {
    /// How long the broker holds back its answers, in ms.
    pub(crate) throttle_ms: i32,
    /// The brokers that are up.
    pub(crate) brokers: Items<'a, Broker<'a>>,
    /// Identity of the cluster.
    pub(crate) cluster_id: Option<&'a str>,
    /// Node id of the controller; -1 unknown.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) controller_id: i32,
    /// The topics asked for.
    pub(crate) topics: Items<'a, MetadataTopic<'a>>,
}

impl<'a> MetadataResponse<'a> {
    /// Reads the answer to a request of `version`.
    pub(crate) fn read(frame: &'a [u8], version: i16) -> Result<MetadataResponse<'a>> {
        let mut reader = super::response(frame, ApiKey::Metadata, version)?;
        let answer = MetadataResponse {
            throttle_ms: reader.i32()?,
            brokers: Items::read(&mut reader, version)?,
            cluster_id: reader.nullable_string()?,
            controller_id: reader.i32()?,
            topics: Items::read(&mut reader, version)?,
        };
        if (8..=10).contains(&version) {
            reader.i32()?; // authorized operations of the cluster
        }
        reader.skip_tags()?;
        Ok(answer)
    }
}

/// A broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broker<'a> {
    /// Node id.
    pub(crate) node_id: i32,
    /// Host name or address that it advertises.
    pub(crate) host: &'a str,
    /// Port.
    pub(crate) port: i32,
    /// Its rack.
    pub(crate) rack: Option<&'a str>,
}

impl<'a> Item<'a> for Broker<'a> {
    fn read(reader: &mut Reader<'a>, _version: i16) -> Result<Self> {
        let broker = Broker {
            node_id: reader.i32()?,
            host: reader.string()?,
            port: reader.i32()?,
            rack: reader.nullable_string()?,
        };
        reader.skip_tags()?;
        Ok(broker)
    }
}

/// A topic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataTopic<'a> {
    /// Why there is nothing to know: `UnknownTopicOrPartition`, `TopicAuthorizationFailed`, `LeaderNotAvailable`, …
    pub(crate) error: ErrorCode,
    /// Its name; none when an unknown id was asked for.
    pub(crate) name: Option<&'a str>,
    /// Its id; all zero before version 10 and from brokers without ids.
    pub(crate) id: TopicId,
    /// Whether it is one of Kafka's own.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) is_internal: bool,
    /// Its partitions, in no order.
    pub(crate) partitions: Items<'a, MetadataPartition<'a>>,
}

impl<'a> Item<'a> for MetadataTopic<'a> {
    fn read(reader: &mut Reader<'a>, version: i16) -> Result<Self> {
        let topic = MetadataTopic {
            error: ErrorCode::from_code(reader.i16()?),
            name: reader.nullable_string()?,
            id: if version >= 10 { reader.array()? } else { [0; 16] },
            is_internal: reader.bool()?,
            partitions: Items::read(reader, version)?,
        };
        if version >= 8 {
            reader.i32()?; // authorized operations
        }
        reader.skip_tags()?;
        Ok(topic)
    }
}

/// A partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataPartition<'a> {
    /// `LeaderNotAvailable` while it has no leader; `ReplicaNotAvailable` may be ignored.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) error: ErrorCode,
    /// Its number.
    pub(crate) index: i32,
    /// Node id of its leader; -1 none.
    pub(crate) leader_id: i32,
    /// The leader's epoch; -1 unknown (before version 7).
    pub(crate) leader_epoch: i32,
    /// Node ids of its replicas.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) replicas: Items<'a, i32>,
    /// Of these, the ones in sync.
    #[allow(dead_code)] // messages are read and written whole
    pub(crate) in_sync: Items<'a, i32>,
}

impl<'a> Item<'a> for MetadataPartition<'a> {
    fn read(reader: &mut Reader<'a>, version: i16) -> Result<Self> {
        let partition = MetadataPartition {
            error: ErrorCode::from_code(reader.i16()?),
            index: reader.i32()?,
            leader_id: reader.i32()?,
            leader_epoch: if version >= 7 { reader.i32()? } else { -1 },
            replicas: Items::read(reader, version)?,
            in_sync: Items::read(reader, version)?,
        };
        Items::<i32>::read(reader, version)?; // replicas offline
        reader.skip_tags()?;
        Ok(partition)
    }
}

impl<'a> Item<'a> for i32 {
    fn read(reader: &mut Reader<'a>, _version: i16) -> Result<Self> {
        reader.i32()
    }
}
