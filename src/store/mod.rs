//! State: the backend, the overlay, restored bytes.
pub(crate) mod backend;
pub(crate) mod batch;
#[cfg(test)]
pub(crate) mod contract;
pub(crate) mod error;
pub(crate) mod memory;
pub(crate) mod offset;
pub(crate) mod restore;
#[cfg(target_os = "linux")]
pub(crate) mod rocks;
#[cfg(target_os = "linux")]
mod rocks_lock;
