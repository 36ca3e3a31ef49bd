//! What every windowed aggregate has: the store and its keys, the way down, the clock of its task.
//!
//! Owns no rows. Invariant: a row's key is the partition, the key's bytes, and the window as Kafka Streams' window and
//! session stores write it. Bound: the store's; buffers here hold one record's. Called by the windowed aggregates.
use super::window_emit::{Closed, EmitRule};
use crate::base::id::NodeId;
use crate::codec::{Change, Codec, Delta, Schema, Scratch, Side, WindowForm, WindowKeyOut, Windowed};
use crate::node::{Cx, Edge, Entry, Fault, Flow, KeyValue, Keys, Parked, PerTask, Record, RecordContext, Visit};
use crate::node::{Wiring, WiringError};
use crate::store::backend::Order;
use crate::store::kind::{Rows, StoreKind};
use crate::wire::RawHeaders;
use std::cell::RefCell;
use std::rc::Rc;

/// The number behind a window's start in a store's key. Aggregates have one row a window.
const SEQUENCE: [u8; 4] = [0; 4];
/// Before the first record and before the first emission.
pub(crate) const NEVER: i64 = -1;

/// What a task knows of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowClock {
    /// Highest timestamp of a record that came here, milliseconds.
    pub(crate) observed: i64,
    /// Windows that closed before this time have been emitted.
    pub(crate) emitted: i64,
    /// Wall time from which the next emission may be.
    pub(crate) next_emit: i64,
}

impl WindowClock {
    pub(crate) const START: Self = Self { observed: NEVER, emitted: NEVER, next_emit: 0 };
}

/// What the topology says of a windowed aggregate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowPlan {
    pub(crate) form: WindowForm,
    pub(crate) emit: EmitRule,
    pub(crate) kind: StoreKind,
}

/// What a windowed aggregate is made of besides its windows and its fold.
pub(crate) struct WindowParts<K, A: Codec> {
    pub(crate) node: NodeId,
    pub(crate) key: K,
    pub(crate) store: Rc<KeyValue<A>>,
    pub(crate) plan: WindowPlan,
    pub(crate) clock: PerTask<WindowClock>,
    /// Whether something below needs old values.
    pub(crate) sends_old: bool,
    /// Least time between two emissions, milliseconds of the wall clock.
    pub(crate) emit_interval_ms: i64,
    pub(crate) out: Edge<Windowed<K>, Change<A>>,
    scratch: RefCell<Scratch>,
    own: RefCell<Scratch>,
    pub(super) full: RefCell<Scratch>,
    pub(super) closed: RefCell<Closed>,
}

