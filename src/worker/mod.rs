//! The threads of an application: stream threads, the restore thread and the control thread.
//!
//! Owns the turn, the commit, the rebalance and the start and end of everything. Invariant: a task belongs to one
//! stream thread, and only the control thread speaks to the group. Bound: the plan's rows; boxes between threads have
//! fixed capacities. Called by `app`.
#[cfg(target_os = "linux")]
pub(crate) mod bring_up;
#[cfg(target_os = "linux")]
mod commit;
#[cfg(target_os = "linux")]
pub(crate) mod control;
pub(crate) mod failure;
#[cfg(target_os = "linux")]
mod group_commit;
#[cfg(target_os = "linux")]
mod mailbox;
#[cfg(target_os = "linux")]
mod message;
#[cfg(target_os = "linux")]
mod port;
#[cfg(target_os = "linux")]
mod punctuate;
#[cfg(target_os = "linux")]
mod purge;
#[cfg(target_os = "linux")]
mod question;
#[cfg(target_os = "linux")]
mod rebalance;
pub(crate) mod recovery;
#[cfg(target_os = "linux")]
mod restore;
pub(crate) mod settings;
#[cfg(target_os = "linux")]
mod spawn;
pub(crate) mod state;
#[cfg(target_os = "linux")]
mod stream;
#[cfg(target_os = "linux")]
mod tasks;
#[cfg(target_os = "linux")]
mod token;
#[cfg(target_os = "linux")]
mod topics;
#[cfg(target_os = "linux")]
mod turn;

#[cfg(target_os = "linux")]
pub(crate) use mailbox::Mailbox;
#[cfg(target_os = "linux")]
pub(crate) use message::REQUESTS;
pub(crate) use turn::panic_text;
