//! What every room may use: identities, clocks, named limits and byte sizes as text.
pub(crate) mod clock;
pub(crate) mod id;
pub(crate) mod limits;
pub(crate) mod partition;
pub(crate) mod secret;
pub(crate) mod text;
pub(crate) mod token;
