//! The driver.
use super::error::DriverError;
use super::inbox::{Inbox, Waiting};
use super::input::InputTopic;
use super::options::DriverOptions;
use super::output::{OutputTopic, RawOutput};
use super::recorder::Recorder;
use crate::arena::Arena;
use crate::base::clock::{Clock, ManualClock};
use crate::base::id::{SourceId, TaskId};
use crate::codec::Scratch;
use crate::node::{
    Cx, Fault, FaultCell, Parked, PunctuationType, RawRecord, RecordContext, Source, StateStore, WireSettings, Wired,
};
use crate::store::backend::Backend;
use crate::store::batch::StoreBatch;
use crate::store::memory::MemoryBackend;
use crate::topology::{Stamped, TimestampPolicy, Topology};
use crate::wire::{Header, RawHeaders, RecordView};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a driver's arena.
const ARENA_BYTES: usize = 64 << 10;
/// Bytes of a store batch, more than any record.
const BATCH_BYTES: usize = 4 << 20;

struct Input {
    topic: String,
    subtopology: u32,
    node: Rc<dyn Source>,
    timestamps: TimestampPolicy,
    partition_time: Cell<i64>,
    next_offset: Cell<i64>,
    /// Of a global table: its records do not wait for their turn.
    is_global: bool,
}

/// Runs a topology in a test: no broker, no threads, state in memory. Every topic has one partition. As in Kafka
/// Streams' `TopologyTestDriver`, each record is followed by a commit, so caches forward at once, and what is written
/// to a repartition topic is read again before `pipe` returns.
///
/// ```
/// use plimsoll::prelude::*;
/// use plimsoll::testing::Driver;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("lines", Consumed::values(Utf8))
///     .flat_map_values(Utf8, |line, out| for word in line.split_whitespace() { out.push(word) })
///     .group_by(Utf8, |_, word| word)
///     .count(Materialized::named("counts"))
///     .to_stream()
///     .to("word-counts");
///
/// let driver = Driver::new(&builder.build().unwrap())?;
/// driver.input("lines", Utf8, Utf8).pipe_value("to be or not to be")?;
/// let counts = driver.output("word-counts", Utf8, I64).read_pairs()?;
/// assert_eq!(counts.last(), Some(&("be".to_owned(), 2)));
/// assert_eq!(driver.store("counts", Utf8, I64)?.get("to")?, Some(2));
/// # Ok::<(), plimsoll::testing::DriverError>(())
/// ```
pub struct Driver {
    options: DriverOptions,
    wired: Vec<Wired>,
    inputs: Vec<Input>,
    pub(super) store_names: Vec<String>,
    port: Recorder,
    inbox: RefCell<Inbox>,
    headers: RefCell<Vec<u8>>,
    backend: Arc<MemoryBackend>,
    batch: RefCell<StoreBatch>,
    fault: FaultCell,
    arena: RefCell<Arena>,
    clock: ManualClock,
    stream_time: Cell<i64>,
    undecodable: Cell<u64>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Driver {
    /// A driver whose wall clock begins at 0.
    ///
    /// # Errors
    /// Only on a fault of the library.
    pub fn new(topology: &Topology) -> Result<Self, DriverError> {
        Self::options().build(topology)
    }

    /// To choose the application's id, the start of the wall clock, the size of the overlay.
    pub fn options() -> DriverOptions {
        DriverOptions::default()
    }

    pub(crate) fn wire(topology: &Topology, options: DriverOptions) -> Result<Self, DriverError> {
        let backend = Arc::new(MemoryBackend::new());
        let settings = WireSettings {
            application_id: &options.application_id,
            backend: Arc::clone(&backend) as Arc<dyn Backend>,
            overlay_bytes_per_store: options.overlay_bytes,
            record_bytes: options.record_bytes,
            emit_interval_ms: 0,
            spill: Rc::new(RefCell::new(StoreBatch::with_capacity(BATCH_BYTES))),
        };
        let internal = |error: crate::node::WiringError| DriverError::Internal { reason: error.to_string() };
        let wired = topology
            .subtopologies()
            .iter()
            .map(|subtopology| topology.wire(subtopology.id, &settings).map_err(internal))
            .collect::<Result<Vec<_>, _>>()?;
        let inputs = inputs(topology, &wired, &options.application_id);
        let full = |topic: &crate::topology::TopicName| topic.full(&options.application_id);
        let reads = |topic: &str| inputs.iter().position(|input| input.topic == topic);
        let port = Recorder {
            sinks: topology.sinks().iter().map(|sink| full(&sink.topic)).map(|t| (t.clone(), reads(&t))).collect(),
            changelogs: topology
                .stores()
                .iter()
                .map(|store| store.changelog().map_or_else(String::new, |topic| full(&topic)))
                .collect(),
            inputs: inputs.iter().map(|input| input.topic.clone()).collect(),
            keep: options.keep_outputs,
            ..Recorder::default()
        };
        let driver = Self {
            store_names: topology.stores().iter().map(|store| store.name.clone()).collect(),
            inbox: RefCell::new(Inbox::new(inputs.len())),
            headers: RefCell::default(),
            batch: RefCell::new(StoreBatch::with_capacity(BATCH_BYTES)),
            fault: FaultCell::new(),
            arena: RefCell::new(Arena::new(ARENA_BYTES)),
            clock: ManualClock::at(options.wall_ms),
            stream_time: Cell::new(-1),
            undecodable: Cell::new(0),
            options,
            wired,
            inputs,
            port,
            backend,
        };
        driver.open_tasks()?;
        Ok(driver)
    }

    /// Makes the processors.
    fn open_tasks(&self) -> Result<(), DriverError> {
        for (subtopology, wired) in (0u32..).zip(&self.wired) {
            let arena = self.arena.borrow();
            wired.opened(&self.cx(&arena, subtopology)).map_err(|fault| self.failed(fault))?;
        }
        Ok(())
    }

    /// Calls all closures of processors whose time has come by `now`, the earliest first.
    fn punctuate(&self, kind: PunctuationType, now: i64) -> Result<(), DriverError> {
        loop {
            let next = |wired: &Wired| wired.timers().next(0, kind).filter(|at| *at <= now);
            let due = (0u32..).zip(&self.wired).filter_map(|(at, wired)| Some((next(wired)?, at))).min();
            let Some((_, subtopology)) = due else { return Ok(()) };
            let Some(wired) = self.wired.get(subtopology as usize) else { return Ok(()) };
            let arena = self.arena.borrow();
            wired.punctuate_one(&self.cx(&arena, subtopology), kind, now).map_err(|fault| self.failed(fault))?;
            drop(arena);
            self.arena.borrow_mut().reset();
        }
    }

    /// Whether a processor asked for a commit.
    fn is_commit_asked(&self) -> bool {
        self.wired.iter().filter(|wired| wired.timers().take_commit_request()).count() > 0
    }

    /// A topic to pipe keys and values of these schemas into.
    pub fn input<K, V>(&self, topic: &str, key: K, value: V) -> InputTopic<'_, K, V> {
        let scratch = || Scratch::with_limit(self.options.record_bytes);
        let scratch = RefCell::new((scratch(), scratch()));
        InputTopic { driver: self, topic: topic.to_owned(), key, value, scratch }
    }

