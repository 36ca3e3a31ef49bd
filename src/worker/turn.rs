//! The turn: commands, sockets, steps, commit.
use super::failure::{DeserializationResponse, RunError, UndecodableRecord};
use super::stream::StreamThread;
use crate::base::id::TaskId;
use crate::budget::{Level, Rung};
use crate::client::{FetchFault, Slot};
use crate::net::NetError;
use crate::node::{Fault, Parked};
use crate::task::queue::PartitionQueue;
use crate::task::step::{Phase, StepEnd, StepEnv};
use plimsoll_alloc::Module;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Records of one task in a turn before its sockets and the other tasks have their turn.
const STEP_BUDGET: u32 = 1_024;
/// Longest sleep of a thread that has nothing to do, in milliseconds.
const IDLE_MS: i64 = 100;

/// Part of a store's entries that is evicted in one turn under pressure.
const SHED_PART: usize = 8;
/// The governor needs time to see what was shed, in milliseconds.
const SHED_EVERY_MS: i64 = 20;

/// What the tasks of a turn did.
struct Stepped {
    /// Whether some task may go on at once.
    more: bool,
    /// When the first waiting task wants to be asked again (milliseconds, monotonic clock).
    until: Option<i64>,
}

impl StreamThread {
    /// One turn.
    pub(super) fn turn(&mut self) -> Result<(), RunError> {
        self.obey()?;
        if self.ending {
            return Ok(());
        }
        let stepped = self.step_all()?;
        self.punctuate_all()?;
        self.arena.reset();
        self.tell_running();
        self.publish_allocations();
        self.relieve();
        let now = self.shared.clock.mono_ms();
        if self.is_commit_asked() || now >= self.commit_at || self.commit_early() {
            self.commit()?;
            self.commit_at = self.shared.clock.mono_ms() + self.shared.settings.commit_interval_ms;
        }
        self.poll(&stepped)
    }

    /// Gives memory back while the governor asks for it, and takes up again when it no longer does.
    fn relieve(&mut self) {
        let reading = self.pressure.read();
        // A full row looks tight, and stores keep within it by themselves; they do not help what presses elsewhere.
        let full = reading.level(Module::Cache) == Level::Full || reading.process() == Level::Full;
        let now = self.shared.clock.mono_ms();
        if full && reading.is_pulled(Rung::EvictClean) && now >= self.shed_at {
            self.shed_at = now + SHED_EVERY_MS;
            for store in self.wired.iter().flatten().flat_map(|wired| &wired.stores) {
                store.shed(store.weight() / SHED_PART);
            }
        }
        let fewer = reading.is_pulled(Rung::FewerPartitions);
        if fewer || self.fewer_partitions {
            self.fewer_partitions = fewer;
            for task in self.tasks.iter().filter(|task| task.phase == Phase::Running) {
                // Never fewer than one: the first that has nothing, since the task waits for it.
                let queues = task.group.queues();
                let one = queues.iter().position(PartitionQueue::is_empty).unwrap_or(0);
                for (at, queue) in queues.iter().enumerate() {
                    self.fetcher.demand(queue.slot(), !fewer || at == one);
                }
            }
        }
    }

    /// Shows what this thread has allocated so far.
    fn publish_allocations(&mut self) {
        let bytes = plimsoll_alloc::thread_allocated_bytes();
        let calls =
            if self.shared.settings.count_allocations { plimsoll_alloc::thread_allocations().iter().sum() } else { 0 };
        let (seen_bytes, seen_calls) = std::mem::replace(&mut self.allocated, (bytes, calls));
        self.count(|counters| {
            counters.turns.add(1);
            counters.allocated_bytes.add(bytes.saturating_sub(seen_bytes));
            counters.allocations.add(calls.saturating_sub(seen_calls));
        });
        self.publish_refusals();
    }

    /// Counts what its pools have refused since the last turn.
    fn publish_refusals(&mut self) {
        let refused = (self.fetcher.pool().refused(), self.port.refused());
        let seen = std::mem::replace(&mut self.refusals, refused);
        let ledger = self.shared.shares.ledger();
        for (module, now, before) in [(Module::Batch, refused.0, seen.0), (Module::Producer, refused.1, seen.1)] {
            if now > before {
                ledger.count_denied(module, now - before);
            }
        }
    }

