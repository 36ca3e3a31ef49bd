//! `print`.
use crate::base::id::NodeId;
use crate::codec::Schema;
use crate::node::{Cx, Fault, Flow, Node, Parked, Record};
use std::cell::RefCell;
use std::fmt::Debug;
use std::io::Write;

/// Writes a line for each record.
pub(crate) struct Print {
    pub(crate) node: NodeId,
    pub(crate) label: String,
    pub(crate) out: RefCell<Box<dyn Write>>,
}

impl<K: Schema, V: Schema> Node<K, V> for Print
where
    for<'x> K::View<'x>: Debug,
    for<'x> V::View<'x>: Debug,
{
    fn process<'a>(&self, cx: &Cx<'a>, r: &Record<'a, K, V>) -> Flow {
        writeln!(self.out.borrow_mut(), "[{}]: {:?}, {:?}", self.label, r.key, r.value)
            .map_err(|error| cx.fault.park(Fault::User, Parked::User { node: self.node, error: error.into() }))
    }
}
