//! Lists of slots, threaded through the slots themselves: no list ever allocates.
use super::chunks::Chunks;
use crate::arena::prefetch;

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// A slot's neighbours in the one list it is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    prev: u32,
    next: u32,
}

impl Links {
    pub(crate) const ALONE: Self = Self { prev: NONE, next: NONE };
}

/// What has links.
pub(crate) trait Linked {
    fn links(&mut self) -> &mut Links;
}

/// First and last of a list, oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) first: u32,
    last: u32,
    pub(crate) len: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE, len: 0 };

    /// Appends a slot that is in no list.
    #[inline]
    pub(crate) fn push<S: Linked>(&mut self, slots: &mut Chunks<S>, slot: u32) {
        *slots.at_mut(slot).links() = Links { prev: self.last, next: NONE };
        match self.last {
            NONE => self.first = slot,
            last => slots.at_mut(last).links().next = slot,
        }
        self.last = slot;
        self.len += 1;
    }

    /// Takes out a slot that is in this list.
    #[inline]
    pub(crate) fn remove<S: Linked>(&mut self, slots: &mut Chunks<S>, slot: u32) {
        let Links { prev, next } = *slots.at_mut(slot).links();
        match prev {
            NONE => {
                self.first = next;
                // Lists are worked off from this end: the one after the next is wanted soon.
                if next != NONE {
                    let soon = slots.at_mut(next).links().next;
                    if soon != NONE {
                        prefetch(slots.at(soon));
                    }
                }
            }
            prev => slots.at_mut(prev).links().next = next,
        }
        match next {
            NONE => self.last = prev,
            next => slots.at_mut(next).links().prev = prev,
        }
        self.len -= 1;
    }

    /// The slot that came last.
    #[inline]
    pub(crate) fn newest(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// The oldest slot.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Linked for Links {
        fn links(&mut self) -> &mut Links {
            self
        }
    }

    fn in_order(list: &List, slots: &Chunks<Links>) -> Vec<u32> {
        std::iter::successors(list.oldest(), |at| Some(slots.at(*at).next).filter(|next| *next != NONE)).collect()
    }

    #[test]
    fn a_list_keeps_its_order_when_any_of_it_goes() {
        let mut slots = Chunks::new();
        slots.grow(|| Links::ALONE);
        let mut list = List::EMPTY;
        for slot in [5, 3, 9, 1] {
            list.push(&mut slots, slot);
        }
        list.remove(&mut slots, 9);
        assert_eq!(in_order(&list, &slots), [5, 3, 1]);
        list.remove(&mut slots, 5);
        list.remove(&mut slots, 1);
        list.push(&mut slots, 0);
        assert_eq!((in_order(&list, &slots), list.len), (vec![3, 0], 2));
        list.remove(&mut slots, 3);
        list.remove(&mut slots, 0);
        assert_eq!((list.oldest(), list.len), (None, 0));
    }
}
