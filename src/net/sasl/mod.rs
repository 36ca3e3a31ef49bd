//! SASL: who this process is, shown to a broker before anything else is said.
//!
//! Owns the mechanisms as state machines without sockets ([`Exchange`]) and the conversation over a connection
//! ([`Login`]). Invariant: nothing here is logged or put into an error but names of mechanisms and numbers; SCRAM ends
//! well only when the broker has shown that it knows the password too. Bound: messages of [`MAX_MESSAGE_BYTES`].
//! Called by [`Link`](super::Link), which is not ready before its login is.
mod exchange;
mod fault;
mod login;
mod mechanism;
mod oauth;
mod plain;
#[cfg(feature = "ssl")]
mod scram;
mod token;

pub(crate) use fault::SaslFault;
pub(super) use login::Login;
pub(crate) use mechanism::{Mechanism, MechanismSet};
pub(crate) use token::{TokenCallback, TokenNews, TokenSource};

use crate::base::secret::Secret;
use exchange::Exchange;
use std::sync::Arc;

/// Longest message of a mechanism, either way: tokens of identity providers have some KiB.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// By which mechanism, and with what.
#[derive(Clone, Debug)]
pub(crate) enum Credentials {
    /// A name and its password.
    Password {
        /// PLAIN or one of SCRAM's.
        mechanism: Mechanism,
        /// `sasl.username`.
        username: String,
        /// `sasl.password`.
        password: Secret,
    },
    /// Whatever token the callback gave last.
    Token(Arc<TokenSource>),
}

impl Credentials {
    /// The mechanism.
    pub(crate) fn mechanism(&self) -> Mechanism {
        match self {
            Self::Password { mechanism, .. } => *mechanism,
            Self::Token(_) => Mechanism::Oauthbearer,
        }
    }
}

/// What a mechanism does after a message of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The next message is written: send it.
    #[allow(dead_code)] // without TLS
    Send,
    /// The broker is content, and has shown what it had to show.
    Done,
}
