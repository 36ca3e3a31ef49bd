//! How this process shows who it is, and whom it trusts: one set of settings, by librdkafka's names, for every
//! connection.
//!
//! Owns the parsed settings, the certificates behind them and the source of tokens. Invariant: what one plane would
//! not honour is refused for both, by name; nothing secret is in `Debug` or in an error. Made once, by `app`; read by
//! every [`Link`](super::Link).
mod error;
mod parse;

pub(crate) use error::SecurityError;
pub(super) use parse::TlsSettings;
#[cfg(feature = "ssl")]
pub(super) use parse::{Pem, Verification};

use super::sasl::{Credentials, TokenCallback, TokenNews};
use super::tls::TlsClient;
use crate::base::token::OauthToken;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Security settings of the process; a clone is another handle to them.
#[derive(Clone, Default)]
pub(crate) struct Security(Arc<Inner>);

#[derive(Default)]
struct Inner {
    tls: Option<TlsClient>,
    credentials: Option<Credentials>,
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("protocol", &self.protocol())
            .field("mechanism", &self.0.credentials.as_ref().map(Credentials::mechanism))
            .finish()
    }
}

impl Security {
    /// Parses settings by librdkafka's names, and reads the certificates that they name.
    ///
    /// # Errors
    /// [`SecurityError`]: a setting that is unknown, does not fit the others, or names a file that cannot be read.
    pub(crate) fn new(settings: &[(String, String)], token: Option<Arc<TokenCallback>>) -> Result<Self, SecurityError> {
        let parsed = parse::parse(settings, token)?;
        let tls = parsed.tls.as_ref().map(TlsClient::new).transpose()?;
        Ok(Self(Arc::new(Inner { tls, credentials: parsed.credentials })))
    }

    /// `security.protocol`.
    pub(crate) fn protocol(&self) -> &'static str {
        match (&self.0.tls, &self.0.credentials) {
            (None, None) => "plaintext",
            (Some(_), None) => "ssl",
            (None, Some(_)) => "sasl_plaintext",
            (Some(_), Some(_)) => "sasl_ssl",
        }
    }

    /// Whether connections are encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        self.0.tls.is_some()
    }

    /// Asks for a new token if it is time, by the wall clock; for the control thread, since it may take long.
    pub(crate) fn refresh_token(&self, wall_ms: i64) -> TokenNews {
        match &self.0.credentials {
            Some(Credentials::Token(source)) => source.refresh(wall_ms),
            _ => TokenNews::None,
        }
    }

    /// The present token; `None` where there is none or none is used.
    pub(crate) fn token(&self) -> Option<OauthToken> {
        match &self.0.credentials {
            Some(Credentials::Token(source)) => source.with(OauthToken::clone),
            _ => None,
        }
    }

    /// Whether logins show a token.
    pub(crate) fn uses_tokens(&self) -> bool {
        matches!(self.0.credentials, Some(Credentials::Token(_)))
    }

    pub(super) fn tls(&self) -> Option<&TlsClient> {
        self.0.tls.as_ref()
    }

    pub(super) fn credentials(&self) -> Option<&Credentials> {
        self.0.credentials.as_ref()
    }
}

/// Where a connection goes, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer<'a> {
    /// The address.
    pub(crate) addr: SocketAddr,
    /// The host whose certificate is expected there.
    pub(crate) host: &'a str,
    /// The process's settings.
    pub(crate) security: &'a Security,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::OnceLock;

    /// Plaintext to an address.
    pub(crate) fn plain(addr: SocketAddr) -> Peer<'static> {
        static PLAIN: OnceLock<Security> = OnceLock::new();
        Peer { addr, host: "", security: PLAIN.get_or_init(Security::default) }
    }
}
