//! How much pressure each module is under: one atomic that every stream thread reads once a turn.
//!
//! Owns one word. Two bits a module, then two for the process, then the rung of the ladder. Written by the governor
//! alone (in simulation by the test), read by all. Bound: eight bytes.
use super::Rung;
use plimsoll_alloc::Module;
use std::sync::atomic::{AtomicU32, Ordering};

/// How close a module is to its rows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub(crate) enum Level {
    /// Well below.
    #[default]
    Calm,
    /// Close: give back what costs little.
    Tight,
    /// At or above: give back what can be given.
    Full,
}

impl Level {
    fn of(bits: u32) -> Self {
        match bits & 3 {
            0 => Self::Calm,
            1 => Self::Tight,
            _ => Self::Full,
        }
    }
}

const PROCESS_SHIFT: u32 = 2 * Module::COUNT as u32;
const RUNG_SHIFT: u32 = PROCESS_SHIFT + 2;
const _: () = assert!(RUNG_SHIFT + 3 <= u32::BITS);

/// The word that the governor writes.
#[derive(Debug, Default)]
pub(crate) struct Pressure(AtomicU32);

/// One reading of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Reading(u32);

impl Pressure {
    /// Everything as it is now: one relaxed load.
    #[inline]
    pub(crate) fn read(&self) -> Reading {
        Reading(self.0.load(Ordering::Relaxed))
    }

    /// Replaces the reading.
    pub(crate) fn publish(&self, reading: Reading) {
        self.0.store(reading.0, Ordering::Relaxed);
    }
}

impl Reading {
    /// Level of one module.
    #[inline]
    pub(crate) fn level(self, module: Module) -> Level {
        Level::of(self.0 >> (2 * module as u32))
    }

    /// Level of the whole process against the line.
    #[inline]
    pub(crate) fn process(self) -> Level {
        Level::of(self.0 >> PROCESS_SHIFT)
    }

    /// Last rung that is pulled, `None` when all is calm.
    #[inline]
    pub(crate) fn rung(self) -> Option<Rung> {
        Rung::from_depth((self.0 >> RUNG_SHIFT) & 7)
    }

    /// Whether a rung is pulled: it or one after it.
    #[inline]
    pub(crate) fn is_pulled(self, rung: Rung) -> bool {
        self.rung().is_some_and(|last| last >= rung)
    }

    /// The same with another level of a module.
    #[must_use]
    pub(crate) fn with_level(self, module: Module, level: Level) -> Self {
        self.with(2 * module as u32, 3, level as u32)
    }

    /// The same with another level of the process.
    #[must_use]
    pub(crate) fn with_process(self, level: Level) -> Self {
        self.with(PROCESS_SHIFT, 3, level as u32)
    }

    /// The same with another rung.
    #[must_use]
    pub(crate) fn with_rung(self, rung: Option<Rung>) -> Self {
        self.with(RUNG_SHIFT, 7, rung.map_or(0, Rung::depth))
    }

    fn with(self, shift: u32, mask: u32, bits: u32) -> Self {
        Self(self.0 & !(mask << shift) | (bits << shift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_modules_process_and_rung_do_not_touch_each_other() {
        let mut reading = Reading::default();
        for module in Module::ALL {
            reading = reading.with_level(module, Level::Full);
        }
        reading = reading.with_level(Module::Cache, Level::Tight).with_process(Level::Tight);
        reading = reading.with_rung(Some(Rung::FewerPartitions));
        assert_eq!(reading.level(Module::Cache), Level::Tight);
        assert_eq!(reading.level(Module::BlockCache), Level::Full);
        assert_eq!(reading.process(), Level::Tight);
        assert_eq!(reading.rung(), Some(Rung::FewerPartitions));
        let calm = reading.with_rung(None).with_level(Module::Cache, Level::Calm);
        assert_eq!((calm.rung(), calm.level(Module::Cache)), (None, Level::Calm));
        assert_eq!(calm.level(Module::Store), Level::Full);
    }

    #[test]
    fn a_rung_counts_as_pulled_when_a_later_one_is() {
        let reading = Reading::default().with_rung(Some(Rung::FlushMemtables));
        assert!(reading.is_pulled(Rung::EvictClean));
        assert!(!reading.is_pulled(Rung::ShrinkBlockCache));
    }
}
