//! What strikes: each function lets a fault happen while records are written and read, and ends it.
use crate::run::Run;
use crate::support::proxy::{Fault, Proxy};
use crate::{Bench, COORDINATORS};
use std::time::Duration;

pub fn paused(bench: &Bench, run: &Run) -> Result<(), String> {
    run.allow(30);
    run.written(25)?;
    bench.cluster.pause(2);
    run.allow(80);
    std::thread::sleep(Duration::from_secs(if bench.is_short() { 15 } else { 40 }));
    bench.cluster.resume(2);
    run.allow(100);
    run.read_all()
}

pub fn killed(bench: &Bench, run: &Run) -> Result<(), String> {
    run.allow(30);
    run.written(25)?;
    bench.cluster.kill(0);
    run.allow(80);
    run.written(80)?;
    bench.cluster.restart(0);
    run.allow(100);
    run.read_all()?;
    bench.in_sync(&run.topic, |count| count == 3)
}

pub fn rolling(bench: &Bench, run: &Run) -> Result<(), String> {
    for (node, upto) in [(0, 30), (1, 60), (2, 90)] {
        run.allow(upto);
        run.written(upto - 10)?;
        bench.cluster.stop(node);
        run.allow(upto + 5);
        bench.cluster.restart(node);
        bench.in_sync(&run.topic, |count| count == 3)?;
    }
    run.allow(100);
    run.read_all()
}

pub fn leader_moved(bench: &Bench, run: &Run) -> Result<(), String> {
    moved(bench, run, &[&run.topic])
}

/// The coordinators of transactions move with the leaders.
pub fn leaders_moved(bench: &Bench, run: &Run) -> Result<(), String> {
    moved(bench, run, &[COORDINATORS, &run.topic])
}

fn moved(bench: &Bench, run: &Run, topics: &[&str]) -> Result<(), String> {
    // Of the short form: there and back.
    let (steps, part) = if bench.is_short() { (2, 45) } else { (6, 15) };
    for step in 0..steps {
        run.allow(part * (step + 1));
        run.written(part * step + 5)?;
        for topic in topics {
            bench.admin.lead(topic, if step % 2 == 0 { 2 } else { 1 })?;
        }
    }
    run.allow(100);
    run.read_all()
}

/// The follower is gone, and the leader after it has taken more; then the follower alone comes back and leads.
pub fn unclean(bench: &Bench, run: &Run) -> Result<(), String> {
    run.allow(30);
    run.written(25)?;
    bench.cluster.kill(1);
    // Appended on the leader alone, and not acknowledged: these are lost and written again.
    run.allow(60);
    bench.in_sync(&run.topic, |count| count == 1)?;
    bench.cluster.kill(0);
    bench.cluster.restart(1);
    bench.led_by(&run.topic, 2)?;
    bench.cluster.restart(0);
    bench.in_sync(&run.topic, |count| count == 2)?;
    run.allow(100);
    run.read_all()
}

fn disturbed(bench: &Bench, run: &Run, fault: Fault) -> Result<(), String> {
    run.allow(10);
    run.written(5)?;
    bench.disturb(fault);
    run.allow(100);
    let outcome = run.read_all();
    bench.calm();
    outcome
}

pub fn delayed(bench: &Bench, run: &Run) -> Result<(), String> {
    disturbed(bench, run, Fault::Delay(Duration::from_millis(200)))
}

pub fn trickled(bench: &Bench, run: &Run) -> Result<(), String> {
    disturbed(bench, run, Fault::Trickle)
}

pub fn throttled(bench: &Bench, run: &Run) -> Result<(), String> {
    disturbed(bench, run, Fault::Throttle(1_000_000))
}

pub fn reset(bench: &Bench, run: &Run) -> Result<(), String> {
    let resets = || bench.proxies.iter().map(Proxy::resets).sum::<u64>();
    let before = resets();
    disturbed(bench, run, Fault::Reset(bench.records * 3))?;
    let resets = resets() - before;
    if resets >= 10 { Ok(()) } else { Err(format!("only {resets} resets")) }
}
