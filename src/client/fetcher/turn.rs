//! A turn: connections are driven on, answers taken in, the next fetches sent.
use super::broker::{Phase, SILENT_MS};
use super::response::Surroundings;
use super::slot::SlotState;
use super::{FetchFault, Fetcher, LinkFault, prove, request, response};
use crate::arena::{FrameBuf, OversizeError};
use crate::net::{ConnState, Interest, NetError, PollSet};
use crate::wire::WireError;

/// Pause until the oversize buffer, which another thread has, is asked for again.
const OVERSIZE_RETRY_MS: i64 = 20;

/// Where a response may go.
enum Place {
    /// Into this buffer; out of the reserve or not.
    Buffer(FrameBuf, bool),
    /// Nowhere now.
    Wait,
    /// Nowhere ever: the largest buffer has so many bytes.
    TooLarge(usize),
}

impl Fetcher {
    /// Before the wait: connects, sends fetches that are due, and enters the connections into the poll set. Answers
    /// when [`Self::process`] must be called at the latest, on the clock of `now_ms`.
    pub(crate) fn prepare(&mut self, polls: &mut PollSet, now_ms: i64) -> i64 {
        if self.wake_at <= now_ms {
            self.wake_at = i64::MAX;
        }
        if self.replicas_until <= now_ms {
            (self.replicas_until, self.regroup) = (i64::MAX, true);
        }
        self.follow_leaders(now_ms);
        let mut due = i64::MAX;
        for at in 0..self.brokers.len() {
            if let Err(fault) = self.drive(at, now_ms) {
                self.give_up(at, fault, now_ms);
            }
            let broker = &mut self.brokers[at];
            // An answer that cannot be read now must not end every wait.
            let behind = matches!(broker.phase, Phase::Versions(_) | Phase::Proving)
                && self.control_user.is_some_and(|u| u != broker.id);
            let interest = Interest { read: !broker.blocked && !behind, write: false };
            if let Err(error) = broker.link.register(polls, interest) {
                self.give_up(at, error.into(), now_ms);
            }
            due = due.min(self.due(at, now_ms));
        }
        due.min(self.wake_at).min(self.replicas_until)
    }

    /// After the wait: takes answers in and sends the fetches that follow them.
    pub(crate) fn process(&mut self, polls: &PollSet, now_ms: i64) {
        for at in 0..self.brokers.len() {
            if let Err(fault) = self.serve(at, polls, now_ms) {
                self.give_up(at, fault, now_ms);
            }
        }
    }

