//! Changing an entry and sending the change on.
use super::KeyValue;
use super::version::Version;
use crate::base::id::{NodeId, TaskId};
use crate::codec::Codec;
use crate::node::cx::Cx;
use crate::node::fault::{Fault, Flow, Parked};
use crate::node::record::{LogBytes, RecordContext};
use crate::store::kind::{SEGMENT_BYTES, SOME, version_key, version_parts};
use crate::store::offset::PREFIX_BYTES;
use crate::store::overlay::Overlay;
use crate::store::overlay::core::{Stamp, State};
use crate::wire::RawHeaders;

/// An entry on its way down.
pub(crate) struct Entry<'a, V: Codec> {
    /// Without the partition.
    pub(crate) key: &'a [u8],
    pub(crate) new: Option<V::View<'a>>,
    pub(crate) old: Option<V::View<'a>>,
    pub(crate) timestamp: i64,
}

impl<V: Codec> KeyValue<V> {
    /// Changes a value in place. The entry's timestamp is the highest of those that made the value. A null value is
    /// none.
    pub(crate) fn change(&self, cx: &Cx<'_>, slot: u32, timestamp: i64, apply: impl FnOnce(&mut Option<V::Owned>)) {
        let timestamp = {
            let overlay = self.overlay.borrow();
            let existed = overlay.value(slot).is_some();
            if existed { timestamp.max(overlay.core().timestamp(slot)) } else { timestamp }
        };
        self.set(cx, slot, timestamp, apply);
    }

    /// Changes a value in place. The entry's timestamp is this one, whatever it was. A null value is none.
    pub(crate) fn set(&self, cx: &Cx<'_>, slot: u32, timestamp: i64, apply: impl FnOnce(&mut Option<V::Owned>)) {
        let mut overlay = self.overlay.borrow_mut();
        let existed = overlay.value(slot).is_some();
        if overlay.keeps_old() && overlay.core().state(slot) != State::Dirty {
            overlay.update_old(slot, |now, old| match (now, old.as_mut()) {
                (Some(now), Some(old)) => V::own_into(V::view(now), old),
                (now, _) => *old = now.map(|now| V::own(V::view(now))),
            });
        }
        overlay.update(slot, |value| {
            apply(value);
            if value.as_ref().is_some_and(|value| V::is_null(V::view(value))) {
                *value = None;
            }
        });
        let core = overlay.core_mut();
        core.set_timestamp(slot, timestamp);
        let stamp = Stamp {
            topic: cx.source.topic,
            offset: cx.source.offset,
            timestamp: cx.source.timestamp,
            headers: cx.source.headers.as_bytes(),
        };
        core.set_dirty(slot, &stamp, existed);
        if self.times.is_some() {
            let (partition, time) = (core.partition(slot), self.kind.time_of(core.key(slot)));
            self.note(partition, time);
        }
    }

    /// The timestamp of an entry's value, if it has one.
    pub(crate) fn time_of(&self, slot: u32) -> Option<i64> {
        let overlay = self.overlay.borrow();
        overlay.value(slot).map(|_| overlay.core().timestamp(slot))
    }

    /// Sets a key's value, or deletes it, in a store whose changes nobody forwards: into the changelog at once, or with
    /// the commit when it is cached. The timestamp is the value's; a deletion's is the changelog record's.
    pub(crate) fn put(&self, cx: &Cx<'_>, key: &[u8], value: Option<V::View<'_>>, timestamp: i64) -> Flow {
        let log = |slot| self.log(cx, slot);
        let slot = match self.find(key) {
            Some(slot) => slot,
            None => {
                self.keep_limit(cx, key.len() + SEGMENT_BYTES, &log)?;
                self.insert(key)
            }
        };
        self.set(cx, slot, timestamp, |now| match (now.as_mut(), value) {
            (Some(now), Some(value)) => V::own_into(value, now),
            (_, value) => *now = value.map(V::own),
        });
        if !self.cached {
            self.take(slot);
            self.log(cx, slot)?;
        }
        self.keep_limit(cx, 0, &log)
    }

    /// Takes the oldest dirty entry to be forwarded; it is pending from now on.
    pub(crate) fn pop_dirty(&self) -> Option<u32> {
        let mut overlay = self.overlay.borrow_mut();
        let slot = overlay.core().oldest_dirty()?;
        self.pass(&mut overlay, slot);
        Some(slot)
    }

    /// Takes this entry to be forwarded: caching is off.
    pub(crate) fn take(&self, slot: u32) {
        self.pass(&mut self.overlay.borrow_mut(), slot);
    }

    /// The entry goes from the cache to the store, whose stream time it may advance.
    fn pass(&self, overlay: &mut Overlay<V::Owned>, slot: u32) {
        overlay.core_mut().set_state(slot, State::Pending);
        if self.times.is_some() {
            let core = overlay.core();
            self.observe(core.partition(slot), self.kind.time_of(core.key(slot)));
        }
    }

