//! What a processor is lent.
use super::headers::Headers;
use super::node::Shared;
use super::record::{Record, RecordMetadata};
use super::stores::{StoreHandle, StoresOf};
use super::{Processed, Processor, ProcessorError};
use crate::base::id::TaskId;
use crate::node::timers::{Place, PunctuationType};
use crate::node::{Cx, Fault, RecordContext, record};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// A closure that is called when its time has come.
pub(super) type Punctuator<P> = Box<dyn for<'c, 'a> FnMut(&mut P, &mut Context<'c, 'a, P>, i64) -> Processed>;

struct Scheduled<P: Processor> {
    /// Taken while it is at work.
    punctuator: Option<Punctuator<P>>,
    cancelled: Rc<Cell<bool>>,
}

/// The closures of one processor.
pub(super) struct Punctuators<P: Processor>(RefCell<Vec<Scheduled<P>>>);

impl<P: Processor> Default for Punctuators<P> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

/// What surrounds a processor: its node, and what is its own.
pub(super) struct Ambit<'c, P: Processor> {
    pub(super) shared: &'c Shared<P>,
    pub(super) punctuators: &'c Punctuators<P>,
    pub(super) stream_time: i64,
}

/// A scheduled call, to be cancelled.
///
/// # Java
/// `org.apache.kafka.streams.processor.Cancellable`.
#[derive(Clone)]
pub struct Timer(Rc<Cell<bool>>);

impl Timer {
    /// Calls no more. May be called any number of times, in the call itself too.
    pub fn cancel(&self) {
        self.0.set(true);
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("cancelled", &self.0.get()).finish()
    }
}

/// What a [`Processor`] is lent with each record and each punctuation: to forward, to open its stores, to schedule, to
/// look at the record's place and the clocks.
///
/// # Java
/// `org.apache.kafka.streams.processor.api.ProcessorContext`.
pub struct Context<'c, 'a, P: Processor> {
    cx: Cx<'a>,
    ambit: Ambit<'c, P>,
    /// What a forward answered: the processor may not have passed it on.
    failed: Cell<Option<Fault>>,
}

impl<P: Processor> fmt::Debug for Context<'_, '_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("task", &self.cx.task).field("metadata", &self.metadata()).finish()
    }
}

impl<'c, 'a, P: Processor> Context<'c, 'a, P> {
    pub(super) fn new(cx: Cx<'a>, ambit: Ambit<'c, P>) -> Self {
        Self { cx, ambit, failed: Cell::new(None) }
    }

    pub(super) fn failed(&self) -> Option<Fault> {
        self.failed.get()
    }

    pub(super) fn take_punctuator(&mut self, timer: usize) -> Option<Punctuator<P>> {
        self.ambit.punctuators.0.borrow_mut().get_mut(timer)?.punctuator.take()
    }

    pub(super) fn put_punctuator(&mut self, timer: usize, punctuator: Punctuator<P>) {
        if let Some(scheduled) = self.ambit.punctuators.0.borrow_mut().get_mut(timer) {
            scheduled.punctuator.get_or_insert(punctuator);
        }
    }

