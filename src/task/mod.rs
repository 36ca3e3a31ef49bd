//! One task: its input queues, the choice of the next record by time, the step, and what a commit needs to know.
//!
//! Invariant: a record is counted as consumed only when its whole walk through the nodes has returned. Bound: a queue
//! holds one batch; everything behind it waits in the fetcher's frames. Called by `worker` and by nobody else.
pub(crate) mod group;
pub(crate) mod intake;
pub(crate) mod queue;
pub(crate) mod step;
#[cfg(test)]
mod tests;
