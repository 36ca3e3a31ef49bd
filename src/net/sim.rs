//! A simulated network in virtual time, for one thread of a test: what [`Conn`](super::Conn) and
//! [`PollSet`](super::PollSet) do while it is installed happens here, and nowhere else.
//!
//! Owns the connections, the bytes on their way, and the clock, which stands still but for waiting. Everything random
//! comes from the seed, so a run repeats itself. Bytes of one connection arrive in order or not at all; those of
//! different connections overtake each other, also those of a connection that the client has given up long ago. What
//! listens is a [`Cluster`].
use super::{Interest, Ready};
use fastrand::Rng;
use rustix::io::{Errno, Result};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// A connection; never used again.
pub(crate) type ConnId = u64;

/// What listens on the network.
pub(crate) trait Cluster {
    /// A client wants to connect. Answers whether it may.
    fn accept(&mut self, conn: ConnId, addr: SocketAddr) -> bool;
    /// Bytes arrived.
    fn received(&mut self, conn: ConnId, bytes: &[u8], io: &mut Io);
    /// The connection has ended.
    fn closed(&mut self, conn: ConnId);
    /// The time of a timer has come.
    fn timer(&mut self, token: u64, io: &mut Io);
}

/// What a cluster wants to be done.
#[derive(Debug, Default)]
pub(crate) struct Io {
    /// Bytes to send.
    pub(crate) sends: Vec<(ConnId, Vec<u8>)>,
    /// Timers to start: in how many milliseconds, with which token.
    pub(crate) timers: Vec<(i64, u64)>,
    /// Connections to reset; what is on its way is lost.
    pub(crate) resets: Vec<ConnId>,
}

/// How bad the network is. Chances are out of 1,000.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weather {
    /// Longest way of bytes, in milliseconds.
    pub(crate) delay_ms: u64,
    /// That a connection breaks, somewhere in its first `break_bytes`.
    pub(crate) breaks: u32,
    /// See there.
    pub(crate) break_bytes: usize,
    /// That a connection falls silent, somewhere in its first `break_bytes`, for up to `silent_ms`.
    pub(crate) silences: u32,
    /// See there.
    pub(crate) silent_ms: u64,
    /// Most bytes that are read at a time.
    pub(crate) read_bytes: usize,
    /// Most bytes that are written at a time.
    pub(crate) write_bytes: usize,
    /// That a read or write is told that it would block.
    pub(crate) blocks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Open,
    Failed(Errno),
}

#[derive(Debug)]
struct Wire {
    fd: RawFd,
    stage: Stage,
    /// The client has hung up.
    left: bool,
    inbound: VecDeque<u8>,
    /// The other side has hung up.
    ended: bool,
    /// Bytes that the client has sent and that are on their way.
    flying: usize,
    /// When the last bytes arrive, there and here.
    there_us: i64,
    here_us: i64,
    /// Bytes until it breaks.
    breaks_after: Option<usize>,
    /// Bytes until it falls silent.
    silent_after: Option<usize>,
}

#[derive(Debug)]
enum Event {
    Connect(ConnId, SocketAddr),
    There(ConnId, Vec<u8>),
    Here(ConnId, Vec<u8>),
    Broken(ConnId),
    Timer(u64),
}

/// Bytes that may be on their way to the other side.
const WINDOW: usize = 64 << 10;
/// What a turn of the client takes, so that time does not stand still, in microseconds.
const TURN_US: i64 = 20;

/// The network of one thread.
pub(crate) struct Network {
    now_us: i64,
    rng: Rng,
    weather: Weather,
    cluster: Box<dyn Cluster>,
    wires: BTreeMap<ConnId, Wire>,
    by_fd: BTreeMap<RawFd, ConnId>,
    events: BTreeMap<(i64, u64), Event>,
    numbers: u64,
    /// For the jitter of clients.
    seed: u32,
}

thread_local! {
    static NETWORK: RefCell<Option<Network>> = const { RefCell::new(None) };
}

/// Runs `f` on this thread's network; `None` without one.
pub(crate) fn with<T>(f: impl FnOnce(&mut Network) -> T) -> Option<T> {
    // A thread that ends drops its connections when its own storage is gone already.
    NETWORK.try_with(|network| network.borrow_mut().as_mut().map(f)).ok().flatten()
}

/// Ends the simulation when dropped.
#[must_use]
#[derive(Debug)]
pub(crate) struct Installed;

impl Drop for Installed {
    fn drop(&mut self) {
        NETWORK.with(|network| network.borrow_mut().take());
    }
}

/// Puts a simulated network in the place of the system's, for this thread.
pub(crate) fn install(seed: u64, weather: Weather, cluster: Box<dyn Cluster>) -> Installed {
    let mut rng = Rng::with_seed(seed);
    let client_seed = rng.u32(..);
    let (wires, by_fd, events) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let network =
        Network { now_us: 1_000_000, rng, weather, cluster, wires, by_fd, events, numbers: 0, seed: client_seed };
    NETWORK.with(|place| *place.borrow_mut() = Some(network));
    Installed
}

