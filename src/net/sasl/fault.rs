//! What can go wrong while showing who this is. Small and `Copy`, and without any secret.
use super::{Mechanism, MechanismSet};
use crate::wire::ErrorCode;

/// Why a login failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(dead_code)] // without TLS
pub(crate) enum SaslFault {
    /// The listener takes other mechanisms.
    #[error(
        "the listener does not take {asked} but {offered}; change sasl.mechanism or the broker's \
         sasl.enabled.mechanisms"
    )]
    Mechanism {
        /// The mechanism asked for.
        asked: Mechanism,
        /// What the listener takes.
        offered: MechanismSet,
    },
    /// The listener asks for no login.
    #[error(
        "the listener does not speak SASL; set security.protocol to PLAINTEXT or SSL, or use the port of the SASL \
         listener"
    )]
    NoSasl,
    /// The broker refuses the name or the password.
    #[error("the broker refuses the login by {mechanism}: check sasl.username and sasl.password")]
    Refused {
        /// The mechanism.
        mechanism: Mechanism,
    },
    /// The broker refuses the token.
    #[error("the broker refuses the token: check what the token callback gives (issuer, audience, scope, expiry)")]
    TokenRefused,
    /// There is no token.
    #[error("there is no token to show: the token callback has not given one that is still valid")]
    NoToken,
    /// Whoever answers does not know the password.
    #[error("whoever answers does not know the password: this is not the broker that it claims to be")]
    ServerProof,
    /// The mechanism's message makes no sense.
    #[error("the broker's {mechanism} message has no valid {what}")]
    Malformed {
        /// The mechanism.
        mechanism: Mechanism,
        /// What is missing or wrong.
        what: &'static str,
    },
    /// So many rounds would take too long, or protect too little.
    #[error("the broker asks for {got} rounds of hashing; between {least} and {most} are done")]
    Iterations {
        /// Rounds asked for.
        got: u32,
        /// Fewest that are accepted.
        least: u32,
        /// Most that are accepted.
        most: u32,
    },
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    Random,
    /// The answer is no answer to a login.
    #[error("the broker's answer to the login cannot be read")]
    Unreadable,
    /// The broker answered with another error.
    #[error("the broker answers the login with {code}")]
    Broker {
        /// Its answer.
        code: ErrorCode,
    },
}
