//! What all windowed tables need: their store, their node, their place in the graph.
use super::grouped::KGroupedStream;
use super::ktable::KTable;
use super::ktable::table_store;
use super::options::{Materialized, STREAMS};
use super::windows::{SlidingWindows, TimeWindows, UnlimitedWindows};
use crate::base::id::{NodeId, StoreId};
use crate::codec::{Codec, WindowForm, Windowed};
use crate::node::ops::{
    EmitRule, SessionSpec, SlidingAggregate, SlidingSpec, TimeSpec, WindowAggregate, WindowFold, WindowParts,
    WindowPlan,
};
use crate::node::{Drain, Made, Make, Node, Wiring, WiringError, make_store};
use crate::store::kind::StoreKind;
use crate::topology::{BuildError, Graph, NewNode, Port};
use std::marker::PhantomData;
use std::rc::Rc;

/// What windows ask of the topology.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) form: WindowForm,
    /// How long a window must be kept, milliseconds.
    pub(crate) needed_ms: i64,
    /// How long after its end a window may still change, milliseconds.
    pub(crate) closes_after_ms: i64,
}

impl Frame {
    pub(crate) fn time(spec: TimeSpec) -> Self {
        let (size_ms, grace_ms) = (spec.size_ms(), spec.grace_ms());
        Self {
            form: WindowForm::Time { size_ms },
            needed_ms: size_ms.saturating_add(grace_ms),
            closes_after_ms: grace_ms,
        }
    }

    pub(crate) fn sliding(spec: SlidingSpec) -> Self {
        Self {
            form: WindowForm::Time { size_ms: spec.difference_ms },
            needed_ms: spec.difference_ms.saturating_mul(2).saturating_add(spec.grace_ms),
            closes_after_ms: spec.grace_ms,
        }
    }

    pub(crate) fn session(spec: SessionSpec) -> Self {
        let needed_ms = spec.gap_ms.saturating_add(spec.grace_ms);
        Self { form: WindowForm::Session, needed_ms, closes_after_ms: needed_ms }
    }

    /// The store's kind and what nodes are told; refuses a retention that is too short.
    pub(crate) fn plan(&self, graph: &mut Graph, store: &str, asked: &Materialized, emit: EmitRule) -> WindowPlan {
        let retention_ms = asked.retention_ms(self.needed_ms);
        if retention_ms < self.needed_ms {
            let needed_ms = self.needed_ms;
            graph.refuse(BuildError::Retention { store: store.to_owned(), retention_ms, needed_ms });
        }
        let kind = asked.place(match self.form {
            WindowForm::Time { .. } => StoreKind::window(retention_ms),
            WindowForm::Session => StoreKind::session(retention_ms),
        });
        let kind = if emit == EmitRule::Closed { kind.by_time() } else { kind };
        WindowPlan { form: self.form, emit, kind }
    }
}

/// Windows whose table is made by one of the two nodes over window stores.
pub(crate) trait TimeKind: super::windows::Windows {
    fn frame(&self) -> Result<Frame, &'static str>;
    fn wire<K: Codec, V: Codec, A: Codec, F: WindowFold<K, V, A> + 'static>(
        &self,
        w: &mut Wiring<'_>,
        parts: WindowParts<K, A>,
        fold: F,
    ) -> Made;
    /// Whether a window ever closes.
    fn closes(&self) -> bool {
        true
    }
    /// Kafka Streams generates one name less for sliding windows, and does not cache what waits for their end.
    fn are_sliding(&self) -> bool {
        false
    }
}

fn wire_time<K: Codec, V: Codec, A: Codec, F: WindowFold<K, V, A> + 'static>(
    w: &mut Wiring<'_>,
    parts: WindowParts<K, A>,
    windows: Result<TimeSpec, &'static str>,
    fold: F,
) -> Made {
    let windows = windows.unwrap_or(TimeSpec::Unlimited { start_ms: 0 });
    finish(w, parts.node, parts.plan.emit, WindowAggregate { parts, windows, fold, from: PhantomData })
}

impl TimeKind for TimeWindows {
    fn frame(&self) -> Result<Frame, &'static str> {
        self.checked().map(Frame::time)
    }

    fn wire<K: Codec, V: Codec, A: Codec, F: WindowFold<K, V, A> + 'static>(
        &self,
        w: &mut Wiring<'_>,
        parts: WindowParts<K, A>,
        fold: F,
    ) -> Made {
        wire_time(w, parts, self.checked(), fold)
    }
}

