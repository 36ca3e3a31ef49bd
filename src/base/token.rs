//! The token by which an application shows who it is (SASL OAUTHBEARER).
use super::secret::Secret;
use std::time::{SystemTime, UNIX_EPOCH};

/// An access token from your identity provider, for [`AppBuilder::oauth_token`](crate::AppBuilder::oauth_token).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OauthToken {
    value: Secret,
    expires_at_ms: i64,
    principal: String,
    extensions: Vec<(String, String)>,
}

impl OauthToken {
    /// A token as it goes to the brokers (mostly a JWT in compact form), and when it ends.
    #[must_use]
    pub fn new(value: impl Into<String>, expires_at: SystemTime) -> Self {
        let since = expires_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            value: Secret::new(value),
            expires_at_ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            principal: String::new(),
            extensions: Vec::new(),
        }
    }

    /// Who the token is for; librdkafka shows it in its log. Brokers take the name out of the token itself.
    #[must_use]
    pub fn principal(mut self, principal: impl Into<String>) -> Self {
        self.principal = principal.into();
        self
    }

    /// A SASL extension (KIP-342), a name of letters and a value of printable characters.
    #[must_use]
    pub fn extension(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.extensions.push((name.into(), value.into()));
        self
    }

    /// The token's bytes, for the wire alone.
    pub(crate) fn value(&self) -> &Secret {
        &self.value
    }

    /// When it ends, in milliseconds since the epoch.
    pub(crate) fn expires_at_ms(&self) -> i64 {
        self.expires_at_ms
    }

    /// Who it is for.
    pub(crate) fn principal_name(&self) -> &str {
        &self.principal
    }

    /// Names and values of the extensions.
    pub(crate) fn extensions(&self) -> &[(String, String)] {
        &self.extensions
    }

    /// Why the token cannot be sent, if it cannot: the message has no way to quote.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let token = |byte: &u8| byte.is_ascii_graphic() && *byte != b',';
        if self.value.expose().is_empty() || !self.value.expose().iter().all(token) {
            return Some("the token is empty or has characters that no bearer token has");
        }
        let good = |(name, value): &(String, String)| {
            let printable = |byte: u8| (0x20..0x7f).contains(&byte) || matches!(byte, b'\t' | b'\r' | b'\n');
            !name.is_empty()
                && name != "auth"
                && name.bytes().all(|byte| byte.is_ascii_alphabetic())
                && value.bytes().all(printable)
        };
        (!self.extensions.iter().all(good))
            .then_some("an extension's name has more than letters, is \"auth\", or its value is not printable")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        let token = OauthToken::new("eyJhbGciOi.secret", UNIX_EPOCH).principal("me").extension("pool", "blue");
        let shown = format!("{token:?}");
        assert!(!shown.contains("secret") && shown.contains("[hidden]"), "{shown}");
    }

    #[test]
    fn what_cannot_be_quoted_is_refused() {
        let token = |value: &str| OauthToken::new(value, UNIX_EPOCH);
        assert_eq!(token("abc.def-_~+/=").fault(), None);
        for bad in ["", "a b", "a\u{1}b", "ü"] {
            assert!(token(bad).fault().is_some(), "{bad:?}");
        }
        assert_eq!(token("t").extension("traceId", "a b").fault(), None);
        assert!(token("t").extension("auth", "x").fault().is_some());
        assert!(token("t").extension("a1", "x").fault().is_some());
        assert!(token("t").extension("a", "x\u{1}y").fault().is_some());
    }
}
