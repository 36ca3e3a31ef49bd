//! A cluster of scripted brokers on loopback. They check leaders, sizes, sequences and epochs as Kafka's brokers do,
//! and keep what was written; a script decides batch by batch whether something goes wrong.
use super::bytes::{put, put_len, put_string};
use super::coordinator::Coordinator;
use super::log::Log;
use crate::client::{Broker, MetadataSnapshot, PartitionInfo, SharedMetadata, TopicInfo, TopicState};
use crate::wire::{BatchHeader, Reader};
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// A batch as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) node: i32,
    /// Number of the Produce request, over all connections.
    pub(super) request: usize,
    pub(super) topic: String,
    pub(super) partition: i32,
    pub(super) epoch: i16,
    pub(super) sequence: i32,
    pub(super) count: u32,
}

/// What a broker does with a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Act {
    /// What Kafka does.
    Normal,
    /// Answers this code and writes nothing.
    Error(i16),
    /// Writes it and answers this code.
    WriteThenError(i16),
    /// Ends the connection, nothing of the request is written.
    HangUp,
    /// Writes the whole request as Kafka does, then ends the connection without an answer.
    WriteThenHangUp,
    /// Never answers the request, nor anything after it.
    Silence,
}

type Script = Box<dyn FnMut(&Seen) -> Act + Send>;

pub(super) struct State {
    pub(super) logs: BTreeMap<(String, i32), Log>,
    pub(super) seen: Vec<Seen>,
    pub(super) script: Script,
    /// While set, requests are read but not handled.
    pub(super) paused: bool,
    /// Most Produce requests that waited on one connection.
    pub(super) most_waiting: usize,
    pub(super) max_batch: usize,
    pub(super) throttle_ms: i32,
    /// Whether NOT_LEADER_OR_FOLLOWER names the leader.
    pub(super) hints: bool,
    /// Codes that the next InitProducerId requests are answered with.
    pub(super) identity_errors: Vec<i16>,
    pub(super) identities: i64,
    pub(super) connections: usize,
    requests: usize,
    /// The highest version of ApiVersions, and of Produce.
    pub(super) versions: (i16, i16),
    /// The highest version of Metadata, which tells the release.
    pub(super) metadata_version: i16,
    /// Whether records are kept.
    pub(super) keep: bool,
    pub(super) transactions: Coordinator,
}

