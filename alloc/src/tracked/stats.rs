//! The module's figures: committed bytes from the hooks' counters, live bytes from jemalloc's statistics.

use super::ctl::Mib;
use super::install::{self, ready};
use super::{ctl, hooks};
use crate::{AllocError, Module};

static SMALL: Mib<5> = Mib::new(c"stats.arenas.0.small.allocated", 2);
static LARGE: Mib<5> = Mib::new(c"stats.arenas.0.large.allocated", 2);
static ACTIVE: Mib<4> = Mib::new(c"stats.arenas.0.pactive", 2);
static DIRTY: Mib<4> = Mib::new(c"stats.arenas.0.pdirty", 2);
static MUZZY: Mib<4> = Mib::new(c"stats.arenas.0.pmuzzy", 2);
static RETAINED: Mib<4> = Mib::new(c"stats.arenas.0.retained", 2);

const PAGE: u64 = 4096;

/// Resolves names. Called once, from the set-up.
pub(crate) fn setup() -> Result<(), AllocError> {
    SMALL.resolve()?;
    LARGE.resolve()?;
    ACTIVE.resolve()?;
    DIRTY.resolve()?;
    MUZZY.resolve()?;
    RETAINED.resolve()
}

/// Committed bytes of one module: an upper bound of what is resident, current to the page run. O(1), no lock.
///
/// App's figure includes the default arena's oldest extents, made before the allocator was set up, at their
/// full size. Zero without an installed allocator.
///
/// ```
/// use plimsoll_alloc::{Module, committed};
/// println!("{} holds {} bytes", Module::Store, committed(Module::Store));
/// ```
#[must_use]
#[inline]
pub fn committed(module: Module) -> u64 {
    let window = hooks::committed(module.index());
    if module == Module::App { window + hooks::outside() } else { window }
}

/// Committed bytes of all modules, by [`Module::index`]. Nine loads.
#[must_use]
#[inline]
pub fn committed_all() -> [u64; Module::COUNT] {
    Module::ALL.map(committed)
}

/// Live bytes of all modules, by [`Module::index`]: allocated and not freed, in size classes.
///
/// Blocks kept in thread caches count as live. Refreshes jemalloc's statistics, which takes every arena's locks in
/// turn (some 10 µs): at most ten times a second, and never on a thread that must not wait. Zeros without an
/// installed allocator.
#[must_use]
pub fn live_all() -> [u64; Module::COUNT] {
    if !ready() || refresh().is_err() {
        return [0; Module::COUNT];
    }
    Module::ALL.map(|module| {
        let arena = install::arena(module.index()) as usize;
        let small = SMALL.read::<usize>(arena).unwrap_or(0);
        let large = LARGE.read::<usize>(arena).unwrap_or(0);
        (small + large) as u64
    })
}

/// What the default arena holds: in use, waiting to be given back, and kept.
pub(crate) fn default_arena_bytes() -> Result<u64, AllocError> {
    refresh()?;
    let mut pages = 0;
    for part in [&ACTIVE, &DIRTY, &MUZZY] {
        pages += part.read::<usize>(0)? as u64;
    }
    Ok(pages * PAGE + RETAINED.read::<usize>(0)? as u64)
}

/// Makes jemalloc's statistics current.
pub(crate) fn refresh() -> Result<(), AllocError> {
    ctl::write(c"epoch", 1u64)
}
