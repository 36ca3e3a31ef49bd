//! Giving back at once what a module has freed.

use super::ctl::Mib;
use super::install::{self, ready};
use super::local::local;
use super::tcache;
use crate::{AllocError, Module};

static PURGE: Mib<3> = Mib::new(c"arena.0.purge", 1);

/// Resolves names. Called once, from the set-up.
pub(crate) fn setup() -> Result<(), AllocError> {
    PURGE.resolve()
}

/// Gives the module's freed pages back to the operating system now, instead of within half a second.
///
/// Also empties this thread's cache of the module's blocks; other threads keep theirs (at most some 100 KiB each).
/// Runs at about 6 GiB/s and takes the module's locks meanwhile: for the governor, not for stream threads. Does
/// nothing without an installed allocator.
pub fn purge(module: Module) {
    if !ready() {
        return;
    }
    let local = local();
    let index = module.index();
    if index == local.home.get() as usize {
        let _ = tcache::flush_automatic();
    }
    tcache::flush(local, index);
    PURGE.call(install::arena(index) as usize);
}
