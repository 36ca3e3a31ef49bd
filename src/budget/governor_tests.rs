//! The governor's thread: it starts, looks, publishes and stops.
use super::super::{Demand, Line, plan};
use super::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

#[derive(Default)]
struct Counts {
    pulled: AtomicU32,
    undone: AtomicU32,
}

struct Counting(Rung, Arc<Counts>);

impl Lever for Counting {
    fn rung(&self) -> Rung {
        self.0
    }
    fn pull(&mut self, _: Level) {
        self.1.pulled.fetch_add(1, Relaxed);
    }
    fn undo(&mut self) {
        self.1.undone.fetch_add(1, Relaxed);
    }
}

fn wait_for(what: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

fn word_count(tracked: bool, bytes: u64) -> Plan {
    plan(&Demand::word_count(Line { bytes, app: None, producers: None, consumers: None, tracked })).unwrap()
}

#[test]
fn a_process_far_below_its_line_is_calm_and_its_size_is_known() {
    let plan = word_count(false, 1 << 40);
    let (ledger, pressure) = (Arc::new(Ledger::new(&plan)), Arc::new(Pressure::default()));
    let governor = Governor::spawn(&plan, ledger.clone(), pressure.clone(), Vec::new()).unwrap();
    let mut report = crate::MemoryReport::default();
    assert!(wait_for(|| {
        let mut report = crate::MemoryReport::default();
        ledger.fill(&mut report);
        report.rss > 0
    }));
    ledger.fill(&mut report);
    assert_eq!((report.line, report.tracked), (1 << 40, false));
    assert_eq!(pressure.read(), super::super::pressure::Reading::default());
    drop(governor);
}

#[test]
fn a_process_above_its_line_pulls_every_rung_and_undoes_it_at_the_end() {
    let plan = word_count(false, 48 << 20);
    let ballast = vec![1u8; 64 << 20];
    let (ledger, pressure) = (Arc::new(Ledger::new(&plan)), Arc::new(Pressure::default()));
    let counts = Arc::new(Counts::default());
    let levers = Rung::ALL.map(|rung| Box::new(Counting(rung, counts.clone())) as Box<dyn Lever>);
    let governor = Governor::spawn(&plan, ledger, pressure.clone(), levers.into()).unwrap();
    assert!(wait_for(|| pressure.read().is_pulled(Rung::FewerPartitions)));
    assert_eq!(pressure.read().process(), Level::Full);
    assert!(counts.pulled.load(Relaxed) >= 5);
    drop(governor);
    assert_eq!(counts.undone.load(Relaxed), 5);
    assert_eq!(std::hint::black_box(&ballast)[17], 1);
}
