//! From the topology's closures to nodes: once per thread and subtopology.
//!
//! The logical graph is not generic; each of its nodes carries one [`Make`] closure that builds the typed node over its
//! already built children. An edge is downcast here, once, and never per record.
use super::cx::Cx;
use super::edge::{Drain, Edge, Node, Source};
use super::fault::{Fault, Flow};
use super::per_task::TaskState;
use super::processor::{Life, Watch};
use super::state::StateStore;
use super::timers::{PunctuationType, Timers};
use super::topic::TopicName;
use crate::base::id::{NodeId, SourceId, StoreId};
use crate::codec::{Place, Schema, Side};
use crate::store::backend::Backend;
use crate::store::batch::StoreBatch;
use crate::store::kind::StoreKind;
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A built node, erased: an `Rc<dyn Node<K, V>>` or an `Rc<dyn Source>` in a box.
pub(crate) type Made = Box<dyn Any>;

/// Builds one node over its children.
pub(crate) type Make = Box<dyn Fn(&mut Wiring<'_>, NodeId) -> Result<Made, WiringError> + Send + Sync>;

/// A built store: typed for its nodes, faceless for the thread.
pub(crate) struct MadeStore {
    /// An `Rc` of the typed store.
    pub(crate) typed: Box<dyn Any>,
    pub(crate) face: Rc<dyn StateStore>,
    /// For changes that no node forwards.
    pub(crate) drain: Rc<dyn Drain>,
}

/// Builds one store.
type MakeOne = Box<dyn Fn(&mut Wiring<'_>, StoreId) -> Result<MadeStore, WiringError> + Send + Sync>;

/// Builds one store of this kind.
pub(crate) struct MakeStore {
    pub(crate) kind: StoreKind,
    pub(crate) make: MakeOne,
}

/// A node of the logical graph as wiring needs it.
pub(crate) struct Part {
    pub(crate) name: String,
    /// Its children, by output port.
    pub(crate) ports: Vec<Vec<NodeId>>,
    pub(crate) make: Make,
    /// The subtopology it belongs to.
    pub(crate) subtopology: u32,
    /// Whether something below needs the old values of its updates.
    pub(crate) sends_old: bool,
    /// Its place in the order of all nodes: parents before children.
    pub(crate) rank: u32,
    /// Whether something below takes null keys, so that a repartition passes them on.
    pub(crate) keeps_null_keys: bool,
}

/// A store as wiring needs it.
pub(crate) struct StorePart {
    pub(crate) make: MakeStore,
    pub(crate) name: String,
    /// Whether updates are deduplicated until commit or eviction.
    pub(crate) cached: bool,
    /// Whether there is a changelog.
    pub(crate) logged: bool,
    /// The operator that changes it.
    pub(crate) writer: Option<NodeId>,
}

/// A source topic as wiring needs it.
pub(crate) struct SourcePart {
    pub(crate) node: NodeId,
}

/// All that wiring needs of a topology.
#[derive(Default)]
pub(crate) struct Blueprint {
    pub(crate) parts: Vec<Part>,
    pub(crate) stores: Vec<StorePart>,
    pub(crate) sources: Vec<SourcePart>,
}

/// What a thread gives to the wiring.
pub(crate) struct WireSettings<'a> {
    pub(crate) application_id: &'a str,
    /// Where committed rows are.
    pub(crate) backend: Arc<dyn Backend>,
    /// Bytes that the entries of one store may take on this thread.
    pub(crate) overlay_bytes_per_store: usize,
    /// Bytes of an encoded key and value together, at most.
    pub(crate) record_bytes: usize,
    /// Least time between two looks for closed windows, milliseconds of the wall clock.
    pub(crate) emit_interval_ms: i64,
    /// What full stores spill through; shared by all stores of a thread.
    pub(crate) spill: Rc<RefCell<StoreBatch>>,
}

/// A wired subtopology.
pub(crate) struct Wired {
    /// Where records enter; a source node of several topics appears once per topic.
    pub(crate) sources: Vec<(SourceId, Rc<dyn Source>)>,
    /// Stores' nodes whose forwards wait for the commit, parents before children, and last the stores themselves.
    pub(crate) drains: Vec<(NodeId, Rc<dyn Drain>)>,
    pub(crate) stores: Vec<Rc<dyn StateStore>>,
    /// What nodes keep by task.
    pub(crate) per_task: Vec<Rc<dyn TaskState>>,
    /// Nodes with processors, parents before children.
    lives: Vec<(NodeId, Rc<dyn Life>)>,
    timers: Rc<Timers>,
}

impl Wired {
    /// The context's task begins: its stores are complete.
    pub(crate) fn opened(&self, cx: &Cx<'_>) -> Flow {
        self.timers.forget(cx.task.partition);
        self.lives.iter().try_for_each(|(_, life)| life.open(cx))
    }

    /// When processors want to be called.
    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Calls the earliest closure of the context's task whose time has come by `now`; false when there is none.
    pub(crate) fn punctuate_one(&self, cx: &Cx<'_>, kind: PunctuationType, now: i64) -> Result<bool, Fault> {
        let Some(due) = self.timers.take(cx.task.partition, kind, now) else { return Ok(false) };
        if let Some((_, life)) = self.lives.iter().find(|(node, _)| *node == due.node) {
            life.punctuate(cx, due.timer, now)?;
        }
        self.timers.again(kind, due, now);
        Ok(true)
    }

    /// What the task of this partition did is committed: its stores are written, its offsets are the group's.
    pub(crate) fn committed(&self, partition: u32) {
        self.per_task.iter().for_each(|state| state.committed(partition));
    }

    /// What the task did since its last commit is undone.
    pub(crate) fn aborted(&self, partition: u32) {
        self.stores.iter().for_each(|store| store.discard(partition));
        self.per_task.iter().for_each(|state| state.aborted(partition));
    }

    /// The task has left the thread.
    pub(crate) fn closed(&self, partition: u32) {
        self.stores.iter().for_each(|store| store.discard(partition));
        self.per_task.iter().for_each(|state| state.closed(partition));
        self.timers.forget(partition);
    }

    /// The node that records of this source enter.
    #[inline]
    pub(crate) fn source(&self, id: SourceId) -> Option<&Rc<dyn Source>> {
        self.sources.iter().find(|(source, _)| *source == id).map(|(_, node)| node)
    }
}

/// Stores are drained of what no node forwards when every node has forwarded.
const BEHIND_ALL: NodeId = NodeId(u16::MAX);

/// A topology that contradicts itself: a fault of this library, not of the user's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum WiringError {
    #[error("internal: node {0:?} is not in the graph")]
    NoNode(NodeId),
    #[error("internal: node {0:?} is not of the type that its edge says")]
    NodeType(NodeId),
    #[error("internal: store {0:?} is not of the type that its node says")]
    StoreType(StoreId),
    #[error("the file that node {0:?} is to print into cannot be opened")]
    CannotPrint(NodeId),
}

