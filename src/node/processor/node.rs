//! The node of a processor.
use super::context::{Ambit, Context, Init, Punctuators};
use super::headers::Headers;
use super::life::Life;
use super::record::Record;
use super::stores::Opener;
use super::{Processor, ProcessorError};
use crate::base::id::{NodeId, StoreId};
use crate::node::edge::Node;
use crate::node::per_task::TaskState;
use crate::node::timers::Timers;
use crate::node::wiring::{Made, Wiring, WiringError};
use crate::node::{Cx, Edge, Fault, Flow, Parked, RecordContext, record};
use crate::wire::RawHeaders;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Makes the processor of a task.
pub(crate) type Supplier<P> = Arc<dyn Fn() -> P + Send + Sync>;

/// What all processors of a node share.
pub(super) struct Shared<P: Processor> {
    pub(super) node: NodeId,
    pub(super) out: Edge<P::KOut, P::VOut>,
    /// Names of the children, in the order of the edge.
    pub(super) children: Box<[String]>,
    /// Stores that the node was given.
    pub(super) stores: Box<[(StoreId, Box<dyn Any>)]>,
    pub(super) timers: Rc<Timers>,
}

struct Instance<P: Processor> {
    partition: u32,
    processor: P,
    punctuators: Punctuators<P>,
    stream_time: Cell<i64>,
}

/// One processor a task.
pub(crate) struct ProcessorNode<P: Processor> {
    supplier: Supplier<P>,
    shared: Shared<P>,
    /// Tasks of this thread by partition.
    tasks: RefCell<Vec<Instance<P>>>,
}

impl<P: Processor> ProcessorNode<P> {
    /// Builds the node, erased.
    pub(crate) fn make(
        w: &mut Wiring<'_>,
        id: NodeId,
        supplier: Supplier<P>,
        openers: &[Opener],
    ) -> Result<Made, WiringError> {
        let stores = openers.iter().map(|open| open(w, id)).collect::<Result<_, _>>()?;
        let shared =
            Shared { node: id, out: w.edge(id, 0)?, children: w.child_names(id, 0)?, stores, timers: w.timers() };
        let node = Rc::new(Self { supplier, shared, tasks: RefCell::default() });
        w.life(id, Rc::clone(&node) as _);
        w.task_state(Rc::clone(&node) as _);
        let node: Rc<dyn Node<P::KIn, P::VIn>> = node;
        Ok(Box::new(node))
    }

    /// Lends the task's processor to `work` and settles what it answered.
    #[inline]
    fn run<'a>(
        &self,
        cx: Cx<'a>,
        work: impl FnOnce(&mut P, &mut Context<'_, 'a, P>) -> Result<(), ProcessorError>,
    ) -> Flow {
        let mut tasks = self.tasks.borrow_mut();
        let at = tasks.binary_search_by_key(&cx.task.partition, |task| task.partition);
        let Some(task) = at.ok().and_then(|at| tasks.get_mut(at)) else { return Err(self.not_open(&cx)) };
        task.stream_time.set(task.stream_time.get().max(cx.stream_time));
        let ambit = Ambit { shared: &self.shared, punctuators: &task.punctuators, stream_time: task.stream_time.get() };
        let mut context = Context::new(cx, ambit);
        let answer = work(&mut task.processor, &mut context);
        let failed = context.failed();
        match answer {
            Ok(()) => failed.map_or(Ok(()), Err),
            Err(error) => Err(error.settle(&cx, self.shared.node)),
        }
    }

    #[cold]
    fn not_open(&self, cx: &Cx<'_>) -> Fault {
        let error = format!("internal: no processor for task {}", cx.task).into();
        cx.fault.park(Fault::User, Parked::User { node: self.shared.node, error })
    }
}

impl<P: Processor> Node<P::KIn, P::VIn> for ProcessorNode<P> {
    fn process<'a>(&self, cx: &Cx<'a>, r: &record::Record<'a, P::KIn, P::VIn>) -> Flow {
        let source = RecordContext { timestamp: r.timestamp, ..cx.source };
        let record = Record { key: r.key, value: r.value, timestamp: r.timestamp, headers: Headers(cx.source.headers) };
        self.run(cx.at(cx.task, source), |processor, context| processor.process(context, record))
    }
}

impl<P: Processor> Life for ProcessorNode<P> {
    fn open(&self, cx: &Cx<'_>) -> Flow {
        let partition = cx.task.partition;
        self.closed(partition);
        let processor = (self.supplier)();
        let punctuators = Punctuators::default();
        let instance = Instance { partition, processor, punctuators, stream_time: Cell::new(-1) };
        {
            let mut tasks = self.tasks.borrow_mut();
            let at = tasks.partition_point(|task| task.partition < partition);
            tasks.insert(at, instance);
        }
        self.run(*cx, |processor, context| processor.init(&mut Init::new(context)))
    }

    fn punctuate(&self, cx: &Cx<'_>, timer: usize, now: i64) -> Flow {
        let source = RecordContext { topic: "", offset: -1, timestamp: now, headers: RawHeaders::EMPTY, ..cx.source };
        self.run(cx.at(cx.task, source), |processor, context| {
            let Some(mut punctuator) = context.take_punctuator(timer) else { return Ok(()) };
            let answer = punctuator(processor, context, now);
            context.put_punctuator(timer, punctuator);
            answer
        })
    }
}

impl<P: Processor> TaskState for ProcessorNode<P> {
    fn committed(&self, _partition: u32) {}

    fn aborted(&self, _partition: u32) {}

    fn closed(&self, partition: u32) {
        let mut tasks = self.tasks.borrow_mut();
        if let Ok(at) = tasks.binary_search_by_key(&partition, |task| task.partition) {
            tasks.remove(at).processor.close();
        }
    }
}

/// The thread ends: processors that are left are closed.
impl<P: Processor> Drop for ProcessorNode<P> {
    fn drop(&mut self) {
        self.tasks.get_mut().drain(..).for_each(|mut task| task.processor.close());
    }
}
