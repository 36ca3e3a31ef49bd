//! A sink whose topic each record names.
use super::sink::Sink;
use crate::codec::Codec;
use crate::node::{Cx, Flow, Fn2, Node, Record};
use std::sync::Arc;

/// Encodes and hands to the port with the name of a topic.
pub(crate) struct NamedSink<K, V, F> {
    pub(crate) sink: Sink<K, V>,
    pub(crate) f: Arc<F>,
}

impl<K: Codec, V: Codec, F> Node<K, V> for NamedSink<K, V, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, &'x str>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        let topic = (self.f)(K::shorten(r.key), V::shorten(r.value));
        self.sink.encoded(cx, r, |record| cx.port.produce_named(cx.task, self.sink.id, topic, record))
    }
}
