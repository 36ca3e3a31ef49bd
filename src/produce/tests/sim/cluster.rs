//! Simulated brokers: sessions, the topic's logs, crashes and moved leaders. The protocol's bytes are in `serve`.
use super::log::{Log, Planted};
use super::serve::{self, FetchAsk, ProduceAsk};
use crate::net::sim::{Cluster, ConnId, Io};
use fastrand::Rng;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

/// What a seed makes of the brokers.
#[derive(Clone, Debug)]
pub(super) struct Make {
    pub(super) nodes: i32,
    pub(super) partitions: i32,
    /// Highest versions offered.
    pub(super) fetch: i16,
    pub(super) produce: i16,
    pub(super) metadata: i16,
    pub(super) api_versions: i16,
    /// Longest time of a request in a broker, in milliseconds.
    pub(super) service_ms: i64,
    /// Longest pause that an answer asks for, in milliseconds.
    pub(super) throttle_ms: i32,
    pub(super) planted: Option<Planted>,
}

#[derive(Debug)]
pub(super) enum Todo {
    Reply(ConnId, Vec<u8>),
    Produced(ConnId, Box<ProduceAsk>),
    FetchEnds(ConnId, u64),
    /// Another leader for a partition.
    Move,
    /// A broker goes down, for so many milliseconds.
    Crash(i64),
    Restart(i32),
}

#[derive(Debug)]
struct Session {
    node: i32,
    bytes: Vec<u8>,
    frames: VecDeque<Vec<u8>>,
    busy: bool,
    waiting: Option<(u64, FetchAsk)>,
}

#[derive(Debug)]
pub(super) struct Brokers {
    pub(super) make: Make,
    pub(super) rng: Rng,
    pub(super) logs: Vec<Log>,
    pub(super) up: Vec<bool>,
    pub(super) identities: i64,
    sessions: BTreeMap<ConnId, Session>,
    todo: BTreeMap<u64, Todo>,
    numbers: u64,
    /// What has happened, for the report.
    pub(super) moves: usize,
    pub(super) crashes: usize,
    pub(super) cut: usize,
    pub(super) duplicates: usize,
}

/// What the network calls.
#[derive(Debug)]
pub(super) struct Shared(pub(super) Rc<RefCell<Brokers>>);

pub(super) fn addr(node: i32) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, node as u8], 9_092))
}

impl Brokers {
    pub(super) fn new(make: Make, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x5eed);
        let logs = (0..make.partitions).map(|_| Log::new(rng.i32(1..=make.nodes))).collect();
        let up = vec![true; make.nodes as usize + 1];
        Self {
            make,
            rng,
            logs,
            up,
            identities: 0,
            sessions: BTreeMap::new(),
            todo: BTreeMap::new(),
            numbers: 0,
            moves: 0,
            crashes: 0,
            cut: 0,
            duplicates: 0,
        }
    }

    /// Notes something to do; the number is the token of its timer.
    pub(super) fn note(&mut self, todo: Todo) -> u64 {
        self.numbers += 1;
        self.todo.insert(self.numbers, todo);
        self.numbers
    }

    fn service_ms(&mut self) -> i64 {
        self.rng.i64(0..=self.make.service_ms)
    }

    /// Begins the next request of a connection: one at a time.
    fn next(&mut self, conn: ConnId, io: &mut Io) {
        let Some(session) = self.sessions.get_mut(&conn).filter(|session| !session.busy) else { return };
        let Some(frame) = session.frames.pop_front() else { return };
        session.busy = true;
        let node = session.node;
        match serve::handle(self, node, &frame) {
            serve::Handled::Answer(bytes) => {
                let token = self.note(Todo::Reply(conn, bytes));
                io.timers.push((self.service_ms(), token));
            }
            serve::Handled::Produce(ask) => {
                let token = self.note(Todo::Produced(conn, Box::new(ask)));
                io.timers.push((self.service_ms(), token));
            }
            serve::Handled::Fetch(ask) => {
                let wait_ms = ask.max_wait_ms.into();
                self.numbers += 1;
                let number = self.numbers;
                let session = self.sessions.get_mut(&conn).unwrap();
                session.waiting = Some((number, ask));
                let token = self.note(Todo::FetchEnds(conn, number));
                io.timers.push((wait_ms, token));
                self.wake_fetches(io);
            }
        }
    }

    /// Answers the fetches for which there is something.
    fn wake_fetches(&mut self, io: &mut Io) {
        let news: Vec<ConnId> = self
            .sessions
            .iter()
            .filter(|(_, session)| {
                session.waiting.as_ref().is_some_and(|(_, ask)| serve::has_news(self, session.node, ask))
            })
            .map(|(conn, _)| *conn)
            .collect();
        for conn in news {
            self.answer_fetch(conn, io);
        }
    }

    fn answer_fetch(&mut self, conn: ConnId, io: &mut Io) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        let Some((_, ask)) = session.waiting.take() else { return };
        let node = session.node;
        let bytes = serve::fetched(self, node, &ask);
        let token = self.note(Todo::Reply(conn, bytes));
        io.timers.push((self.service_ms(), token));
    }

    fn reply(&mut self, conn: ConnId, bytes: Vec<u8>, io: &mut Io) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        session.busy = false;
        io.sends.push((conn, bytes));
        self.next(conn, io);
    }

    /// A node other than this that is up.
    fn other(&mut self, than: i32) -> Option<i32> {
        let up: Vec<i32> = (1..=self.make.nodes).filter(|n| *n != than && self.up[*n as usize]).collect();
        self.rng.choice(up)
    }

    fn move_one(&mut self) {
        let at = self.rng.usize(0..self.logs.len());
        if let Some(leader) = self.other(self.logs[at].leader) {
            self.logs[at].move_to(leader);
            self.moves += 1;
        }
    }

    fn crash(&mut self, for_ms: i64, io: &mut Io) {
        let Some(node) = self.other(0) else { return };
        self.crashes += 1;
        self.up[node as usize] = false;
        let ended: Vec<ConnId> = self.sessions.iter().filter(|(_, s)| s.node == node).map(|(c, _)| *c).collect();
        io.resets.extend(ended);
        let heir = self.other(node);
        let planted = self.make.planted;
        for log in self.logs.iter_mut().filter(|log| log.leader == node) {
            // Alone, its log is as it was when it comes back.
            if let Some(heir) = heir {
                let before = log.entries.len();
                log.truncate(planted);
                self.cut += before - log.entries.len();
                log.move_to(heir);
            }
        }
        let token = self.note(Todo::Restart(node));
        io.timers.push((for_ms, token));
    }
}

