//! How a processor ends.
use crate::base::id::NodeId;
use crate::node::{BoxError, Cx, Fault, Parked};
use std::error::Error;
use std::fmt;

/// What a processor answers.
pub type Processed = Result<(), ProcessorError>;

/// Why a processor stopped: an error of its own, or one of a store or of what it forwarded. Every error converts into
/// it by `?`.
///
/// ```
/// use plimsoll::prelude::*;
///
/// fn parse(text: &str) -> Result<i64, ProcessorError> {
///     if text.is_empty() {
///         return Err(ProcessorError::new("a number is missing"));
///     }
///     Ok(text.parse()?)
/// }
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// assert_eq!(parse("").unwrap_err().to_string(), "a number is missing");
/// ```
pub struct ProcessorError(Why);

enum Why {
    /// Details are parked.
    Below(Fault),
    User(BoxError),
}

impl ProcessorError {
    /// From anything that says what is wrong: a text, an error.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(Why::User(error.into()))
    }

    pub(crate) fn below(fault: Fault) -> Self {
        Self(Why::Below(fault))
    }

    /// As the task takes it.
    #[cold]
    pub(crate) fn settle(self, cx: &Cx<'_>, node: NodeId) -> Fault {
        match self.0 {
            Why::Below(fault) => fault,
            Why::User(error) => cx.fault.park(Fault::User, Parked::User { node, error }),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ProcessorError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Display for ProcessorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Why::Below(_) => f.write_str("a store or an operator below failed; the task says why"),
            Why::User(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for ProcessorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessorError({self})")
    }
}
