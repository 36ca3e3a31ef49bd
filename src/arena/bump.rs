//! A bump arena with a hard limit: one chunk, taken at the start, used again after each reset.
use bumpalo::Bump;

/// The arena has no room for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{needed} bytes do not fit the thread's arena of {limit} bytes; raise the memory line or share less of it")]
pub(crate) struct ArenaFull {
    /// Bytes asked for.
    pub(crate) needed: usize,
    /// Bytes of the whole arena.
    pub(crate) limit: usize,
}

/// Memory for what lives until the end of a turn: decoded temporaries, copies of waiting records, descriptors.
/// Values are not dropped, so only those without a `Drop` may go in.
#[derive(Debug)]
pub(crate) struct Arena {
    bump: Bump,
    limit: usize,
}

impl Arena {
    /// Bytes of the chunk that the bump allocator itself and the rounding to its chunk sizes may take.
    const OVERHEAD: usize = 128;

    /// Takes at most `bytes`, all at once; the memory is touched only when used.
    pub(crate) fn new(bytes: usize) -> Self {
        let _scope = super::batch();
        let bump = Bump::with_capacity(bytes.saturating_sub(Self::OVERHEAD));
        // No second chunk, ever.
        bump.set_allocation_limit(Some(bump.allocated_bytes()));
        Self { limit: bump.chunk_capacity(), bump }
    }

    /// Usable bytes.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.limit - self.bump.chunk_capacity()
    }

    /// Forgets everything. The borrow checker sees to it that nothing points inside any more.
    pub(crate) fn reset(&mut self) {
        self.bump.reset();
    }

    /// A copy of these bytes.
    pub(crate) fn alloc_bytes(&self, bytes: &[u8]) -> Result<&[u8], ArenaFull> {
        self.alloc_slice(bytes)
    }

    /// A copy of this text.
    pub(crate) fn alloc_str(&self, text: &str) -> Result<&str, ArenaFull> {
        self.bump.try_alloc_str(text).map(|s| &*s).map_err(|_| self.full(text.len()))
    }

    /// A copy of these values.
    pub(crate) fn alloc_slice<T: Copy>(&self, values: &[T]) -> Result<&[T], ArenaFull> {
        let copy = self.bump.try_alloc_slice_copy(values).map_err(|_| self.full(size_of_val(values)))?;
        Ok(copy)
    }

    /// `len` zero bytes to fill.
    pub(crate) fn alloc_zeroed(&self, len: usize) -> Result<&mut [u8], ArenaFull> {
        self.bump.try_alloc_slice_fill_copy(len, 0).map_err(|_| self.full(len))
    }

    fn full(&self, needed: usize) -> ArenaFull {
        ArenaFull { needed, limit: self.limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_hard_and_a_reset_gives_everything_back() {
        for bytes in [4_096, 65_536, 1 << 20] {
            let mut arena = Arena::new(bytes);
            assert!(arena.bump.allocated_bytes_including_metadata() <= bytes, "{bytes}");
            assert!(arena.limit() >= bytes - 4_096, "{bytes}");
            for _ in 0..3 {
                let mut count = 0;
                while arena.alloc_bytes(&[7; 64]).is_ok() {
                    count += 1;
                }
                assert_eq!(count, arena.limit() / 64);
                assert_eq!(arena.alloc_bytes(&[0; 64]), Err(ArenaFull { needed: 64, limit: arena.limit() }));
                arena.reset();
                assert_eq!(arena.used(), 0);
            }
            assert!(arena.bump.allocated_bytes_including_metadata() <= bytes, "no chunk was added");
        }
    }

    #[test]
    fn copies_keep_their_bytes_next_to_each_other() {
        let arena = Arena::new(4_096);
        let (one, two) = (arena.alloc_bytes(b"one").unwrap(), arena.alloc_str("zwei").unwrap());
        let rest = arena.alloc_zeroed(5).unwrap();
        rest[0] = 1;
        assert_eq!((one, two, &*rest), (&b"one"[..], "zwei", &[1, 0, 0, 0, 0][..]));
    }
}
