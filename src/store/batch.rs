//! A batch of operations for the backend, as bytes in one buffer of fixed capacity.
//!
//! Each operation is a kind byte (0 delete, 1 put), the store's number (2 bytes), the lengths of key and value (4 bytes
//! each), the key and the value, all little-endian. The backend walks the bytes once; nothing is allocated after
//! construction. Owned by the thread that commits or restores; its bound is the capacity given at construction.
use super::offset::{OFFSET_KEY_BYTES, OFFSET_VALUE_BYTES, StoredOffset, offset_key};
use crate::base::id::StoreId;

/// Bytes of an operation beside its key and value.
pub(crate) const OP_HEADER_BYTES: usize = 11;
const DELETE: u8 = 0;
const PUT: u8 = 1;

/// The batch has no room for this operation. Write it, clear it and try again; with an empty batch the record is larger
/// than its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the store batch has no room: {needed} of {capacity} bytes would be in use")]
pub(crate) struct BatchFull {
    /// Bytes that the batch would have with the operation.
    pub(crate) needed: usize,
    /// Bytes that it may have.
    pub(crate) capacity: usize,
}

/// One operation of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StoreOp<'a> {
    pub(crate) store: StoreId,
    pub(crate) key: &'a [u8],
    /// `None` deletes.
    pub(crate) value: Option<&'a [u8]>,
}

/// Operations that the backend applies as one.
#[derive(Debug)]
pub(crate) struct StoreBatch {
    bytes: Vec<u8>,
    capacity: usize,
    count: usize,
}

impl StoreBatch {
    /// Bytes that setting an offset takes.
    pub(crate) const OFFSET_OP_BYTES: usize = OP_HEADER_BYTES + OFFSET_KEY_BYTES + OFFSET_VALUE_BYTES;

    /// Bytes that an operation takes.
    pub(crate) fn op_bytes(key: usize, value: usize) -> usize {
        OP_HEADER_BYTES.saturating_add(key).saturating_add(value)
    }

    /// A batch of at most this many bytes, allocated here and never again.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { bytes: Vec::with_capacity(capacity), capacity, count: 0 }
    }

    /// Sets a key (4-byte big-endian partition, then the user's key) to a value.
    pub(crate) fn put(&mut self, store: StoreId, key: &[u8], value: &[u8]) -> Result<(), BatchFull> {
        self.push(PUT, store, &[key], [value, &[]])
    }

    /// As [`put`](Self::put), with key and value in parts, so that a caller need not join them first.
    pub(crate) fn put_parts<const N: usize>(
        &mut self,
        store: StoreId,
        key: [&[u8]; N],
        value: [&[u8]; 2],
    ) -> Result<(), BatchFull> {
        self.push(PUT, store, &key, value)
    }

    /// Deletes a key.
    pub(crate) fn delete(&mut self, store: StoreId, key: &[u8]) -> Result<(), BatchFull> {
        self.push(DELETE, store, &[key], [&[], &[]])
    }

    /// As [`delete`](Self::delete), with the key in parts.
    pub(crate) fn delete_parts<const N: usize>(&mut self, store: StoreId, key: [&[u8]; N]) -> Result<(), BatchFull> {
        self.push(DELETE, store, &key, [&[], &[]])
    }

    /// Sets the changelog offset up to which a partition of a store is complete. In the last slice of a commit.
    pub(crate) fn set_offset(&mut self, store: StoreId, partition: u32, at: &StoredOffset) -> Result<(), BatchFull> {
        self.put(store, &offset_key(partition), &at.encode())
    }

    fn push(&mut self, kind: u8, store: StoreId, key: &[&[u8]], value: [&[u8]; 2]) -> Result<(), BatchFull> {
        let key_len = key.iter().fold(0usize, |len, part| len.saturating_add(part.len()));
        let value_len = value[0].len().saturating_add(value[1].len());
        let needed = (self.bytes.len() + OP_HEADER_BYTES).saturating_add(key_len).saturating_add(value_len);
        let full = BatchFull { needed, capacity: self.capacity };
        if needed > self.capacity {
            return Err(full);
        }
        let (Ok(key_bytes), Ok(value_bytes)) = (u32::try_from(key_len), u32::try_from(value_len)) else {
            return Err(full);
        };
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&store.0.to_le_bytes());
        self.bytes.extend_from_slice(&key_bytes.to_le_bytes());
        self.bytes.extend_from_slice(&value_bytes.to_le_bytes());
        for part in key.iter().chain(&value) {
            self.bytes.extend_from_slice(part);
        }
        self.count += 1;
        Ok(())
    }

    /// Forgets all operations, keeps the buffer.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Bytes in use.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that may be in use.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Number of operations.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The operations as bytes, for the backend.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The operations in the order in which they were made.
    pub(crate) fn iter(&self) -> StoreOps<'_> {
        StoreOps { rest: &self.bytes }
    }
}

