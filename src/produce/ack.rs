//! Acknowledgement slots: what became of the records of one store's partition, or of one sink.
//!
//! Owns the slots. Invariant: a slot's outstanding count equals the batches that hold records of it and are neither
//! acknowledged nor failed; its first error stays until the slot is reset; its highest offset never goes back. Bound:
//! as many slots as were open at once. Called by the producer, which gives each batch a [`Shares`].
use super::error::ProduceError;

/// Slots that may share one batch. A record of one more seals the batch first.
pub(super) const SLOTS_PER_BATCH: usize = 16;

/// A slot; one for each store and partition, and one for each sink.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct AckSlot(u32);

/// What became of a slot's records since it was made or reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ack {
    /// Highest offset that the broker gave to one of its records, -1 for none.
    pub(crate) highest: i64,
    /// Batches that hold records of it and are not decided yet. 0: everything is.
    pub(crate) outstanding: u32,
    /// The first error.
    pub(crate) error: Option<ProduceError>,
}

/// Nothing appended, nothing known.
const EMPTY: Ack = Ack { highest: -1, outstanding: 0, error: None };

#[derive(Debug)]
struct Entry {
    ack: Ack,
    /// Rises at each reset, so that answers to records from before it change nothing.
    generation: u32,
}

/// All slots of one producer.
#[derive(Debug, Default)]
pub(super) struct AckTable {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl AckTable {
    pub(super) fn open(&mut self) -> AckSlot {
        if let Some(index) = self.free.pop() {
            return AckSlot(index);
        }
        let index = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push(Entry { ack: EMPTY, generation: 0 });
        // Giving a slot back must not allocate.
        self.free.reserve(self.entries.len());
        AckSlot(index)
    }

    /// Gives a slot back; whatever is outstanding is forgotten.
    pub(super) fn close(&mut self, slot: AckSlot) {
        self.reset(slot);
        if !self.free.contains(&slot.0) && (slot.0 as usize) < self.entries.len() {
            self.free.push(slot.0);
        }
    }

    pub(super) fn get(&self, slot: AckSlot) -> Ack {
        self.entries.get(slot.0 as usize).map_or(EMPTY, |e| e.ack)
    }

    /// The first error of the slot.
    #[inline]
    pub(super) fn error(&self, slot: AckSlot) -> Option<ProduceError> {
        self.entries.get(slot.0 as usize)?.ack.error
    }

    pub(super) fn reset(&mut self, slot: AckSlot) {
        if let Some(entry) = self.entries.get_mut(slot.0 as usize) {
            entry.ack = EMPTY;
            entry.generation = entry.generation.wrapping_add(1);
        }
    }

    fn is_current(&self, share: Share) -> bool {
        self.entries.get(share.slot.0 as usize).is_some_and(|e| e.generation == share.generation)
    }

    fn live(&mut self, share: Share) -> Option<&mut Ack> {
        let entry = self.entries.get_mut(share.slot.0 as usize)?;
        (entry.generation == share.generation).then_some(&mut entry.ack)
    }
}

/// The part of a batch that belongs to one slot.
#[derive(Clone, Copy, Debug)]
struct Share {
    slot: AckSlot,
    generation: u32,
    /// Index within the batch of the slot's last record.
    last: u32,
}

const NO_SHARE: Share = Share { slot: AckSlot(u32::MAX), generation: 0, last: 0 };

/// The slots that have records in one batch.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    list: [Share; SLOTS_PER_BATCH],
    len: usize,
}

impl Shares {
    pub(super) const fn new() -> Self {
        Self { list: [NO_SHARE; SLOTS_PER_BATCH], len: 0 }
    }

    /// Whether a record of this slot can still be noted.
    #[inline]
    pub(super) fn takes(&self, acks: &AckTable, slot: AckSlot) -> bool {
        self.len < SLOTS_PER_BATCH || self.list.iter().any(|s| s.slot == slot && acks.is_current(*s))
    }

    /// Notes that record `index` of the batch belongs to `slot`.
    #[inline]
    pub(super) fn note(&mut self, acks: &mut AckTable, slot: AckSlot, index: u32) {
        // The usual batch belongs to one slot, and neighbours belong together: newest first.
        let Some(entry) = acks.entries.get_mut(slot.0 as usize) else { return };
        let mine = self.list[..self.len].iter_mut().rev();
        if let Some(share) = mine.into_iter().find(|s| s.slot == slot && s.generation == entry.generation) {
            share.last = index;
            return;
        }
        if let Some(place) = self.list.get_mut(self.len) {
            *place = Share { slot, generation: entry.generation, last: index };
            self.len += 1;
            entry.ack.outstanding += 1;
        }
    }

