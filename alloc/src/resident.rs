//! What is really in memory, window by window: the kernel's page tables.

use crate::Module;

/// Resident bytes of each module's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residents {
    /// By [`Module::index`].
    pub modules: [u64; Module::COUNT],
}