/// Iterator over the operations of a [`StoreBatch`].
#[derive(Clone, Debug)]
pub(crate) struct StoreOps<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for StoreOps<'a> {
    type Item = StoreOp<'a>;

    fn next(&mut self) -> Option<StoreOp<'a>> {
        let (head, rest) = self.rest.split_first_chunk::<OP_HEADER_BYTES>()?;
        let [kind, s0, s1, k0, k1, k2, k3, v0, v1, v2, v3] = *head;
        let key_len = usize::try_from(u32::from_le_bytes([k0, k1, k2, k3])).ok()?;
        let value_len = usize::try_from(u32::from_le_bytes([v0, v1, v2, v3])).ok()?;
        let (key, rest) = rest.split_at_checked(key_len)?;
        let (value, rest) = rest.split_at_checked(value_len)?;
        self.rest = rest;
        let store = StoreId(u16::from_le_bytes([s0, s1]));
        Some(StoreOp { store, key, value: (kind == PUT).then_some(value) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: StoreId = StoreId(258);

    #[test]
    fn operations_come_back_in_order_with_their_bytes() {
        let mut batch = StoreBatch::with_capacity(256);
        batch.put_parts(COUNTS, [&[0, 0, 0, 1], b"a"], [b"time", b"one"]).unwrap();
        batch.delete(COUNTS, b"\0\0\0\x01b").unwrap();
        batch.put(StoreId(0), b"\0\0\0\x02c", b"").unwrap();
        let ops: Vec<_> = batch.iter().map(|op| (op.store.0, op.key.to_vec(), op.value.map(<[u8]>::to_vec))).collect();
        assert_eq!(
            ops,
            [
                (258, b"\0\0\0\x01a".to_vec(), Some(b"timeone".to_vec())),
                (258, b"\0\0\0\x01b".to_vec(), None),
                (0, b"\0\0\0\x02c".to_vec(), Some(Vec::new())),
            ]
        );
        assert_eq!((batch.count(), batch.len_bytes()), (3, 3 * 11 + 5 + 7 + 5 + 5));
        assert_eq!(batch.as_bytes()[..11], [1, 2, 1, 5, 0, 0, 0, 7, 0, 0, 0]);
    }

    #[test]
    fn a_full_batch_refuses_whole_operations_and_never_grows() {
        let mut batch = StoreBatch::with_capacity(30);
        let before = batch.bytes.as_ptr();
        batch.put(COUNTS, b"12345", b"1234").unwrap();
        assert_eq!(batch.put(COUNTS, b"1", b""), Err(BatchFull { needed: 32, capacity: 30 }));
        assert_eq!((batch.count(), batch.len_bytes()), (1, 20));
        batch.clear();
        batch.put(COUNTS, &[1; 10], &[2; 9]).unwrap();
        assert_eq!(batch.len_bytes(), 30);
        assert_eq!(batch.bytes.as_ptr(), before);
        assert!(!batch.is_empty());
    }
}
