//! Rows of windows and sessions by key and time, as Kafka Streams' `fetch` and `findSessions`.
use super::KeyValue;
use super::scan::{Span, Visit, once};
use crate::codec::Codec;
use crate::node::fault::{FaultCell, Flow};
use crate::store::backend::Order;
use crate::store::kind::{Retention, Rows, SEGMENT_BYTES};
use crate::store::offset::{PREFIX_BYTES, partition_prefix};

/// Above the first byte of every time that is not negative.
const ABOVE_TIMES: u8 = 0x80;

/// Which keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys<'k> {
    /// This one, in the order of time.
    One(&'k [u8]),
    /// From the first to the second, both included; `None` is without an end. By segment, then by key.
    Between(Option<&'k [u8]>, Option<&'k [u8]>),
}

impl Keys<'_> {
    /// Every key.
    pub(crate) const ALL: Self = Self::Between(None, None);

    fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::One(one) => *one == key,
            Self::Between(from, to) => from.is_none_or(|from| key >= from) && to.is_none_or(|to| key <= to),
        }
    }
}

/// Rows of one partition. Times in milliseconds, both ends included.
#[derive(Clone, Copy, Debug)]
struct Select<'k> {
    partition: u32,
    keys: Keys<'k>,
    /// Of windows: the start. Of sessions: the end.
    from: i64,
    to: i64,
    /// Of sessions: the start at most.
    latest_start: i64,
    /// Whether rows are seen that have expired and are not deleted yet.
    expired: bool,
}

impl<V: Codec> KeyValue<V> {
    /// Visits the windows of these keys that start in `times` (both ends included), as `WindowStore.fetch`.
    pub(crate) fn fetch(
        &self,
        fault: &FaultCell,
        partition: u32,
        keys: Keys<'_>,
        times: [i64; 2],
        order: Order,
        visit: Visit<'_, V>,
    ) -> Flow {
        let [from, to] = times;
        self.select(fault, &Select { partition, keys, from, to, latest_start: i64::MAX, expired: false }, order, visit)
    }

    /// As [`fetch`](Self::fetch) (of sessions: by their ends), those included that have expired and are not deleted
    /// yet: for windows that are told when they close.
    pub(crate) fn fetch_kept(
        &self,
        fault: &FaultCell,
        partition: u32,
        keys: Keys<'_>,
        times: [i64; 2],
        order: Order,
        visit: Visit<'_, V>,
    ) -> Flow {
        let [from, to] = times;
        let select = Select { partition, keys, from, to, latest_start: i64::MAX, expired: true };
        self.select(fault, &select, order, visit)
    }

    /// Visits the sessions of these keys that end at `earliest_end` or later and start at `latest_start` or earlier, as
    /// `SessionStore.findSessions`.
    pub(crate) fn find_sessions(
        &self,
        fault: &FaultCell,
        partition: u32,
        keys: Keys<'_>,
        [earliest_end, latest_start]: [i64; 2],
        order: Order,
        visit: Visit<'_, V>,
    ) -> Flow {
        let select = Select { partition, keys, from: earliest_end, to: i64::MAX, latest_start, expired: false };
        self.select(fault, &select, order, visit)
    }

    fn select(&self, fault: &FaultCell, select: &Select<'_>, order: Order, visit: Visit<'_, V>) -> Flow {
        let Some(retention) = self.kind.retention() else { return Ok(()) };
        let from = select.from.max(0);
        let oldest = if select.expired { 0 } else { self.oldest(fault, select.partition)? };
        let stored_from = from.max(oldest);
        let seen_from = if self.cached { from } else { stored_from };
        let to = select.to.min(self.highest(fault, select.partition)?);
        if to < seen_from {
            return Ok(());
        }
        let suffix = self.kind.suffix();
        let is_session = matches!(self.kind.rows, Rows::Session(_));
        let accepts = |key: &[u8], is_entry: bool| {
            let time = self.kind.time_of(key);
            let starts = !is_session || crate::store::kind::session_parts(key).1 <= select.latest_start;
            let user = key.get(..key.len().saturating_sub(suffix)).unwrap_or_default();
            starts && time <= to && time >= if is_entry { seen_from } else { stored_from } && select.keys.contains(user)
        };
        let (prefix, end) = (partition_prefix(select.partition), retention.segment(to).saturating_add(1));
        let bound = |segment: u64| {
            let mut key = [0; PREFIX_BYTES + SEGMENT_BYTES];
            let (partition, rest) = key.split_at_mut(PREFIX_BYTES);
            partition.copy_from_slice(&prefix);
            rest.copy_from_slice(&segment.to_be_bytes());
            key
        };
        let (first, stored, end) =
            (bound(retention.segment(seen_from)), bound(retention.segment(stored_from)), bound(end));
        match select.keys {
            Keys::One(key) if retention.segment_ms > 1 => {
                let mut ranges = segments(prefix, key, [stored_from, to], retention, order);
                let span = Span { entries: [&first, &end], ranges: &mut ranges, accepts: &accepts };
                self.visit(fault, span, order, visit)
            }
            _ => {
                let mut ranges = once(&stored, &end);
                let span = Span { entries: [&first, &end], ranges: &mut ranges, accepts: &accepts };
                self.visit(fault, span, order, visit)
            }
        }
    }
}

/// The ranges of one key, a segment after the other.
fn segments<'k>(
    prefix: [u8; PREFIX_BYTES],
    key: &'k [u8],
    [from, to]: [i64; 2],
    retention: Retention,
    order: Order,
) -> impl FnMut(&mut [Vec<u8>; 2]) -> bool + 'k {
    let all = retention.segment(from)..=retention.segment(to);
    let (mut forward, mut reverse) = (all.clone(), all.rev());
    move |bounds| {
        if from > to {
            return false;
        }
        let next = if order == Order::Forward { forward.next() } else { reverse.next() };
        let Some(segment) = next else { return false };
        for bound in bounds.iter_mut() {
            bound.clear();
            bound.extend_from_slice(&prefix);
            bound.extend_from_slice(&segment.to_be_bytes());
            bound.extend_from_slice(key);
        }
        let [low, high] = bounds;
        low.extend_from_slice(&from.to_be_bytes());
        match to.checked_add(1) {
            Some(above) => high.extend_from_slice(&above.to_be_bytes()),
            None => high.push(ABOVE_TIMES),
        }
        true
    }
}