    /// Sends what is due, waits for the sockets unless there is work, and takes what came.
    fn poll(&mut self, stepped: &Stepped) -> Result<(), RunError> {
        let punctuation_in = self.punctuation_in();
        let clock = &self.shared.clock;
        let now = clock.mono_ms();
        let fetcher = &mut self.fetcher;
        let punctuate_at = now.saturating_add(punctuation_in);
        let until = stepped.until.unwrap_or(i64::MAX);
        let wake_at = until.min(self.commit_at).min(punctuate_at).min(now + IDLE_MS);
        let idle = !stepped.more && self.commands.is_empty();
        self.port
            .with(|producer, polls| {
                polls.clear();
                let fetch_at = fetcher.prepare(polls, now);
                let produce_at = producer.prepare(polls, now);
                let until = wake_at.min(fetch_at).min(produce_at);
                polls.wait_until(now, if idle { until } else { now })?;
                let now = clock.mono_ms();
                fetcher.process(polls, now);
                producer.process(polls, now);
                Ok::<(), NetError>(())
            })
            .map_err(RunError::internal)?;
        self.take_fetch_faults()
    }

    /// Lets every running task process what it has.
    fn step_all(&mut self) -> Result<Stepped, RunError> {
        let mut stepped = Stepped { more: false, until: None };
        let mut index = 0;
        while index < self.tasks.len() {
            if self.tasks[index].phase == Phase::Running {
                self.step_one(index, &mut stepped)?;
            }
            index += 1;
        }
        Ok(stepped)
    }

    fn step_one(&mut self, index: usize, stepped: &mut Stepped) -> Result<(), RunError> {
        let env = StepEnv {
            arena: &self.arena,
            port: &self.port,
            fault: &self.fault,
            now_ms: self.shared.clock.wall_ms(),
            mono_ms: self.shared.clock.mono_ms(),
        };
        let (task, fetcher) = (&mut self.tasks[index], &mut self.fetcher);
        let id = task.id;
        let outcome = catch_unwind(AssertUnwindSafe(|| task.run(fetcher, &env, STEP_BUDGET)));
        let (done, end) = match outcome {
            Ok(outcome) => outcome,
            Err(panic) => {
                let reason = panic_text(panic.as_ref());
                return self.fail_task(id, RunError::Panicked { task: id, reason });
            }
        };
        let skipped = self.tasks[index].group.take_skipped() + self.port.take_dropped();
        self.count(|counters| {
            counters.records_in.add(u64::from(done));
            counters.skipped.add(skipped);
        });
        match end {
            StepEnd::Budget => stepped.more = true,
            StepEnd::Empty => {}
            StepEnd::Waiting(until) => {
                stepped.until = Some(stepped.until.map_or(until, |at| at.min(until)));
                self.urge(index);
            }
            StepEnd::Fault { queue, fault } => {
                stepped.more = true;
                return self.step_failed(index, queue, fault);
            }
            StepEnd::NoTimestamp { queue } => {
                let at = self.head_of(index, queue);
                let reason = "its timestamp is negative; choose another TimestampPolicy for the source".to_owned();
                return self.fail_task(id, RunError::Processing { task: id, at, reason });
            }
            StepEnd::Unreadable(unreadable) => {
                let (topic, partition) = self.first_input(index);
                let error = RunError::Unreadable {
                    topic,
                    partition,
                    offset: unreadable.base_offset,
                    reason: unreadable.error.to_string(),
                };
                return self.fail_task(id, error);
            }
        }
        Ok(())
    }

    /// A waiting task's empty partitions are fetched alone, into the reserved frame.
    fn urge(&mut self, index: usize) {
        for queue in self.tasks[index].group.queues() {
            if queue.is_empty() {
                self.fetcher.urgent(queue.slot());
            }
        }
    }

    fn first_input(&self, index: usize) -> (String, u32) {
        let queue = self.tasks[index].group.queues().first();
        queue.map_or((String::new(), 0), |queue| (queue.topic.to_string(), queue.partition))
    }

