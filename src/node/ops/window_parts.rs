//! What every windowed aggregate has: the store and its keys, the way down, the clock of its task.
//!
//! Owns no rows. Invariant: a row's key is the partition, the key's bytes, and the window as Kafka Streams' window and
//! session stores write it. Bound: the store's; buffers here hold one record's. Called by the windowed aggregates.
use super::window_emit::{Closed, EmitRule};
use crate::base::id::NodeId;
use crate::codec::{Change, Codec, Delta, Schema, Scratch, Side, WindowForm, WindowKeyOut, Windowed};
use crate::node::{Cx, Edge, Entry, Fault, Flow, KeyValue, Parked, PerTask, Record, Wiring, WiringError};
use crate::store::backend::Order;
use crate::store::kind::{Rows, StoreKind};
use crate::store::offset::PREFIX_BYTES;
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
    /// Highest time of a row that was put: what its expiry is counted from.
    pub(crate) stored: i64,
    /// Windows that closed before this time have been emitted.
    pub(crate) emitted: i64,
    /// Wall time from which the next emission may be.
    pub(crate) next_emit: i64,
}

impl WindowClock {
    pub(crate) const START: Self = Self { observed: NEVER, stored: NEVER, emitted: NEVER, next_emit: 0 };
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
    bounds: RefCell<(Scratch, Scratch)>,
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
            bounds: RefCell::new((Scratch::with_limit(limit), Scratch::with_limit(limit))),
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

    fn prefix(&self, cx: &Cx<'_>, key: K::View<'_>, scratch: &mut Scratch) {
        scratch.clear();
        scratch.extend(&cx.task.partition.to_be_bytes());
        self.key.encode(key, scratch);
    }

    /// The slot of a window of a key.
    pub(crate) fn slot(&self, cx: &Cx<'_>, key: K::View<'_>, start: i64, end: i64) -> Result<u32, Fault> {
        let mut scratch = self.scratch.borrow_mut();
        self.prefix(cx, key, &mut scratch);
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
            let old = match entry.old {
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

    /// The first time that a row may have to be seen: older ones have expired. Kafka Streams' cache does not look.
    pub(crate) fn visible_from(&self, clock: &WindowClock) -> i64 {
        let (Rows::Window { retention_ms } | Rows::Session { retention_ms }) = self.plan.kind.rows else {
            return i64::MIN;
        };
        // Its stores for emission keep the last millisecond that the others do not.
        let ends_closed = self.plan.emit == EmitRule::Closed && self.plan.form != WindowForm::Session;
        if self.store.is_cached() {
            i64::MIN
        } else {
            clock.stored.saturating_sub(retention_ms).saturating_add(i64::from(!ends_closed))
        }
    }

    /// Visits the rows of a key whose start (of sessions: end) is at least `from` and at most `to`.
    pub(crate) fn scan(
        &self,
        cx: &Cx<'_>,
        key: K::View<'_>,
        (from, to): (i64, i64),
        order: Order,
        visit: VisitWindow<'_, A>,
    ) -> Flow {
        let mut bounds = self.bounds.borrow_mut();
        let (low, high) = &mut *bounds;
        self.prefix(cx, key, low);
        self.prefix(cx, key, high);
        let own = low.len();
        low.extend(&from.max(0).to_be_bytes());
        // Behind every time of `to`, whatever follows it.
        high.extend(&to.saturating_add(1).max(0).to_be_bytes());
        if to == i64::MAX {
            high.push(u8::MAX);
        }
        self.too_large(cx, low)?;
        self.too_large(cx, high)?;
        let row_len = own + if self.plan.form == WindowForm::Session { 16 } else { 12 };
        self.store.scan(cx, low.bytes(), high.bytes(), order, &mut |row, value, timestamp| {
            // Longer keys with the same beginning lie in between.
            if row.len() != row_len {
                return Ok(true);
            }
            let (_, start, end) = self.window(cx, row.get(PREFIX_BYTES..).unwrap_or_default())?;
            visit(start, end, value, timestamp)
        })
    }
}
