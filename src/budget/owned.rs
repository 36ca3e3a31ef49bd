//! Settings that the plan owns: given by a user they are refused with the row that sets them.
use super::RowId;

/// Kafka's names first, then librdkafka's, then RocksDB's.
const OWNED: &[(&str, RowId)] = &[
    ("fetch.max.bytes", RowId::Frames),
    ("max.partition.fetch.bytes", RowId::Frames),
    ("max.poll.records", RowId::Frames),
    ("input.buffer.max.bytes", RowId::Frames),
    ("buffered.records.per.partition", RowId::Frames),
    ("buffer.memory", RowId::Batches),
    ("batch.size", RowId::Batches),
    ("max.request.size", RowId::Batches),
    ("max.in.flight.requests.per.connection", RowId::Batches),
    ("send.buffer.bytes", RowId::Connections),
    ("receive.buffer.bytes", RowId::Connections),
    ("statestore.cache.max.bytes", RowId::Overlay),
    ("cache.max.bytes.buffering", RowId::Overlay),
    ("rocksdb.config.setter", RowId::Memtables),
    ("fetch.message.max.bytes", RowId::Frames),
    ("receive.message.max.bytes", RowId::Control),
    ("message.max.bytes", RowId::Batches),
    ("message.copy.max.bytes", RowId::Batches),
    ("max.in.flight", RowId::Batches),
    ("batch.num.messages", RowId::Batches),
    ("socket.send.buffer.bytes", RowId::Connections),
    ("socket.receive.buffer.bytes", RowId::Connections),
];

/// Families of settings that are owned whatever their last word is.
const OWNED_PREFIXES: &[(&str, RowId)] = &[("queued.", RowId::Control), ("queue.buffering.", RowId::Batches)];

/// Prefixes under which Kafka Streams takes settings of its clients.
const CLIENT_PREFIXES: &[&str] = &["main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer."];

/// Row that owns a setting, or `None` if the user may set it.
pub(crate) fn owned(key: &str) -> Option<RowId> {
    let name = CLIENT_PREFIXES.iter().find_map(|prefix| key.strip_prefix(prefix)).unwrap_or(key);
    let whole = OWNED.iter().find(|(owned, _)| *owned == name);
    whole.or_else(|| OWNED_PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix))).map(|(_, row)| *row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_sizes_belong_to_their_rows() {
        assert_eq!(owned("fetch.max.bytes"), Some(RowId::Frames));
        assert_eq!(owned("buffer.memory"), Some(RowId::Batches));
        assert_eq!(owned("queued.max.messages.kbytes"), Some(RowId::Control));
        assert_eq!(owned("queue.buffering.max.kbytes"), Some(RowId::Batches));
        assert_eq!(owned("statestore.cache.max.bytes"), Some(RowId::Overlay));
    }

    #[test]
    fn a_clients_prefix_does_not_hide_an_owned_setting() {
        assert_eq!(owned("main.consumer.max.partition.fetch.bytes"), Some(RowId::Frames));
        assert_eq!(owned("producer.batch.size"), Some(RowId::Batches));
    }

    #[test]
    fn other_settings_are_the_users() {
        for key in ["linger.ms", "session.timeout.ms", "commit.interval.ms", "consumer.max.poll.interval.ms"] {
            assert_eq!(owned(key), None, "{key}");
        }
    }
}
