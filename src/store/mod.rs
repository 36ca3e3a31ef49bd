//! State: the backend, the overlay, restored bytes.
pub(crate) mod backend;
pub(crate) mod batch;
#[cfg(test)]
pub(crate) mod contract;
pub(crate) mod error;
pub(crate) mod memory;
pub(crate) mod offset;
