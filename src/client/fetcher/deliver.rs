//! Hands received batches out, one at a time: checksum, control batches, decompression into pooled buffers.
//!
//! A compressed batch is decompressed into the *target*, a pooled frame that takes the sections of several batches in
//! turn; so the frame it was received in is free again as soon as its last batch is decompressed. When there is no
//! buffer for a target, batches wait; nothing is lost and nothing grows.
use super::pending::Pending;
use super::{FetchFault, Fetched, FetchedBatch, Fetcher, Slot};
use crate::arena::{FrameId, OversizeError};
use crate::wire::{BatchHeader, Compression, ControlType, Records, WireError};
use std::ops::Range;

/// What became of the batch in front.
enum Step {
    Batch(FetchedBatch),
    /// It is not for the caller.
    Skipped(BatchHeader),
    /// Nothing (more) to hand out.
    Finished,
    /// No buffer to decompress into.
    Blocked,
}

/// What an entry of the inbox gave.
enum Taken {
    Batch(FetchedBatch),
    /// Nothing for the caller; there may be more.
    Again,
    /// No buffer to decompress into.
    Blocked,
}

/// Where the records of a batch lie.
enum Section {
    At(FrameId, Range<usize>),
    Blocked,
}

impl Fetcher {
    /// The next batch or fault of any partition, in the order of arrival; `None` when there is nothing, or when what
    /// there is waits for a buffer. Call it until then after each [`Self::process`].
    #[allow(dead_code)] // for tests and proofs
    pub(crate) fn next(&mut self) -> Option<Fetched> {
        let mut at = 0;
        while at < self.inbox.queue.len() {
            match self.take(at) {
                Taken::Batch(batch) => return Some(Fetched::Batch(batch)),
                Taken::Again => {}
                // What a task waits for must not stand behind what waits for that task.
                Taken::Blocked if at == 0 => at = self.first_rushed()?,
                Taken::Blocked => return None,
            }
        }
        self.close_unused_target();
        self.next_fault().map(|(slot, fault)| Fetched::Fault { slot, fault })
    }

    /// The next batch of one partition; the others' stay where they are. `None` as for [`Self::next`].
    pub(crate) fn next_batch(&mut self, slot: Slot) -> Option<FetchedBatch> {
        while let Some(at) = self.inbox.queue.iter().position(|pending| pending.slot == slot) {
            match self.take(at) {
                Taken::Batch(batch) => return Some(batch),
                Taken::Again => {}
                Taken::Blocked => return None,
            }
        }
        self.close_unused_target();
        None
    }

    /// The next partition that stands still, and why. Not before all that was received in front of the fault is taken.
    pub(crate) fn next_fault(&mut self) -> Option<(Slot, FetchFault)> {
        let queue = &self.inbox.queue;
        self.slots.take_fault(|slot| queue.iter().any(|pending| pending.slot == slot))
    }

    /// The records of a batch that was handed out, decompressed.
    #[inline]
    pub(crate) fn records_of(&self, batch: &FetchedBatch) -> &[u8] {
        let at = batch.section.start as usize..batch.section.end as usize;
        self.pool.bytes(batch.frame).get(at).unwrap_or_default()
    }

    /// Takes the next batch of an entry of the inbox.
    fn take(&mut self, at: usize) -> Taken {
        let Some(pending) = self.inbox.queue.get(at).cloned() else { return Taken::Blocked };
        let outcome = self.step(&pending);
        // Entries in front may have been given up. This one is the first of its partition.
        let Some(at) = self.inbox.queue.iter().position(|p| p.slot == pending.slot) else { return Taken::Blocked };
        match outcome {
            Ok(Step::Batch(batch)) => {
                self.passed(at, &batch.header);
                self.handed += 1;
                return Taken::Batch(batch);
            }
            Ok(Step::Skipped(header)) => self.passed(at, &header),
            Ok(Step::Finished) => self.drop_at(at),
            Ok(Step::Blocked) => return Taken::Blocked,
            Err(fault) => {
                // What was received behind it is dropped: after a seek it is asked for again.
                self.slots.stop_at_once(pending.slot, fault);
                self.forget_received(pending.slot);
            }
        }
        Taken::Again
    }

    /// The first entry, behind the one in front, of a partition that a task waits for.
    #[allow(dead_code)] // for tests and proofs
    fn first_rushed(&self) -> Option<usize> {
        let rushed = |slot| self.slots.get(slot).is_some_and(|state| state.rush);
        let front = self.inbox.queue.front()?.slot;
        self.inbox.queue.iter().position(|pending| pending.slot != front && rushed(pending.slot))
    }

