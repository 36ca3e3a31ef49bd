//! Where a codec is used.
use std::fmt;

/// Key or value of a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The key.
    Key,
    /// The value.
    Value,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "key",
            Self::Value => "value",
        })
    }
}

/// The place of a codec, given to [`Codec::bind`](super::Codec::bind) once when a thread is wired.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let place = Place::new("orders", Side::Value);
/// assert_eq!(place.to_string(), "value of orders");
/// assert!(I64.bind(&place).decode(&[0; 8]).is_ok());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Place<'a> {
    /// Full name of the topic; for a store its changelog's.
    pub topic: &'a str,
    /// Key or value.
    pub side: Side,
}

impl<'a> Place<'a> {
    /// Key or value of the records of a topic.
    pub fn new(topic: &'a str, side: Side) -> Self {
        Self { topic, side }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.side, self.topic)
    }
}
