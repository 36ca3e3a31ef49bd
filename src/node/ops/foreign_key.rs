//! Foreign-key joins of tables: who subscribes, who keeps subscriptions, who answers and who joins the answers.
//!
//! A row of the left table sends its key to the partition of the right row; the right side keeps that in a store and
//! answers with its row, now and whenever it changes. The answer carries a hash of the left value: one that the left
//! row has outlived is dropped.
use super::joiner::Joiner;
use super::table_map_values::lend;
use crate::base::id::{NodeId, SinkId};
use crate::codec::murmur3::hash128;
use crate::codec::subscription::{
    Answer, Instruction, Subscription, primary_key, read_answer, write_answer, write_foreign_key,
};
use crate::codec::{Bytes, Change, Codec, DecodeError, Opt, Schema, Scratch, Side};
use crate::node::fault::ShortText;
use crate::node::{Cx, Edge, Fault, Flow, Fn2, Getter, KeyValue, Node, OutBytes, Parked, Record};
use crate::store::backend::Order;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

type Hash = Option<[u8; 16]>;

fn check(cx: &Cx<'_>, node: NodeId, scratch: &Scratch) -> Flow {
    scratch.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node, full }))
}

/// Bytes of an internal topic that are not what they should be.
#[cold]
fn refuse(cx: &Cx<'_>, side: Side, error: DecodeError) -> Fault {
    let topic = ShortText::new(cx.source.topic);
    let (partition, offset) = (cx.source.partition, cx.source.offset);
    cx.fault.park(Fault::Decode, Parked::Decode { topic, partition, offset, side, error })
}

/// Sends a left row's subscriptions: to the foreign key it has now, and off the one it had.
pub(crate) struct Subscribe<K, V, J, F> {
    pub(crate) node: NodeId,
    pub(crate) left: bool,
    /// Out-of-order updates of a versioned table are skipped.
    pub(crate) versioned: bool,
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) foreign: J,
    pub(crate) extract: Arc<F>,
    /// The old foreign key, the new one, the message.
    pub(crate) scratch: RefCell<[Scratch; 3]>,
    pub(crate) out: Edge<Opt<Bytes>, Bytes>,
}

impl<K: Codec, V: Codec, J: Codec, F> Subscribe<K, V, J, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, J::Out<'x>>,
{
    /// The bytes of a value's foreign key; false if it has none.
    fn foreign(
        &self,
        cx: &Cx<'_>,
        key: K::View<'_>,
        value: Option<V::View<'_>>,
        into: &mut Scratch,
    ) -> Result<bool, Fault> {
        into.clear();
        let Some(value) = value else { return Ok(false) };
        let out = (self.extract)(K::shorten(key), V::shorten(value));
        let foreign = J::lend(&out);
        if J::is_null(foreign) {
            return Ok(false);
        }
        self.foreign.encode(foreign, into);
        check(cx, self.node, into)?;
        Ok(true)
    }
}

impl<K: Codec, V: Codec, J: Codec, F> Node<K, Change<V>> for Subscribe<K, V, J, F>
where
    F: for<'x> Fn2<K::View<'x>, V::View<'x>, J::Out<'x>>,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Change<V>>) -> Flow {
        if self.versioned && !cx.latest {
            cx.port.dropped(self.node);
            return Ok(());
        }
        let [old_key, new_key, message] = &mut *self.scratch.borrow_mut();
        let (old, new) = (r.value.old, r.value.new);
        let had = self.foreign(cx, r.key, old, old_key)?;
        let has = self.foreign(cx, r.key, new, new_key)?;
        let hash = match new {
            None => None,
            Some(new) => {
                message.clear();
                self.value.encode(new, message);
                check(cx, self.node, message)?;
                Some(hash128(message.bytes()))
            }
        };
        let mut send = |key: Option<&[u8]>, instruction| {
            message.clear();
            let partition = cx.source.partition;
            Subscription::write(instruction, hash, partition, message, |out| self.key.encode(r.key, out));
            check(cx, self.node, message)?;
            self.out.send(cx, &Record { key, value: message.bytes(), timestamp: r.timestamp })
        };
        let (old_key, new_key) = (old_key.bytes(), new_key.bytes());
        let changed = had && !(has && old_key == new_key);
        if self.left {
            if old.is_none() && new.is_none() {
                return Ok(());
            }
            if changed {
                send(Some(old_key), Instruction::Delete)?;
            }
            return send(has.then_some(new_key), Instruction::Answer);
        }
        match (new.is_some(), has) {
            (true, true) if changed => {
                send(Some(old_key), Instruction::Delete)?;
                send(Some(new_key), Instruction::Answer)
            }
            (true, true) => send(Some(new_key), Instruction::AnswerIfThere),
            (is_there, _) => {
                if is_there {
                    cx.port.dropped(self.node);
                }
                if had { send(Some(old_key), Instruction::DeleteAndAnswer) } else { Ok(()) }
            }
        }
    }
}

