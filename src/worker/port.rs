//! The stream thread's port: what leaves its nodes goes into the producer's batches, and a full pool makes the node
//! wait.
//!
//! Invariant: a record that was taken is counted in the acknowledgement slot of its task before `produce` returns.
//! Bound: none of its own; the producer's pool is. Called by the nodes during a step and by the turn.
use crate::base::clock::Clock;
use crate::base::id::{NodeId, SinkId, StoreId, TaskId};
use crate::net::PollSet;
use crate::node::{Fault, Flow, LogBytes, OutBytes, Port};
use crate::produce::{Ack, AckSlot, AppendError, OutRecord, OutTopic, Producer};
use crate::wire::partition_for;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longest wait of one round while the pool is full or a flush is on its way, in milliseconds.
const PUMP_MS: i64 = 100;
/// Longest wait of a partitioner for the number of partitions, in milliseconds: the producer's for a topic.
const PARTITIONS_MS: i64 = 60_000;
/// Topics that records may name on one thread.
const MOST_NAMED: usize = 1_000;

/// A topic that nodes write to, and a slot for each task that does.
struct Output {
    /// `None`: each record names it.
    topic: Option<OutTopic>,
    /// By the task's partition; `None` before a task of it ran here.
    slots: Vec<Option<AckSlot>>,
}

struct Inner {
    producer: Producer,
    polls: PollSet,
    sinks: Vec<Output>,
    changelogs: Vec<Option<Output>>,
    /// Topics that records have named.
    named: BTreeMap<String, OutTopic>,
}

/// Producer, poll set and slots of one stream thread.
pub(crate) struct ThreadPort {
    inner: RefCell<Inner>,
    clock: Arc<dyn Clock>,
    failure: RefCell<Option<String>>,
    dropped: Cell<u64>,
}

impl ThreadPort {
    /// `sinks` and `changelogs` are full topic names, by [`SinkId`] and [`StoreId`]; a store that is not logged has
    /// none, and that of a sink whose records name their topics is empty.
    pub(crate) fn new(
        mut producer: Producer,
        polls: PollSet,
        clock: Arc<dyn Clock>,
        sinks: &[String],
        changelogs: &[Option<String>],
    ) -> Self {
        let mut output = |name: &String| {
            let topic = (!name.is_empty()).then(|| producer.topic(name));
            Output { topic, slots: Vec::new() }
        };
        let sinks = sinks.iter().map(&mut output).collect();
        let changelogs = changelogs.iter().map(|name| name.as_ref().map(&mut output)).collect();
        let inner = RefCell::new(Inner { producer, polls, sinks, changelogs, named: BTreeMap::new() });
        Self { inner, clock, failure: RefCell::new(None), dropped: Cell::new(0) }
    }
}

impl ThreadPort {
    /// Opens the slots of a task that begins here.
    pub(crate) fn open_task(&self, task: TaskId, sinks: &[SinkId], stores: &[StoreId]) {
        let inner = &mut *self.inner.borrow_mut();
        for sink in sinks {
            if let Some(output) = inner.sinks.get_mut(sink.index()) {
                output.open(task.partition, &mut inner.producer);
            }
        }
        for store in stores {
            if let Some(Some(output)) = inner.changelogs.get_mut(store.index()) {
                output.open(task.partition, &mut inner.producer);
            }
        }
    }

    /// Forgets the slots of a task that has left or failed; what is still on its way belongs to nobody.
    pub(crate) fn close_task(&self, task: TaskId, sinks: &[SinkId], stores: &[StoreId]) {
        let inner = &mut *self.inner.borrow_mut();
        for sink in sinks {
            if let Some(output) = inner.sinks.get_mut(sink.index()) {
                output.close(task.partition, &mut inner.producer);
            }
        }
        for store in stores {
            if let Some(Some(output)) = inner.changelogs.get_mut(store.index()) {
                output.close(task.partition, &mut inner.producer);
            }
        }
    }

    /// What became of a task's records for a sink.
    pub(crate) fn sink_ack(&self, sink: SinkId, partition: u32) -> Option<Ack> {
        let inner = self.inner.borrow();
        let slot = inner.sinks.get(sink.index())?.slot(partition)?;
        Some(inner.producer.ack(slot))
    }

    /// What became of a task's records for a store's changelog.
    pub(crate) fn changelog_ack(&self, store: StoreId, partition: u32) -> Option<Ack> {
        let inner = self.inner.borrow();
        let slot = inner.changelogs.get(store.index())?.as_ref()?.slot(partition)?;
        Some(inner.producer.ack(slot))
    }