    fn step(&mut self, front: &Pending) -> Result<Step, FetchFault> {
        match self.slots.get(front.slot) {
            Some(state) if state.life == front.life => {}
            _ => return Ok(Step::Finished),
        }
        let bytes = self.pool.bytes(front.frame).get(front.bytes.clone()).unwrap_or_default();
        let undecodable = |offset| move |error| FetchFault::Undecodable { offset, error };
        let Some(header) = BatchHeader::peek(bytes).map_err(undecodable(front.skip_below))? else {
            return Ok(Step::Finished);
        };
        let undecodable = undecodable(header.base_offset);
        let section = header.section(bytes).map_err(undecodable)?;
        if header.next_offset() <= front.skip_below {
            return Ok(Step::Skipped(header));
        }
        if self.settings.check_crcs {
            header.check_crc(bytes).map_err(undecodable)?;
        }
        if header.is_control() {
            if self.settings.read_committed && ends_in_abort(&header, section).map_err(undecodable)? {
                self.inbox.end_aborted(&front.aborted, header.producer_id, header.base_offset);
            }
            return Ok(Step::Skipped(header));
        }
        let last = header.next_offset() - 1;
        let void = header.is_transactional() && self.inbox.is_aborted(&front.aborted, header.producer_id, last);
        if header.count == 0 || void {
            return Ok(Step::Skipped(header));
        }
        let start = front.bytes.start + header.size - section.len();
        let at = start..start + section.len();
        match self.section(front, &header, at)? {
            Section::Blocked => Ok(Step::Blocked),
            Section::At(frame, section) => Ok(Step::Batch(FetchedBatch {
                slot: front.slot,
                frame,
                section: index(section.start)..index(section.end),
                header,
                skip_below: front.skip_below,
            })),
        }
    }

    /// Finds or makes the readable records of a batch, with a reference for the taker.
    fn section(&mut self, front: &Pending, header: &BatchHeader, at: Range<usize>) -> Result<Section, FetchFault> {
        let undecodable = |error| FetchFault::Undecodable { offset: header.base_offset, error };
        let codec = Compression::from_code(header.codec()).map_err(undecodable)?;
        if codec == Compression::None {
            self.pool.retain(front.frame);
            return Ok(Section::At(front.frame, at));
        }
        self.compressed = true;
        loop {
            let Some((into, fresh)) = self.target_for(front) else { return Ok(Section::Blocked) };
            let (from, room) = self.pool.split(front.frame, into);
            let compressed = from.get(at.clone()).unwrap_or_default();
            let row = room.len();
            match self.decompressor.decompress(codec, compressed, room) {
                Ok(len) => {
                    let section = self.pool.extend(into, len);
                    self.pool.retain(into);
                    return Ok(Section::At(into, section));
                }
                Err(WireError::OutputTooLarge { .. }) if front.frame == self.pool.oversize_id() => {
                    if fresh || into == front.frame {
                        self.close_target();
                        return self.section_behind(front, header, codec, at);
                    }
                    self.close_target();
                }
                Err(WireError::OutputTooLarge { .. }) if into == front.frame => {
                    if self.pool.oversize_bytes() <= self.pool.frame_bytes() {
                        return Ok(Section::Blocked);
                    }
                    return self.section_oversize(front, header, codec, at, row);
                }
                Err(WireError::OutputTooLarge { .. }) if !fresh => self.close_target(),
                Err(WireError::OutputTooLarge { .. }) => {
                    self.close_target();
                    return self.section_oversize(front, header, codec, at, row);
                }
                Err(error) => return Err(undecodable(error)),
            }
        }
    }

    /// Decompresses what no frame can hold into the process's oversize buffer.
    fn section_oversize(
        &mut self,
        front: &Pending,
        header: &BatchHeader,
        codec: Compression,
        at: Range<usize>,
        row: usize,
    ) -> Result<Section, FetchFault> {
        let too_large = |row: usize| FetchFault::TooLarge { offset: header.base_offset, needed: row + 1, row };
        let mut taken = self.pool.take_oversize(row + 1);
        // What waits in it behind this batch would wait for this batch.
        if matches!(taken, Err(OversizeError::Busy)) && self.is_idle(self.pool.oversize_id()) {
            self.give_up_entries(self.pool.oversize_id());
            taken = self.pool.take_oversize(row + 1);
        }
        let mut buf = match taken {
            Ok(buf) => buf,
            Err(OversizeError::Busy) => return Ok(Section::Blocked),
            Err(OversizeError::TooSmall { .. }) => return Err(too_large(row)),
        };
        let compressed = self.pool.bytes(front.frame).get(at).unwrap_or_default();
        let row = buf.capacity();
        match self.decompressor.decompress(codec, compressed, buf.bytes_mut()) {
            Ok(len) => {
                let frame = self.pool.seal(buf, len);
                Ok(Section::At(frame, 0..len))
            }
            Err(error) => {
                self.pool.put_back(buf);
                Err(match error {
                    WireError::OutputTooLarge { .. } => too_large(row),
                    error => FetchFault::Undecodable { offset: header.base_offset, error },
                })
            }
        }
    }