    /// What is to be done for a broker without having heard from it.
    fn drive(&mut self, at: usize, now_ms: i64) -> Result<(), LinkFault> {
        let broker = &mut self.brokers[at];
        if broker.blocked {
            // The broker has done its part; it is we who wait.
            broker.deadline = now_ms.saturating_add(self.settings.request_timeout_ms);
            broker.look_up_at = i64::MAX;
            return self.choose_buffer(at, now_ms);
        }
        if broker.look_up_at <= now_ms {
            broker.look_up_at = now_ms.saturating_add(SILENT_MS);
            self.metadata.request_refresh();
        }
        if broker.deadline <= now_ms && broker.phase == Phase::Idle {
            broker.end_idle();
            return Ok(());
        }
        if broker.deadline <= now_ms {
            let ms = match broker.phase {
                Phase::Connecting => self.settings.connect_timeout_ms,
                _ => self.settings.request_timeout_ms,
            };
            return Err(NetError::TimedOut { ms: u64::try_from(ms).unwrap_or(0) }.into());
        }
        let (phase, due) = (broker.phase, broker.retry_at <= now_ms);
        match phase {
            Phase::Down if due && self.is_wanted(at) => {
                self.brokers[at].connect(now_ms, &self.settings, self.metadata.security())
            }
            Phase::Idle => {
                self.send(at, now_ms)?;
                let broker = &mut self.brokers[at];
                if broker.phase == Phase::Idle && broker.deadline == i64::MAX {
                    broker.deadline = now_ms.saturating_add(self.settings.max_idle_ms);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn serve(&mut self, at: usize, polls: &PollSet, now_ms: i64) -> Result<(), LinkFault> {
        let broker = &mut self.brokers[at];
        let ready = broker.link.advance(polls)?;
        if broker.phase == Phase::Connecting && broker.link.state() == ConnState::Ready {
            return broker.greet(now_ms, &self.settings);
        }
        if !ready.readable {
            return Ok(());
        }
        match broker.phase {
            // Bytes were not waited for: the connection has ended.
            _ if broker.blocked => Err(NetError::Closed.into()),
            Phase::Down | Phase::Connecting => Ok(()),
            Phase::Versions(_) | Phase::Proving => self.receive_control(at, now_ms),
            Phase::Fetching => self.receive(at, now_ms),
            // Nothing is due, so this is the end of the connection or a fault.
            Phase::Idle => match broker.link.frame_len() {
                Ok(Some(_)) => Err(NetError::Correlation { expected: -1, got: -1 }.into()),
                Ok(None) => Ok(()),
                // Brokers close connections that nobody uses.
                Err(NetError::Closed) => {
                    broker.end_idle();
                    Ok(())
                }
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Takes an answer that is not a fetch.
    fn receive_control(&mut self, at: usize, now_ms: i64) -> Result<(), LinkFault> {
        let broker = &mut self.brokers[at];
        if self.control_user.is_some_and(|user| user != broker.id) {
            return Ok(()); // it waits in the socket
        }
        if broker.link.frame_len()?.is_none() {
            return Ok(());
        }
        self.control_user = Some(broker.id);
        if let Some(len) = broker.link.read_frame(&mut self.control)? {
            self.control_user = None;
            let frame = self.control.get(..len).unwrap_or_default();
            if broker.phase == Phase::Proving {
                let again_at = prove::take(broker, &mut self.slots, frame, &self.metadata, now_ms)?;
                self.wake_at = self.wake_at.min(again_at);
            } else {
                broker.take_versions(frame, now_ms, &self.settings)?;
            }
            self.send(at, now_ms)?;
        }
        Ok(())
    }

    fn receive(&mut self, at: usize, now_ms: i64) -> Result<(), LinkFault> {
        let broker = &mut self.brokers[at];
        if broker.link.frame_len()?.is_none() {
            return Ok(());
        }
        if broker.buf.is_none() {
            self.choose_buffer(at, now_ms)?;
        }
        let broker = &mut self.brokers[at];
        let Some(mut buf) = broker.buf.take() else { return Ok(()) };
        let len = match broker.link.read_frame(buf.bytes_mut()) {
            Ok(Some(len)) => len,
            Ok(None) => {
                broker.buf = Some(buf);
                return Ok(());
            }
            Err(error) => {
                self.pool.put_back(buf);
                return Err(error.into());
            }
        };
        let frame = self.pool.seal(buf, len);
        let around = Surroundings {
            settings: &self.settings,
            metadata: &self.metadata,
            now_ms,
            row: self.pool.frame_bytes().max(self.pool.oversize_bytes()),
            reserved: std::mem::take(&mut broker.reserved),
        };
        broker.answered();
        let taken = response::take(broker, &mut self.slots, &mut self.inbox, &mut self.pool, frame, &around);
        self.pool.release(frame);
        let outcome = taken?;
        self.regroup |= outcome.regroup;
        self.wake_at = self.wake_at.min(outcome.again_at.unwrap_or(i64::MAX));
        self.send(at, now_ms)
    }

    fn send(&mut self, at: usize, now_ms: i64) -> Result<(), LinkFault> {
        prove::send(&mut self.brokers[at], &self.slots, &self.settings, now_ms)?;
        request::send(&mut self.brokers[at], &self.slots, &self.pool, &self.settings, now_ms)
    }

    /// Finds a buffer for the response that is arriving; without one it waits in the socket.
    fn choose_buffer(&mut self, at: usize, now_ms: i64) -> Result<(), LinkFault> {
        let Some(len) = self.brokers[at].link.frame_len()? else { return Ok(()) };
        let place = self.place(at, len);
        let broker = &mut self.brokers[at];
        broker.blocked = matches!(place, Place::Wait);
        match place {
            Place::Buffer(buf, reserved) => {
                (broker.buf, broker.reserved) = (Some(buf), reserved);
                Ok(())
            }
            Place::Wait => Ok(()),
            Place::TooLarge(row) => self.refuse_response(at, len, row, now_ms),
        }
    }

    fn place(&mut self, at: usize, len: usize) -> Place {
        let asked = self.brokers[at].asked.len();
        let room = self.inbox.has_room(asked, false);
        if room && len > self.pool.frame_bytes() {
            return match self.pool.take_oversize(len) {
                Ok(buf) => Place::Buffer(buf, false),
                Err(OversizeError::Busy) => Place::Wait,
                Err(OversizeError::TooSmall { have }) => Place::TooLarge(have.max(self.pool.frame_bytes())),
            };
        }
        // Compressed batches need a frame to be decompressed into.
        let spare = if self.compressed && self.target.is_none() { 2 } else { 1 };
        if self.pool.free() < spare && self.target.is_some_and(|target| self.pool.refs(target) == 1) {
            self.close_target(); // nobody reads it
        }
        if room
            && self.pool.free() >= spare
            && let Some(buf) = self.pool.take()
        {
            return Place::Buffer(buf, false);
        }
        let urgent = |slot| self.slots.get(slot).is_some_and(|state| state.urgent && !state.stopped);
        if len <= self.pool.frame_bytes()
            && self.inbox.has_room(asked, true)
            && self.brokers[at].slots.iter().any(|slot| urgent(*slot))
            && let Some(buf) = self.pool.take_reserved()
        {
            return Place::Buffer(buf, true);
        }
        Place::Wait
    }

    /// A response that no buffer holds: the one partition that was asked for is at fault, or each is asked for alone
    /// until it is found.
    fn refuse_response(&mut self, at: usize, len: usize, row: usize, now_ms: i64) -> Result<(), LinkFault> {
        let broker = &mut self.brokers[at];
        match broker.asked.as_slice() {
            [only] => {
                if let Some(state) = self.slots.get(only.slot).filter(|state| state.ask == only.ask) {
                    let offset = state.fetch_offset;
                    self.slots.stop(only.slot, FetchFault::TooLarge { offset, needed: len, row });
                }
            }
            many => broker.isolate = many.len() + 1,
        }
        // Its bytes cannot be skipped without reading them: a new connection is cheaper.
        if let Some(buf) = broker.hang_up() {
            self.pool.put_back(buf);
        }
        broker.retry_at = now_ms;
        Ok(())
    }

    /// Gives a connection up. Its partitions are asked for again, where the metadata then says.
    pub(super) fn give_up(&mut self, at: usize, fault: LinkFault, now_ms: i64) {
        let broker = &mut self.brokers[at];
        let reached = !matches!(broker.phase, Phase::Down | Phase::Connecting);
        if let Some(buf) = broker.disconnect(fault, now_ms) {
            self.pool.put_back(buf);
        }
        if self.control_user == Some(broker.id) {
            self.control_user = None;
        }
        for slot in &broker.slots {
            // The leader is there when a replica is not.
            let replica = |state: &&mut SlotState| state.replica == broker.id;
            if let Some(state) = self.slots.get_mut(*slot).filter(replica) {
                self.regroup |= state.leave_replica();
            }
        }
        if let LinkFault::Wire(error @ (WireError::Unsupported { .. } | WireError::TooOld { .. })) = fault {
            for slot in &broker.slots {
                self.slots.stop(*slot, FetchFault::Unsupported(error));
            }
        }
        if reached {
            self.metadata.request_refresh();
        } else {
            self.metadata.report_unreachable();
        }
    }

    /// Whether a partition of the broker is wanted.
    fn is_wanted(&self, at: usize) -> bool {
        let wanted = |slot| self.slots.get(slot).is_some_and(|state| state.demand && !state.stopped);
        self.brokers[at].slots.iter().any(|slot| wanted(*slot))
    }

    /// When a broker needs attention at the latest.
    fn due(&self, at: usize, now_ms: i64) -> i64 {
        let broker = &self.brokers[at];
        match broker.phase {
            Phase::Down if self.is_wanted(at) => broker.retry_at.max(now_ms + 1),
            Phase::Down => i64::MAX,
            Phase::Idle if broker.throttled_until > now_ms => broker.throttled_until,
            // Another thread may give the oversize buffer back without telling.
            Phase::Fetching if broker.blocked => now_ms.saturating_add(OVERSIZE_RETRY_MS),
            _ => broker.deadline.min(broker.look_up_at),
        }
    }
}
