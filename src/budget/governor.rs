//! The governor: compares what is used with the rows every few milliseconds, raises levels and pulls levers.
//!
//! Owns its thread, the levers and the pressure word. Invariant: a level rises at once and falls only after a clear
//! distance, and every lever that was pulled is undone when the pressure has gone. It allocates nothing after its start
//! and waits for nobody. Started by `app`, stopped when dropped.
use super::process::Resident;
use super::watch::{Watch, Wish};
use super::{Ledger, Level, Plan, Pressure, meter};
use plimsoll_alloc::Module;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time from one comparison to the next.
pub(crate) const TICK: Duration = Duration::from_millis(10);
/// Ticks from one scan of resident and live bytes to the next: a second.
const SCAN_TICKS: u64 = 100;
/// Ticks from one purge of a module to the next: purging costs, and what is dirty again at once is in use.
const PURGE_TICKS: u64 = 5;

/// Steps that give memory back, the cheapest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub(crate) enum Rung {
    /// Free pages of the allocator go back to the system.
    ReturnPages = 1,
    /// Clean entries of the overlay go.
    EvictClean,
    /// RocksDB's write buffers are flushed.
    FlushMemtables,
    /// RocksDB's block cache gets a smaller capacity.
    ShrinkBlockCache,
    /// Fewer partitions are asked for; never fewer than one a task.
    FewerPartitions,
}

impl Rung {
    pub(crate) const ALL: [Self; 5] =
        [Self::ReturnPages, Self::EvictClean, Self::FlushMemtables, Self::ShrinkBlockCache, Self::FewerPartitions];

    /// Position from 1; 0 stands for none.
    pub(crate) fn depth(self) -> u32 {
        self as u32
    }

    pub(crate) fn from_depth(depth: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|rung| rung.depth() == depth)
    }
}

/// Something that gives memory back when asked. Both methods are called on the governor's thread: they set a flag or
/// wake the owner, and neither allocate nor wait.
pub(crate) trait Lever: Send {
    /// When it is pulled.
    fn rung(&self) -> Rung;
    /// Called when its rung is reached, and again each tick that the pressure lasts.
    fn pull(&mut self, level: Level);
    /// Called once when the pressure has gone.
    fn undo(&mut self);
}

/// The running governor. Dropping it stops the thread and undoes what is pulled.
#[derive(Debug)]
pub(crate) struct Governor {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Governor {
    /// Starts the thread. Levers of one rung are pulled in the order given.
    pub(crate) fn spawn(
        plan: &Plan,
        ledger: Arc<Ledger>,
        pressure: Arc<Pressure>,
        levers: Vec<Box<dyn Lever>>,
    ) -> std::io::Result<Self> {
        let mut rounds = Rounds {
            watch: Watch::new(plan),
            resident: Resident::open(),
            tracked: plan.is_tracked(),
            ledger,
            pressure,
            levers,
            purged: [0; Module::COUNT],
            tick: 0,
        };
        let (stop, stopped) = sync_channel::<()>(0);
        let thread = std::thread::Builder::new().name("plimsoll-governor".into()).spawn(move || {
            while matches!(stopped.recv_timeout(TICK), Err(RecvTimeoutError::Timeout)) {
                rounds.tick();
            }
            rounds.undo_all();
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a governor that panicked has nothing left to stop
        }
    }
}

/// What the thread does each tick.
struct Rounds {
    watch: Watch,
    resident: Resident,
    tracked: bool,
    ledger: Arc<Ledger>,
    pressure: Arc<Pressure>,
    levers: Vec<Box<dyn Lever>>,
    purged: [u64; Module::COUNT],
    tick: u64,
}

impl Rounds {
    fn tick(&mut self) {
        self.tick += 1;
        // Without tracking the rows say nothing of the counters, even where the allocator happens to be installed.
        let committed = if self.tracked { meter::committed_all() } else { [0; Module::COUNT] };
        self.ledger.set_committed(&committed);
        let rss = self.resident.bytes();
        if let Some(rss) = rss {
            self.ledger.set_rss(rss);
        }
        if self.tracked && self.tick % SCAN_TICKS == 1 {
            self.scan();
        }
        let wish = self.watch.look(&committed, rss);
        self.follow(wish);
        self.pressure.publish(self.watch.reading());
    }

    /// Pulls or undoes what the watch wishes.
    fn follow(&mut self, wish: Wish) {
        match wish {
            Wish::Nothing => {}
            Wish::Pull(last, level) => {
                self.purge();
                for lever in self.levers.iter_mut().filter(|lever| lever.rung() <= last) {
                    lever.pull(level);
                }
            }
            Wish::Undo(rung) => {
                for lever in self.levers.iter_mut().filter(|lever| lever.rung() == rung) {
                    lever.undo();
                }
            }
        }
    }

    /// Gives free pages of the modules under pressure back to the system.
    fn purge(&mut self) {
        let reading = self.watch.reading();
        let process = reading.process() != Level::Calm;
        for module in Module::ALL {
            let last = &mut self.purged[module as usize];
            let is_due = self.tick - *last >= PURGE_TICKS;
            if is_due && (process || reading.level(module) != Level::Calm) {
                *last = self.tick;
                self.ledger.count_reclaimed(module, meter::purge(module));
            }
        }
    }

    fn scan(&self) {
        self.ledger.set_live(&meter::live_all());
        if let Some(identity) = meter::identity() {
            self.ledger.set_identity(&identity);
        }
    }

    fn undo_all(&mut self) {
        for lever in self.levers.iter_mut().rev() {
            lever.undo();
        }
    }
}

#[cfg(test)]
#[path = "governor_tests.rs"]
mod tests;