    /// Decompresses what came in the oversize buffer behind itself there: no other place is as large.
    fn section_behind(
        &mut self,
        front: &Pending,
        header: &BatchHeader,
        codec: Compression,
        at: Range<usize>,
    ) -> Result<Section, FetchFault> {
        let offset = header.base_offset;
        let (from, room) = self.pool.split(front.frame, front.frame);
        let row = room.len();
        match self.decompressor.decompress(codec, from.get(at).unwrap_or_default(), room) {
            Ok(len) => {
                let section = self.pool.extend(front.frame, len);
                self.pool.retain(front.frame);
                Ok(Section::At(front.frame, section))
            }
            // Batches before it took of the room: it is fetched again, as the first one.
            Err(WireError::OutputTooLarge { .. }) if front.bytes.start > front.first => {
                let own = self.inbox.queue.iter().position(|pending| pending.slot == front.slot);
                own.inspect(|at| self.give_up_from(*at));
                Ok(Section::Blocked)
            }
            Err(WireError::OutputTooLarge { .. }) => Err(FetchFault::TooLarge { offset, needed: row + 1, row }),
            Err(error) => Err(FetchFault::Undecodable { offset, error }),
        }
    }

    /// A frame to decompress into, and whether nothing is in it yet.
    fn target_for(&mut self, front: &Pending) -> Option<(FrameId, bool)> {
        if let Some(target) = self.target {
            return Some((target, false));
        }
        let mut buf = self.pool.take();
        let rush = front.reserved || self.slots.get(front.slot).is_some_and(|state| state.rush);
        if buf.is_none() && rush {
            buf = self.pool.take_reserved();
        }
        // Without this, frames that wait for a target could be the only ones there are.
        if buf.is_none() && (rush || self.handed == 0) && self.give_up_frame(front.frame) {
            buf = self.pool.take();
        }
        if let Some(buf) = buf {
            let target = self.pool.seal(buf, 0);
            self.target = Some(target);
            return Some((target, true));
        }
        // The last resort of a waiting task: behind the response in its own frame.
        rush.then_some((front.frame, false))
    }

    /// Gives up the batches of one frame that nobody has taken any of yet, to be fetched again, so that the frame is
    /// free. Of the frames but `keep` it is the one received last.
    fn give_up_frame(&mut self, keep: FrameId) -> bool {
        let mut frames = self.inbox.queue.iter().rev().map(|pending| pending.frame);
        let Some(frame) = frames.find(|frame| *frame != keep && self.is_idle(*frame)) else { return false };
        self.give_up_entries(frame);
        true
    }

    /// Whether nobody has taken any batch of a frame that waits.
    fn is_idle(&self, frame: FrameId) -> bool {
        let waiting = self.inbox.queue.iter().filter(|pending| pending.frame == frame).count();
        waiting > 0 && usize::try_from(self.pool.refs(frame)) == Ok(waiting)
    }

    fn give_up_entries(&mut self, frame: FrameId) {
        while let Some(at) = self.inbox.queue.iter().position(|p| p.frame == frame) {
            self.give_up_from(at);
        }
    }

    /// Gives up an entry, and those behind it of the same partition, for order must stay.
    fn give_up_from(&mut self, at: usize) {
        let Some(first) = self.inbox.queue.get(at).cloned() else { return };
        let bytes = self.pool.bytes(first.frame).get(first.bytes.clone()).unwrap_or_default();
        let offset = BatchHeader::peek(bytes).ok().flatten().map_or(first.skip_below, |header| header.base_offset);
        if let Some(state) = self.slots.get_mut(first.slot).filter(|state| state.life == first.life) {
            state.ask = state.ask.wrapping_add(1);
            state.fetch_offset = offset.max(first.skip_below);
            state.last_epoch = -1;
            // A fault behind it will be told of again.
            (state.stopped, state.fault) = (false, None);
        }
        for behind in (at..self.inbox.queue.len()).rev() {
            if self.inbox.queue.get(behind).is_some_and(|p| p.slot == first.slot) {
                self.drop_at(behind);
            }
        }
    }

    /// The first batch of an entry is dealt with.
    fn passed(&mut self, at: usize, header: &BatchHeader) {
        let Some(pending) = self.inbox.queue.get_mut(at) else { return };
        pending.bytes.start = pending.bytes.end.min(pending.bytes.start + header.size);
        let (slot, life, empty) = (pending.slot, pending.life, pending.bytes.is_empty());
        if let Some(state) = self.slots.get_mut(slot).filter(|state| state.life == life) {
            state.position = state.position.max(header.next_offset());
            state.rush = false;
        }
        if empty {
            self.drop_at(at);
        }
    }

    fn drop_at(&mut self, at: usize) {
        if let Some(pending) = self.inbox.queue.remove(at) {
            self.pool.release(pending.frame);
        }
    }

    /// Lets the target go when no compressed batch waits for it.
    fn close_unused_target(&mut self) {
        if self.inbox.queue.is_empty() {
            self.close_target();
        }
    }

    pub(super) fn close_target(&mut self) {
        if let Some(target) = self.target.take() {
            self.pool.release(target);
        }
    }
}

/// Whether a control batch is the end of an aborted transaction.
fn ends_in_abort(header: &BatchHeader, section: &[u8]) -> Result<bool, WireError> {
    let marker = Records::new(header, section).next()?;
    Ok(marker.is_some_and(|marker| ControlType::from_key(marker.key) == Ok(ControlType::Abort)))
}

/// Frames are far smaller than 4 GiB.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
