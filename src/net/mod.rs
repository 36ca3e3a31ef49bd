//! Sockets for the data path: a poll set with its waker, non-blocking connections, and the framing that every
//! connection to a broker shares.
//!
//! Owns: file descriptors, their socket options, TLS sessions, logins, and the bytes of requests that have not left.
//! Invariant: nothing here blocks except [`BlockingCall`], and nothing here keeps a clock: time comes from the caller.
//! Bound: a [`PollSet`] holds at most [`PollSet::MAX`] connections; a [`Link`] holds one staging buffer of fixed
//! capacity and reads only into buffers that its caller gives it; a TLS session adds
//! [`TLS_CONNECTION_BYTES`](crate::base::limits::TLS_CONNECTION_BYTES). The kernel's part of a connection is
//! [`SOCKET_BUFFER_BYTES`](crate::base::limits::SOCKET_BUFFER_BYTES) each way.
//! Called by: `client` (metadata, fetcher) and `produce` (sender); stream threads own one [`PollSet`] each.
mod backoff;
#[cfg(feature = "ssl")]
mod base64;
mod call;
mod conn;
mod error;
mod link;
mod poll;
mod sasl;
mod security;
#[cfg(test)]
pub(crate) mod sim;
mod sys;
#[cfg(feature = "ssl")]
mod tls;
#[cfg(not(feature = "ssl"))]
#[path = "tls_absent.rs"]
mod tls;
mod tls_fault;
#[cfg(feature = "ssl")]
mod tls_verify;

pub(crate) use backoff::{Backoff, jitter_seed};
pub(crate) use call::BlockingCall;
pub(crate) use conn::{Conn, ConnState};
pub(crate) use error::NetError;
pub(crate) use link::Link;
pub(crate) use poll::{Interest, PollSet, Ready, Token, Waker};
pub(crate) use sasl::TokenNews;
#[cfg(all(test, feature = "ssl"))]
pub(crate) use sasl::{Mechanism, SaslFault, TokenCallback};
#[cfg(test)]
pub(crate) use security::tests::plain;
pub(crate) use security::{Peer, Security};
#[cfg(feature = "ssl")]
pub(crate) use tls_fault::TlsFault;
