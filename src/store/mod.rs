//! State: the backend, the overlay, restored bytes.
pub(crate) mod backend;
pub(crate) mod batch;
pub(crate) mod chunks;
#[cfg(test)]
pub(crate) mod contract;
pub(crate) mod error;
pub(crate) mod kind;
pub(crate) mod memory;
pub(crate) mod offset;
pub(crate) mod order;
pub(crate) mod overlay;
pub(crate) mod restore;
#[cfg(target_os = "linux")]
pub(crate) mod rocks;
#[cfg(target_os = "linux")]
pub(crate) mod rocks_lock;
#[cfg(target_os = "linux")]
mod rocks_scans;
#[cfg(target_os = "linux")]
pub(crate) mod rocks_upkeep;
pub(crate) mod slab;
#[cfg(target_os = "linux")]
pub(crate) mod split;