    /// Writes an entry to the changelog and hands it, in its own context, to `forward`. A key that came and went since
    /// its last forward, or whose row had expired, is skipped if caching is on, as in Kafka Streams.
    ///
    /// The overlay is borrowed meanwhile: what is below may read it, only the calling node changes it.
    pub(crate) fn forward(&self, cx: &Cx<'_>, slot: u32, forward: impl FnOnce(&Cx<'_>, &Entry<'_, V>) -> Flow) -> Flow {
        let overlay = self.overlay.borrow();
        let core = overlay.core();
        let value = overlay.value(slot);
        // Of what has expired a cache finds nothing in its store.
        let is_gone = self.cached && self.is_expired(cx.fault, core.key(slot))?;
        if self.cached && value.is_none() && (is_gone || !core.existed(slot)) {
            return Ok(());
        }
        let (key, stamp, partition) = (core.key(slot), core.stamp_of(slot), core.partition(slot));
        // A tombstone in the changelog has the time of the record that made it; downstream, a cached one has too.
        let logged_at = if value.is_some() { core.timestamp(slot) } else { stamp.timestamp };
        let timestamp = if self.cached { logged_at } else { core.timestamp(slot) };
        let user_key = key.get(self.lead()..).unwrap_or_default();
        cx.fault.at_partition(partition);
        if self.logged {
            self.changelog(cx, partition, user_key, value.map(V::view), RawHeaders::EMPTY, logged_at)?;
        }
        let source = RecordContext {
            topic: stamp.topic,
            partition,
            offset: stamp.offset,
            timestamp,
            headers: RawHeaders::parse(stamp.headers).unwrap_or(RawHeaders::EMPTY),
        };
        let entry = Entry {
            key: user_key,
            new: value.map(V::view),
            old: overlay.old(slot).filter(|_| !is_gone).map(V::view),
            timestamp,
        };
        forward(&cx.at(TaskId { partition, ..cx.task }, source), &entry)
    }

    /// Writes an entry to the changelog; nobody is forwarded to.
    pub(super) fn log(&self, cx: &Cx<'_>, slot: u32) -> Flow {
        if !self.logged {
            return Ok(());
        }
        let overlay = self.overlay.borrow();
        let core = overlay.core();
        let (key, partition) = (core.key(slot), core.partition(slot));
        cx.fault.at_partition(partition);
        let key = key.get(self.lead()..).unwrap_or_default();
        let stamp = core.stamp_of(slot).headers;
        let headers = if self.kind.logs_headers { RawHeaders::parse(stamp) } else { None };
        let headers = headers.unwrap_or(RawHeaders::EMPTY);
        self.changelog(cx, partition, key, overlay.value(slot).map(V::view), headers, core.timestamp(slot))
    }

    /// Writes a deletion of a row that is not there to the changelog: Kafka Streams does so for null values in the
    /// window of a join. `key` with the partition.
    pub(crate) fn log_tombstone(&self, cx: &Cx<'_>, key: &[u8], timestamp: i64) -> Flow {
        if !self.logged {
            return Ok(());
        }
        let key = key.get(PREFIX_BYTES..).unwrap_or_default();
        self.changelog(cx, cx.task.partition, key, None, cx.source.headers, timestamp)
    }

    fn changelog(
        &self,
        cx: &Cx<'_>,
        partition: u32,
        key: &[u8],
        value: Option<V::View<'_>>,
        headers: RawHeaders<'_>,
        timestamp: i64,
    ) -> Flow {
        let is_versioned = self.kind.history().is_some();
        let key = if is_versioned { version_parts(key).0 } else { key };
        let Some(value) = value else {
            return cx.port.changelog(self.id, partition, &LogBytes { key, value: None, headers, timestamp });
        };
        let mut encoded = self.encoded.borrow_mut();
        encoded.clear();
        self.codec.encode(value, &mut encoded);
        encoded.check().map_err(|full| {
            let node = NodeId(u16::MAX);
            cx.fault.park(Fault::TooLarge, Parked::TooLarge { node, full })
        })?;
        let value = match encoded.bytes() {
            // A version: a flag, then the value.
            [flag, value @ ..] if is_versioned => (*flag == SOME).then_some(value),
            bytes => Some(bytes),
        };
        cx.port.changelog(self.id, partition, &LogBytes { key, value, headers, timestamp })
    }
}

impl<V: Codec> KeyValue<Version<V>> {
    /// Writes a version to the changelog that is too old to be kept. The key is the partition and the user's key.
    pub(super) fn log_version(&self, cx: &Cx<'_>, key: &[u8], value: Option<V::View<'_>>, time: i64) -> Flow {
        if !self.logged {
            return Ok(());
        }
        let mut row = Vec::new();
        version_key(key, time, &mut row);
        let row = row.get(PREFIX_BYTES..).unwrap_or_default();
        self.changelog(cx, cx.task.partition, row, Some(value), RawHeaders::EMPTY, time)
    }
}
