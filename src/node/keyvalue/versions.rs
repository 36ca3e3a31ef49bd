//! A versioned store: the values of a key over time, as far back as the history goes.
//!
//! Owns no rows itself: each version is one in a store of [`Version`]s, under the key's length, the key and the
//! version's time, so that a key's versions lie together in the order of time. Invariant: the latest version of a key
//! stays; older ones go some time after they are no part of the history any more. Bound: what is deleted with a commit
//! is in proportion to what was written. Called by the tables of such stores and by processors.
use super::scan::Visit;
use super::version::Version;
use super::{KeyValue, make_store};
use crate::codec::Codec;
use crate::node::cx::Cx;
use crate::node::fault::{Fault, Flow};
use crate::node::wiring::MakeStore;
use crate::store::backend::Order;
use crate::store::kind::{StoreKind, version_key, version_parts};
use std::cell::RefCell;
use std::rc::Rc;

/// What became of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Put {
    /// It is older than the history and was not kept.
    Dropped,
    /// It is the latest of its key.
    Latest,
    /// It is valid until this time, where the next begins.
    Until(i64),
}

/// Builds the rows of a versioned store; its typed store is an `Rc<KeyValue<Version<V>>>`.
pub(crate) fn make_versioned<V: Codec>(codec: V, kind: StoreKind) -> MakeStore {
    make_store(Version(codec), kind)
}

/// The store as its users see it. Keys are the partition and the user's key.
pub(crate) struct Versions<V: Codec> {
    rows: Rc<KeyValue<Version<V>>>,
    history_ms: i64,
    bounds: RefCell<[Vec<u8>; 2]>,
}

impl<V: Codec> Versions<V> {
    /// Over the wired rows.
    pub(crate) fn new(rows: Rc<KeyValue<Version<V>>>) -> Self {
        let history_ms = rows.kind.history().unwrap_or(i64::MAX);
        Self { rows, history_ms, bounds: RefCell::default() }
    }

    /// The earliest time about which the store still knows.
    fn horizon(&self, cx: &Cx<'_>, key: &[u8]) -> Result<i64, Fault> {
        let observed = self.rows.observed(cx.fault, partition_of(key))?;
        Ok(observed.saturating_sub(self.history_ms))
    }

    /// Puts a version, or that there is no value from then on. It is logged also when it is too old to be kept, as in
    /// Kafka Streams.
    pub(crate) fn put(&self, cx: &Cx<'_>, key: &[u8], value: Option<V::View<'_>>, time: i64) -> Result<Put, Fault> {
        if time < self.horizon(cx, key)? {
            self.rows.log_version(cx, key, value, time)?;
            return Ok(Put::Dropped);
        }
        let next = self.next_after(cx, key, time)?;
        let mut bounds = self.bounds.take();
        version_key(key, time, &mut bounds[0]);
        let put = self.rows.put(cx, &bounds[0], Some(value), time);
        *self.bounds.borrow_mut() = bounds;
        put.map(|()| next.map_or(Put::Latest, Put::Until))
    }

    /// The time of the first version behind this time.
    fn next_after(&self, cx: &Cx<'_>, key: &[u8], time: i64) -> Result<Option<i64>, Fault> {
        let mut next = None;
        if let Some(from) = time.checked_add(1) {
            self.walk(cx, key, [from, i64::MAX], Order::Forward, &mut |_, _, time| {
                next = Some(time);
                Ok(false)
            })?;
        }
        Ok(next)
    }

    /// Lends `f` the latest value and its time.
    pub(crate) fn get<R>(
        &self,
        cx: &Cx<'_>,
        key: &[u8],
        f: impl FnOnce(Option<(V::View<'_>, i64)>) -> R,
    ) -> Result<R, Fault> {
        self.get_as_of(cx, key, i64::MAX, |found| f(found.map(|(value, time, _)| (value, time))))
    }

    /// Lends `f` the value that was valid at a time: with the time it begins and, if it is not the latest, ends. There
    /// is none for times before the history.
    pub(crate) fn get_as_of<R>(
        &self,
        cx: &Cx<'_>,
        key: &[u8],
        as_of: i64,
        f: impl FnOnce(Option<(V::View<'_>, i64, Option<i64>)>) -> R,
    ) -> Result<R, Fault> {
        let next = self.next_after(cx, key, as_of)?;
        let is_known = next.is_none() || as_of >= self.horizon(cx, key)?;
        let (mut f, mut result) = (Some(f), None);
        if is_known {
            self.walk(cx, key, [0, as_of], Order::Reverse, &mut |_, value, time| {
                result = f.take().map(|f| f(value.map(|value| (value, time, next))));
                Ok(false)
            })?;
        }
        match (result, f) {
            (Some(result), _) => Ok(result),
            (None, Some(f)) => Ok(f(None)),
            // The visitor is called at most once.
            (None, None) => Err(Fault::Store),
        }
    }

    /// Visits the versions of a key that begin in these times.
    fn walk(&self, cx: &Cx<'_>, key: &[u8], [from, to]: [i64; 2], order: Order, visit: Visit<'_, Version<V>>) -> Flow {
        let mut bounds = self.bounds.take();
        version_key(key, from.max(0), &mut bounds[0]);
        match to.checked_add(1) {
            Some(to) => version_key(key, to.max(0), &mut bounds[1]),
            // Above every time.
            None => version_key(key, -1, &mut bounds[1]),
        }
        let [from, to] = &bounds;
        let walked = self.rows.scan(cx, from, to, order, &mut |key, value, _| visit(key, value, version_parts(key).1));
        *self.bounds.borrow_mut() = bounds;
        walked
    }
}

fn partition_of(key: &[u8]) -> u32 {
    key.first_chunk().map_or(0, |prefix| u32::from_be_bytes(*prefix))
}

#[cfg(test)]
#[path = "versions_tests.rs"]
mod tests;