impl TimeKind for UnlimitedWindows {
    fn frame(&self) -> Result<Frame, &'static str> {
        self.checked().map(Frame::time)
    }

    fn wire<K: Codec, V: Codec, A: Codec, F: WindowFold<K, V, A> + 'static>(
        &self,
        w: &mut Wiring<'_>,
        parts: WindowParts<K, A>,
        fold: F,
    ) -> Made {
        wire_time(w, parts, self.checked(), fold)
    }

    fn closes(&self) -> bool {
        false
    }
}

impl TimeKind for SlidingWindows {
    fn frame(&self) -> Result<Frame, &'static str> {
        Ok(Frame::sliding(self.spec()))
    }

    fn wire<K: Codec, V: Codec, A: Codec, F: WindowFold<K, V, A> + 'static>(
        &self,
        w: &mut Wiring<'_>,
        parts: WindowParts<K, A>,
        fold: F,
    ) -> Made {
        finish(w, parts.node, parts.plan.emit, SlidingAggregate::new(parts, self.spec(), fold))
    }

    fn are_sliding(&self) -> bool {
        true
    }
}

/// The node, registered for the commit if its updates go down then.
pub(crate) fn finish<K: Codec, V: Codec, N: Node<K, V> + Drain + 'static>(
    w: &mut Wiring<'_>,
    id: NodeId,
    emit: EmitRule,
    node: N,
) -> Made {
    let node = Rc::new(node);
    if emit == EmitRule::Updates {
        w.drain(id, Rc::clone(&node) as Rc<dyn Drain>);
    }
    let node: Rc<dyn Node<K, V>> = node;
    Box::new(node)
}

/// Adds a store for windows.
pub(crate) fn add_window_store<A: Codec>(
    graph: &mut Graph,
    name: String,
    materialized: &Materialized,
    value: &A,
    plan: &WindowPlan,
    keeps_cache: bool,
) -> StoreId {
    let asked = materialized.clone().caching(materialized.cached && keeps_cache);
    let spec = table_store(name, asked);
    graph.add_store(spec, make_store(value.clone(), plan.kind))
}

/// What is asked of a windowed table.
pub(crate) struct Asked<'p, A> {
    pub(crate) prefix: &'p str,
    pub(crate) value: A,
    pub(crate) materialized: Materialized,
    pub(crate) frame: Frame,
    pub(crate) emit: EmitRule,
    /// Whether the store may be cached.
    pub(crate) cacheable: bool,
}

/// Adds a windowed table below a grouped stream; `wire` makes its node.
pub(crate) fn add_window_table<K: Codec, V: Codec, A: Codec>(
    grouped: &KGroupedStream<K, V>,
    asked: Asked<'_, A>,
    wire: impl Fn(&mut Wiring<'_>, WindowParts<K, A>) -> Made + Send + Sync + 'static,
) -> KTable<Windowed<K>, A> {
    let Asked { prefix, value, mut materialized, frame, emit, cacheable } = asked;
    let shelf = &grouped.stream.shelf;
    let (store_name, node_name) = {
        let names = &mut shelf.borrow_mut().names;
        (materialized.name.take().unwrap_or_else(|| names.store(prefix)), names.processor(prefix))
    };
    let parent = grouped.partitioned(&store_name);
    let mut graph = shelf.borrow_mut();
    materialized.check_unversioned(&mut graph, STREAMS);
    let plan = frame.plan(&mut graph, &store_name, &materialized, emit);
    let store = add_window_store(&mut graph, store_name, &materialized, &value, &plan, cacheable);
    let key = grouped.stream.key.clone();
    let make = make_node(key.clone(), store, plan, wire);
    let stores = [store];
    let new = NewNode { name: node_name, parents: &[parent], outputs: 1, stores: &stores, named_by: None, make };
    let node = graph.add(new);
    graph.set_grace(node, frame.closes_after_ms);
    drop(graph);
    KTable::new(shelf, Port(node, 0), Windowed::new(key, frame.form), value, store)
}

/// The closure that makes a windowed aggregate's node.
pub(crate) fn make_node<K: Codec, A: Codec>(
    key: K,
    store: StoreId,
    plan: WindowPlan,
    wire: impl Fn(&mut Wiring<'_>, WindowParts<K, A>) -> Made + Send + Sync + 'static,
) -> Make {
    Box::new(move |w, id| -> Result<Made, WiringError> {
        let parts = WindowParts::new(w, id, key.clone(), store, plan)?;
        Ok(wire(w, parts))
    })
}