    /// The records before index `end` are written; the one at index `from` got `offset` (-1: the broker did not tell).
    /// Only slots whose last record is among them are decided.
    pub(super) fn written(&mut self, acks: &mut AckTable, offset: i64, from: u32, end: u32) {
        let mut kept = 0;
        for i in 0..self.len {
            let share = self.list[i];
            if share.last >= end {
                self.list[kept] = share;
                kept += 1;
                continue;
            }
            if let Some(ack) = acks.live(share) {
                ack.outstanding = ack.outstanding.saturating_sub(1);
                if offset >= 0 {
                    ack.highest = ack.highest.max(offset + i64::from(share.last.saturating_sub(from)));
                }
            }
        }
        self.len = kept;
    }

    /// Nothing more of the batch will be written.
    pub(super) fn failed(&mut self, acks: &mut AckTable, error: ProduceError) {
        for &share in &self.list[..self.len] {
            if let Some(ack) = acks.live(share) {
                ack.outstanding = ack.outstanding.saturating_sub(1);
                ack.error.get_or_insert(error);
            }
        }
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::produce::error::Cause;
    use crate::produce::topics::OutTopic;

    fn error(code: i16) -> ProduceError {
        let code = crate::wire::ErrorCode::from_code(code);
        ProduceError { topic: OutTopic(0), partition: 0, cause: Cause::Refused { code } }
    }

    #[test]
    fn a_slot_keeps_its_highest_offset_and_its_first_error() {
        let mut acks = AckTable::default();
        let (a, b) = (acks.open(), acks.open());
        let (mut first, mut second) = (Shares::new(), Shares::new());
        for (index, slot) in [a, b, a].into_iter().enumerate() {
            first.note(&mut acks, slot, index as u32);
        }
        second.note(&mut acks, a, 0);
        assert_eq!((acks.get(a).outstanding, acks.get(b).outstanding), (2, 1));
        // The later batch is acknowledged first.
        second.written(&mut acks, 70, 0, 1);
        first.written(&mut acks, 40, 0, 3);
        assert_eq!(acks.get(a), Ack { highest: 70, outstanding: 0, error: None });
        assert_eq!(acks.get(b), Ack { highest: 41, outstanding: 0, error: None });

        for code in [29, 17] {
            let mut shares = Shares::new();
            shares.note(&mut acks, b, 0);
            shares.failed(&mut acks, error(code));
        }
        assert_eq!(acks.get(b), Ack { highest: 41, outstanding: 0, error: Some(error(29)) });
    }

    #[test]
    fn an_acknowledgement_without_an_offset_does_not_advance() {
        let mut acks = AckTable::default();
        let slot = acks.open();
        let mut shares = Shares::new();
        shares.note(&mut acks, slot, 0);
        shares.written(&mut acks, -1, 0, 1);
        assert_eq!(acks.get(slot), Ack { highest: -1, outstanding: 0, error: None });
    }

    #[test]
    fn answers_from_before_a_reset_change_nothing() {
        let mut acks = AckTable::default();
        let slot = acks.open();
        let mut old = Shares::new();
        old.note(&mut acks, slot, 0);
        acks.reset(slot);
        let mut new = Shares::new();
        new.note(&mut acks, slot, 0);
        old.failed(&mut acks, error(29));
        assert_eq!(acks.get(slot), Ack { highest: -1, outstanding: 1, error: None });
        new.written(&mut acks, 5, 0, 1);
        assert_eq!(acks.get(slot), Ack { highest: 5, outstanding: 0, error: None });
    }

    #[test]
    fn a_slot_is_decided_only_when_its_last_record_is() {
        let mut acks = AckTable::default();
        let (a, b) = (acks.open(), acks.open());
        let mut shares = Shares::new();
        for (index, slot) in [a, b, b, b].into_iter().enumerate() {
            shares.note(&mut acks, slot, index as u32);
        }
        shares.written(&mut acks, 100, 0, 2);
        assert_eq!((acks.get(a).highest, acks.get(a).outstanding), (100, 0));
        assert_eq!((acks.get(b).highest, acks.get(b).outstanding), (-1, 1));
        // The second part got offset 200 for the record at index 2.
        shares.written(&mut acks, 200, 2, 4);
        assert_eq!((acks.get(b).highest, acks.get(b).outstanding), (201, 0));
    }

    #[test]
    fn a_batch_takes_sixteen_slots_and_no_more() {
        let mut acks = AckTable::default();
        let mut shares = Shares::new();
        let slots: Vec<_> = (0..17).map(|_| acks.open()).collect();
        for slot in &slots[..16] {
            assert!(shares.takes(&acks, *slot));
            shares.note(&mut acks, *slot, 0);
        }
        assert!(shares.takes(&acks, slots[3]));
        assert!(!shares.takes(&acks, slots[16]));
    }

    #[test]
    fn a_closed_slot_is_given_out_again_clean() {
        let mut acks = AckTable::default();
        let slot = acks.open();
        let mut shares = Shares::new();
        shares.note(&mut acks, slot, 0);
        acks.close(slot);
        acks.close(slot);
        assert_eq!(acks.open(), slot);
        assert_ne!(acks.open(), slot);
        shares.written(&mut acks, 9, 0, 1);
        assert_eq!(acks.get(slot), Ack { highest: -1, outstanding: 0, error: None });
    }
}
