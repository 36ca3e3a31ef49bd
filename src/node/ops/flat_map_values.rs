//! `flat_map_values`.
use crate::codec::Schema;
use crate::node::{Cx, Edge, Flow, Fn2, Fn3, Node, Record};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a `flat_map_values` closure pushes its values into. Each goes downstream at once; nothing is collected.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("lines", Consumed::with(Utf8, Utf8))
///     .flat_map_values(Utf8, |line, out| {
///         for word in line.split_whitespace() {
///             out.push(word);
///         }
///     })
///     .to("words");
/// # builder.build().unwrap();
/// ```
pub struct Push<'s, 'a, W: Schema> {
    send: &'s mut dyn FnMut(W::Out<'a>) -> Flow,
    flow: Flow,
}

impl<'a, W: Schema> Push<'_, 'a, W> {
    /// Sends a value downstream. After something there failed, nothing more is sent.
    #[inline]
    pub fn push(&mut self, out: W::Out<'a>) {
        if self.flow.is_ok() {
            self.flow = (self.send)(out);
        }
    }
}

impl<W: Schema> fmt::Debug for Push<'_, '_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Push").field("flow", &self.flow).finish_non_exhaustive()
    }
}

/// Any number of values made of each value.
pub(crate) struct FlatMapValues<K, V, W, F> {
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<K, W>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Schema, V: Schema, W: Schema, F> Node<K, V> for FlatMapValues<K, V, W, F>
where
    F: for<'x, 's, 'p> Fn2<V::View<'x>, &'p mut Push<'s, 'x, W>, ()>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        let mut send = |out: W::Out<'a>| {
            self.out.send(cx, &Record { key: K::shorten(r.key), value: W::lend(&out), timestamp: r.timestamp })
        };
        let mut push = Push { send: &mut send, flow: Ok(()) };
        (self.f)(r.value, &mut push);
        push.flow
    }
}

/// Any number of values made of each key and value.
pub(crate) struct FlatMapValuesWithKey<K, V, W, F> {
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<K, W>,
    pub(crate) from: PhantomData<V>,
}

impl<K: Schema, V: Schema, W: Schema, F> Node<K, V> for FlatMapValuesWithKey<K, V, W, F>
where
    F: for<'x, 's, 'p> Fn3<K::View<'x>, V::View<'x>, &'p mut Push<'s, 'x, W>, ()>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        let mut send = |out: W::Out<'a>| {
            self.out.send(cx, &Record { key: K::shorten(r.key), value: W::lend(&out), timestamp: r.timestamp })
        };
        let mut push = Push { send: &mut send, flow: Ok(()) };
        (self.f)(r.key, r.value, &mut push);
        push.flow
    }
}
