//! From names and texts to typed settings, without touching a file.
use super::SecurityError;
use crate::base::secret::Secret;
use crate::net::sasl::{Credentials, Mechanism, TokenCallback, TokenSource};
use std::path::PathBuf;
use std::sync::Arc;

/// PEM text, or the file it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::net) struct Pem {
    /// The setting it came from.
    pub(in crate::net) setting: &'static str,
    /// The file; without one the text counts.
    pub(in crate::net) location: Option<PathBuf>,
    /// The text; it may be a key.
    pub(in crate::net) text: Secret,
}

/// How much of a broker's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) enum Verification {
    /// Who signed it, its time, and that it is for the host.
    Full,
    /// All but the host (`ssl.endpoint.identification.algorithm=none`).
    AnyHost,
    /// Nothing (`enable.ssl.certificate.verification=false`).
    None,
}

/// Settings of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::net) struct TlsSettings {
    /// Trusted authorities; the system's where none are given.
    pub(in crate::net) ca: Option<Pem>,
    /// Our certificate and its key.
    pub(in crate::net) identity: Option<(Pem, Pem)>,
    /// How much is checked.
    pub(in crate::net) verification: Verification,
}

/// All settings.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) tls: Option<TlsSettings>,
    pub(super) credentials: Option<Credentials>,
}

/// Every setting that is read.
const KNOWN: [&str; 13] = [
    "security.protocol",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.key.pem",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.username",
    "sasl.password",
];

/// Settings of librdkafka's or Java's clients that the data path does not honour, and what to do.
const INSTEAD: [(&str, &str); 13] = [
    ("ssl.key.password", "decrypt the key: openssl pkey -in key.pem -out plain.pem"),
    (
        "ssl.keystore.",
        "give PEM by ssl.certificate.location and ssl.key.location (openssl pkcs12 -in store.p12 -nodes)",
    ),
    ("ssl.truststore.", "give PEM by ssl.ca.location (keytool -exportcert -rfc)"),
    ("ssl.crl.location", "revocation lists are not read; use short-lived certificates"),
    ("ssl.cipher.suites", "the ciphers of TLS 1.2 and 1.3 that rustls takes are offered"),
    ("ssl.curves.list", "the curves that rustls takes are offered"),
    ("ssl.sigalgs.list", "the signatures that rustls takes are offered"),
    ("ssl.engine.", "give the key as PEM by ssl.key.location"),
    ("ssl.providers", "give the key as PEM by ssl.key.location"),
    ("sasl.kerberos.", "GSSAPI (Kerberos) is not there; use SCRAM or OAUTHBEARER on a listener beside it"),
    ("sasl.jaas.config", "set sasl.username and sasl.password, or give a token callback to the builder"),
    ("sasl.login.", "set sasl.username and sasl.password, or give a token callback to the builder"),
    ("sasl.oauthbearer.", "give a token callback to the builder (oauth_token)"),
];

struct Settings<'a>(&'a [(String, String)]);

impl Settings<'_> {
    /// The last value of a setting; an empty one is none.
    fn get(&self, name: &str) -> Option<&str> {
        let last = self.0.iter().rev().find(|(key, _)| key == name);
        last.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn check_names(&self) -> Result<(), SecurityError> {
        for (name, value) in self.0.iter().filter(|(_, value)| !value.is_empty()) {
            let instead = INSTEAD.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, instead)| *instead);
            if let Some(instead) = instead {
                return Err(SecurityError::NotSupported { setting: name.clone(), instead });
            }
            let known = KNOWN.iter().find(|known| *known == name);
            let setting = known.ok_or_else(|| SecurityError::Unknown { setting: name.clone() })?;
            if value.contains('\0') {
                return Err(SecurityError::Invalid { setting, expected: "a text without zero bytes" });
            }
        }
        Ok(())
    }

    fn pem(&self, location: &'static str, text: &'static str) -> Result<Option<Pem>, SecurityError> {
        match (self.get(location), self.get(text)) {
            (None, None) => Ok(None),
            (Some(path), None) => {
                let location_of = Some(PathBuf::from(path));
                Ok(Some(Pem { setting: location, location: location_of, text: Secret::default() }))
            }
            (None, Some(pem)) => Ok(Some(Pem { setting: text, location: None, text: Secret::new(pem) })),
            (Some(_), Some(_)) => Err(SecurityError::Useless { setting: text.to_owned(), other: location.to_owned() }),
        }
    }

    /// Settings of a kind that has no effect under this protocol.
    fn refuse(&self, prefixes: &[&str], protocol: &str) -> Result<(), SecurityError> {
        let found = self
            .0
            .iter()
            .find(|(name, value)| !value.is_empty() && prefixes.iter().any(|prefix| name.starts_with(prefix)));
        match found {
            None => Ok(()),
            Some((name, _)) => {
                Err(SecurityError::Useless { setting: name.clone(), other: format!("security.protocol={protocol}") })
            }
        }
    }
}

