//! The frame pool of one thread: fetch responses and decompressed batches live in its buffers.
//!
//! A buffer is in one of three hands: the pool's (free), a writer's ([`FrameBuf`], moved out of the pool), or the
//! readers' (sealed: found by [`FrameId`], counted). The count falls to zero and the buffer is free again. One buffer
//! or more are reserved: [`FramePool::take`] leaves them, so that a task that waits for one partition can always get
//! its record while the others' records fill the rest.
use super::{Oversize, OversizeError};
use std::ops::Range;

/// Name of a sealed frame in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameId(u16);

impl FrameId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A buffer in the hands of a writer. It must be sealed or put back: one that is dropped is missing in its pool.
#[must_use]
#[derive(Debug)]
pub(crate) struct FrameBuf {
    id: FrameId,
    bytes: Box<[u8]>,
}

impl FrameBuf {
    /// The whole buffer.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The whole buffer, to write into.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Length in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

#[derive(Debug, Default)]
struct Place {
    /// Present when free or sealed.
    bytes: Option<Box<[u8]>>,
    /// Readers of a sealed frame; 0 when free or with a writer.
    refs: u32,
    /// Bytes of a sealed frame that are written.
    len: usize,
}

impl Place {
    fn split(&mut self) -> (&[u8], &mut [u8]) {
        match self {
            Place { bytes: Some(bytes), refs: 1.., len } => {
                let (written, room) = bytes.split_at_mut((*len).min(bytes.len()));
                (written, room)
            }
            _ => (&[], &mut []),
        }
    }
}

/// The frames of one thread.
#[derive(Debug)]
pub(crate) struct FramePool {
    /// The pooled buffers, and in the last place the oversize buffer while this pool has it.
    places: Vec<Place>,
    free: Vec<FrameId>,
    frame_bytes: usize,
    reserved: usize,
    oversize: Oversize,
    module: plimsoll_alloc::Module,
    refused: u64,
}

impl FramePool {
    /// Most frames of one pool.
    pub(crate) const MAX_FRAMES: usize = 4_096;

    /// Makes `frames` buffers of `frame_bytes` (at most [`Self::MAX_FRAMES`]), the last `reserved` of which only
    /// [`Self::take_reserved`] hands out. The memory is touched only when used.
    pub(crate) fn new(frames: usize, frame_bytes: usize, reserved: usize, oversize: Oversize) -> Self {
        Self::new_in(plimsoll_alloc::Module::Batch, frames, frame_bytes, reserved, oversize)
    }

    /// The same with buffers that belong to `module`: the restore thread's have a row of their own.
    pub(crate) fn new_in(
        module: plimsoll_alloc::Module,
        frames: usize,
        frame_bytes: usize,
        reserved: usize,
        oversize: Oversize,
    ) -> Self {
        let _scope = plimsoll_alloc::scope(module);
        let frames = frames.min(Self::MAX_FRAMES);
        let buffer = || Place { bytes: Some(vec![0; frame_bytes].into_boxed_slice()), refs: 0, len: 0 };
        let mut places: Vec<_> = (0..frames).map(|_| buffer()).collect();
        places.push(Place::default());
        // Later ones first: the lowest buffers are used most and stay warm.
        let free = (0..frames).rev().filter_map(|i| u16::try_from(i).ok()).map(FrameId).collect();
        Self { places, free, frame_bytes, reserved: reserved.min(frames), oversize, module, refused: 0 }
    }

    /// Whose memory the buffers are; what belongs to them, like contexts that fill them, is its too.
    pub(crate) fn module(&self) -> plimsoll_alloc::Module {
        self.module
    }

    /// Bytes of a buffer.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Number of pooled buffers.
    pub(crate) fn frames(&self) -> usize {
        self.places.len() - 1
    }

    /// Buffers among them that only [`Self::take_reserved`] hands out.
    pub(crate) fn reserved(&self) -> usize {
        self.reserved
    }

