//! Levels and rungs from numbers: the governor's judgement without its thread.
//!
//! Pure but for its own state. Invariants: a level rises at once and falls only below a lower mark (hysteresis); rungs
//! are climbed one at a time, each with time to work, and left in reverse order once all is calm. Called by the
//! governor.
use super::pressure::Reading;
use super::{Level, Plan, Rung};
use plimsoll_alloc::Module;

/// Ticks that a rung has to work before the next is tried.
const PATIENCE: u32 = 5;
/// Ticks of calm before the last rung is undone.
const CALM_TICKS: u32 = 20;

/// What is to be done about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    Nothing,
    /// Pull every lever up to this rung.
    Pull(Rung, Level),
    /// Undo the levers of this rung.
    Undo(Rung),
}

/// Marks of one module or of the process, in bytes.
#[derive(Clone, Copy, Debug)]
struct Marks {
    limit: u64,
    /// Pools are full by construction: for them only more than the limit counts.
    pooled: bool,
}

impl Marks {
    fn next(self, now: Level, used: u64) -> Level {
        let part = |sixteenths: u64| self.limit / 16 * sixteenths;
        if self.pooled {
            return if used > self.limit { Level::Full } else { Level::Calm };
        }
        let full_from = if now == Level::Full { part(15) } else { self.limit };
        let tight_from = if now == Level::Calm { part(14) } else { part(12) };
        if used >= full_from.max(1) {
            Level::Full
        } else if used >= tight_from.max(1) {
            Level::Tight
        } else {
            Level::Calm
        }
    }
}

/// State of the governor's judgement.
#[derive(Debug)]
pub(super) struct Watch {
    modules: [Marks; Module::COUNT],
    process: Marks,
    /// Bytes outside of the heap that count as used in full.
    outside: u64,
    tracked: bool,
    reading: Reading,
    /// Looks since the last change of rung.
    waited: u32,
    /// Looks without pressure in a row.
    calm: u32,
}

impl Watch {
    pub(super) fn new(plan: &Plan) -> Self {
        let modules = Module::ALL.map(|module| Marks {
            limit: plan.module_bytes(module),
            // Buffers made at start or, for the engine and the handle, with no lever: no early warning helps.
            pooled: matches!(
                module,
                Module::Batch | Module::Restore | Module::Producer | Module::Engine | Module::Consumer
            ),
        });
        let process = Marks { limit: plan.line(), pooled: false };
        let outside = plan.outside_heap_bytes();
        Self { modules, process, outside, tracked: plan.is_tracked(), reading: Reading::default(), waited: 0, calm: 0 }
    }

    /// The levels as of the last look.
    pub(super) fn reading(&self) -> Reading {
        self.reading
    }

    /// Takes new numbers: committed bytes of each module, resident bytes of the process.
    pub(super) fn look(&mut self, committed: &[u64; Module::COUNT], rss: Option<u64>) -> Wish {
        let mut worst = Level::Calm;
        for module in Module::ALL {
            let used = committed[module as usize];
            let level = self.modules[module as usize].next(self.reading.level(module), used);
            self.reading = self.reading.with_level(module, level);
            worst = worst.max(level);
        }
        // Committed bytes bound the resident ones from above; without the allocator the resident size is all there is.
        let counted = committed.iter().sum::<u64>() + self.outside;
        let used = if self.tracked { rss.map_or(counted, |rss| counted.min(rss)) } else { rss.unwrap_or(0) };
        let level = self.process.next(self.reading.process(), used);
        self.reading = self.reading.with_process(level);
        self.climb(worst.max(level))
    }

