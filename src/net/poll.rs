//! The poll set of one thread and the waker that other threads ring.
//!
//! The set is filled anew in each turn (`clear`, `add` …, `wait`, `ready`), so a connection that was closed in
//! between cannot be mistaken for another one. It shares ownership of the descriptors it waits for; the system's own
//! array is built on the stack.
use super::NetError;
use crate::base::limits::MAX_BROKERS;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::array;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Interest {
    /// Bytes to read, or the end of the stream.
    pub(crate) read: bool,
    /// Room to write, or the end of a connection attempt.
    pub(crate) write: bool,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Ready {
    /// Reading will not block (bytes, end of stream or an error).
    pub(crate) readable: bool,
    /// Writing will not block.
    pub(crate) writable: bool,
}

/// Place of a connection in the set; valid until the set is cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(u16);

#[derive(Debug)]
struct Bell {
    fd: OwnedFd,
    rung: AtomicBool,
}

/// Ends the wait of one thread, from any other. Rings that nobody has answered yet cost one atomic.
#[derive(Clone, Debug)]
pub(crate) struct Waker(Arc<Bell>);

impl Waker {
    fn new() -> Result<Self, NetError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let fd = eventfd(0, flags).map_err(NetError::io("eventfd"))?;
        Ok(Self(Arc::new(Bell { fd, rung: AtomicBool::new(false) })))
    }

    /// Ends the current wait, or the next one if the thread is not waiting.
    pub(crate) fn wake(&self) {
        if !self.0.rung.swap(true, Ordering::AcqRel) {
            // Cannot fail: the counter of a non-blocking eventfd has room, and the descriptor is open as long as
            // `self`.
            let _ = rustix::io::write(&self.0.fd, &1u64.to_ne_bytes());
        }
    }

    /// Takes all rings so far. The flag falls last: a ring in between is answered by the wait that has just ended.
    fn answer(&self) {
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&self.0.fd, &mut count[..]);
        self.0.rung.swap(false, Ordering::AcqRel);
    }
}

/// The connections that a thread waits for in one turn.
#[derive(Debug)]
pub(crate) struct PollSet {
    waker: Waker,
    entries: Vec<(Arc<OwnedFd>, Interest)>,
    /// For each of them, whether there is something to read whatever the descriptor says.
    buffered: Vec<bool>,
    ready: Vec<Ready>,
}

impl PollSet {
    /// Most connections a thread can wait for: one to fetch and one to produce for each broker, and two of reserve.
    pub(crate) const MAX: usize = 2 * MAX_BROKERS + 2;
    /// Up to here the system's array is small.
    const FEW: usize = 16;

    /// Makes an empty set with its waker. All memory it will ever need is taken here.
    pub(crate) fn new() -> Result<Self, NetError> {
        Ok(Self {
            waker: Waker::new()?,
            entries: Vec::with_capacity(Self::MAX),
            buffered: Vec::with_capacity(Self::MAX),
            ready: Vec::with_capacity(Self::MAX),
        })
    }

