//! The threads of an application: stream threads, the restore thread and the control thread.
//!
//! Owns the turn, the commit, the rebalance and the start and end of everything. Invariant: a task belongs to one stream thread, and
//! only the control thread speaks to the group. Bound: the plan's rows; boxes between threads have fixed capacities. Called by `app`.
pub(crate) mod bring_up;
mod commit;
pub(crate) mod control;
pub(crate) mod failure;
mod group_commit;
mod mailbox;
mod message;
mod port;
mod purge;
mod rebalance;
mod restore;
pub(crate) mod settings;
mod spawn;
pub(crate) mod state;
mod stream;
mod tasks;
mod topics;
mod turn;

pub(crate) use mailbox::Mailbox;
pub(crate) use message::REQUESTS;
pub(crate) use turn::panic_text;