    fn climb(&mut self, level: Level) -> Wish {
        let depth = self.reading.rung().map_or(0, Rung::depth);
        self.waited = self.waited.saturating_add(1);
        self.calm = if level == Level::Calm { self.calm.saturating_add(1) } else { 0 };
        let next = Rung::from_depth(depth + 1);
        // Tight asks for what costs little only; full goes on until something helps.
        let deepest = match level {
            Level::Calm => 0,
            Level::Tight => Rung::EvictClean.depth(),
            Level::Full => Rung::FewerPartitions.depth(),
        };
        match (level, next) {
            (Level::Calm, _) => self.calm_down(),
            (_, Some(next)) if next.depth() <= deepest && (depth == 0 || self.waited >= PATIENCE) => {
                self.waited = 0;
                self.reading = self.reading.with_rung(Some(next));
                Wish::Pull(next, level)
            }
            _ => self.reading.rung().map_or(Wish::Nothing, |rung| Wish::Pull(rung, level)),
        }
    }

    fn calm_down(&mut self) -> Wish {
        match self.reading.rung() {
            Some(rung) if self.calm >= CALM_TICKS => {
                (self.calm, self.waited) = (0, 0);
                self.reading = self.reading.with_rung(Rung::from_depth(rung.depth() - 1));
                Wish::Undo(rung)
            }
            _ => Wish::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Demand, Line, plan};
    use super::*;

    fn watch() -> (Watch, u64) {
        let line = Line { bytes: 256 << 20, app: None, producers: None, consumers: None, tracked: true };
        let plan = plan(&Demand::word_count(line)).unwrap();
        (Watch::new(&plan), plan.module_bytes(Module::Cache))
    }

    fn look(watch: &mut Watch, cache: u64) -> Wish {
        let mut committed = [0; Module::COUNT];
        committed[Module::Cache as usize] = cache;
        watch.look(&committed, None)
    }

    #[test]
    fn a_level_rises_at_once_and_falls_only_at_a_distance() {
        let (mut watch, row) = watch();
        look(&mut watch, row);
        assert_eq!(watch.reading().level(Module::Cache), Level::Full);
        look(&mut watch, row - row / 32);
        assert_eq!(watch.reading().level(Module::Cache), Level::Full, "within a sixteenth: still full");
        look(&mut watch, row - row / 8);
        assert_eq!(watch.reading().level(Module::Cache), Level::Tight);
        look(&mut watch, row / 2);
        assert_eq!(watch.reading().level(Module::Cache), Level::Calm);
        look(&mut watch, row - row / 6);
        assert_eq!(watch.reading().level(Module::Cache), Level::Calm, "calm up to seven eighths");
        assert_eq!(watch.reading().level(Module::Store), Level::Calm);
    }

    #[test]
    fn rungs_are_climbed_in_order_with_time_for_each_and_undone_in_reverse() {
        let (mut watch, row) = watch();
        let mut climbed = Vec::new();
        for _ in 0..60 {
            match look(&mut watch, row) {
                Wish::Pull(rung, Level::Full) if climbed.last() != Some(&rung) => climbed.push(rung),
                _ => {}
            }
        }
        assert_eq!(climbed, Rung::ALL);
        let undone: Vec<Rung> = (0..200)
            .filter_map(|_| match look(&mut watch, 0) {
                Wish::Undo(rung) => Some(rung),
                _ => None,
            })
            .collect();
        assert!(undone.iter().eq(Rung::ALL.iter().rev()), "{undone:?}");
        assert_eq!(watch.reading(), Reading::default());
    }

    #[test]
    fn a_tight_module_asks_only_for_what_costs_little() {
        let (mut watch, row) = watch();
        for _ in 0..100 {
            look(&mut watch, row - row / 10);
        }
        assert_eq!(watch.reading().rung(), Some(Rung::EvictClean));
    }

    #[test]
    fn pools_made_at_start_are_no_pressure_until_they_pass_their_rows() {
        let (mut watch, _) = watch();
        let batch = watch.modules[Module::Batch as usize].limit;
        let mut committed = [0; Module::COUNT];
        committed[Module::Batch as usize] = batch;
        assert_eq!(watch.look(&committed, None), Wish::Nothing);
        committed[Module::Batch as usize] = batch + 1;
        assert_eq!(watch.look(&committed, None), Wish::Pull(Rung::ReturnPages, Level::Full));
    }
}
