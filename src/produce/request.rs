//! A request on its way: the pieces of its head, and between them the batches, which are sent from where they were
//! built.
//!
//! Requests are pooled with their connection. Bound: [`HEAD_BYTES`] for the pieces; at most one batch a partition.
use super::pool::{BatchId, BatchPool};
use super::txn::Step;
use std::io::IoSlice;

/// Room for everything of a request but the batches.
pub(super) const HEAD_BYTES: usize = 8 << 10;
/// Pieces handed to the system at a time.
pub(super) const PIECES: usize = 64;

/// What a request asks, which tells how its answer is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The versions that the broker speaks.
    Versions,
    /// The producer's identity.
    Identity,
    /// To write batches.
    Batches,
    /// A step of a transaction.
    Transaction(Step),
}

/// One request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) kind: Kind,
    /// The version of its API, in which the answer comes.
    pub(super) version: i16,
    /// All but the batches.
    pub(super) head: Vec<u8>,
    /// Where in `head` the batches belong, ascending; one position for each.
    pub(super) cuts: Vec<usize>,
    pub(super) batches: Vec<BatchId>,
    /// Bytes of the batches.
    pub(super) bytes: usize,
    pub(super) sent_ms: i64,
    /// The piece that leaves next: even ones are of `head`, odd ones are batches.
    piece: usize,
    /// How much of it has left.
    offset: usize,
}

impl Request {
    /// An empty request for up to `batches` batches.
    pub(super) fn new(batches: usize) -> Self {
        Self {
            kind: Kind::Batches,
            version: 0,
            head: Vec::with_capacity(HEAD_BYTES),
            cuts: Vec::with_capacity(batches),
            batches: Vec::with_capacity(batches),
            bytes: 0,
            sent_ms: 0,
            piece: 0,
            offset: 0,
        }
    }

    /// Empties it.
    pub(super) fn clear(&mut self) {
        self.head.clear();
        self.cuts.clear();
        self.batches.clear();
        self.bytes = 0;
        self.piece = 0;
        self.offset = 0;
    }

    fn pieces(&self) -> usize {
        2 * self.batches.len() + 1
    }

    fn piece<'a>(&'a self, pool: &'a BatchPool, index: usize) -> &'a [u8] {
        let at = index / 2;
        let piece = match index % 2 {
            0 => {
                let from = at.checked_sub(1).and_then(|before| self.cuts.get(before)).copied().unwrap_or(0);
                let to = self.cuts.get(at).copied().unwrap_or(self.head.len());
                self.head.get(from..to)
            }
            _ => self.batches.get(at).and_then(|id| pool.get(*id)).and_then(|b| b.bytes.get(..b.builder.len())),
        };
        piece.unwrap_or_default()
    }

    /// Whether all of it has left.
    pub(super) fn is_sent(&self) -> bool {
        self.piece >= self.pieces()
    }

    /// Whether any of it has left.
    pub(super) fn is_begun(&self) -> bool {
        self.piece > 0 || self.offset > 0
    }

    /// Fills `into` with what leaves next, and answers how many slices that are.
    pub(super) fn gather<'a>(&'a self, pool: &'a BatchPool, into: &mut [IoSlice<'a>; PIECES]) -> usize {
        let mut skip = self.offset;
        let mut used = 0;
        for (slot, index) in into.iter_mut().zip(self.piece..self.pieces()) {
            *slot = IoSlice::new(self.piece(pool, index).get(skip..).unwrap_or_default());
            skip = 0;
            used += 1;
        }
        used
    }

    /// Notes that `bytes` more have left.
    pub(super) fn advance(&mut self, pool: &BatchPool, bytes: usize) {
        let mut left = bytes;
        while !self.is_sent() {
            let rest = self.piece(pool, self.piece).len().saturating_sub(self.offset);
            if left < rest {
                self.offset += left;
                return;
            }
            left -= rest;
            self.piece += 1;
            self.offset = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::produce::partition::PartitionId;
    use crate::produce::topics::OutTopic;
    use crate::wire::RawHeaders;

    /// However the system cuts the writes, the bytes are the head's pieces with the batches between them.
    #[test]
    fn pieces_and_batches_leave_in_order_whatever_the_socket_takes() {
        let mut pool = BatchPool::new(128, 40, 0).unwrap();
        let mut request = Request::new(40);
        let mut expected = Vec::new();
        for index in 0..40u8 {
            let id = pool.take().unwrap();
            let batch = pool.get_mut(id).unwrap();
            batch.open(PartitionId { topic: OutTopic(0), partition: 0 }, 0, 0);
            let value = [index; 30];
            let bytes = &mut batch.bytes;
            batch.builder.append(bytes, 0, None, Some(&value[..index as usize % 30]), RawHeaders::EMPTY).unwrap();
            request.head.extend_from_slice(&[100 + index; 3]);
            request.cuts.push(request.head.len());
            request.batches.push(id);
            expected.extend_from_slice(&[100 + index; 3]);
            expected.extend_from_slice(&batch.bytes[..batch.builder.len()]);
        }
        request.head.push(255);
        expected.push(255);
        for step in [1, 7, 61, 500, usize::MAX] {
            (request.piece, request.offset) = (0, 0);
            let mut got = Vec::new();
            while !request.is_sent() {
                let mut slices = [IoSlice::new(&[]); PIECES];
                let used = request.gather(&pool, &mut slices);
                let all: Vec<u8> = slices[..used].iter().flat_map(|s| s.iter().copied()).collect();
                let taken = all.len().min(step);
                got.extend_from_slice(&all[..taken]);
                request.advance(&pool, taken);
            }
            assert!(got == expected, "{step}");
        }
    }
}