    /// A topic to read keys and values of these schemas from. Internal topics have their full names.
    pub fn output<K, V>(&self, topic: &str, key: K, value: V) -> OutputTopic<'_, K, V> {
        OutputTopic { driver: self, topic: topic.to_owned(), key, value }
    }

    /// Pipes a record as bytes; `timestamp` in milliseconds since the epoch.
    ///
    /// # Errors
    /// The task failed, or no source reads the topic.
    pub fn pipe(
        &self,
        topic: &str,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp: i64,
    ) -> Result<(), DriverError> {
        self.pipe_with_headers(topic, key, value, timestamp, &[])
    }

    /// As [`pipe`](Self::pipe), with headers.
    ///
    /// # Errors
    /// As [`pipe`](Self::pipe).
    pub fn pipe_with_headers(
        &self,
        topic: &str,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp: i64,
        headers: &[(&str, &[u8])],
    ) -> Result<(), DriverError> {
        let unknown = || DriverError::UnknownTopic { topic: topic.to_owned() };
        let source = self.inputs.iter().position(|input| input.topic == topic).ok_or_else(unknown)?;
        let mut bytes = self.headers.borrow_mut();
        bytes.clear();
        if headers.is_empty() {
            bytes.push(0);
        } else {
            let headers: Vec<Header<'_>> =
                headers.iter().map(|(key, value)| Header { key: key.as_bytes(), value: Some(value) }).collect();
            RawHeaders::write(&headers, &mut bytes)
                .map_err(|error| DriverError::Codec { what: "headers".to_owned(), reason: error.to_string() })?;
        }
        self.queue(source, key, value, &bytes, timestamp)?;
        drop(bytes);
        self.run()
    }

    /// Puts a record into its source's queue.
    fn queue(
        &self,
        source: usize,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[u8],
        timestamp: i64,
    ) -> Result<(), DriverError> {
        let Some(input) = self.inputs.get(source) else { return Ok(()) };
        let offset = input.next_offset.get();
        input.next_offset.set(offset + 1);
        let raw = RawHeaders::parse(headers).unwrap_or(RawHeaders::EMPTY);
        let record = RecordView { offset, timestamp, key, value, headers: raw };
        let times = [input.partition_time.get(), self.wall_ms()];
        let timestamp = match input.timestamps.stamp(&record, &input.topic, 0, times) {
            Stamped::At(timestamp) => timestamp,
            Stamped::Skip => {
                self.port.dropped.set(self.port.dropped.get() + 1);
                return Ok(());
            }
            Stamped::Invalid => return Err(DriverError::InvalidTimestamp { topic: input.topic.clone(), timestamp }),
        };
        let mut inbox = self.inbox.borrow_mut();
        let record = Waiting {
            key: key.map(|bytes| inbox.copy(bytes)),
            value: value.map(|bytes| inbox.copy(bytes)),
            headers: inbox.copy(headers),
            timestamp,
            offset,
        };
        if input.is_global {
            drop(inbox);
            return self.step_global(source, input.subtopology, record);
        }
        inbox.add(source, record);
        Ok(())
    }

    /// A record of a global table: what it changed is seen by all others at once.
    fn step_global(&self, source: usize, subtopology: u32, record: Waiting) -> Result<(), DriverError> {
        let stepped = self.step(source, &record);
        self.inbox.borrow_mut().recycle(record);
        stepped?;
        let wired = usize::try_from(subtopology).ok().and_then(|at| self.wired.get(at));
        wired.map_or(Ok(()), |wired| wired.stores.iter().try_for_each(|store| self.write(store.as_ref())))
    }

    /// Processes until nothing waits.
    fn run(&self) -> Result<(), DriverError> {
        loop {
            let Some((source, record)) = self.inbox.borrow_mut().next() else { return Ok(()) };
            let stepped = self.step(source, &record);
            self.inbox.borrow_mut().recycle(record);
            stepped?;
            self.punctuate(PunctuationType::StreamTime, self.stream_time.get())?;
            if self.is_commit_asked() || self.options.commit_each {
                self.commit_tasks()?;
            }
            self.read_again()?;
        }
    }

    fn step(&self, source: usize, record: &Waiting) -> Result<(), DriverError> {
        let Some(input) = self.inputs.get(source) else { return Ok(()) };
        let headers = RawHeaders::parse(&record.headers).unwrap_or(RawHeaders::EMPTY);
        if !input.is_global {
            self.stream_time.set(self.stream_time.get().max(record.timestamp));
        }
        input.partition_time.set(input.partition_time.get().max(record.timestamp));
        let arena = self.arena.borrow();
        let mut cx = self.cx(&arena, input.subtopology);
        let (timestamp, offset) = (record.timestamp, record.offset);
        cx.source = RecordContext { topic: &input.topic, partition: 0, offset, timestamp, headers };
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        let flow = input.node.feed(&cx, &RawRecord { key, value, timestamp });
        drop(arena);
        self.arena.borrow_mut().reset();
        match flow {
            Ok(()) => Ok(()),
            Err(Fault::Decode) if self.options.skip_undecodable => {
                self.fault.take();
                self.undecodable.set(self.undecodable.get() + 1);
                Ok(())
            }
            Err(fault) => Err(self.failed(fault)),
        }
    }

    fn cx<'a>(&'a self, arena: &'a Arena, subtopology: u32) -> Cx<'a> {
        let task = TaskId { subtopology, partition: 0 };
        let mut cx = Cx::idle(arena, task, &self.port, &self.fault, self.wall_ms());
        cx.stream_time = self.stream_time.get();
        cx
    }

    /// The task failed: what it did since the last commit is dropped.
    fn failed(&self, fault: Fault) -> DriverError {
        self.wired.iter().for_each(|wired| wired.aborted(0));
        self.inbox.borrow_mut().clear();
        self.port.again.borrow_mut().clear();
        match self.fault.take().0 {
            Some(Parked::Decode { topic, partition, offset, side, error }) => DriverError::Undecodable {
                topic: topic.as_str().to_owned(),
                partition,
                offset,
                reason: format!("{side}: {error}"),
            },
            Some(parked) => DriverError::Failed { reason: parked.to_string() },
            None => DriverError::Failed { reason: format!("{fault:?}") },
        }
    }

    pub(super) fn stores(&self) -> impl Iterator<Item = &Rc<dyn StateStore>> {
        self.wired.iter().flat_map(|wired| &wired.stores)
    }

    /// What was written to topics that the topology reads goes into their queues.
    fn read_again(&self) -> Result<(), DriverError> {
        let mut written = self.port.again.take();
        for record in written.drain(..) {
            let key = record.has_key.then_some(record.key.as_slice());
            let value = record.has_value.then_some(record.value.as_slice());
            self.queue(record.source, key, value, &record.headers, record.timestamp)?;
            self.port.recycle(record);
        }
        *self.port.again.borrow_mut() = written;
        Ok(())
    }

    /// Commits: what stores hold goes downstream, to changelogs and to the backend. Needed only where
    /// [`DriverOptions::commit_each`] is off.
    ///
    /// # Errors
    /// The task failed.
    pub fn commit(&self) -> Result<(), DriverError> {
        self.commit_tasks()?;
        self.read_again()?;
        self.run()
    }

    fn commit_tasks(&self) -> Result<(), DriverError> {
        for (subtopology, wired) in (0u32..).zip(&self.wired) {
            let arena = self.arena.borrow();
            let cx = self.cx(&arena, subtopology);
            for (_, drain) in &wired.drains {
                while drain.drain_one(&cx).map_err(|fault| self.failed(fault))? {}
            }
        }
        self.stores().try_for_each(|store| self.write(store.as_ref()))?;
        self.wired.iter().for_each(|wired| wired.committed(0));
        let internal = |error: crate::store::error::StoreError| DriverError::Internal { reason: error.to_string() };
        self.stores().try_for_each(|store| store.expire(0)).map_err(internal)
    }

    fn write(&self, store: &dyn StateStore) -> Result<(), DriverError> {
        let internal = |error: crate::store::error::StoreError| DriverError::Internal { reason: error.to_string() };
        let mut batch = self.batch.borrow_mut();
        loop {
            batch.clear();
            let collected = store.collect(0, &mut batch).map_err(internal)?;
            if collected.entries > 0 {
                self.backend.write(&batch).map_err(internal)?;
                store.written(0);
            }
            if !collected.more {
                return Ok(());
            }
        }
    }

    /// The next record that was written to a topic, as bytes. Internal topics have their full names.
    pub fn read_raw(&self, topic: &str) -> Option<RawOutput> {
        self.port.topics.borrow_mut().get_mut(topic)?.pop_front()
    }

    /// Names of all topics that were written to, in order.
    pub fn written_topics(&self) -> Vec<String> {
        self.port.topics.borrow().keys().cloned().collect()
    }

    /// Number of records written to sinks and changelogs.
    pub fn records_written(&self) -> u64 {
        self.port.count.get()
    }

    /// Number of records skipped because a key or value was null where none may be, or a timestamp was negative.
    pub fn records_dropped(&self) -> u64 {
        self.port.dropped.get()
    }

    /// Number of records skipped because they could not be decoded.
    pub fn records_undecodable(&self) -> u64 {
        self.undecodable.get()
    }

    /// Moves the wall clock on.
    ///
    /// # Errors
    /// The task failed in a punctuation.
    pub fn advance_wall_clock(&self, by: Duration) -> Result<(), DriverError> {
        self.clock.advance_ms(i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
        self.punctuate(PunctuationType::WallClock, self.wall_ms())?;
        if self.is_commit_asked() || self.options.commit_each {
            self.commit()
        } else {
            self.read_again().and_then(|()| self.run())
        }
    }

    /// The wall clock, milliseconds since the epoch.
    pub fn wall_ms(&self) -> i64 {
        self.clock.wall_ms()
    }

    /// The highest timestamp processed so far; -1 before the first record.
    pub fn stream_time(&self) -> i64 {
        self.stream_time.get()
    }

    /// Bytes that the stores' entries take in memory.
    pub fn overlay_bytes(&self) -> usize {
        self.stores().map(|store| store.weight()).sum()
    }
}

fn inputs(topology: &Topology, wired: &[Wired], application_id: &str) -> Vec<Input> {
    let mut inputs = Vec::new();
    for (index, spec) in topology.sources().iter().enumerate() {
        let id = SourceId(u16::try_from(index).unwrap_or(u16::MAX));
        let node = (0u32..).zip(wired).find_map(|(subtopology, wired)| Some((subtopology, wired.source(id)?)));
        if let Some((subtopology, node)) = node {
            inputs.push(Input {
                topic: spec.topic.full(application_id),
                subtopology,
                node: Rc::clone(node),
                timestamps: spec.timestamps,
                partition_time: Cell::new(-1),
                next_offset: Cell::new(0),
                is_global: topology.subtopologies().iter().any(|s| s.global.contains(&id)),
            });
        }
    }
    inputs
}
