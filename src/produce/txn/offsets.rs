//! The offsets that a transaction commits for a group, until they are sent.
//!
//! Invariant: what is staged is sent, in as many requests as it takes, before the transaction is committed, or the
//! transaction is aborted. Bound: [`MOST_OFFSETS`] offsets with metadata of [`MOST_METADATA`] bytes; the memory is kept
//! from transaction to transaction.
use super::error::TxnError;
use std::ops::Range;

/// Offsets of one transaction.
pub(crate) const MOST_OFFSETS: usize = 16_384;
/// Bytes of one offset's metadata (`offset.metadata.max.bytes` of brokers is the same).
pub(crate) const MOST_METADATA: usize = 4_096;
/// Bytes of a transactional id, a group's, a member's or an instance's.
pub(super) const MOST_ID: usize = 512;
/// Bytes of a topic's name; Kafka allows 249.
const MOST_TOPIC: usize = 255;

/// An offset to commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TxnOffset<'a> {
    /// The input topic. Neighbours of one topic are sent together.
    pub(crate) topic: &'a str,
    /// Its partition.
    pub(crate) partition: i32,
    /// The next offset to be read.
    pub(crate) offset: i64,
    /// Leader epoch of the last record read, -1 unknown.
    pub(crate) leader_epoch: i32,
    /// A text for the member that goes on from there.
    pub(crate) metadata: &'a str,
}

/// On whose behalf offsets are committed: what the group's coordinator checks them against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupMember<'a> {
    /// `group.id`.
    pub(crate) group: &'a str,
    /// Generation of the group; -1 outside of group management.
    pub(crate) generation: i32,
    /// The member's id; empty outside of group management.
    pub(crate) member: &'a str,
    /// `group.instance.id`, for a static member.
    pub(crate) instance: Option<&'a str>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where topic and metadata are in the text, one behind the other.
    start: usize,
    topic: usize,
    metadata: usize,
    partition: i32,
    offset: i64,
    leader_epoch: i32,
}

/// The offsets of the open transaction.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    text: String,
    entries: Vec<Entry>,
    group: String,
    member: String,
    instance: String,
    has_instance: bool,
    generation: i32,
    /// How many of the entries are acknowledged.
    done: usize,
    /// Whether the transaction's coordinator knows the group (version 1).
    pub(super) added: bool,
}

fn within(what: &'static str, bytes: usize, most: usize) -> Result<(), TxnError> {
    if bytes > most { Err(TxnError::TooLong { what, bytes, most }) } else { Ok(()) }
}

/// Refuses a text that requests have no room for.
pub(super) fn check_id(what: &'static str, text: &str) -> Result<(), TxnError> {
    within(what, text.len(), MOST_ID)
}