/// Keeps subscriptions by foreign key.
pub(crate) struct KeepSubscriptions {
    pub(crate) node: NodeId,
    pub(crate) store: Rc<KeyValue<Bytes>>,
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) out: Edge<Opt<Bytes>, Bytes>,
}

impl Node<Opt<Bytes>, Bytes> for KeepSubscriptions {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, Opt<Bytes>, Bytes>) -> Flow {
        let subscription = Subscription::read(r.value).map_err(|error| refuse(cx, Side::Value, error))?;
        match r.key {
            None if subscription.instruction != Instruction::Answer => {
                cx.port.dropped(self.node);
                return Ok(());
            }
            None => {}
            Some(foreign) => {
                let mut scratch = self.scratch.borrow_mut();
                scratch.clear();
                scratch.extend(&cx.task.partition.to_be_bytes());
                write_foreign_key(&mut scratch, |out| out.extend(foreign));
                scratch.extend(subscription.key);
                check(cx, self.node, &scratch)?;
                let is_kept = matches!(subscription.instruction, Instruction::Answer | Instruction::AnswerIfThere);
                self.store.put(cx, scratch.bytes(), is_kept.then_some(r.value), r.timestamp)?;
            }
        }
        self.out.send(cx, r)
    }
}

/// What both answering nodes share.
pub(crate) struct Answering<W> {
    pub(crate) node: NodeId,
    pub(crate) value: W,
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) out: Edge<Bytes, Answer>,
}

impl<W: Codec> Answering<W> {
    fn send(&self, cx: &Cx<'_>, to: &Subscription<'_>, key: &[u8], value: Option<W::View<'_>>, timestamp: i64) -> Flow {
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        write_answer(to.hash, &mut scratch);
        if let Some(value) = value {
            self.value.encode(value, &mut scratch);
        }
        check(cx, self.node, &scratch)?;
        self.out.send(&cx.stamped(timestamp), &Record { key, value: (scratch.bytes(), to.partition), timestamp })
    }
}

/// Answers a subscription when it comes.
pub(crate) struct AnswerNew<J: Schema, R: Schema> {
    pub(crate) key: J,
    pub(crate) table: Rc<dyn Getter<J, R>>,
    pub(crate) answers: Answering<R>,
}

impl<J: Codec, R: Codec> AnswerNew<J, R> {
    fn answer(&self, cx: &Cx<'_>, to: &Subscription<'_>, found: Option<(R::View<'_>, i64)>, timestamp: i64) -> Flow {
        let at = found.map_or(timestamp, |(_, row)| row.max(timestamp));
        let value = found.map(|(value, _)| value);
        match to.instruction {
            Instruction::Delete => Ok(()),
            Instruction::DeleteAndAnswer => self.answers.send(cx, to, to.key, None, at),
            Instruction::AnswerIfThere if value.is_none() => Ok(()),
            Instruction::Answer | Instruction::AnswerIfThere => self.answers.send(cx, to, to.key, value, at),
        }
    }
}

impl<J: Codec, R: Codec> Node<Opt<Bytes>, Bytes> for AnswerNew<J, R> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, Opt<Bytes>, Bytes>) -> Flow {
        let to = Subscription::read(r.value).map_err(|error| refuse(cx, Side::Value, error))?;
        let Some(bytes) = r.key else { return self.answer(cx, &to, None, r.timestamp) };
        let key = self.key.decode(bytes).map_err(|error| refuse(cx, Side::Key, error))?;
        self.table.get(cx, J::lend(&key), &mut |found| self.answer(cx, &to, found, r.timestamp))
    }
}

