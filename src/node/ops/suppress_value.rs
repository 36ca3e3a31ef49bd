//! The bytes of a suppressed update, as Kafka Streams has them in the buffer's changelog (version 3): the context of
//! the record, the value before the buffer, the old and the new value, the buffer time.
use crate::node::RecordContext;
use crate::wire::Header;

/// In place of a length: no value.
const NONE: i32 = -1;
/// In place of the old value's length: it is the prior value.
const SAME_AS_PRIOR: i32 = -2;

/// A suppressed update, as its bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suppressed<'a> {
    pub(super) timestamp: i64,
    pub(super) offset: i64,
    pub(super) topic: &'a str,
    pub(super) partition: u32,
    headers: &'a [u8],
    header_count: i32,
    pub(super) prior: Option<&'a [u8]>,
    pub(super) old: Option<&'a [u8]>,
    pub(super) new: Option<&'a [u8]>,
    pub(super) time: i64,
}

fn put_bytes(into: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            into.extend_from_slice(&i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_be_bytes());
            into.extend_from_slice(bytes);
        }
        None => into.extend_from_slice(&NONE.to_be_bytes()),
    }
}

/// What is to be kept of an update.
#[derive(Clone, Copy)]
pub(super) struct Update<'a> {
    pub(super) prior: Option<&'a [u8]>,
    pub(super) old: Option<&'a [u8]>,
    pub(super) new: Option<&'a [u8]>,
    /// Buffer time.
    pub(super) time: i64,
}

/// Writes an update; answers its size as Kafka Streams counts it, without key and buffer time.
pub(super) fn write(context: &RecordContext<'_>, timestamp: i64, update: &Update<'_>, into: &mut Vec<u8>) -> u64 {
    into.clear();
    into.extend_from_slice(&timestamp.to_be_bytes());
    into.extend_from_slice(&context.offset.to_be_bytes());
    put_bytes(into, Some(context.topic.as_bytes()));
    into.extend_from_slice(&context.partition.to_be_bytes());
    let count = context.headers.iter().count();
    into.extend_from_slice(&i32::try_from(count).unwrap_or(i32::MAX).to_be_bytes());
    let mut size = 8 + 8 + context.topic.len() + 4;
    for header in context.headers {
        put_bytes(into, Some(header.key));
        put_bytes(into, header.value);
        size += header.key.len() + header.value.map_or(0, <[u8]>::len);
    }
    put_bytes(into, update.prior);
    size += update.prior.map_or(0, <[u8]>::len) + update.new.map_or(0, <[u8]>::len);
    if update.old.is_some() && update.old == update.prior {
        into.extend_from_slice(&SAME_AS_PRIOR.to_be_bytes());
    } else {
        put_bytes(into, update.old);
        size += update.old.map_or(0, <[u8]>::len);
    }
    put_bytes(into, update.new);
    into.extend_from_slice(&update.time.to_be_bytes());
    size as u64
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn long(&mut self) -> Option<i64> {
        self.take(8)?.first_chunk().map(|bytes| i64::from_be_bytes(*bytes))
    }

    fn int(&mut self) -> Option<i32> {
        self.take(4)?.first_chunk().map(|bytes| i32::from_be_bytes(*bytes))
    }

    fn of_length(&mut self, len: i32) -> Option<Option<&'a [u8]>> {
        if len == NONE { Some(None) } else { self.take(usize::try_from(len).ok()?).map(Some) }
    }

    fn bytes(&mut self) -> Option<Option<&'a [u8]>> {
        let len = self.int()?;
        self.of_length(len)
    }
}