impl Offsets {
    /// Forgets the offsets, at the beginning of a transaction and when one is aborted. The group stays, and so does
    /// what is known of its coordinator.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
        self.done = 0;
        self.added = false;
    }

    /// Whether offsets wait to be sent.
    pub(super) fn is_pending(&self) -> bool {
        self.done < self.entries.len()
    }

    /// Stages offsets; after an error nothing of them is staged.
    pub(super) fn stage<'a>(
        &mut self,
        who: &GroupMember<'_>,
        offsets: impl Iterator<Item = TxnOffset<'a>>,
    ) -> Result<(), TxnError> {
        check_id("a group.id", who.group)?;
        check_id("a member id", who.member)?;
        check_id("a group.instance.id", who.instance.unwrap_or_default())?;
        if self.group != who.group {
            if self.is_pending() {
                return Err(TxnError::AnotherGroup);
            }
            self.added = false;
            self.group.clear();
            self.group.push_str(who.group);
        }
        self.member.clear();
        self.member.push_str(who.member);
        self.instance.clear();
        self.instance.push_str(who.instance.unwrap_or_default());
        self.has_instance = who.instance.is_some();
        self.generation = who.generation;
        let (text, entries) = (self.text.len(), self.entries.len());
        let staged = self.extend(offsets);
        if staged.is_err() {
            self.text.truncate(text);
            self.entries.truncate(entries);
        }
        staged
    }

    fn extend<'a>(&mut self, offsets: impl Iterator<Item = TxnOffset<'a>>) -> Result<(), TxnError> {
        for given in offsets {
            within("a topic's name", given.topic.len(), MOST_TOPIC)?;
            within("an offset's metadata", given.metadata.len(), MOST_METADATA)?;
            if self.entries.len() >= MOST_OFFSETS {
                return Err(TxnError::TooManyOffsets { most: MOST_OFFSETS });
            }
            let start = self.text.len();
            self.text.push_str(given.topic);
            self.text.push_str(given.metadata);
            let TxnOffset { partition, offset, leader_epoch, .. } = given;
            let (topic, metadata) = (given.topic.len(), given.metadata.len());
            self.entries.push(Entry { start, topic, metadata, partition, offset, leader_epoch });
        }
        Ok(())
    }

    /// On whose behalf the offsets are committed.
    pub(super) fn who(&self) -> GroupMember<'_> {
        GroupMember {
            group: &self.group,
            generation: self.generation,
            member: &self.member,
            instance: self.has_instance.then_some(&*self.instance),
        }
    }

    /// Which entries the next request takes, if its offsets may have `bytes` bytes.
    pub(super) fn next_chunk(&self, bytes: usize) -> Range<usize> {
        let (mut end, mut used) = (self.done, 0);
        for entry in self.entries.get(self.done..).unwrap_or_default() {
            // Numbers, lengths and tags: at most 32 bytes for the partition, 16 for a topic.
            used += entry.topic + entry.metadata + 48;
            if used > bytes && end > self.done {
                break;
            }
            end += 1;
        }
        self.done..end
    }

    /// The entries of a chunk.
    pub(super) fn chunk(&self, chunk: Range<usize>) -> impl Iterator<Item = TxnOffset<'_>> {
        self.entries.get(chunk).unwrap_or_default().iter().map(|entry| {
            let metadata = entry.start + entry.topic;
            let Entry { partition, offset, leader_epoch, .. } = *entry;
            TxnOffset {
                topic: self.text.get(entry.start..metadata).unwrap_or_default(),
                partition,
                offset,
                leader_epoch,
                metadata: self.text.get(metadata..metadata + entry.metadata).unwrap_or_default(),
            }
        })
    }

    /// The entries before `end` are acknowledged.
    pub(super) fn acknowledged(&mut self, end: usize) {
        self.done = self.done.max(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: GroupMember<'static> = GroupMember { group: "g", generation: 4, member: "m", instance: Some("i") };

    fn offset(topic: &str, partition: i32) -> TxnOffset<'_> {
        TxnOffset { topic, partition, offset: 10 + i64::from(partition), leader_epoch: 2, metadata: "note" }
    }

    #[test]
    fn offsets_are_sent_in_chunks_and_each_once() {
        let mut offsets = Offsets::default();
        offsets.stage(&WHO, (0..10).map(|p| offset("words", p))).unwrap();
        assert_eq!(offsets.who(), WHO);
        let mut seen = Vec::new();
        while offsets.is_pending() {
            let chunk = offsets.next_chunk(200);
            assert_eq!(chunk.len(), if chunk.start == 9 { 1 } else { 3 });
            seen.extend(offsets.chunk(chunk.clone()).map(|o| (o.topic.to_owned(), o.partition, o.metadata.to_owned())));
            offsets.acknowledged(chunk.end);
        }
        let expected: Vec<_> = (0..10).map(|p| ("words".to_owned(), p, "note".to_owned())).collect();
        assert_eq!(seen, expected);
        // One that exceeds the room travels alone.
        offsets.clear();
        offsets.stage(&WHO, [offset("words", 0), offset("words", 1)].into_iter()).unwrap();
        assert_eq!(offsets.next_chunk(1), 0..1);
    }

    #[test]
    fn what_does_not_fit_is_refused_whole() {
        let mut offsets = Offsets::default();
        let long = "x".repeat(4_097);
        let refused =
            offsets.stage(&WHO, [offset("a", 0), TxnOffset { metadata: &long, ..offset("a", 1) }].into_iter());
        assert_eq!(refused, Err(TxnError::TooLong { what: "an offset's metadata", bytes: 4_097, most: 4_096 }));
        assert!(!offsets.is_pending());
        let refused = offsets.stage(&WHO, (0..16_385).map(|p| offset("a", p)));
        assert_eq!(refused, Err(TxnError::TooManyOffsets { most: 16_384 }));
        assert!(!offsets.is_pending());
        offsets.stage(&WHO, [offset("a", 0)].into_iter()).unwrap();
        let other = GroupMember { group: "h", ..WHO };
        assert_eq!(offsets.stage(&other, std::iter::empty()), Err(TxnError::AnotherGroup));
        offsets.acknowledged(1);
        offsets.added = true;
        offsets.stage(&other, [offset("a", 0)].into_iter()).unwrap();
        assert!(offsets.is_pending() && !offsets.added);
    }
}
