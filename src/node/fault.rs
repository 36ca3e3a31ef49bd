//! What can go wrong in a step: one byte that travels, and a cell where the details wait.
//!
//! Bound: the cell holds one set of details; text in it has a fixed size.
use crate::base::id::{NodeId, StoreId};
use crate::base::limits::MAX_TOPIC_NAME;
use crate::codec::{DecodeError, ScratchFull, Side};
use crate::node::{BoxError, NoRoom};
use crate::store::error::StoreError;
use std::cell::{Cell, RefCell};
use std::fmt::{self, Write as _};

/// Why a step did not end well. The details are parked in the [`FaultCell`], so that a [`Flow`] travels in a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Fault {
    /// The record's bytes were refused by a source's codec: the deserialization handler decides.
    Decode,
    /// The user's code answered an error.
    User,
    /// The port could not take a record for a topic.
    Produce,
    /// A store or the bytes in it.
    Store,
    /// A record or a value is larger than its row.
    TooLarge,
}

/// How a step ended.
pub(crate) type Flow = Result<(), Fault>;

/// Text of at most `N` bytes, cut at the end.
#[derive(Clone, Copy)]
pub(crate) struct ShortText<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> ShortText<N> {
    pub(crate) fn new(text: &str) -> Self {
        let mut short = Self { bytes: [0; N], len: 0 };
        let _ = short.write_str(text);
        short
    }

    pub(crate) fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or("")
    }
}

impl<const N: usize> fmt::Write for ShortText<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut end = text.len().min(N - self.len);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        if let (Some(to), Some(from)) = (self.bytes.get_mut(self.len..self.len + end), text.as_bytes().get(..end)) {
            to.copy_from_slice(from);
            self.len += end;
        }
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for ShortText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The details of a fault. Displayed only when somebody asks.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // one a thread, parked in place so that nothing is allocated
pub(crate) enum Parked {
    /// With [`Fault::Decode`].
    Decode {
        /// The record's topic.
        topic: ShortText<MAX_TOPIC_NAME>,
        /// Its partition.
        partition: u32,
        /// Its offset.
        offset: i64,
        /// Which part was refused.
        side: Side,
        /// Why.
        error: DecodeError,
    },
    /// With [`Fault::User`].
    User {
        /// The operator whose closure it was.
        node: NodeId,
        /// What it answered.
        error: BoxError,
    },
    /// With [`Fault::Store`].
    Store {
        /// The store.
        store: StoreId,
        /// What the backend said.
        error: StoreError,
    },
    /// With [`Fault::Store`]: bytes in a store that its codec does not read.
    Stored {
        /// The store.
        store: StoreId,
        /// Key or value.
        side: Side,
        /// Why.
        error: DecodeError,
    },
    /// With [`Fault::TooLarge`].
    TooLarge {
        /// The operator that encoded.
        node: NodeId,
        /// What was needed and what there is.
        full: ScratchFull,
    },
    /// With [`Fault::TooLarge`]: an arena is full.
    NoRoom {
        /// The operator whose closure it was.
        node: NodeId,
        /// How large the arena is.
        error: NoRoom,
    },
    /// With [`Fault::TooLarge`]: updates wait in a buffer that may hold no more.
    BufferFull {
        /// The operator whose buffer it is.
        node: NodeId,
        /// How full it is.
        fill: crate::node::ops::Fill,
    },
}

/// Where a fault happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spot {
    Node(NodeId),
    Store(StoreId),
}

impl Parked {
    /// The operator or the store where it happened.
    pub(crate) fn spot(&self) -> Option<Spot> {
        match self {
            Self::User { node, .. }
            | Self::TooLarge { node, .. }
            | Self::NoRoom { node, .. }
            | Self::BufferFull { node, .. } => Some(Spot::Node(*node)),
            Self::Store { store, .. } | Self::Stored { store, .. } => Some(Spot::Store(*store)),
            Self::Decode { .. } => None,
        }
    }
}

impl fmt::Display for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode { side, error, .. } => write!(f, "{side}: {error}"),
            Self::User { error, .. } => write!(f, "{error}"),
            Self::Store { error, .. } => write!(f, "{error}"),
            Self::Stored { side, error, .. } => {
                write!(f, "a stored {side} is not what its codec reads: {error}")
            }
            Self::TooLarge { full, .. } => write!(f, "{full}"),
            Self::NoRoom { error, .. } => write!(f, "{error}"),
            Self::BufferFull { fill, .. } => {
                write!(f, "the buffer is full: {} updates in {} bytes wait", fill.records, fill.bytes)
            }
        }
    }
}

/// Where a fault's details wait until the task looks. One a thread.
#[derive(Debug, Default)]
pub(crate) struct FaultCell {
    parked: RefCell<Option<Parked>>,
    partition: Cell<Option<u32>>,
}

impl FaultCell {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Keeps the details, unless some are there already, and answers the fault.
    #[cold]
    pub(crate) fn park(&self, fault: Fault, details: Parked) -> Fault {
        self.parked.borrow_mut().get_or_insert(details);
        fault
    }

    /// A drain works on another partition than the context says; told before it forwards.
    #[inline]
    pub(crate) fn at_partition(&self, partition: u32) {
        self.partition.set(Some(partition));
    }

    /// Takes the details and the partition of the entry that was being drained, if one was.
    pub(crate) fn take(&self) -> (Option<Parked>, Option<u32>) {
        (self.parked.borrow_mut().take(), self.partition.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_one_byte() {
        assert_eq!(size_of::<Flow>(), 1);
    }

    #[test]
    fn the_first_details_are_kept_and_taken_once() {
        let cell = FaultCell::new();
        let first = Parked::Store { store: StoreId(3), error: StoreError::Corrupt { message: "x".into() } };
        assert_eq!(cell.park(Fault::Store, first), Fault::Store);
        let node = NodeId(1);
        cell.park(Fault::TooLarge, Parked::TooLarge { node, full: ScratchFull { needed: 2, limit: 1 } });
        cell.at_partition(7);
        assert!(matches!(cell.take(), (Some(Parked::Store { store: StoreId(3), .. }), Some(7))));
        assert!(matches!(cell.take(), (None, None)));
    }

    #[test]
    fn text_is_cut_at_a_character() {
        assert_eq!(ShortText::<4>::new("abécd").as_str(), "abé");
        assert_eq!(ShortText::<3>::new("abécd").as_str(), "ab");
    }
}
