//! Where a topic's bytes become views.
use crate::codec::{DecodeError, Read, Side};
use crate::node::fault::ShortText;
use crate::node::{Cx, Edge, Fault, Flow, Parked, RawRecord, Record, Source};

/// Decodes key and value once; they stay on this node's stack while everything below looks at them.
pub(crate) struct SourceNode<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) out: Edge<K, V>,
}

impl<K: Read, V: Read> Source for SourceNode<K, V> {
    fn feed<'a>(&self, cx: &Cx<'a>, record: &RawRecord<'a>) -> Flow {
        let key = self.key.read(record.key).map_err(|error| refuse(cx, Side::Key, error))?;
        let value = self.value.read(record.value).map_err(|error| refuse(cx, Side::Value, error))?;
        self.out.send(cx, &Record { key: K::lend(&key), value: V::lend(&value), timestamp: record.timestamp })
    }

    fn warm(&self, partition: u32, key: &[u8]) {
        self.out.warm(partition, key);
    }

    fn warms(&self) -> bool {
        self.out.warms()
    }
}

#[cold]
fn refuse(cx: &Cx<'_>, side: Side, error: DecodeError) -> Fault {
    let topic = ShortText::new(cx.source.topic);
    let (partition, offset) = (cx.source.partition, cx.source.offset);
    cx.fault.park(Fault::Decode, Parked::Decode { topic, partition, offset, side, error })
}