/// Parses all settings.
pub(super) fn parse(settings: &[(String, String)], token: Option<Arc<TokenCallback>>) -> Result<Parsed, SecurityError> {
    let settings = Settings(settings);
    settings.check_names()?;
    let protocol = settings.get("security.protocol").unwrap_or("plaintext").to_ascii_lowercase();
    let (tls, sasl) = match protocol.as_str() {
        "plaintext" => (false, false),
        "ssl" => (true, false),
        "sasl_plaintext" => (false, true),
        "sasl_ssl" => (true, true),
        _ => {
            let expected = "plaintext, ssl, sasl_plaintext or sasl_ssl";
            return Err(SecurityError::Invalid { setting: "security.protocol", expected });
        }
    };
    if !tls {
        settings.refuse(&["ssl.", "enable.ssl."], &protocol)?;
    }
    if !sasl {
        settings.refuse(&["sasl."], &protocol)?;
        if token.is_some() {
            let setting = "a token callback".to_owned();
            return Err(SecurityError::Useless { setting, other: format!("security.protocol={protocol}") });
        }
    }
    if tls && cfg!(not(feature = "ssl")) {
        return Err(SecurityError::NeedsFeature { what: format!("security.protocol={protocol}") });
    }
    let tls = if tls { Some(tls_settings(&settings)?) } else { None };
    let credentials = if sasl { Some(credentials(&settings, token)?) } else { None };
    Ok(Parsed { tls, credentials })
}

fn tls_settings(settings: &Settings<'_>) -> Result<TlsSettings, SecurityError> {
    let certificate = settings.pem("ssl.certificate.location", "ssl.certificate.pem")?;
    let key = settings.pem("ssl.key.location", "ssl.key.pem")?;
    let identity = match (certificate, key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (Some(certificate), None) => {
            return Err(SecurityError::Missing {
                setting: certificate.setting,
                other: "ssl.key.location or ssl.key.pem",
            });
        }
        (None, Some(key)) => {
            let other = "ssl.certificate.location or ssl.certificate.pem";
            return Err(SecurityError::Missing { setting: key.setting, other });
        }
    };
    let name = "ssl.endpoint.identification.algorithm";
    let any_host = match settings.get(name).map(str::to_ascii_lowercase).as_deref() {
        None | Some("https") => false,
        Some("none") => true,
        Some(_) => return Err(SecurityError::Invalid { setting: name, expected: "https or none" }),
    };
    let name = "enable.ssl.certificate.verification";
    let checked = match settings.get(name).map(str::to_ascii_lowercase).as_deref() {
        None | Some("true") => true,
        Some("false") => false,
        Some(_) => return Err(SecurityError::Invalid { setting: name, expected: "true or false" }),
    };
    let verification = match (checked, any_host) {
        (true, false) => Verification::Full,
        (true, true) => Verification::AnyHost,
        (false, _) => Verification::None,
    };
    Ok(TlsSettings { ca: settings.pem("ssl.ca.location", "ssl.ca.pem")?, identity, verification })
}

fn credentials(settings: &Settings<'_>, token: Option<Arc<TokenCallback>>) -> Result<Credentials, SecurityError> {
    let named = settings.get("sasl.mechanism").or_else(|| settings.get("sasl.mechanisms"));
    let expected = "one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER";
    let named = named.ok_or(SecurityError::Missing { setting: "SASL", other: "sasl.mechanism" })?;
    if named.eq_ignore_ascii_case("GSSAPI") {
        let instead = "GSSAPI (Kerberos) is not there; use SCRAM or OAUTHBEARER on a listener beside it";
        return Err(SecurityError::NotSupported { setting: "sasl.mechanism=GSSAPI".to_owned(), instead });
    }
    let mechanism = Mechanism::from_name(named);
    let mechanism = mechanism.ok_or(SecurityError::Invalid { setting: "sasl.mechanism", expected })?;
    // librdkafka has SCRAM and OAUTHBEARER only together with OpenSSL.
    if mechanism != Mechanism::Plain && cfg!(not(feature = "ssl")) {
        return Err(SecurityError::NeedsFeature { what: format!("sasl.mechanism={mechanism}") });
    }
    let beside = |setting: &str| SecurityError::Useless {
        setting: setting.to_owned(),
        other: format!("sasl.mechanism={mechanism}"),
    };
    match (mechanism, token) {
        (Mechanism::Oauthbearer, Some(callback)) => {
            for setting in ["sasl.username", "sasl.password"] {
                if settings.get(setting).is_some() {
                    return Err(beside(setting));
                }
            }
            Ok(Credentials::Token(Arc::new(TokenSource::new(callback))))
        }
        (Mechanism::Oauthbearer, None) => {
            let other = "a token callback: give one to the builder (oauth_token)";
            Err(SecurityError::Missing { setting: "sasl.mechanism=OAUTHBEARER", other })
        }
        (_, Some(_)) => Err(beside("a token callback")),
        (_, None) => {
            let needed = |setting| SecurityError::Missing { setting: "sasl.mechanism", other: setting };
            let username = settings.get("sasl.username").ok_or_else(|| needed("sasl.username"))?;
            let password = settings.get("sasl.password").ok_or_else(|| needed("sasl.password"))?;
            let (username, password) = (username.to_owned(), Secret::new(password));
            Ok(Credentials::Password { mechanism, username, password })
        }
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