/// Answers all subscriptions to a right row when it changes.
pub(crate) struct AnswerAll<J, R> {
    pub(crate) key: J,
    pub(crate) store: Rc<KeyValue<Bytes>>,
    /// Out-of-order updates of a versioned table are skipped.
    pub(crate) versioned: bool,
    pub(crate) range: RefCell<(Scratch, Vec<u8>)>,
    pub(crate) answers: Answering<R>,
}

impl<J: Codec, R: Codec> Node<J, Change<R>> for AnswerAll<J, R> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, J, Change<R>>) -> Flow {
        if self.versioned && !cx.latest {
            cx.port.dropped(self.answers.node);
            return Ok(());
        }
        let (from, to) = &mut *self.range.borrow_mut();
        from.clear();
        from.extend(&cx.task.partition.to_be_bytes());
        write_foreign_key(from, |out| self.key.encode(r.key, out));
        check(cx, self.answers.node, from)?;
        to.clear();
        to.extend_from_slice(from.bytes());
        // The next bytes of that length: the prefix is not all ones, it begins with a partition and a length.
        while to.last() == Some(&u8::MAX) {
            to.pop();
        }
        if let Some(last) = to.last_mut() {
            *last += 1;
        }
        self.store.scan(cx, from.bytes(), to, Order::Forward, &mut |key, row, _| {
            let stored = |error| {
                let store = self.store.store_id();
                cx.fault.park(Fault::Store, Parked::Stored { store, side: Side::Value, error })
            };
            let subscription = Subscription::read(row).map_err(stored)?;
            let key = primary_key(key).map_err(stored)?;
            self.answers.send(cx, &subscription, key, r.value.new, r.timestamp)?;
            Ok(true)
        })
    }
}

/// Writes answers to the partition where the left row is.
pub(crate) struct AnswerSink {
    pub(crate) id: SinkId,
}

impl Node<Bytes, Answer> for AnswerSink {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, Bytes, Answer>) -> Flow {
        let (value, partition) = r.value;
        let headers = cx.source.headers;
        let record = OutBytes { key: Some(r.key), value: Some(value), headers, timestamp: r.timestamp };
        cx.port.produce(cx.task, self.id, partition, &record)
    }
}

/// Joins an answer with the left row, if that is still as it was when it subscribed.
pub(crate) struct JoinAnswer<K: Schema, V: Schema, R, W, J> {
    pub(crate) node: NodeId,
    pub(crate) value: V,
    pub(crate) foreign: R,
    pub(crate) joiner: J,
    pub(crate) table: Rc<dyn Getter<K, V>>,
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) out: Edge<Opt<K>, Opt<W>>,
    pub(crate) to: PhantomData<W>,
}

impl<K: Codec, V: Codec, R: Codec, W: Codec, J: Joiner<V, R, W>> JoinAnswer<K, V, R, W, J> {
    fn hash(&self, cx: &Cx<'_>, value: Option<V::View<'_>>) -> Result<Hash, Fault> {
        let Some(value) = value else { return Ok(None) };
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        self.value.encode(value, &mut scratch);
        check(cx, self.node, &scratch)?;
        Ok(Some(hash128(scratch.bytes())))
    }
}

impl<K: Codec, V: Codec, R: Codec, W: Codec, J: Joiner<V, R, W>> Node<K, Bytes> for JoinAnswer<K, V, R, W, J> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, Bytes>) -> Flow {
        let (hash, bytes) = read_answer(r.value).map_err(|error| refuse(cx, Side::Value, error))?;
        let right = bytes.map(|bytes| self.foreign.decode(bytes)).transpose();
        let right = right.map_err(|error| refuse(cx, Side::Value, error))?;
        self.table.get(cx, r.key, &mut |found| {
            let left = found.map(|(value, _)| V::shorten(value));
            if self.hash(cx, left)? != hash {
                cx.port.dropped(self.node);
                return Ok(());
            }
            let joined = self.joiner.join(left, right.as_ref().map(R::lend));
            let value = lend::<W>(joined.as_ref());
            self.out.send(cx, &Record { key: Some(K::shorten(r.key)), value, timestamp: r.timestamp })
        })
    }
}