    /// A step answered a fault: an undecodable record goes to the handler, all else fails the task.
    fn step_failed(&mut self, index: usize, queue: usize, fault: Fault) -> Result<(), RunError> {
        let (parked, _) = self.fault.take();
        let id = self.tasks[index].id;
        if let (Fault::Decode, Some(Parked::Decode { topic, partition, offset, .. })) = (fault, &parked) {
            let record = UndecodableRecord {
                topic: topic.as_str().to_owned(),
                partition: *partition,
                offset: *offset,
                reason: parked.as_ref().map(ToString::to_string).unwrap_or_default(),
            };
            let handler = &self.shared.settings.on_undecodable;
            let response = match catch_unwind(AssertUnwindSafe(|| handler(&record))) {
                Ok(response) => response,
                Err(panic) => {
                    let reason = panic_text(panic.as_ref());
                    return self.fail_task(id, RunError::Panicked { task: id, reason });
                }
            };
            if response == DeserializationResponse::Continue {
                self.count(|counters| counters.skipped.add(1));
                let skipped = self.tasks[index].skip(&mut self.fetcher, queue);
                return match skipped {
                    Ok(()) => Ok(()),
                    Err(bad) => self.fail_task(
                        id,
                        RunError::Unreadable {
                            topic: record.topic,
                            partition: record.partition,
                            offset: bad.base_offset,
                            reason: bad.error.to_string(),
                        },
                    ),
                };
            }
            return self.fail_task(id, RunError::Undecodable(record));
        }
        let at = self.head_of(index, queue);
        let error = self.describe(id, fault, parked, at);
        self.fail_task(id, error)
    }

    /// The record that a queue stands at, in words.
    fn head_of(&self, index: usize, queue: usize) -> String {
        self.tasks[index].group.queues().get(queue).map_or_else(String::new, |queue| {
            let offset = queue.head_info().map_or(-1, |head| head.offset);
            format!("{}-{} at offset {offset}", queue.topic, queue.partition)
        })
    }

    /// A fault in words.
    pub(super) fn describe(&self, task: TaskId, fault: Fault, parked: Option<Parked>, at: String) -> RunError {
        let stopped = matches!(&parked, Some(Parked::Store { error, .. }) if error.is_stop());
        let details = parked.map(|parked| self.shared.topology.explain(&parked));
        let port = self.port.take_failure();
        let reason = details.or(port).unwrap_or_else(|| "no details".to_owned());
        match fault {
            Fault::Decode | Fault::User => RunError::Processing { task, at, reason },
            Fault::Produce | Fault::TooLarge => RunError::Production { task, reason },
            Fault::Store if stopped => RunError::StoreStopped { reason },
            Fault::Store => RunError::Store { reason },
        }
    }

    /// Faults that the fetcher could not settle by itself.
    fn take_fetch_faults(&mut self) -> Result<(), RunError> {
        while let Some((slot, fault)) = self.fetcher.next_fault() {
            let Some(index) = self.tasks.iter().position(|t| t.group.queues().iter().any(|q| q.slot() == slot)) else {
                continue;
            };
            self.fetch_failed(index, slot, fault)?;
        }
        Ok(())
    }

    fn fetch_failed(&mut self, index: usize, slot: Slot, fault: FetchFault) -> Result<(), RunError> {
        let task = self.tasks[index].id;
        let Some(queue) = self.tasks[index].group.queues().iter().find(|q| q.slot() == slot) else { return Ok(()) };
        let (topic, partition, source) = (queue.topic.clone(), queue.partition, queue.source);
        let offset = self.fetcher.position(slot);
        let parted = match fault {
            FetchFault::OffsetOutOfRange { .. } => Some(None),
            FetchFault::Truncated { end_offset, .. } => Some(Some(end_offset).filter(|end| *end >= 0)),
            _ => None,
        };
        if let Some(end) = parted {
            let thread = self.index;
            self.tell(super::message::Request::OutOfRange { thread, task, source, topic, partition, offset, end });
            return Ok(());
        }
        let error = RunError::Unreadable { topic: topic.to_string(), partition, offset, reason: fault.to_string() };
        self.fail_task(task, error)
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