    /// Records that nodes dropped as Kafka Streams drops them, since the last call.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.replace(0)
    }

    /// Why the last `produce` or `changelog` failed.
    pub(crate) fn take_failure(&self) -> Option<String> {
        self.failure.borrow_mut().take()
    }

    /// How often the producer had no buffer for a record.
    pub(crate) fn refused(&self) -> u64 {
        self.inner.borrow().producer.stats().full
    }

    /// Lets `work` use the producer and the poll set: the turn's wait.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Producer, &mut PollSet) -> R) -> R {
        let inner = &mut *self.inner.borrow_mut();
        work(&mut inner.producer, &mut inner.polls)
    }

    /// One round over the producer's sockets alone: while a node waits for room, or a commit for acknowledgements.
    pub(crate) fn pump(&self) -> Result<(), Fault> {
        let inner = &mut *self.inner.borrow_mut();
        let now = self.clock.mono_ms();
        inner.polls.clear();
        let deadline = inner.producer.prepare(&mut inner.polls, now);
        if let Err(error) = inner.polls.wait_until(now, deadline.min(now + PUMP_MS)) {
            *self.failure.borrow_mut() = Some(error.to_string());
            return Err(Fault::Produce);
        }
        inner.producer.process(&inner.polls, self.clock.mono_ms());
        Ok(())
    }

    fn append(
        &self,
        pick: impl Fn(&mut Inner) -> Option<(OutTopic, AckSlot)>,
        partition: Option<u32>,
        record: &OutBytes<'_>,
    ) -> Flow {
        loop {
            let (topic, answer) = {
                let inner = &mut *self.inner.borrow_mut();
                let Some((topic, slot)) = pick(inner) else { return Err(Fault::Produce) };
                (topic, append_once(inner, topic, slot, partition, record))
            };
            match answer {
                Ok(()) => return Ok(()),
                Err(AppendError::Full | AppendError::NotReady) => self.pump()?,
                Err(error) => return Err(self.refuse(topic, &error)),
            }
        }
    }

    #[cold]
    fn refuse(&self, topic: OutTopic, error: &AppendError) -> Fault {
        let text = format!("{}: {error}", self.inner.borrow().producer.topic_name(topic));
        *self.failure.borrow_mut() = Some(text);
        if matches!(error, AppendError::TooLarge { .. }) { Fault::TooLarge } else { Fault::Produce }
    }
}

#[inline]
fn append_once(
    inner: &mut Inner,
    topic: OutTopic,
    slot: AckSlot,
    partition: Option<u32>,
    record: &OutBytes<'_>,
) -> Result<(), AppendError> {
    // Of a topic whose partitions are not known the producer refuses any, and says so once it was asked for too long.
    let partition = match (partition, record.key) {
        (Some(partition), _) => partition,
        (None, Some(key)) => inner.producer.partitions(topic).map_or(0, |count| partition_for(key, count)),
        (None, None) => inner.producer.sticky_partition(topic, bytes_of(record)).unwrap_or(0),
    };
    let record =
        OutRecord { key: record.key, value: record.value, headers: record.headers, timestamp: record.timestamp };
    inner.producer.append(topic, partition, &record, slot)
}

/// Bytes of key and value: what the sticky partitioner counts.
fn bytes_of(record: &OutBytes<'_>) -> usize {
    record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len)
}

impl Output {
    fn slot(&self, partition: u32) -> Option<AckSlot> {
        self.slots.get(partition as usize).copied().flatten()
    }

    fn open(&mut self, partition: u32, producer: &mut Producer) {
        let at = partition as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, None);
        }
        if self.slots[at].is_none() {
            self.slots[at] = Some(producer.ack_slot());
        }
    }

    fn close(&mut self, partition: u32, producer: &mut Producer) {
        if let Some(slot) = self.slots.get_mut(partition as usize).and_then(Option::take) {
            producer.close_slot(slot);
        }
    }
}

impl Port for ThreadPort {
    fn produce(&self, task: TaskId, sink: SinkId, partition: Option<u32>, record: &OutBytes<'_>) -> Flow {
        let pick = |inner: &mut Inner| {
            let output = inner.sinks.get(sink.index())?;
            Some((output.topic?, output.slot(task.partition)?))
        };
        self.append(pick, partition, record)
    }

    fn produce_named(&self, task: TaskId, sink: SinkId, topic: &str, record: &OutBytes<'_>) -> Flow {
        let topic = {
            let inner = &mut *self.inner.borrow_mut();
            match inner.named.get(topic).copied() {
                Some(known) => known,
                None if topic.is_empty() || inner.named.len() >= MOST_NAMED => {
                    let text = format!("a record names \"{topic}\", which is no topic or one too many");
                    *self.failure.borrow_mut() = Some(text);
                    return Err(Fault::Produce);
                }
                None => {
                    let new = inner.producer.topic(topic);
                    inner.named.insert(topic.to_owned(), new);
                    new
                }
            }
        };
        let pick = |inner: &mut Inner| Some((topic, inner.sinks.get(sink.index())?.slot(task.partition)?));
        self.append(pick, None, record)
    }

    fn partitions(&self, sink: SinkId) -> Result<u32, Fault> {
        let until = self.clock.mono_ms() + PARTITIONS_MS;
        loop {
            let known = {
                let inner = &*self.inner.borrow();
                let topic = inner.sinks.get(sink.index()).and_then(|output| output.topic).ok_or(Fault::Produce)?;
                inner.producer.partitions(topic)
            };
            match known {
                Some(count) => return Ok(count),
                None if self.clock.mono_ms() > until => {
                    *self.failure.borrow_mut() = Some("the partitions of an output topic are not known".to_owned());
                    return Err(Fault::Produce);
                }
                None => self.pump()?,
            }
        }
    }

    fn changelog(&self, store: StoreId, partition: u32, record: &LogBytes<'_>) -> Flow {
        let pick = |inner: &mut Inner| {
            let output = inner.changelogs.get(store.index())?.as_ref()?;
            Some((output.topic?, output.slot(partition)?))
        };
        // What has no time of its own is written now, as Java's producer does.
        let timestamp = if record.timestamp < 0 { self.clock.wall_ms() } else { record.timestamp };
        self.append(pick, Some(partition), &LogBytes { timestamp, ..*record }.out())
    }

    fn dropped(&self, _node: NodeId) {
        self.dropped.set(self.dropped.get() + 1);
    }
}