    /// Sends a record to all children, which are done with it when this returns. Its headers and its timestamp go with
    /// it.
    ///
    /// # Errors
    /// A child failed: pass it on by `?`. The task fails in any case.
    ///
    /// # Java
    /// `ProcessorContext.forward(record)`.
    pub fn forward<'s>(&mut self, record: Record<'s, P::KOut, P::VOut>) -> Processed
    where
        'a: 's,
    {
        let cx = self.with(&record);
        let inner = record::Record { key: record.key, value: record.value, timestamp: record.timestamp };
        self.below(self.ambit.shared.out.send(&cx, &inner))
    }

    /// Sends a record to the child of this name alone.
    ///
    /// # Errors
    /// There is none, or it failed.
    ///
    /// # Java
    /// `ProcessorContext.forward(record, childName)`.
    pub fn forward_to<'s>(&mut self, child: &str, record: Record<'s, P::KOut, P::VOut>) -> Processed
    where
        'a: 's,
    {
        let Some(at) = self.ambit.shared.children.iter().position(|name| name == child) else {
            return Err(ProcessorError::new(format!(
                "no downstream node \"{child}\": it does not exist or is not connected to this processor"
            )));
        };
        let cx = self.with(&record);
        let inner = record::Record { key: record.key, value: record.value, timestamp: record.timestamp };
        self.below(self.ambit.shared.out.send_to(at, &cx, &inner))
    }

    fn with<'s>(&self, record: &Record<'s, P::KOut, P::VOut>) -> Cx<'s>
    where
        'a: 's,
    {
        let source = RecordContext { timestamp: record.timestamp, headers: record.headers.0, ..self.cx.source };
        self.cx.at(self.cx.task, source)
    }

    fn below(&self, flow: Result<(), Fault>) -> Processed {
        flow.map_err(|fault| {
            self.failed.set(self.failed.get().or(Some(fault)));
            ProcessorError::below(fault)
        })
    }

    /// Opens a store that the node is connected to. Nothing can be forwarded while it is open.
    ///
    /// # Errors
    /// The node is not connected to it.
    ///
    /// # Java
    /// `ProcessorContext.getStateStore(name)`.
    pub fn store<H: StoreHandle>(&self, handle: &H) -> Result<H::Open<'_>, ProcessorError> {
        handle.view(StoresOf { cx: self.cx, stores: &self.ambit.shared.stores }).ok_or_else(not_connected)
    }

    pub(super) fn cx(&self) -> &Cx<'a> {
        &self.cx
    }

    /// Calls the closure again and again, by stream time or by the wall clock. With stream time the first call comes
    /// with the first record; with the wall clock after one interval. Calls that were missed are left out. The closure
    /// gets the processor, its context and the time, milliseconds since the epoch.
    ///
    /// # Errors
    /// The interval is shorter than a millisecond.
    ///
    /// # Java
    /// `ProcessorContext.schedule(interval, type, punctuator)`.
    pub fn schedule(
        &mut self,
        every: Duration,
        by: PunctuationType,
        call: impl for<'x, 'y> FnMut(&mut P, &mut Context<'x, 'y, P>, i64) -> Processed + 'static,
    ) -> Result<Timer, ProcessorError> {
        let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
        if every < 1 {
            return Err(ProcessorError::new("the shortest interval is one millisecond"));
        }
        let (shared, mut all) = (self.ambit.shared, self.ambit.punctuators.0.borrow_mut());
        let free = all.iter().position(|scheduled| scheduled.cancelled.get() && scheduled.punctuator.is_some());
        let timer = free.unwrap_or(all.len());
        let place = Place { partition: self.cx.task.partition, node: shared.node, timer };
        let cancelled = shared.timers.schedule(by, self.cx.now_ms, every, place);
        let scheduled = Scheduled { punctuator: Some(Box::new(call)), cancelled: Rc::clone(&cancelled) };
        match all.get_mut(timer) {
            Some(slot) => *slot = scheduled,
            None => all.push(scheduled),
        }
        Ok(Timer(cancelled))
    }

    /// Asks for a commit soon after this record, without waiting for the interval.
    ///
    /// # Java
    /// `ProcessorContext.commit()`.
    pub fn commit(&mut self) {
        self.ambit.shared.timers.request_commit();
    }

    /// Where the record at work was read. `None` in a punctuation, whose cause is no record.
    ///
    /// # Java
    /// `ProcessorContext.recordMetadata()`, which in a punctuation has a topic that is null.
    pub fn metadata(&self) -> Option<RecordMetadata<'a>> {
        let RecordContext { topic, partition, offset, .. } = self.cx.source;
        (!topic.is_empty()).then_some(RecordMetadata { topic, partition, offset })
    }

    /// Headers of the record at work; none in a punctuation.
    pub fn headers(&self) -> Headers<'a> {
        Headers(self.cx.source.headers)
    }

    /// The highest timestamp that the task has taken up, milliseconds since the epoch; -1 before its first record.
    ///
    /// # Java
    /// `ProcessorContext.currentStreamTimeMs()`.
    pub fn stream_time(&self) -> i64 {
        self.ambit.stream_time
    }

    /// The wall clock as of this step, milliseconds since the epoch.
    ///
    /// # Java
    /// `ProcessorContext.currentSystemTimeMs()`.
    pub fn wall_time(&self) -> i64 {
        self.cx.now_ms
    }

    /// The task: its subtopology and its partition.
    pub fn task_id(&self) -> TaskId {
        self.cx.task
    }
}

#[cold]
fn not_connected() -> ProcessorError {
    ProcessorError::new("the processor is not connected to this store; name it in Processing::stores")
}

/// What a [`Processor`] is lent when it begins. Nothing can be forwarded yet.
pub struct Init<'i, 'a, P: Processor>(&'i mut dyn Beginning<'a, P>);

/// A context without its other lifetime.
trait Beginning<'a, P: Processor> {
    fn schedule(&mut self, every: Duration, by: PunctuationType, call: Punctuator<P>) -> Result<Timer, ProcessorError>;
    fn stream_time(&self) -> i64;
    fn cx(&self) -> &Cx<'a>;
    fn stores(&self) -> StoresOf<'_>;
}

impl<'a, P: Processor> Beginning<'a, P> for Context<'_, 'a, P> {
    fn schedule(&mut self, every: Duration, by: PunctuationType, call: Punctuator<P>) -> Result<Timer, ProcessorError> {
        Context::schedule(self, every, by, call)
    }

    fn stream_time(&self) -> i64 {
        self.ambit.stream_time
    }

    fn cx(&self) -> &Cx<'a> {
        &self.cx
    }

    fn stores(&self) -> StoresOf<'_> {
        StoresOf { cx: self.cx, stores: &self.ambit.shared.stores }
    }
}

impl<P: Processor> fmt::Debug for Init<'_, '_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Init").field("task", &self.task_id()).finish_non_exhaustive()
    }
}

impl<'i, 'a, P: Processor> Init<'i, 'a, P> {
    pub(super) fn new(context: &'i mut Context<'_, 'a, P>) -> Self {
        Self(context)
    }

    /// As [`Context::schedule`].
    ///
    /// # Errors
    /// The interval is shorter than a millisecond.
    pub fn schedule(
        &mut self,
        every: Duration,
        by: PunctuationType,
        call: impl for<'x, 'y> FnMut(&mut P, &mut Context<'x, 'y, P>, i64) -> Processed + 'static,
    ) -> Result<Timer, ProcessorError> {
        self.0.schedule(every, by, Box::new(call))
    }

    /// As [`Context::store`].
    ///
    /// # Errors
    /// The node is not connected to it.
    pub fn store<H: StoreHandle>(&self, handle: &H) -> Result<H::Open<'_>, ProcessorError> {
        handle.view(self.0.stores()).ok_or_else(not_connected)
    }

    /// As [`Context::stream_time`].
    pub fn stream_time(&self) -> i64 {
        self.0.stream_time()
    }

    /// As [`Context::wall_time`].
    pub fn wall_time(&self) -> i64 {
        self.0.cx().now_ms
    }

    /// As [`Context::task_id`].
    pub fn task_id(&self) -> TaskId {
        self.0.cx().task
    }
}