/// The seed of a simulated client's jitter.
pub(crate) fn client_seed() -> Option<u32> {
    with(|network| network.seed)
}

/// Virtual time, in milliseconds.
pub(crate) fn now_ms() -> i64 {
    with(|network| network.now_ms()).expect("a simulated network")
}

/// Waits in virtual time. `false`: there is no simulated network.
pub(super) fn wait(entries: &[(Arc<OwnedFd>, Interest)], ready: &mut [Ready], timeout: Option<Duration>) -> bool {
    with(|network| network.wait(entries, ready, timeout)).is_some()
}

impl Network {
    fn now_ms(&self) -> i64 {
        self.now_us / 1_000
    }

    /// Starts a timer of the cluster from outside.
    pub(crate) fn start_timer(&mut self, in_ms: i64, token: u64) {
        self.schedule(self.now_us + in_ms * 1_000, Event::Timer(token));
    }

    /// Makes everything calm: no more breaks, silences or delays for new connections.
    pub(crate) fn calm(&mut self) {
        self.weather = Weather { delay_ms: 1, read_bytes: 4_096, write_bytes: 4_096, ..Weather::default() };
    }

    fn schedule(&mut self, at_us: i64, event: Event) {
        self.numbers += 1;
        self.events.insert((at_us, self.numbers), event);
    }

    fn chance(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.rng.u32(0..1_000) < per_mille
    }

    fn delay_us(&mut self) -> i64 {
        50 + i64::try_from(self.rng.u64(0..=self.weather.delay_ms * 1_000)).unwrap()
    }

    pub(super) fn connect(&mut self, fd: RawFd, addr: SocketAddr) -> Result<()> {
        self.numbers += 1;
        let conn = self.numbers;
        let (breaks, silences) = (self.weather.breaks, self.weather.silences);
        let bytes = self.weather.break_bytes.max(1);
        let breaks_after = self.chance(breaks).then(|| self.rng.usize(0..bytes));
        let silent_after = self.chance(silences).then(|| self.rng.usize(0..bytes));
        let wire = Wire {
            fd,
            stage: Stage::Connecting,
            left: false,
            inbound: VecDeque::new(),
            ended: false,
            flying: 0,
            there_us: 0,
            here_us: 0,
            breaks_after,
            silent_after,
        };
        self.wires.insert(conn, wire);
        self.by_fd.insert(fd, conn);
        let at = self.now_us + self.delay_us();
        self.schedule(at, Event::Connect(conn, addr));
        Err(Errno::INPROGRESS)
    }

    fn wire(&mut self, fd: RawFd) -> Option<(ConnId, &mut Wire)> {
        let conn = *self.by_fd.get(&fd)?;
        Some((conn, self.wires.get_mut(&conn)?))
    }

    pub(super) fn socket_error(&mut self, fd: RawFd) -> Result<()> {
        match self.wire(fd).map(|(_, wire)| wire.stage) {
            Some(Stage::Failed(errno)) => Err(errno),
            _ => Ok(()),
        }
    }

    pub(super) fn recv(&mut self, fd: RawFd, into: &mut [u8]) -> Result<usize> {
        let (blocks, most) = (self.weather.blocks, self.weather.read_bytes.max(1));
        let blocked = self.chance(blocks);
        let most = self.rng.usize(1..=most).min(into.len());
        let Some((_, wire)) = self.wire(fd) else { return Err(Errno::CONNRESET) };
        if let Stage::Failed(errno) = wire.stage {
            return Err(errno);
        }
        if wire.inbound.is_empty() {
            return if wire.ended { Ok(0) } else { Err(Errno::AGAIN) };
        }
        if blocked {
            return Err(Errno::AGAIN);
        }
        let most = most.min(wire.inbound.len());
        for (place, byte) in into.iter_mut().zip(wire.inbound.drain(..most)) {
            *place = byte;
        }
        Ok(most)
    }

