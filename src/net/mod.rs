//! Sockets for the data path: a poll set with its waker, non-blocking connections, and the framing that every
//! connection to a broker shares.
//!
//! Owns: file descriptors, their socket options, and the bytes of requests that have not left yet.
//! Invariant: nothing here blocks except [`BlockingCall`], and nothing here keeps a clock: time comes from the caller.
//! Bound: a [`PollSet`] holds at most [`PollSet::MAX`] connections; a [`Link`] holds one staging buffer of fixed
//! capacity and reads only into buffers that its caller gives it. The kernel's part of a connection is
//! [`SOCKET_BUFFER_BYTES`](crate::base::limits::SOCKET_BUFFER_BYTES) each way.
//! Called by: `client` (metadata, fetcher) and `produce` (sender); stream threads own one [`PollSet`] each.
mod backoff;
mod call;
mod conn;
mod error;
mod link;
mod poll;
#[cfg(test)]
pub(crate) mod sim;
mod sys;

pub(crate) use backoff::{Backoff, jitter_seed};
pub(crate) use call::BlockingCall;
pub(crate) use conn::{Conn, ConnState};
pub(crate) use error::NetError;
pub(crate) use link::Link;
pub(crate) use poll::{Interest, PollSet, Ready, Token, Waker};
