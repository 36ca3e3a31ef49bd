//! What has a life beside records: opened when a task begins, called when its time comes.
use crate::node::{Cx, Flow};

/// A node with a processor for each task, as the thread sees it. It is told of a task's end as
/// [`TaskState`](crate::node::per_task::TaskState).
pub(crate) trait Life {
    /// A task begins: makes and initialises its processor, in the task of the context.
    fn open(&self, cx: &Cx<'_>) -> Flow;

    /// A time has come that the task's processor asked for: `now` is what its clock says.
    fn punctuate(&self, cx: &Cx<'_>, timer: usize, now: i64) -> Flow;
}
