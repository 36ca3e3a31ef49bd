//! What can be wrong with security settings. Values of secret settings are never repeated.

/// Why security settings are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SecurityError {
    /// A setting that one of the two clients would not honour.
    #[error("{setting} is not supported on the data path; {instead}")]
    NotSupported {
        /// The setting, with its value where that matters.
        setting: String,
        /// What to do.
        instead: &'static str,
    },
    /// A setting that does not exist.
    #[error("the setting {setting} is not known; security settings have librdkafka's names")]
    Unknown {
        /// The setting.
        setting: String,
    },
    /// A value that cannot be read.
    #[error("{setting} is not valid; expected {expected}")]
    Invalid {
        /// The setting.
        setting: &'static str,
        /// What is read.
        expected: &'static str,
    },
    /// One setting needs another.
    #[error("{setting} needs {other}")]
    Missing {
        /// The setting.
        setting: &'static str,
        /// What it needs.
        other: &'static str,
    },
    /// A setting has no effect beside another, which is most likely not meant.
    #[error("{setting} has no effect with {other}; remove one of them")]
    Useless {
        /// The setting.
        setting: String,
        /// What it does not fit.
        other: String,
    },
    /// The library was built without it.
    #[error("{what} needs plimsoll's crate feature \"ssl\"")]
    NeedsFeature {
        /// What was asked for.
        what: String,
    },
    /// A certificate, key or file of them.
    #[error("{setting}: {reason}")]
    #[allow(dead_code)] // without TLS
    Certificate {
        /// The setting.
        setting: &'static str,
        /// What is wrong.
        reason: String,
    },
}