pub(super) struct FakeCluster {
    pub(super) metadata: SharedMetadata,
    pub(super) addrs: Vec<SocketAddr>,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl FakeCluster {
    /// `brokers` brokers, ids from 1; topics with the leaders of their partitions.
    pub(super) fn start(brokers: usize, topics: &[(&str, &[i32])]) -> Self {
        let mut logs = BTreeMap::new();
        for (topic, leaders) in topics {
            for (partition, leader) in leaders.iter().enumerate() {
                logs.insert(((*topic).to_owned(), partition as i32), Log::led_by(*leader));
            }
        }
        let state = Arc::new(Mutex::new(State {
            logs,
            seen: Vec::new(),
            script: Box::new(|_| Act::Normal),
            paused: false,
            most_waiting: 0,
            max_batch: usize::MAX,
            throttle_ms: 0,
            hints: true,
            identity_errors: Vec::new(),
            identities: 0,
            connections: 0,
            requests: 0,
            versions: (4, 11),
            metadata_version: 9,
            keep: true,
            transactions: Coordinator { node: 1, epoch: -1, ..Coordinator::default() },
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let (mut addrs, mut threads) = (Vec::new(), Vec::new());
        for node in 1..=brokers as i32 {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            addrs.push(listener.local_addr().unwrap());
            listener.set_nonblocking(true).unwrap();
            let (state, stop) = (Arc::clone(&state), Arc::clone(&stop));
            threads.push(std::thread::spawn(move || serve(node, &listener, &state, &stop)));
        }
        let cluster = Self { metadata: SharedMetadata::new(), addrs, state, stop, threads };
        cluster.publish();
        cluster
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn script(&self, script: impl FnMut(&Seen) -> Act + Send + 'static) {
        self.state().script = Box::new(script);
    }

    /// Makes the present leaders known.
    pub(super) fn publish(&self) {
        self.metadata.publish(self.state().snapshot(&self.addrs));
    }

    /// Makes the present leaders known again and again, as the control thread does when it is asked.
    pub(super) fn publish_on(&mut self) {
        let (metadata, addrs) = (self.metadata.clone(), self.addrs.clone());
        let (state, stop) = (Arc::clone(&self.state), Arc::clone(&self.stop));
        self.threads.push(std::thread::spawn(move || {
            while !stop.load(Ordering::Acquire) {
                metadata.publish(state.lock().unwrap().snapshot(&addrs));
                std::thread::sleep(Duration::from_millis(10));
            }
        }));
    }

    /// Moves a partition to another leader. Nobody is told.
    pub(super) fn move_leader(&self, topic: &str, partition: i32, leader: i32) {
        let mut state = self.state();
        let log = state.logs.get_mut(&(topic.to_owned(), partition)).unwrap();
        log.leader = leader;
        log.leader_epoch += 1;
    }

    /// Fails unless the partition holds just these values in this order; tells the first difference.
    #[track_caller]
    pub(super) fn holds(&self, topic: &str, partition: i32, expected: &[String]) {
        let values = self.values(topic, partition);
        let differs = values.iter().zip(expected).position(|(a, b)| a != b);
        if let Some(at) = differs {
            panic!("{topic}-{partition}: {} where {} was due, at {at}", values[at], expected[at]);
        }
        assert_eq!(values.len(), expected.len(), "{topic}-{partition}");
    }

    pub(super) fn values(&self, topic: &str, partition: i32) -> Vec<String> {
        let state = self.state();
        let records = &state.logs[&(topic.to_owned(), partition)].records;
        records.iter().map(|(_, _, value)| String::from_utf8(value.clone().unwrap()).unwrap()).collect()
    }
}

impl Drop for FakeCluster {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve(node: i32, listener: &TcpListener, state: &Arc<Mutex<State>>, stop: &Arc<AtomicBool>) {
    let mut threads = Vec::new();
    while !stop.load(Ordering::Acquire) {
        match listener.accept() {
            Ok((stream, _)) => {
                let (state, stop) = (Arc::clone(state), Arc::clone(stop));
                threads.push(std::thread::spawn(move || Connection::run(node, stream, &state, &stop)));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
            Err(_) => break,
        }
    }
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// Whether an InitProducerId request, of a flexible version, names a transactional id.
fn frame_has_id(frame: &[u8]) -> bool {
    let mut r = Reader::new(frame, false);
    let header = (r.i16(), r.i16(), r.i32(), r.nullable_string());
    r.set_flexible(header.1.unwrap() >= 2);
    r.skip_tags().unwrap();
    r.nullable_string().unwrap().is_some()
}

struct Connection<'a> {
    node: i32,
    stream: TcpStream,
    state: &'a Mutex<State>,
    waiting: VecDeque<Vec<u8>>,
}

impl Connection<'_> {
    fn run(node: i32, stream: TcpStream, state: &Mutex<State>, stop: &AtomicBool) {
        stream.set_nonblocking(false).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        state.lock().unwrap().connections += 1;
        let mut connection = Connection { node, stream, state, waiting: VecDeque::new() };
        let mut bytes = Vec::new();
        while !stop.load(Ordering::Acquire) && connection.turn(&mut bytes).is_some() {}
    }

    fn turn(&mut self, bytes: &mut Vec<u8>) -> Option<()> {
        let mut room = [0; 64 << 10];
        match self.stream.read(&mut room) {
            Ok(0) => return None,
            Ok(n) => bytes.extend_from_slice(&room[..n]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return None,
        }
        while let Some(len) = bytes.first_chunk().map(|b| u32::from_be_bytes(*b) as usize)
            && bytes.len() >= 4 + len
        {
            self.waiting.push_back(bytes[4..4 + len].to_vec());
            bytes.drain(..4 + len);
        }
        let produces = self.waiting.iter().filter(|f| f[..2] == [0, 0]).count();
        {
            let mut state = self.state.lock().unwrap();
            state.most_waiting = state.most_waiting.max(produces);
            if state.paused {
                return Some(());
            }
        }
        while let Some(frame) = self.waiting.pop_front() {
            let answer = self.handle(&frame)?;
            self.stream.write_all(&(answer.len() as u32).to_be_bytes()).ok()?;
            self.stream.write_all(&answer).ok()?;
        }
        Some(())
    }

    fn handle(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let mut r = Reader::new(frame, false);
        let (api, version, correlation) = (r.i16().unwrap(), r.i16().unwrap(), r.i32().unwrap());
        r.nullable_string().unwrap();
        let mut out = correlation.to_be_bytes().to_vec();
        match api {
            18 => self.api_versions(version, &mut out),
            22 if frame_has_id(frame) => self.transaction((api, version), &mut r, &mut out)?,
            22 => self.init_producer_id(&mut out),
            10 | 24..=28 => self.transaction((api, version), &mut r, &mut out)?,
            0 => {
                r.set_flexible(version >= 9);
                r.skip_tags().unwrap();
                self.produce(&mut r, version, &mut out)?;
            }
            other => panic!("api {other}"),
        }
        Some(out)
    }

    fn api_versions(&self, version: i16, out: &mut Vec<u8>) {
        let (versions, produce) = self.state.lock().unwrap().versions;
        let (level, metadata) = {
            let state = self.state.lock().unwrap();
            (state.transactions.level, state.metadata_version)
        };
        let known = version <= versions;
        let flexible = known && version >= 3;
        put(out, &(if known { 0i16 } else { 35 }).to_be_bytes());
        let ranges = [
            (0i16, 3i16, produce),
            (3, 0, metadata),
            (10, 0, 3),
            (18, 0, versions),
            (22, 0, 4),
            (24, 0, 3),
            (25, 0, 4),
            (26, 0, 5),
            (28, 0, 5),
        ];
        match flexible {
            true => out.push(ranges.len() as u8 + 1),
            false => put(out, &(ranges.len() as u32).to_be_bytes()),
        }
        for (api, low, high) in ranges {
            [api, low, high].iter().for_each(|v| put(out, &v.to_be_bytes()));
            out.extend(flexible.then_some(0));
        }
        if known && version >= 1 {
            put(out, &0i32.to_be_bytes());
        }
        match flexible && level > 0 {
            true => {
                // One tag, 2, the finalized features: one, with its highest and lowest level and no tags.
                put(out, &[1, 2, 26, 2]);
                put_string(out, "transaction.version", true);
                [level, 1].iter().for_each(|v| put(out, &v.to_be_bytes()));
                out.push(0);
            }
            false => out.extend(flexible.then_some(0)),
        }
    }

    fn transaction(&self, (api, version): (i16, i16), r: &mut Reader<'_>, out: &mut Vec<u8>) -> Option<()> {
        self.state.lock().unwrap().transactions.handle(self.node, api, version, r, out)
    }

    fn init_producer_id(&self, out: &mut Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        let error = if state.identity_errors.is_empty() { 0 } else { state.identity_errors.remove(0) };
        state.identities += i64::from(error == 0);
        let id = if error == 0 { 4_000 + state.identities } else { -1 };
        out.push(0);
        put(out, &0i32.to_be_bytes());
        put(out, &error.to_be_bytes());
        put(out, &id.to_be_bytes());
        put(out, &(if error == 0 { 0i16 } else { -1 }).to_be_bytes());
        out.push(0);
    }

    fn produce(&mut self, r: &mut Reader<'_>, version: i16, out: &mut Vec<u8>) -> Option<()> {
        let number = {
            let mut state = self.state.lock().unwrap();
            state.requests += 1;
            state.requests
        };
        let flexible = version >= 9;
        let transactional = r.nullable_string().unwrap().is_some();
        assert_eq!(r.i16().unwrap(), -1, "all replicas acknowledge");
        r.i32().unwrap();
        out.extend(flexible.then_some(0));
        let mut hang_up = false;
        let topics = r.array_len().unwrap();
        put_len(out, topics, flexible);
        for _ in 0..topics {
            let topic = r.string().unwrap().to_owned();
            put_string(out, &topic, flexible);
            let partitions = r.array_len().unwrap();
            put_len(out, partitions, flexible);
            for _ in 0..partitions {
                let partition = r.i32().unwrap();
                let batch = r.nullable_bytes().unwrap().unwrap();
                r.skip_tags().unwrap();
                let act = self.batch((number, transactional), (&topic, partition), batch, version, out);
                match act {
                    Act::HangUp => return None,
                    Act::Silence => return self.hold(),
                    Act::WriteThenHangUp => hang_up = true,
                    Act::Normal | Act::Error(_) | Act::WriteThenError(_) => {}
                }
            }
            r.skip_tags().unwrap();
            out.extend(flexible.then_some(0));
        }
        put(out, &self.state.lock().unwrap().throttle_ms.to_be_bytes());
        out.extend(flexible.then_some(0));
        (!hang_up).then_some(())
    }

    /// Takes one batch and writes the answer to it.
    fn batch(
        &self,
        (request, transactional): (usize, bool),
        (topic, partition): (&str, i32),
        batch: &[u8],
        version: i16,
        out: &mut Vec<u8>,
    ) -> Act {
        let mut guard = self.state.lock().unwrap();
        let state = &mut *guard;
        let header = BatchHeader::peek(batch).unwrap().unwrap();
        header.check_crc(batch).unwrap();
        assert_eq!(header.size, batch.len());
        let seen = Seen {
            node: self.node,
            request,
            topic: topic.to_owned(),
            partition,
            epoch: header.producer_epoch,
            sequence: header.base_sequence,
            count: header.count,
        };
        let act = (state.script)(&seen);
        assert_eq!(header.attributes & 0x10 != 0, transactional);
        let act = match act {
            Act::Normal if transactional => match state.transactions.produced(topic, partition, version) {
                0 => Act::Normal,
                code => Act::Error(code),
            },
            act => act,
        };
        state.seen.push(seen);
        let written = match act {
            Act::HangUp | Act::Silence | Act::Error(_) => (0, -1),
            Act::Normal | Act::WriteThenError(_) | Act::WriteThenHangUp => {
                state.append(self.node, topic, partition, &header, batch)
            }
        };
        let (error, offset) = match act {
            Act::Error(code) | Act::WriteThenError(code) => (code, -1),
            _ => written,
        };
        state.answer((topic, partition), error, offset, version, out);
        act
    }

    /// Reads on without answering until the other side gives up.
    fn hold(&mut self) -> Option<()> {
        while !matches!(self.stream.read(&mut [0; 1024]), Ok(0)) {
            let broken = self.stream.peer_addr().is_err();
            if broken || self.stream.take_error().is_ok_and(|e| e.is_some()) {
                break;
            }
        }
        None
    }
}

impl State {
    fn snapshot(&self, addrs: &[SocketAddr]) -> MetadataSnapshot {
        let brokers = addrs.iter().enumerate().map(|(i, addr)| Broker {
            id: i as i32 + 1,
            host: addr.ip().to_string(),
            port: addr.port(),
            addrs: vec![*addr],
        });
        let mut topics: Vec<TopicInfo> = Vec::new();
        for ((name, _), log) in &self.logs {
            if topics.last().is_none_or(|t| *t.name != **name) {
                let state = TopicState::Known;
                topics.push(TopicInfo { name: (**name).into(), id: [0; 16], state, partitions: Vec::new() });
            }
            let info = PartitionInfo { leader: log.leader, leader_epoch: log.leader_epoch };
            topics.last_mut().unwrap().partitions.push(info);
        }
        let mut snapshot = MetadataSnapshot { brokers: brokers.collect(), topics, ..MetadataSnapshot::default() };
        snapshot.sort();
        snapshot
    }

    /// The answer for one partition.
    fn answer(&self, (topic, partition): (&str, i32), error: i16, offset: i64, version: i16, out: &mut Vec<u8>) {
        let flexible = version >= 9;
        let log = &self.logs[&(topic.to_owned(), partition)];
        put(out, &partition.to_be_bytes());
        put(out, &error.to_be_bytes());
        put(out, &offset.to_be_bytes());
        put(out, &(-1i64).to_be_bytes());
        if version >= 5 {
            put(out, &log.start.to_be_bytes());
        }
        if version >= 8 {
            put_len(out, 0, flexible);
            match flexible {
                true => out.push(0),
                false => put(out, &(-1i16).to_be_bytes()),
            }
        }
        if error == 6 && self.hints && version >= 10 {
            // One tag, 0, of nine bytes: leader, epoch and no tags.
            put(out, &[1, 0, 9]);
            put(out, &log.leader.to_be_bytes());
            put(out, &log.leader_epoch.to_be_bytes());
            out.push(0);
        } else {
            out.extend(flexible.then_some(0));
        }
    }

    /// What Kafka's broker does with a batch: an error code, or the offset it got.
    fn append(&mut self, node: i32, topic: &str, partition: i32, header: &BatchHeader, batch: &[u8]) -> (i16, i64) {
        let (max_batch, keep) = (self.max_batch, self.keep);
        match self.logs.get_mut(&(topic.to_owned(), partition)) {
            None => (3, -1),
            Some(log) if log.leader != node => (6, -1),
            Some(_) if batch.len() > max_batch => (10, -1),
            Some(log) => log.append(header, batch, keep),
        }
    }
}