    /// A handle that ends this set's waits.
    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Forgets all connections, their tokens and what was ready.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.buffered.clear();
        self.ready.clear();
    }

    /// Adds a connection for the next wait.
    #[allow(dead_code)] // for tests
    pub(crate) fn add(&mut self, fd: &Arc<OwnedFd>, interest: Interest) -> Result<Token, NetError> {
        self.add_buffered(fd, interest, false)
    }

    /// The same for a connection that may hold bytes in front of its descriptor: then the next wait does not last, and
    /// reports it as readable.
    pub(crate) fn add_buffered(
        &mut self,
        fd: &Arc<OwnedFd>,
        interest: Interest,
        buffered: bool,
    ) -> Result<Token, NetError> {
        let place = self.entries.len();
        if place >= Self::MAX {
            return Err(NetError::PollSetFull { limit: Self::MAX });
        }
        self.entries.push((Arc::clone(fd), interest));
        self.buffered.push(buffered);
        self.ready.push(Ready::default());
        // MAX is far below u16::MAX.
        Ok(Token(u16::try_from(place).unwrap_or(u16::MAX)))
    }

    /// Waits until something is ready, the waker rings or the time is over (`None`: no limit); then [`Self::ready`]
    /// answers. A signal ends the wait early, as if nothing had happened.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> Result<(), NetError> {
        #[cfg(test)]
        if super::sim::wait(&self.entries, &mut self.ready, timeout) {
            return Ok(());
        }
        if self.entries.len() < Self::FEW {
            self.wait_in::<{ Self::FEW }>(timeout)
        } else {
            self.wait_in::<{ Self::MAX + 1 }>(timeout)
        }
    }

    /// [`Self::wait`] until a moment of the caller's clock, in milliseconds; not at all when it has passed.
    pub(crate) fn wait_until(&mut self, now_ms: i64, until_ms: i64) -> Result<(), NetError> {
        let ms = u64::try_from(until_ms.saturating_sub(now_ms)).unwrap_or(0);
        self.wait(Some(Duration::from_millis(ms)))
    }

    /// What happened to a connection in the last wait.
    pub(crate) fn ready(&self, token: Token) -> Ready {
        self.ready.get(usize::from(token.0)).copied().unwrap_or_default()
    }

    fn wait_in<const N: usize>(&mut self, timeout: Option<Duration>) -> Result<(), NetError> {
        let waker = self.waker.clone();
        // Place 0 is the waker's; places after the last connection repeat it and are not waited for.
        let mut fds: [PollFd<'_>; N] = array::from_fn(|i| match i.checked_sub(1).and_then(|i| self.entries.get(i)) {
            Some((fd, interest)) => PollFd::new(fd, interest.flags()),
            None => PollFd::new(&waker.0.fd, PollFlags::IN),
        });
        let used = &mut fds[..=self.entries.len()];
        let timeout = if self.buffered.contains(&true) { Some(Duration::ZERO) } else { timeout };
        let limit = timeout.map(|t| Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: t.subsec_nanos().into(),
        });
        self.ready.fill(Ready::default());
        match poll(used, limit.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(NetError::Io { op: "poll", errno }),
        }
        for ((ready, buffered), fd) in self.ready.iter_mut().zip(&self.buffered).zip(&used[1..]) {
            let got = fd.revents();
            let ended = got.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
            ready.readable = ended || *buffered || got.contains(PollFlags::IN);
            ready.writable = ended || got.contains(PollFlags::OUT);
        }
        if !used[0].revents().is_empty() {
            waker.answer();
        }
        Ok(())
    }
}

impl Interest {
    fn flags(self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.read);
        flags.set(PollFlags::OUT, self.write);
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Instant;

    fn bell() -> Arc<OwnedFd> {
        Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap())
    }

    #[test]
    fn a_ring_before_and_during_the_wait_ends_it_and_is_taken_once() {
        let mut polls = PollSet::new().unwrap();
        let waker = polls.waker();
        waker.wake();
        waker.wake();
        let start = Instant::now();
        polls.wait(Some(Duration::from_secs(5))).unwrap();
        assert!(start.elapsed() < Duration::from_secs(4));
        let start = Instant::now();
        polls.wait(Some(Duration::from_millis(30))).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(30), "two rings were one");
        let other = thread::spawn(move || waker.wake());
        polls.wait(Some(Duration::from_secs(5))).unwrap();
        other.join().unwrap();
    }

    #[test]
    fn only_the_ready_connection_is_reported_also_in_a_large_set() {
        for count in [3, 40, PollSet::MAX] {
            let mut polls = PollSet::new().unwrap();
            let fds: Vec<_> = (0..count).map(|_| bell()).collect();
            rustix::io::write(&*fds[2], &1u64.to_ne_bytes()).unwrap();
            let read = Interest { read: true, write: false };
            let tokens: Vec<_> = fds.iter().map(|fd| polls.add(fd, read).unwrap()).collect();
            polls.wait(None).unwrap();
            let ready: Vec<_> = tokens.iter().map(|t| polls.ready(*t).readable).collect();
            assert_eq!(ready.iter().filter(|r| **r).count(), 1);
            assert!(ready[2]);
        }
    }

    #[test]
    fn what_is_buffered_ends_the_wait_at_once() {
        let mut polls = PollSet::new().unwrap();
        let read = Interest { read: true, write: false };
        let silent = polls.add(&bell(), read).unwrap();
        let buffered = polls.add_buffered(&bell(), read, true).unwrap();
        polls.wait(None).unwrap();
        assert_eq!((polls.ready(silent).readable, polls.ready(buffered).readable), (false, true));
    }

    #[test]
    fn a_full_set_refuses_and_clearing_empties_it() {
        let mut polls = PollSet::new().unwrap();
        let fd = bell();
        for _ in 0..PollSet::MAX {
            polls.add(&fd, Interest::default()).unwrap();
        }
        assert_eq!(polls.add(&fd, Interest::default()), Err(NetError::PollSetFull { limit: 130 }));
        polls.clear();
        let token = polls.add(&fd, Interest { read: false, write: true }).unwrap();
        polls.wait(None).unwrap();
        assert_eq!(polls.ready(token), Ready { readable: false, writable: true });
    }
}
