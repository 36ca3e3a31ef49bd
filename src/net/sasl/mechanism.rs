//! Names of mechanisms, and sets of them small enough for an error.
use std::fmt;

/// A SASL mechanism of the data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// Name and password as they are (RFC 4616).
    Plain,
    /// Challenge and response over SHA-256 (RFC 5802, RFC 7677).
    ScramSha256,
    /// The same over SHA-512.
    ScramSha512,
    /// A token (RFC 7628).
    Oauthbearer,
}

impl Mechanism {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Plain, Self::ScramSha256, Self::ScramSha512, Self::Oauthbearer];

    /// SASL's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
            Self::Oauthbearer => "OAUTHBEARER",
        }
    }

    /// The mechanism of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The mechanisms that a listener takes, as far as they are known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct MechanismSet {
    known: u8,
    /// It takes others, too (GSSAPI, say).
    others: bool,
}

impl MechanismSet {
    /// Adds one by its name.
    pub(crate) fn add(&mut self, name: &str) {
        match Mechanism::from_name(name) {
            Some(mechanism) => self.known |= 1 << mechanism as u8,
            None => self.others = true,
        }
    }
}

impl fmt::Display for MechanismSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for mechanism in Mechanism::ALL {
            if self.known & 1 << mechanism as u8 != 0 {
                write!(f, "{between}{mechanism}")?;
                between = ", ";
            }
        }
        match (between, self.others) {
            ("", false) => f.write_str("none"),
            (_, true) => write!(f, "{between}others that are not supported here"),
            _ => Ok(()),
        }
    }
}
