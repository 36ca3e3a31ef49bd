//! `flat_map`.
use crate::codec::Schema;
use crate::node::{Cx, Edge, Flow, Fn3, Node, Record};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a `flat_map` closure pushes its keys and values into. Each pair goes downstream at once.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("lines", Consumed::with(Utf8, Utf8))
///     .flat_map(Utf8, I64, |_, line, out| {
///         for word in line.split_whitespace() {
///             out.push(word, word.len() as i64);
///         }
///     })
///     .to("lengths");
/// # builder.build().unwrap();
/// ```
pub struct PushPair<'s, 'a, J: Schema, W: Schema> {
    send: &'s mut dyn FnMut(J::Out<'a>, W::Out<'a>) -> Flow,
    flow: Flow,
}

impl<'a, J: Schema, W: Schema> PushPair<'_, 'a, J, W> {
    /// Sends a key and a value downstream. After something there failed, nothing more is sent.
    #[inline]
    pub fn push(&mut self, key: J::Out<'a>, value: W::Out<'a>) {
        if self.flow.is_ok() {
            self.flow = (self.send)(key, value);
        }
    }
}

impl<J: Schema, W: Schema> fmt::Debug for PushPair<'_, '_, J, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushPair").field("flow", &self.flow).finish_non_exhaustive()
    }
}

/// Any number of keys and values made of each key and value.
pub(crate) struct FlatMap<K, V, J, W, F> {
    pub(crate) f: Arc<F>,
    pub(crate) out: Edge<J, W>,
    pub(crate) from: PhantomData<(K, V)>,
}

impl<K: Schema, V: Schema, J: Schema, W: Schema, F> Node<K, V> for FlatMap<K, V, J, W, F>
where
    F: for<'x, 's, 'p> Fn3<K::View<'x>, V::View<'x>, &'p mut PushPair<'s, 'x, J, W>, ()>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        let mut send = |key: J::Out<'a>, value: W::Out<'a>| {
            self.out.send(cx, &Record { key: J::lend(&key), value: W::lend(&value), timestamp: r.timestamp })
        };
        let mut push = PushPair { send: &mut send, flow: Ok(()) };
        (self.f)(r.key, r.value, &mut push);
        push.flow
    }
}