    /// Buffers that [`Self::take`] would hand out now.
    pub(crate) fn free(&self) -> usize {
        self.free.len().saturating_sub(self.reserved)
    }

    /// Bytes of the process's oversize buffer.
    pub(crate) fn oversize_bytes(&self) -> usize {
        self.oversize.bytes()
    }

    /// A free buffer, if one is left beside the reserve.
    pub(crate) fn take(&mut self) -> Option<FrameBuf> {
        if self.free() == 0 {
            self.refused += 1;
            return None;
        }
        self.take_reserved()
    }

    /// How often no buffer was left beside the reserve: what was to be read stayed with the broker.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// A free buffer, also out of the reserve: for the partition that a waiting task needs.
    pub(crate) fn take_reserved(&mut self) -> Option<FrameBuf> {
        let id = self.free.pop()?;
        let bytes = self.places[id.index()].bytes.take()?;
        Some(FrameBuf { id, bytes })
    }

    /// The process's oversize buffer, for something of `needed` bytes.
    pub(crate) fn take_oversize(&mut self, needed: usize) -> Result<FrameBuf, OversizeError> {
        let bytes = self.oversize.take(needed)?;
        Ok(FrameBuf { id: self.oversize_id(), bytes })
    }

    /// Gives a buffer back unused.
    pub(crate) fn put_back(&mut self, buf: FrameBuf) {
        if buf.id == self.oversize_id() {
            self.oversize.put(buf.bytes);
        } else {
            self.places[buf.id.index()].bytes = Some(buf.bytes);
            self.free.push(buf.id);
        }
    }

    /// Turns a buffer with `len` written bytes into a frame with one reader.
    pub(crate) fn seal(&mut self, buf: FrameBuf, len: usize) -> FrameId {
        let place = &mut self.places[buf.id.index()];
        place.len = len.min(buf.bytes.len());
        place.bytes = Some(buf.bytes);
        place.refs = 1;
        buf.id
    }

    /// One more reader.
    pub(crate) fn retain(&mut self, id: FrameId) {
        let place = &mut self.places[id.index()];
        debug_assert!(place.refs > 0, "a frame without readers cannot get another one");
        place.refs += 1;
    }

    /// One reader less; after the last one the buffer is free again.
    pub(crate) fn release(&mut self, id: FrameId) {
        let oversize = id == self.oversize_id();
        let place = &mut self.places[id.index()];
        debug_assert!(place.refs > 0, "a frame was released more often than it was handed out");
        let Some(left) = place.refs.checked_sub(1) else { return };
        place.refs = left;
        if left > 0 {
            return;
        }
        if !oversize {
            self.free.push(id);
        } else if let Some(bytes) = place.bytes.take() {
            self.oversize.put(bytes);
        }
    }

    /// Readers of a frame; 0 when it is not sealed.
    pub(crate) fn refs(&self, id: FrameId) -> u32 {
        self.places[id.index()].refs
    }

    /// The written bytes of a sealed frame. Empty for a frame that is not sealed.
    pub(crate) fn bytes(&self, id: FrameId) -> &[u8] {
        match &self.places[id.index()] {
            Place { bytes: Some(bytes), refs: 1.., len } => bytes.get(..*len).unwrap_or_default(),
            _ => &[],
        }
    }

    /// The written bytes of one sealed frame and the room behind those of another, or of the same one: what
    /// decompression needs. What is then written becomes part of the frame by [`Self::extend`]. Empty for frames that
    /// are not sealed.
    pub(crate) fn split(&mut self, from: FrameId, into: FrameId) -> (&[u8], &mut [u8]) {
        if from == into {
            return self.places[from.index()].split();
        }
        match self.places.get_disjoint_mut([from.index(), into.index()]) {
            Ok([from, into]) => (from.split().0, into.split().1),
            Err(_) => (&[], &mut []),
        }
    }

