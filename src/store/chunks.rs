//! A growing array that never moves: chunks of a fixed number of elements, so that growing copies nothing and costs one
//! chunk.

/// Elements of a chunk.
pub(crate) const CHUNK: usize = 64;

/// Elements by number, in chunks.
pub(crate) struct Chunks<T> {
    chunks: Vec<Box<[T]>>,
}

impl<T> Chunks<T> {
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    /// Number of elements there is room for; all of them exist.
    pub(crate) fn len(&self) -> u32 {
        (self.chunks.len() * CHUNK) as u32
    }

    /// Bytes of all chunks.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.len() * Self::chunk_bytes()
    }

    /// Bytes by which one more chunk grows.
    pub(crate) const fn chunk_bytes() -> usize {
        CHUNK * size_of::<T>()
    }

    /// Adds a chunk of elements made by `make`.
    pub(crate) fn grow(&mut self, make: impl FnMut() -> T) {
        self.chunks.push(std::iter::repeat_with(make).take(CHUNK).collect());
    }

    /// Drops the last chunk.
    pub(crate) fn pop(&mut self) {
        self.chunks.pop();
    }

    /// An element below [`len`](Self::len).
    #[inline]
    pub(crate) fn at(&self, index: u32) -> &T {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// An element below [`len`](Self::len), to change.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> &mut T {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_stay_where_they_are() {
        let mut chunks = Chunks::new();
        chunks.grow(|| 0u64);
        *chunks.at_mut(63) = 7;
        let address = std::ptr::from_ref(chunks.at(63));
        for _ in 0..100 {
            chunks.grow(|| 1);
        }
        assert_eq!((chunks.len(), *chunks.at(63), *chunks.at(6463)), (6464, 7, 1));
        assert_eq!(std::ptr::from_ref(chunks.at(63)), address);
        assert_eq!(chunks.bytes(), 101 * 64 * 8);
    }
}
