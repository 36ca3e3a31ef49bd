//! What reports are made of: resident bytes by module, and the parts of the process's resident set.

use crate::Module;

/// Resident bytes of each module's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Residents {
    /// By [`Module::index`]. App's excludes what lies outside the windows
    /// (see [`RssIdentity::allocator`](crate::RssIdentity::allocator)).
    pub modules: [u64; Module::COUNT],
}

/// What the process's resident memory consists of, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RssIdentity {
    /// Anonymous memory in total, as `/proc/self/smaps_rollup` states it.
    pub anonymous: u64,
    /// Resident pages of each module's window, by [`Module::index`].
    pub windows: [u64; Module::COUNT],
    /// jemalloc's metadata, and what it allocated before the windows existed.
    pub allocator: u64,
    /// Stacks of all threads, signal stacks included.
    pub stacks: u64,
    /// Changed pages of mapped files, zero-initialised data, the `brk` heap.
    pub data: u64,
    /// Resident pages of files and shared memory: not part of `anonymous`.
    pub file: u64,
}

impl RssIdentity {
    /// Resident bytes of all windows.
    #[must_use]
    pub fn tracked(&self) -> u64 {
        self.windows.iter().sum()
    }

    /// What none of the parts explains: mappings of the host's own. Slightly negative when memory was freed while
    /// the parts were read.
    #[must_use]
    pub fn unexplained(&self) -> i64 {
        self.anonymous as i64 - (self.tracked() + self.allocator + self.stacks + self.data) as i64
    }

    /// The resident set: anonymous and file pages.
    #[must_use]
    pub fn resident(&self) -> u64 {
        self.anonymous + self.file
    }
}
