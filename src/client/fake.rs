//! A scripted broker on loopback for the tests of this room: it keeps logs in memory and answers ApiVersions, Metadata,
//! ListOffsets and Fetch, as well or as badly as a test wants.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unnecessary_operation)]
use crate::wire::message::AbortedTransaction;
use crate::wire::{BatchBuilder, Compression, Compressor, RawHeaders, Reader, Stamp, Writer};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The log of one partition.
#[derive(Debug, Default, Clone)]
pub(crate) struct Log {
    /// Batches in order: base offset, next offset, bytes.
    pub(crate) batches: Vec<(i64, i64, Vec<u8>)>,
    /// Error code to answer instead.
    pub(crate) error: i16,
    /// Tagged leader hint beside the error.
    pub(crate) hint: Option<(i32, i32)>,
    /// Aborted transactions to list.
    pub(crate) aborted: Vec<AbortedTransaction>,
    /// First offset still there.
    pub(crate) start: i64,
    /// Diverging epoch to answer.
    pub(crate) diverging: Option<(i32, i64)>,
    /// Replica to name instead of answering records; 0 none.
    pub(crate) replica: i32,
    /// What OffsetForLeaderEpoch is answered with: error, epoch, end.
    pub(crate) epoch_end: (i16, i32, i64),
}

impl Log {
    pub(crate) fn end(&self) -> i64 {
        self.batches.last().map_or(self.start, |(_, next, _)| *next)
    }

    /// Appends a batch of these values.
    pub(crate) fn append(&mut self, values: &[&[u8]], codec: Compression) {
        let base = self.end();
        let bytes = batch(base, values, codec, &Stamp::NONE);
        self.batches.push((base, base + values.len() as i64, bytes));
    }
}

/// One fetch as the broker saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) max_wait_ms: i32,
    pub(crate) max_bytes: i32,
    /// Topic, partition, leader epoch, offset, limit.
    pub(crate) partitions: Vec<(String, i32, i32, i64, i32)>,
    /// Version of the request.
    pub(crate) version: i16,
    pub(crate) rack: String,
    unknown_id: [u8; 16],
}

/// What a broker does, changed by the test while it runs.
#[derive(Debug, Default)]
pub(crate) struct Script {
    #[allow(dead_code)] // for whoever prints it
    pub(crate) id: i32,
    pub(crate) logs: BTreeMap<(String, i32), Log>,
    /// Answers of fetches trickle, byte by byte.
    pub(crate) dribble: bool,
    /// Closes the connection after so many bytes of each of the next answers, one a fetch.
    pub(crate) cuts: Vec<usize>,
    /// Throttle time to answer to fetches.
    pub(crate) throttle_ms: i32,
    pub(crate) fetches: Vec<Seen>,
    /// Brokers as Metadata tells: id, address.
    pub(crate) brokers: Vec<(i32, SocketAddr)>,
    /// Topics as Metadata tells: leaders of the partitions, or an error code.
    pub(crate) topics: BTreeMap<String, Result<Vec<i32>, i16>>,
    /// Metadata requests answered.
    pub(crate) metadata: usize,
    /// Highest version of ApiVersions it knows.
    pub(crate) versions_max: i16,
    /// Highest version of Fetch, and of Metadata (of which it knows but this one).
    pub(crate) fetch_max: i16,
    pub(crate) metadata_max: i16,
    /// Names of topics by their ids; a fetch by another id is answered UNKNOWN_TOPIC_ID.
    pub(crate) ids: BTreeMap<[u8; 16], String>,
    /// Questions about epochs: partition, leader's epoch, epoch asked for.
    pub(crate) epochs: Vec<(i32, i32, i32)>,
    /// Connections so far.
    pub(crate) connections: usize,
    streams: Vec<TcpStream>,
    stop: bool,
}

/// A broker that ends when dropped.
pub(crate) struct FakeBroker {
    pub(crate) addr: SocketAddr,
    script: Arc<Mutex<Script>>,
    acceptor: Option<JoinHandle<()>>,
}

impl FakeBroker {
    pub(crate) fn start(id: i32) -> Self {
        Self::start_at(id, "127.0.0.1:0".parse().unwrap())
    }