/// Wiring in progress: built backwards from the sinks.
pub(crate) struct Wiring<'t> {
    blueprint: &'t Blueprint,
    settings: &'t WireSettings<'t>,
    made: Vec<Option<Made>>,
    stores: Vec<Option<MadeStore>>,
    drains: Vec<(NodeId, Rc<dyn Drain>)>,
    per_task: Vec<Rc<dyn TaskState>>,
    shared: Vec<(NodeId, Box<dyn Any>)>,
    lives: Vec<(NodeId, Rc<dyn Life>)>,
    timers: Rc<Timers>,
    watches: Vec<(StoreId, Rc<Watch>)>,
}

impl<'t> Wiring<'t> {
    /// Builds the nodes of one subtopology. Once per thread; tasks that come and go change nothing.
    pub(crate) fn wire(
        blueprint: &'t Blueprint,
        subtopology: u32,
        settings: &'t WireSettings<'t>,
    ) -> Result<Wired, WiringError> {
        let mut wiring = Self {
            blueprint,
            settings,
            made: blueprint.parts.iter().map(|_| None).collect(),
            stores: blueprint.stores.iter().map(|_| None).collect(),
            drains: Vec::new(),
            per_task: Vec::new(),
            shared: Vec::new(),
            lives: Vec::new(),
            timers: Rc::default(),
            watches: Vec::new(),
        };
        let mut sources = Vec::new();
        for (index, source) in blueprint.sources.iter().enumerate() {
            let part = blueprint.parts.get(source.node.index()).ok_or(WiringError::NoNode(source.node))?;
            if part.subtopology == subtopology {
                let node = wiring.node::<Rc<dyn Source>>(source.node)?;
                sources.push((SourceId(u16::try_from(index).unwrap_or(u16::MAX)), node));
            }
        }
        let rank = |node: &NodeId| blueprint.parts.get(node.index()).map_or(u32::MAX, |part| part.rank);
        let (mut drains, mut lives) = (wiring.drains, wiring.lives);
        drains.sort_by_key(|(node, _)| rank(node));
        lives.sort_by_key(|(node, _)| rank(node));
        let stores = wiring.stores.into_iter().flatten().map(|made| made.face).collect();
        Ok(Wired { sources, drains, stores, per_task: wiring.per_task, lives, timers: wiring.timers })
    }

