//! What every room may use: identities, clocks and named limits.
pub(crate) mod clock;
pub(crate) mod id;
pub(crate) mod limits;
