//! The process's one contiguous buffer for a frame or batch that no pooled buffer can hold.
use std::sync::{Arc, Mutex, PoisonError};

/// Why the oversize buffer cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OversizeError {
    /// It never will: it is smaller than that (0: the plan has none).
    TooSmall {
        /// Its size in bytes.
        have: usize,
    },
    /// Another thread has it; ask again later.
    Busy,
}

/// Handle of the process's oversize buffer, shared by the frame pools. One user at a time.
#[derive(Debug, Clone)]
pub(crate) struct Oversize {
    bytes: usize,
    buffer: Arc<Mutex<Option<Box<[u8]>>>>,
}

impl Oversize {
    /// Takes the memory; it is touched only when used.
    pub(crate) fn new(bytes: usize) -> Self {
        let _scope = super::batch();
        Self { bytes, buffer: Arc::new(Mutex::new(Some(vec![0; bytes].into_boxed_slice()))) }
    }

    /// A process without an oversize buffer.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self::new(0)
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn take(&self, needed: usize) -> Result<Box<[u8]>, OversizeError> {
        if needed > self.bytes {
            return Err(OversizeError::TooSmall { have: self.bytes });
        }
        let mut place = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        place.take().ok_or(OversizeError::Busy)
    }

    pub(super) fn put(&self, buffer: Box<[u8]>) {
        *self.buffer.lock().unwrap_or_else(PoisonError::into_inner) = Some(buffer);
    }
}