    /// A store without a topology, and what the thread sees of it.
    #[cfg(test)]
    pub(crate) fn store_alone<T: Clone + 'static>(part: StorePart, settings: &WireSettings<'_>) -> Option<(T, Wired)> {
        let blueprint = Blueprint { stores: vec![part], ..Blueprint::default() };
        let stores = vec![None];
        let (made, drains, per_task) = (Vec::new(), Vec::new(), Vec::new());
        let mut wiring = Wiring {
            blueprint: &blueprint,
            settings,
            made,
            stores,
            drains,
            per_task,
            shared: Vec::new(),
            lives: Vec::new(),
            timers: Rc::default(),
            watches: Vec::new(),
        };
        let store = wiring.store::<T>(StoreId(0)).ok()?;
        let stores = wiring.stores.into_iter().flatten().map(|made| made.face).collect();
        Some((
            store,
            Wired {
                sources: Vec::new(),
                drains: wiring.drains,
                stores,
                per_task: wiring.per_task,
                lives: Vec::new(),
                timers: wiring.timers,
            },
        ))
    }

    fn part(&self, id: NodeId) -> Result<&'t Part, WiringError> {
        self.blueprint.parts.get(id.index()).ok_or(WiringError::NoNode(id))
    }

    fn node<N: Clone + 'static>(&mut self, id: NodeId) -> Result<N, WiringError> {
        let part = self.part(id)?;
        if self.made.get(id.index()).is_some_and(Option::is_none) {
            let made = (part.make)(self, id)?;
            if let Some(slot) = self.made.get_mut(id.index()) {
                *slot = Some(made);
            }
        }
        let made = self.made.get(id.index()).and_then(Option::as_ref).ok_or(WiringError::NoNode(id))?;
        made.downcast_ref::<N>().cloned().ok_or(WiringError::NodeType(id))
    }

    /// The edge from a port of a node to the children there.
    pub(crate) fn edge<K: Schema, V: Schema>(&mut self, id: NodeId, port: usize) -> Result<Edge<K, V>, WiringError> {
        let children = self.part(id)?.ports.get(port).map_or(&[][..], Vec::as_slice);
        let nodes = children.iter().map(|child| self.node::<Rc<dyn Node<K, V>>>(*child)).collect::<Result<_, _>>()?;
        Ok(Edge::new(nodes))
    }

    /// A store, built at its first use. `T` is the typed store in its `Rc`.
    pub(crate) fn store<T: Clone + 'static>(&mut self, id: StoreId) -> Result<T, WiringError> {
        let part = self.store_part(id)?;
        if self.stores.get(id.index()).is_some_and(Option::is_none) {
            let made = (part.make.make)(self, id)?;
            if part.cached {
                self.drains.push((BEHIND_ALL, Rc::clone(&made.drain)));
            }
            if let Some(slot) = self.stores.get_mut(id.index()) {
                *slot = Some(made);
            }
        }
        let made = self.stores.get(id.index()).and_then(Option::as_ref).ok_or(WiringError::StoreType(id))?;
        made.typed.downcast_ref::<T>().cloned().ok_or(WiringError::StoreType(id))
    }

    /// What the nodes around this one have in common, made for the first that asks. One type a node.
    pub(crate) fn shared<T: Clone + 'static>(&mut self, around: NodeId, make: impl FnOnce(&mut Self) -> T) -> T {
        let found = self.shared.iter().filter(|(node, _)| *node == around).find_map(|(_, any)| any.downcast_ref::<T>());
        if let Some(found) = found {
            return found.clone();
        }
        let made = make(self);
        self.shared.push((around, Box::new(made.clone())));
        made
    }

    /// What the topology says of a store.
    pub(crate) fn store_part(&self, id: StoreId) -> Result<&'t StorePart, WiringError> {
        self.blueprint.stores.get(id.index()).ok_or(WiringError::StoreType(id))
    }

    /// Whether something below this node needs old values.
    pub(crate) fn sends_old(&self, id: NodeId) -> bool {
        self.blueprint.parts.get(id.index()).is_some_and(|part| part.sends_old)
    }

    /// Whether something below this node takes null keys.
    pub(crate) fn keeps_null_keys(&self, id: NodeId) -> bool {
        self.blueprint.parts.get(id.index()).is_some_and(|part| part.keeps_null_keys)
    }

    pub(crate) fn settings(&self) -> &'t WireSettings<'t> {
        self.settings
    }

    /// When the processors of this subtopology want to be called.
    pub(crate) fn timers(&self) -> Rc<Timers> {
        Rc::clone(&self.timers)
    }

    /// What is changed in a store while iterators over it are open.
    pub(crate) fn watch(&mut self, id: StoreId) -> Rc<Watch> {
        if let Some((_, watch)) = self.watches.iter().find(|(store, _)| *store == id) {
            return Rc::clone(watch);
        }
        let watch = Rc::<Watch>::default();
        self.watches.push((id, Rc::clone(&watch)));
        watch
    }

    /// Registers a node with processors.
    pub(crate) fn life(&mut self, id: NodeId, life: Rc<dyn Life>) {
        self.lives.push((id, life));
    }

    /// Names of the children of a port, in the order of its edge.
    pub(crate) fn child_names(&self, id: NodeId, port: usize) -> Result<Box<[String]>, WiringError> {
        let children = self.part(id)?.ports.get(port).map_or(&[][..], Vec::as_slice);
        children.iter().map(|child| Ok(self.part(*child)?.name.clone())).collect()
    }

    /// Registers what a node keeps by task.
    pub(crate) fn task_state(&mut self, state: Rc<dyn TaskState>) {
        self.per_task.push(state);
    }

    /// Registers a node whose forwards wait for the commit.
    pub(crate) fn drain(&mut self, id: NodeId, drain: Rc<dyn Drain>) {
        self.drains.push((id, drain));
    }

    /// Tells a codec the places of a topic's keys or values.
    pub(crate) fn with_place<R>(&self, topic: &TopicName, side: Side, f: impl FnOnce(&Place<'_>) -> R) -> R {
        f(&Place::new(&topic.full(self.settings.application_id), side))
    }

    /// An erased node, as a [`Make`] answers it.
    pub(crate) fn made<K: Schema, V: Schema>(node: impl Node<K, V> + 'static) -> Made {
        let node: Rc<dyn Node<K, V>> = Rc::new(node);
        Box::new(node)
    }

    /// An erased source, as a [`Make`] answers it.
    pub(crate) fn made_source(node: impl Source + 'static) -> Made {
        let node: Rc<dyn Source> = Rc::new(node);
        Box::new(node)
    }
}
