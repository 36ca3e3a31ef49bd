//! One login by any mechanism. SCRAM needs the hashes that come with feature `ssl`.
#[cfg(feature = "ssl")]
use super::scram::Client;
use super::{Credentials, Mechanism, SaslFault, Turn, oauth, plain};

enum State {
    /// One message says all; an empty answer is a good one.
    Simple(Mechanism),
    #[cfg(feature = "ssl")]
    Scram(Box<Client>),
}

/// A login's state.
pub(super) struct Exchange(State);

impl Exchange {
    /// Starts a login and writes its first message.
    pub(super) fn start(credentials: &Credentials, into: &mut Vec<u8>) -> Result<Self, SaslFault> {
        match credentials {
            Credentials::Token(source) => {
                source.with(|token| oauth::message(token, into)).ok_or(SaslFault::NoToken)?;
                Ok(Self(State::Simple(Mechanism::Oauthbearer)))
            }
            Credentials::Password { mechanism: Mechanism::Plain, username, password } => {
                plain::message(username, password.expose(), into);
                Ok(Self(State::Simple(Mechanism::Plain)))
            }
            #[cfg(feature = "ssl")]
            Credentials::Password { mechanism, username, password } => {
                let client = Client::new(*mechanism, username, password)?;
                client.first(into);
                Ok(Self(State::Scram(Box::new(client))))
            }
            // Settings that ask for it are refused long before.
            #[cfg(not(feature = "ssl"))]
            Credentials::Password { mechanism, .. } => {
                Err(SaslFault::Malformed { mechanism: *mechanism, what: "hash: feature `ssl` is off" })
            }
        }
    }

    /// Takes a message of the broker.
    pub(super) fn next(&mut self, message: &[u8], into: &mut Vec<u8>) -> Result<Turn, SaslFault> {
        #[cfg(not(feature = "ssl"))]
        let _ = into; // the mechanisms that are left have one message
        match &mut self.0 {
            // OAUTHBEARER adds the reason for a refusal.
            State::Simple(Mechanism::Oauthbearer) if !message.is_empty() => Err(SaslFault::TokenRefused),
            State::Simple(_) => Ok(Turn::Done),
            #[cfg(feature = "ssl")]
            State::Scram(client) => client.next(message, into),
        }
    }
}