/// Reads an update; `None` if the bytes are not one.
pub(super) fn read(bytes: &[u8]) -> Option<Suppressed<'_>> {
    let mut reader = Reader(bytes);
    let (timestamp, offset) = (reader.long()?, reader.long()?);
    let topic = std::str::from_utf8(reader.bytes()??).ok()?;
    let partition = u32::from_be_bytes(*reader.take(4)?.first_chunk()?);
    let header_count = reader.int()?;
    let headers = reader.0;
    for _ in 0..header_count.max(0) {
        reader.bytes()??;
        reader.bytes()?;
    }
    let prior = reader.bytes()?;
    let len = reader.int()?;
    let old = if len == SAME_AS_PRIOR { prior } else { reader.of_length(len)? };
    let new = reader.bytes()?;
    let time = reader.long()?;
    reader.0.is_empty().then_some(Suppressed {
        timestamp,
        offset,
        topic,
        partition,
        headers,
        header_count,
        prior,
        old,
        new,
        time,
    })
}

impl<'a> Suppressed<'a> {
    /// Its headers, for writing them as a record has them.
    pub(super) fn headers(&self) -> Vec<Header<'a>> {
        let mut reader = Reader(self.headers);
        let one = |reader: &mut Reader<'a>| Some(Header { key: reader.bytes()??, value: reader.bytes()? });
        (0..self.header_count.max(0)).map_while(|_| one(&mut reader)).collect()
    }

    /// As Kafka Streams counts it, without key and buffer time.
    pub(super) fn size(&self) -> u64 {
        let len = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
        let headers: usize = self.headers().iter().map(|h| h.key.len() + len(h.value)).sum();
        let old = if self.old == self.prior { 0 } else { len(self.old) };
        (8 + 8 + self.topic.len() + 4 + headers + len(self.prior) + old + len(self.new)) as u64
    }
}

/// The place of a key in the order in which Java's `HashSet` of so many buckets iterates.
pub(super) fn bucket(key: &[u8], buckets: u32) -> u32 {
    let hash = key.iter().fold(1i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte as i8)));
    let hash = hash as u32;
    (hash ^ (hash >> 16)) & (buckets - 1)
}

/// A changelog record's header that tells the version.
pub(super) const VERSION: &[u8] = &[2, 2, b'v', 2, 3];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::wire::RawHeaders;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Kafka Streams 4.3.1 wrote these bytes.
    #[test]
    fn an_update_is_written_and_read_as_kafka_streams_does() {
        let context = RecordContext { topic: "in2", partition: 0, offset: 0, timestamp: 5, headers: RawHeaders::EMPTY };
        let update = Update { prior: None, old: None, new: Some(b"null/ba/"), time: 5 };
        let mut bytes = Vec::new();
        let size = write(&context, 5, &update, &mut bytes);
        let expected = "0000000000000005000000000000000000000003696e320000000000000000ffffffffffffffff\
                        000000086e756c6c2f62612f0000000000000005";
        assert_eq!(hex(&bytes), expected);
        let read = read(&bytes).unwrap();
        assert_eq!((read.timestamp, read.topic, read.new, read.time), (5, "in2", Some(&b"null/ba/"[..]), 5));
        assert_eq!((size, read.size()), (31, 31));
        assert_eq!(super::read(&bytes[1..]), None);
    }

    #[test]
    fn an_old_value_that_is_the_prior_one_is_not_written_again() {
        let context = RecordContext { topic: "t", partition: 1, offset: 2, timestamp: 3, headers: RawHeaders::EMPTY };
        let mut bytes = Vec::new();
        write(&context, 3, &Update { prior: Some(b"p"), old: Some(b"p"), new: None, time: 9 }, &mut bytes);
        let tail = "00000001".to_owned() + "70" + "fffffffe" + "ffffffff" + "0000000000000009";
        assert!(hex(&bytes).ends_with(&tail), "{}", hex(&bytes));
        assert_eq!(read(&bytes).unwrap().old, Some(&b"p"[..]));
    }

    #[test]
    fn keys_are_ordered_as_javas_hash_set_orders_them() {
        let mut keys = [&b"b"[..], b"a", b"ab", b"K"];
        keys.sort_by_key(|key| bucket(key, 16));
        // Arrays.hashCode: a = 128, b = 129, K = 106, ab = 4066.
        assert_eq!(keys, [&b"a"[..], b"b", b"ab", b"K"]);
    }
}