    pub(super) fn send(&mut self, fd: RawFd, from: &[IoSlice<'_>]) -> Result<usize> {
        let (blocks, most) = (self.weather.blocks, self.weather.write_bytes.max(1));
        let blocked = self.chance(blocks);
        let most = self.rng.usize(1..=most);
        let Some((conn, wire)) = self.wire(fd) else { return Err(Errno::CONNRESET) };
        if let Stage::Failed(errno) = wire.stage {
            return Err(errno);
        }
        if wire.ended {
            return Err(Errno::PIPE);
        }
        let most = most.min(WINDOW - wire.flying);
        if blocked || most == 0 {
            return Err(Errno::AGAIN);
        }
        let bytes: Vec<u8> = from.iter().flat_map(|slice| slice.iter().copied()).take(most).collect();
        let sent = bytes.len();
        wire.flying += sent;
        self.carry(conn, bytes, true);
        Ok(sent)
    }

    /// Puts bytes on their way, there or here, up to where the connection breaks.
    fn carry(&mut self, conn: ConnId, mut bytes: Vec<u8>, there: bool) {
        let delay = self.delay_us();
        let silence = i64::try_from(self.rng.u64(0..=self.weather.silent_ms) * 1_000).unwrap();
        let now = self.now_us;
        let Some(wire) = self.wires.get_mut(&conn) else { return };
        let mut extra = 0;
        if let Some(left) = &mut wire.silent_after {
            match left.checked_sub(bytes.len()) {
                Some(rest) => *left = rest,
                None => (extra, wire.silent_after) = (silence, None),
            }
        }
        let mut broken = false;
        if let Some(left) = &mut wire.breaks_after {
            broken = bytes.len() >= *left;
            bytes.truncate(*left);
            *left -= bytes.len();
        }
        let last = if there { &mut wire.there_us } else { &mut wire.here_us };
        let at = (now + delay + extra).max(*last + 1);
        *last = at;
        self.schedule(at, if there { Event::There(conn, bytes) } else { Event::Here(conn, bytes) });
        if broken {
            self.schedule(at + 1, Event::Broken(conn));
        }
    }

    /// The client ends a connection. What it has sent may still arrive.
    pub(super) fn hang_up(&mut self, fd: RawFd) {
        let Some(conn) = self.by_fd.remove(&fd) else { return };
        let forgotten = self.rng.bool();
        let Some(wire) = self.wires.get_mut(&conn) else { return };
        wire.left = true;
        if forgotten || wire.stage != Stage::Open {
            self.remove(conn);
        }
    }

    fn remove(&mut self, conn: ConnId) {
        if let Some(wire) = self.wires.remove(&conn) {
            if self.by_fd.get(&wire.fd) == Some(&conn) {
                self.by_fd.remove(&wire.fd);
            }
            self.cluster.closed(conn);
        }
    }

    fn wait(&mut self, entries: &[(Arc<OwnedFd>, Interest)], ready: &mut [Ready], timeout: Option<Duration>) {
        self.now_us += TURN_US;
        let deadline = timeout.map_or(i64::MAX, |t| self.now_us.saturating_add(t.as_micros() as i64));
        loop {
            self.run_until(self.now_us);
            if self.look(entries, ready) {
                return;
            }
            match self.events.first_key_value() {
                Some(((at, _), _)) if *at <= deadline => self.now_us = *at,
                _ if deadline == i64::MAX => panic!("nothing is due and nothing happens"),
                _ => {
                    self.now_us = deadline;
                    return;
                }
            }
        }
    }

    /// What the client may do. Answers whether that is anything.
    fn look(&mut self, entries: &[(Arc<OwnedFd>, Interest)], ready: &mut [Ready]) -> bool {
        let mut any = false;
        for ((fd, interest), ready) in entries.iter().zip(ready) {
            *ready = match self.wire(fd.as_raw_fd()).map(|(_, wire)| wire) {
                None => Ready::default(),
                Some(wire) => match wire.stage {
                    Stage::Connecting => Ready::default(),
                    Stage::Failed(_) => Ready { readable: true, writable: true },
                    Stage::Open => Ready {
                        readable: interest.read && (wire.ended || !wire.inbound.is_empty()),
                        writable: interest.write && (wire.ended || wire.flying < WINDOW),
                    },
                },
            };
            any |= ready.readable || ready.writable;
        }
        any
    }

    fn run_until(&mut self, at_us: i64) {
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= at_us
        {
            let event = entry.remove();
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        let mut io = Io::default();
        match event {
            Event::Connect(conn, addr) => {
                let Some(wire) = self.wires.get_mut(&conn) else { return };
                let accepted = self.cluster.accept(conn, addr);
                wire.stage = if accepted { Stage::Open } else { Stage::Failed(Errno::CONNREFUSED) };
            }
            Event::There(conn, bytes) => {
                let Some(wire) = self.wires.get_mut(&conn) else { return };
                wire.flying = wire.flying.saturating_sub(bytes.len());
                self.cluster.received(conn, &bytes, &mut io);
            }
            Event::Here(conn, bytes) => {
                if let Some(wire) = self.wires.get_mut(&conn) {
                    wire.inbound.extend(bytes);
                }
            }
            Event::Broken(conn) => self.break_off(conn),
            Event::Timer(token) => self.cluster.timer(token, &mut io),
        }
        for (conn, bytes) in io.sends {
            self.carry(conn, bytes, false);
        }
        for (in_ms, token) in io.timers {
            self.start_timer(in_ms, token);
        }
        for conn in io.resets {
            self.break_off(conn);
        }
    }

    /// Both sides find the connection ended: the client after what has arrived, or at once.
    fn break_off(&mut self, conn: ConnId) {
        let hard = self.rng.bool();
        let Some(wire) = self.wires.get_mut(&conn) else { return };
        self.cluster.closed(conn);
        if wire.left {
            self.remove(conn);
        } else if hard {
            wire.stage = Stage::Failed(Errno::CONNRESET);
        } else {
            wire.ended = true;
        }
        self.events.retain(|_, event| match event {
            Event::There(at, _) | Event::Here(at, _) | Event::Broken(at) => *at != conn,
            Event::Connect(..) | Event::Timer(_) => true,
        });
    }
}