/// Looks at a row: start, end, value, timestamp; answers whether to go on.
pub(crate) type VisitWindow<'v, A> =
    &'v mut dyn for<'x> FnMut(i64, i64, <A as Schema>::View<'x>, i64) -> Result<bool, Fault>;

impl<K: Codec, A: Codec> WindowParts<K, A> {
    pub(crate) fn new(
        wiring: &mut Wiring<'_>,
        node: NodeId,
        key: K,
        store: crate::base::id::StoreId,
        plan: WindowPlan,
    ) -> Result<Self, WiringError> {
        let limit = wiring.settings().record_bytes;
        Ok(Self {
            node,
            key,
            store: wiring.store::<Rc<KeyValue<A>>>(store)?,
            plan,
            clock: PerTask::with(wiring, WindowClock::START),
            sends_old: wiring.sends_old(node),
            emit_interval_ms: wiring.settings().emit_interval_ms,
            out: wiring.edge(node, 0)?,
            scratch: RefCell::new(Scratch::with_limit(limit)),
            own: RefCell::new(Scratch::with_limit(limit)),
            full: RefCell::new(Scratch::with_limit(limit)),
            closed: RefCell::default(),
        })
    }

    /// A record, or a part of it, is skipped.
    pub(crate) fn dropped(&self, cx: &Cx<'_>) {
        cx.port.dropped(self.node);
    }

    fn too_large(&self, cx: &Cx<'_>, scratch: &Scratch) -> Flow {
        let node = self.node;
        scratch.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node, full }))
    }

    /// The slot of a window of a key.
    pub(crate) fn slot(&self, cx: &Cx<'_>, key: K::View<'_>, start: i64, end: i64) -> Result<u32, Fault> {
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        scratch.extend(&cx.task.partition.to_be_bytes());
        self.key.encode(key, &mut scratch);
        self.plan.form.append(start, end, &mut scratch);
        if self.plan.form != WindowForm::Session {
            scratch.extend(&SEQUENCE);
        }
        self.too_large(cx, &scratch)?;
        self.store.slot(cx, scratch.bytes(), &|slot| self.leave(cx, slot))
    }

    /// After a change of a slot: it goes on at once if nothing is cached. `first` is the old value of a new window.
    pub(crate) fn settle(&self, cx: &Cx<'_>, slot: u32, first: Option<&A::Owned>) -> Flow {
        if !self.store.is_cached() {
            self.store.take(slot);
            self.send(cx, slot, first)?;
        }
        self.store.keep_limit(cx, 0, &|slot| self.leave(cx, slot))
    }

    /// Whether what is below is told the first value of a new window as its old one.
    pub(crate) fn tells_first(&self) -> bool {
        self.sends_old && !self.store.is_cached()
    }

    /// A dirty entry that has to leave.
    fn leave(&self, cx: &Cx<'_>, slot: u32) -> Flow {
        self.send(cx, slot, None)
    }

    fn send(&self, cx: &Cx<'_>, slot: u32, first: Option<&A::Owned>) -> Flow {
        self.store.forward(cx, slot, |cx, entry: &Entry<'_, A>| {
            if self.plan.emit == EmitRule::Closed {
                return Ok(());
            }
            let (key, start, end) = self.window(cx, entry.key)?;
            // Uncached, Kafka Streams sends sessions down without headers, and without what one that stays had before.
            let bare = self.plan.form == WindowForm::Session && !self.store.is_cached();
            let headers = if bare { RawHeaders::EMPTY } else { cx.source.headers };
            let cx = &Cx { source: RecordContext { headers, ..cx.source }, ..*cx };
            let old = match entry.old.filter(|_| !bare || entry.new.is_none()) {
                Some(old) => Some(A::shorten(old)),
                None => first.map(|first| A::shorten(A::view(first))),
            };
            let timestamp = if self.plan.form == WindowForm::Session { end } else { entry.timestamp };
            self.down(cx, key, (start, end), Delta { new: entry.new.map(A::shorten), old }, timestamp)
        })
    }

    /// Sends an update of a window down. The key is in its own bytes.
    pub(super) fn down(
        &self,
        cx: &Cx<'_>,
        key: &[u8],
        (start, end): (i64, i64),
        delta: Delta<'_, A>,
        timestamp: i64,
    ) -> Flow {
        let key = self.key.decode(key).map_err(|error| self.unreadable(cx, error))?;
        let key = WindowKeyOut::<K> { key, start, end };
        let value = Change::<A>::shorten(delta);
        self.out.send(cx, &Record { key: Windowed::<K>::lend(&key), value, timestamp })
    }

    fn unreadable(&self, cx: &Cx<'_>, error: crate::codec::DecodeError) -> Fault {
        cx.fault.park(Fault::Store, Parked::Stored { store: self.store.store_id(), side: Side::Key, error })
    }

    /// The key's own bytes, start and end of a row.
    pub(super) fn window<'b>(&self, cx: &Cx<'_>, row: &'b [u8]) -> Result<(&'b [u8], i64, i64), Fault> {
        let sequence = if self.plan.form == WindowForm::Session { 0 } else { SEQUENCE.len() };
        let row = row.get(..row.len().saturating_sub(sequence)).unwrap_or_default();
        self.plan.form.split(row).map_err(|error| self.unreadable(cx, error))
    }

    /// Forwards the oldest dirty entry.
    pub(crate) fn drain_one(&self, cx: &Cx<'_>) -> Result<bool, Fault> {
        let Some(slot) = self.store.pop_dirty() else { return Ok(false) };
        self.leave(cx, slot)?;
        Ok(true)
    }

    /// The first time of a row that Kafka Streams' stores for emission show: older ones have expired. Its cache does
    /// not look, nor does its session store on disk.
    pub(super) fn emitted_from(&self, cx: &Cx<'_>, from: i64) -> Result<i64, Fault> {
        let looks = self.plan.kind.in_memory || matches!(self.plan.kind.rows, Rows::Window(_));
        if !looks || self.store.is_cached() {
            return Ok(from);
        }
        Ok(from.max(self.plan.kind.oldest(self.store.observed(cx.fault, cx.task.partition)?)))
    }

    /// Visits the windows of a key that start in `times` (both ends included), or the sessions that end at the first
    /// or later and start at the second or earlier.
    pub(crate) fn scan(
        &self,
        cx: &Cx<'_>,
        key: K::View<'_>,
        times: [i64; 2],
        order: Order,
        visit: VisitWindow<'_, A>,
    ) -> Flow {
        let mut own = self.own.borrow_mut();
        own.clear();
        self.key.encode(key, &mut own);
        self.too_large(cx, &own)?;
        let (fault, partition, keys) = (cx.fault, cx.task.partition, Keys::One(own.bytes()));
        let visit: Visit<'_, A> = &mut |row, value, timestamp| {
            let (_, start, end) = self.window(cx, row)?;
            visit(start, end, value, timestamp)
        };
        if self.plan.form == WindowForm::Session {
            self.store.find_sessions(fault, partition, keys, times, order, visit)
        } else if self.plan.emit == EmitRule::Closed {
            let from = self.emitted_from(cx, times[0])?;
            self.store.fetch_kept(fault, partition, keys, [from, times[1]], order, visit)
        } else {
            self.store.fetch(fault, partition, keys, times, order, visit)
        }
    }
}