    pub(crate) fn start_at(id: i32, addr: SocketAddr) -> Self {
        let listener = TcpListener::bind(addr).unwrap();
        let addr = listener.local_addr().unwrap();
        let script =
            Arc::new(Mutex::new(Script { id, versions_max: 4, fetch_max: 12, metadata_max: 9, ..Script::default() }));
        let shared = Arc::clone(&script);
        let acceptor = thread::spawn(move || accept(&listener, &shared));
        Self { addr, script, acceptor: Some(acceptor) }
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// The log of a partition, made on first use.
    pub(crate) fn log(&self, topic: &str, partition: i32, change: impl FnOnce(&mut Log)) {
        change(self.script().logs.entry((topic.into(), partition)).or_default());
    }

    /// Ends all connections.
    pub(crate) fn drop_connections(&self) {
        for stream in self.script().streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for FakeBroker {
    fn drop(&mut self) {
        self.script().stop = true;
        self.drop_connections();
        let _ = TcpStream::connect(self.addr);
        let _ = self.acceptor.take().map(JoinHandle::join);
    }
}

fn accept(listener: &TcpListener, script: &Arc<Mutex<Script>>) {
    let mut handlers = Vec::new();
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        let mut state = script.lock().unwrap();
        if state.stop {
            break;
        }
        stream.set_nodelay(true).unwrap();
        state.connections += 1;
        state.streams.push(stream.try_clone().unwrap());
        let script = Arc::clone(script);
        handlers.push(thread::spawn(move || {
            let _ = serve(stream, &script);
        }));
    }
    for handler in handlers {
        handler.join().unwrap();
    }
}

fn serve(mut stream: TcpStream, script: &Mutex<Script>) -> std::io::Result<()> {
    loop {
        let mut prefix = [0; 4];
        stream.read_exact(&mut prefix)?;
        let mut frame = vec![0; u32::from_be_bytes(prefix) as usize];
        stream.read_exact(&mut frame)?;
        let mut request = Reader::new(&frame, false);
        let (api, version) = (request.i16().unwrap(), request.i16().unwrap());
        let correlation = request.i32().unwrap();
        request.nullable_string().unwrap();
        let mut answer = Vec::with_capacity(8 << 20);
        match api {
            18 => api_versions(&mut answer, correlation, version, &script.lock().unwrap()),
            3 => metadata(&mut answer, correlation, &mut script.lock().unwrap()),
            2 => list_offsets(request, &mut answer, correlation, &script.lock().unwrap()),
            1 => fetch(request, &mut answer, (version, correlation), script),
            23 => epochs(request, &mut answer, correlation, &mut script.lock().unwrap()),
            other => panic!("api {other}"),
        }
        let len = (answer.len() as u32).to_be_bytes();
        answer.splice(0..0, len);
        let (cut, dribble) = {
            let mut state = script.lock().unwrap();
            let cut = if api == 1 && !state.cuts.is_empty() { Some(state.cuts.remove(0)) } else { None };
            (cut, state.dribble && api == 1)
        };
        if let Some(cut) = cut {
            stream.write_all(&answer[..cut.min(answer.len())])?;
            return stream.shutdown(Shutdown::Both);
        }
        if dribble {
            for byte in &answer {
                stream.write_all(std::slice::from_ref(byte))?;
            }
        } else {
            stream.write_all(&answer)?;
        }
    }
}

fn api_versions(into: &mut Vec<u8>, correlation: i32, version: i16, script: &Script) {
    let known = script.versions_max;
    let (version, error) = if version > known { (0, 35) } else { (version, 0) };
    let mut out = Writer::new(into, version >= 3);
    out.i32(correlation);
    out.i16(error);
    let apis = [(1, 4, script.fetch_max), (2, 4, 7), (3, 0, script.metadata_max), (18, 0, known), (23, 4, 4)];
    out.array_len(apis.len());
    for (api, low, high) in apis {
        (out.i16(api), out.i16(low), out.i16(high), out.no_tags());
    }
    if version >= 1 {
        out.i32(0);
    }
    out.no_tags();
}

fn metadata(into: &mut Vec<u8>, correlation: i32, script: &mut Script) {
    script.metadata += 1;
    let mut out = Writer::new(into, true);
    (out.i32(correlation), out.no_tags(), out.i32(0));
    out.array_len(script.brokers.len());
    for (id, addr) in &script.brokers {
        (out.i32(*id), out.string(&addr.ip().to_string()), out.i32(addr.port().into()), out.nullable_string(None));
        out.no_tags();
    }
    (out.nullable_string(Some("fake")), out.i32(-1));
    out.array_len(script.topics.len());
    for (name, state) in &script.topics {
        let (error, leaders) = match state {
            Ok(leaders) => (0, leaders.as_slice()),
            Err(code) => (*code, &[][..]),
        };
        (out.i16(error), out.string(name), out.bool(false), out.array_len(leaders.len()));
        for (index, leader) in (0..).zip(leaders) {
            (out.i16(0), out.i32(index), out.i32(*leader), out.i32(7));
            (out.array_len(0), out.array_len(0), out.array_len(0), out.no_tags());
        }
        (out.i32(0), out.no_tags());
    }
    (out.i32(0), out.no_tags());
}

fn list_offsets(mut request: Reader<'_>, into: &mut Vec<u8>, correlation: i32, script: &Script) {
    request.set_flexible(true);
    request.skip_tags().unwrap();
    (request.i32().unwrap(), request.i8().unwrap());
    answer_partitions(request, into, correlation, |topic, request, out| {
        let partition = request.i32().unwrap();
        request.i32().unwrap();
        let time = request.i64().unwrap();
        let log = script.logs.get(&(topic.to_owned(), partition));
        let (error, offset) = match (log, time) {
            (None, _) => (3, -1),
            (Some(log), -1) => (log.error, log.end()),
            (Some(log), -2) => (log.error, log.start),
            (Some(log), _) => (log.error, -1),
        };
        (out.i32(partition), out.i16(error), out.i64(-1), out.i64(offset), out.i32(-1));
    });
}

/// Answers a flexible request that ends with topics of partitions: `each` reads one and writes its part.
fn answer_partitions<'a>(
    mut request: Reader<'a>,
    into: &mut Vec<u8>,
    correlation: i32,
    mut each: impl FnMut(&str, &mut Reader<'a>, &mut Writer<'_>),
) {
    let topics = request.array_len().unwrap();
    let mut out = Writer::new(into, true);
    (out.i32(correlation), out.no_tags(), out.i32(0), out.array_len(topics));
    for _ in 0..topics {
        let topic = request.string().unwrap();
        let partitions = request.array_len().unwrap();
        (out.string(topic), out.array_len(partitions));
        for _ in 0..partitions {
            each(topic, &mut request, &mut out);
            (request.skip_tags().unwrap(), out.no_tags());
        }
        (request.skip_tags().unwrap(), out.no_tags());
    }
    out.no_tags();
    out.check().unwrap();
}

/// A topic that no id names.
pub(crate) const UNKNOWN_ID: &str = "?";

fn fetch(mut request: Reader<'_>, into: &mut Vec<u8>, head: (i16, i32), script: &Mutex<Script>) {
    let (version, correlation) = head;
    request.set_flexible(version >= 12);
    request.skip_tags().unwrap();
    if version < 15 {
        request.i32().unwrap();
    }
    let mut seen = Seen { max_wait_ms: request.i32().unwrap(), version, ..Seen::default() };
    request.i32().unwrap();
    seen.max_bytes = request.i32().unwrap();
    (request.i8().unwrap(), request.i32().unwrap(), request.i32().unwrap());
    for _ in 0..request.array_len().unwrap() {
        let topic = match version {
            13.. => {
                let id = request.array().unwrap();
                let known = script.lock().unwrap().ids.get(&id).cloned();
                known.unwrap_or_else(|| {
                    seen.unknown_id = id;
                    UNKNOWN_ID.to_owned()
                })
            }
            _ => request.string().unwrap().to_owned(),
        };
        for _ in 0..request.array_len().unwrap() {
            let (partition, epoch) = (request.i32().unwrap(), request.i32().unwrap());
            let offset = request.i64().unwrap();
            if version >= 12 {
                request.i32().unwrap();
            }
            request.i64().unwrap();
            seen.partitions.push((topic.clone(), partition, epoch, offset, request.i32().unwrap()));
            request.skip_tags().unwrap();
        }
        request.skip_tags().unwrap();
    }
    request.array_len().unwrap();
    seen.rack = request.string().unwrap().to_owned();
    script.lock().unwrap().fetches.push(seen.clone());
    let end = Instant::now() + Duration::from_millis(seen.max_wait_ms.max(0) as u64);
    loop {
        let state = script.lock().unwrap();
        if state.stop || Instant::now() >= end || has_news(&seen, &state) {
            answer_fetch(&seen, into, correlation, &state);
            return;
        }
        drop(state);
        thread::sleep(Duration::from_millis(1));
    }
}

fn has_news(seen: &Seen, script: &Script) -> bool {
    seen.partitions.iter().any(|(topic, partition, _, offset, _)| {
        let log = script.logs.get(&(topic.clone(), *partition));
        let answers = |log: &Log| log.error != 0 || log.end() != *offset || log.diverging.is_some() || log.replica > 0;
        log.is_none_or(answers)
    })
}

fn answer_fetch(seen: &Seen, into: &mut Vec<u8>, correlation: i32, script: &Script) {
    let mut out = Writer::new(into, seen.version >= 12);
    (out.i32(correlation), out.no_tags());
    (out.i32(script.throttle_ms), out.i16(0), out.i32(0));
    out.array_len(seen.partitions.len());
    let mut left = seen.max_bytes as usize;
    let mut first = true;
    let nothing = Log { error: if seen.version >= 13 { 100 } else { 3 }, ..Log::default() };
    for (topic, partition, _, offset, limit) in &seen.partitions {
        let log = script.logs.get(&(topic.clone(), *partition)).unwrap_or(&nothing);
        let outside = log.error == 0 && (*offset < log.start || *offset > log.end());
        let error = if outside { 1 } else { log.error };
        let answers = error == 0 && log.replica == 0;
        let records = if answers { read(log, *offset, (*limit as usize).min(left), first) } else { Vec::new() };
        first &= records.is_empty();
        left = left.saturating_sub(records.len());
        let id = script.ids.iter().find(|(_, name)| *name == topic).map(|(id, _)| *id);
        if seen.version >= 13 {
            out.raw(&id.unwrap_or(seen.unknown_id))
        } else {
            out.string(topic)
        }
        out.array_len(1);
        (out.i32(*partition), out.i16(error), out.i64(log.end()), out.i64(log.end()), out.i64(log.start));
        out.array_len(log.aborted.len());
        for aborted in &log.aborted {
            (out.i64(aborted.producer_id), out.i64(aborted.first_offset), out.no_tags());
        }
        (out.i32(if log.replica > 0 { log.replica } else { -1 }), out.bytes(&records));
        let tags = u32::from(log.diverging.is_some()) + u32::from(log.hint.is_some());
        if seen.version >= 12 {
            out.uvarint(tags);
        }
        if let Some((epoch, end)) = log.diverging {
            (out.uvarint(0), out.uvarint(13), out.i32(epoch), out.i64(end), out.no_tags());
        }
        if let Some((leader, epoch)) = log.hint {
            (out.uvarint(1), out.uvarint(9), out.i32(leader), out.i32(epoch), out.no_tags());
        }
        out.no_tags();
    }
    out.no_tags();
    out.check().unwrap();
}

fn epochs(mut request: Reader<'_>, into: &mut Vec<u8>, correlation: i32, script: &mut Script) {
    request.set_flexible(true);
    request.skip_tags().unwrap();
    request.i32().unwrap();
    answer_partitions(request, into, correlation, |topic, request, out| {
        let partition = request.i32().unwrap();
        script.epochs.push((partition, request.i32().unwrap(), request.i32().unwrap()));
        let (error, epoch, end) = script.logs[&(topic.to_owned(), partition)].epoch_end;
        (out.i16(error), out.i32(partition), out.i32(epoch), out.i64(end));
    });
}

/// As Kafka does: whole bytes up to the limit, the last batch cut, the very first batch whole in any case.
fn read(log: &Log, offset: i64, limit: usize, first: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (_, _, batch) in log.batches.iter().filter(|(_, next, _)| *next > offset) {
        if bytes.is_empty() && first {
            bytes.extend_from_slice(batch);
        } else {
            bytes.extend_from_slice(&batch[..batch.len().min(limit.saturating_sub(bytes.len()))]);
        }
        if bytes.len() >= limit {
            break;
        }
    }
    bytes
}

/// A sealed batch with these values, keys none, timestamps 1000 and up.
pub(crate) fn batch(base: i64, values: &[&[u8]], codec: Compression, stamp: &Stamp) -> Vec<u8> {
    let size = 256 + values.iter().map(|v| v.len() + 32).sum::<usize>();
    let mut buf = vec![0; size];
    let mut builder = BatchBuilder::new();
    for (i, value) in (0..).zip(values) {
        builder.append(&mut buf, 1_000 + i, None, Some(value), RawHeaders::EMPTY).unwrap();
    }
    let mut compressor = Compressor::new(codec, size).unwrap();
    let len = builder.seal(&mut buf, stamp, &mut compressor).unwrap();
    buf.truncate(len);
    buf[..8].copy_from_slice(&base.to_be_bytes()); // not covered by the checksum
    buf
}

/// A marker that ends a transaction of this producer.
pub(crate) fn marker(base: i64, producer_id: i64, commit: bool) -> Vec<u8> {
    let mut buf = vec![0; 256];
    let mut builder = BatchBuilder::new();
    let key = [0, 0, 0, u8::from(commit)];
    builder.append(&mut buf, 1_000, Some(&key), Some(&[0; 6]), RawHeaders::EMPTY).unwrap();
    let stamp = Stamp { producer_id, producer_epoch: 0, base_sequence: -1, transactional: true };
    let len = builder.seal(&mut buf, &stamp, &mut Compressor::new(Compression::None, 0).unwrap()).unwrap();
    buf.truncate(len);
    buf[..8].copy_from_slice(&base.to_be_bytes());
    buf[22] |= 0x20; // the control bit of the attributes
    let crc = crc32c::crc32c(&buf[21..]);
    buf[17..21].copy_from_slice(&crc.to_be_bytes());
    buf
}
