//! Entries of a range of keys, in the order of their keys or the other way round.
use super::core::{Core, State};
use super::ordered::{Ordered, Place};
use crate::store::backend::Order;
use crate::store::chunks::CHUNK;

impl Core {
    /// The slots of the last chunk, if it has none but free and clean ones and is not the only chunk.
    pub(super) fn last_chunk(&self) -> Option<std::ops::Range<u32>> {
        let chunk = self.slots().checked_sub(CHUNK as u32).filter(|first| *first > 0)?..self.slots();
        chunk.clone().all(|slot| matches!(self.state(slot), State::Free | State::Clean)).then_some(chunk)
    }

    /// Keeps entries in the order of their keys, from now on.
    pub(crate) fn put_in_order(&mut self) {
        if self.ordered.is_some() {
            return;
        }
        let _scope = plimsoll_alloc::scope(plimsoll_alloc::Module::Cache);
        let mut ordered = Ordered::new();
        for slot in (0..self.slots()).filter(|slot| self.is_used(*slot)) {
            ordered.insert(slot, |slot| self.key(slot));
        }
        self.ordered = Some(ordered);
    }

    /// Entries with `from` ≤ key < `to`. Before [`put_in_order`](Self::put_in_order) they are looked for and sorted.
    pub(crate) fn range<'c>(&'c self, from: &[u8], to: &[u8], order: Order) -> Range<'c> {
        let walk = match &self.ordered {
            Some(ordered) => {
                let (first, last) = (ordered.seek(from, |s| self.key(s)), ordered.seek(to, |s| self.key(s)));
                let (at, end) = if order == Order::Forward { (first, last) } else { (last, first) };
                let last = step(ordered, end, order).map(|(slot, _)| slot);
                Walk::Indexed { ordered, at, last }
            }
            None => {
                let is_within = |slot: &u32| self.is_used(*slot) && (from..to).contains(&self.key(*slot));
                let mut slots: Vec<u32> = (0..self.slots()).filter(is_within).collect();
                slots.sort_unstable_by(|a, b| self.key(*b).cmp(self.key(*a)));
                if order == Order::Reverse {
                    slots.reverse();
                }
                Walk::Listed(slots)
            }
        };
        let mut range = Range { order, walk, slot: None };
        range.step();
        range
    }
}

enum Walk<'c> {
    Indexed {
        ordered: &'c Ordered,
        at: Place,
        /// The first slot that is not in the range.
        last: Option<u32>,
    },
    /// The one that comes next is the last.
    Listed(Vec<u32>),
}

/// A walk over entries.
pub(crate) struct Range<'c> {
    order: Order,
    walk: Walk<'c>,
    slot: Option<u32>,
}

impl Range<'_> {
    /// The entry that comes next.
    #[inline]
    pub(crate) fn slot(&self) -> Option<u32> {
        self.slot
    }

    /// Goes behind it.
    #[inline]
    pub(crate) fn step(&mut self) {
        self.slot = match &mut self.walk {
            Walk::Indexed { ordered, at, last } => match step(ordered, *at, self.order) {
                Some((slot, _)) if Some(slot) == *last => None,
                Some((slot, next)) => {
                    *at = next;
                    Some(slot)
                }
                None => None,
            },
            Walk::Listed(slots) => slots.pop(),
        };
    }
}

fn step(ordered: &Ordered, at: Place, order: Order) -> Option<(u32, Place)> {
    match order {
        Order::Forward => ordered.next(at),
        Order::Reverse => ordered.prev(at),
    }
}