    /// Bytes that a sealed frame has room for behind what is written.
    pub(crate) fn room(&self, id: FrameId) -> usize {
        let place = &self.places[id.index()];
        place.bytes.as_ref().map_or(0, |bytes| bytes.len() - place.len)
    }

    /// Adds `more` bytes that were written behind the frame's end, and answers where they lie in it.
    pub(crate) fn extend(&mut self, id: FrameId, more: usize) -> Range<usize> {
        let more = more.min(self.room(id));
        let place = &mut self.places[id.index()];
        let start = place.len;
        place.len += more;
        start..place.len
    }

    /// Place of the oversize buffer: behind the pooled ones.
    pub(crate) fn oversize_id(&self) -> FrameId {
        // MAX_FRAMES is below u16::MAX.
        FrameId(u16::try_from(self.frames()).unwrap_or(u16::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(oversize: usize) -> FramePool {
        FramePool::new(3, 16, 1, Oversize::new(oversize))
    }

    #[test]
    fn the_reserve_is_left_for_those_who_ask_for_it() {
        let mut pool = pool(0);
        assert_eq!(pool.free(), 2);
        let (first, second) = (pool.take().unwrap(), pool.take().unwrap());
        assert!(pool.take().is_none());
        let reserved = pool.take_reserved().unwrap();
        assert!(pool.take_reserved().is_none());
        pool.put_back(first);
        assert!(pool.take().is_none(), "the first one back fills the reserve");
        pool.put_back(second);
        assert_eq!(pool.free(), 1);
        pool.put_back(reserved);
        assert_eq!(pool.free(), 2);
    }

    #[test]
    fn a_frame_is_free_again_after_its_last_reader() {
        let mut pool = pool(0);
        let mut buf = pool.take().unwrap();
        buf.bytes_mut()[..5].copy_from_slice(b"hello");
        let id = pool.seal(buf, 5);
        pool.retain(id);
        assert_eq!((pool.bytes(id), pool.room(id)), (&b"hello"[..], 11));
        pool.release(id);
        assert_eq!((pool.free(), pool.bytes(id)), (1, &b"hello"[..]));
        pool.release(id);
        assert_eq!((pool.free(), pool.bytes(id)), (2, &[][..]));
    }

    #[test]
    fn the_oversize_buffer_has_one_user_in_the_process() {
        let shared = Oversize::new(64);
        let mut one = FramePool::new(2, 16, 1, shared.clone());
        let mut two = FramePool::new(2, 16, 1, shared);
        assert_eq!(one.take_oversize(65).unwrap_err(), OversizeError::TooSmall { have: 64 });
        let buf = one.take_oversize(17).unwrap();
        assert_eq!(buf.capacity(), 64);
        assert_eq!(two.take_oversize(17).unwrap_err(), OversizeError::Busy);
        let id = one.seal(buf, 20);
        assert_eq!((one.bytes(id).len(), one.room(id)), (20, 44));
        one.release(id);
        assert_eq!((one.free(), one.bytes(id).len()), (1, 0));
        let buf = two.take_oversize(64).unwrap();
        two.put_back(buf);
        assert!(one.take_oversize(64).is_ok());
    }

    #[test]
    fn one_frame_is_read_while_another_or_its_own_rest_is_written() {
        let mut pool = pool(0);
        let mut buf = pool.take().unwrap();
        buf.bytes_mut()[..3].copy_from_slice(b"abc");
        let from = pool.seal(buf, 3);
        let into = pool.take().map(|buf| pool.seal(buf, 0)).unwrap();
        for frame in [into, from] {
            let (read, write) = pool.split(from, frame);
            write[..2].copy_from_slice(&read[1..]);
            let range = pool.extend(frame, 2);
            assert_eq!(&pool.bytes(frame)[range], b"bc");
        }
        assert_eq!((pool.bytes(into), pool.bytes(from)), (&b"bc"[..], &b"abcbc"[..]));
        assert_eq!(pool.extend(into, 100), 2..16, "never beyond the buffer");
    }
}
