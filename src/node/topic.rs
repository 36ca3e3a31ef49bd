//! Names of topics, internal ones without the application's id.
use std::fmt;

/// A topic's name. Internal topics are named after the application, whose id the topology does not know.
///
/// ```
/// use plimsoll::TopicName;
///
/// assert_eq!(TopicName::External("lines".into()).full("app"), "lines");
/// assert_eq!(TopicName::Repartition("counts".into()).full("app"), "app-counts-repartition");
/// assert_eq!(TopicName::Changelog("counts".into()).full("app"), "app-counts-changelog");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum TopicName {
    /// A topic of the user's.
    External(String),
    /// `<application id>-<name>-repartition`.
    Repartition(String),
    /// `<application id>-<store>-changelog`.
    Changelog(String),
    /// `<application id>-<name>`: between the two sides of a foreign-key join.
    Internal(String),
}

impl TopicName {
    /// The name on the broker.
    pub fn full(&self, application_id: &str) -> String {
        match self {
            Self::External(name) => name.clone(),
            internal => format!("{application_id}-{internal}"),
        }
    }

    /// Whether the library owns the topic.
    pub fn is_internal(&self) -> bool {
        !matches!(self, Self::External(_))
    }
}

/// As Kafka Streams describes it: internal topics without the application's id.
impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::External(name) | Self::Internal(name) => f.write_str(name),
            Self::Repartition(name) => write!(f, "{name}-repartition"),
            Self::Changelog(store) => write!(f, "{store}-changelog"),
        }
    }
}