impl Cluster for Shared {
    fn accept(&mut self, conn: ConnId, addr: SocketAddr) -> bool {
        let mut brokers = self.0.borrow_mut();
        let node = match addr {
            SocketAddr::V4(v4) => i32::from(v4.ip().octets()[3]),
            SocketAddr::V6(_) => 0,
        };
        let up = brokers.up.get(node as usize).copied().unwrap_or(false) && node > 0;
        if up {
            let (bytes, frames) = (Vec::new(), VecDeque::new());
            brokers.sessions.insert(conn, Session { node, bytes, frames, busy: false, waiting: None });
        }
        up
    }

    fn received(&mut self, conn: ConnId, bytes: &[u8], io: &mut Io) {
        let mut brokers = self.0.borrow_mut();
        let Some(session) = brokers.sessions.get_mut(&conn) else { return };
        session.bytes.extend_from_slice(bytes);
        while let Some(len) = session.bytes.first_chunk().map(|b| u32::from_be_bytes(*b) as usize)
            && session.bytes.len() >= 4 + len
        {
            session.frames.push_back(session.bytes[4..4 + len].to_vec());
            session.bytes.drain(..4 + len);
        }
        brokers.next(conn, io);
    }

    fn closed(&mut self, conn: ConnId) {
        self.0.borrow_mut().sessions.remove(&conn);
    }

    fn timer(&mut self, token: u64, io: &mut Io) {
        let mut brokers = self.0.borrow_mut();
        let Some(todo) = brokers.todo.remove(&token) else { return };
        match todo {
            Todo::Reply(conn, bytes) => brokers.reply(conn, bytes, io),
            Todo::Produced(conn, ask) => {
                let bytes = serve::produced(&mut brokers, &ask);
                brokers.wake_fetches(io);
                brokers.reply(conn, bytes, io);
            }
            Todo::FetchEnds(conn, number) => {
                let waits = brokers.sessions.get(&conn).and_then(|s| s.waiting.as_ref()).map(|(n, _)| *n);
                if waits == Some(number) {
                    brokers.answer_fetch(conn, io);
                }
            }
            Todo::Move => {
                brokers.move_one();
                brokers.wake_fetches(io);
            }
            Todo::Crash(for_ms) => {
                brokers.crash(for_ms, io);
                brokers.wake_fetches(io);
            }
            Todo::Restart(node) => brokers.up[node as usize] = true,
        }
    }
}
