//! The plan: the line as a sum of rows.
//!
//! Owns the rows of one application. Invariants, each a property test: the rows and the slack add up to the line; the
//! slack is at most a tenth; no row is under its floor or, but for what the user set, above its ceiling; a larger line
//! makes no row smaller. Pure: no clock, no file, no setting is read here. Called by `app` at start and by `Driver`.
use super::split::{Claim, split};
use super::table::{CONSUMERS, PROCESS, PRODUCERS, SPARE, STATE, Spec};
use super::{Demand, Floor, PlanError, Row, RowId, Sizes};
use crate::base::text::Bytes;
use plimsoll_alloc::Module;
use std::fmt;

/// The slack is this part of the line: what rounding to size classes and half-used pages may take.
const SLACK_DIVISOR: u64 = 32;
/// No line is above this (1 EiB): sums of rows cannot overflow.
const LARGEST_LINE: u64 = 1 << 60;

/// The line divided into rows. Displays as a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    line: u64,
    tracked: bool,
    rows: Vec<Row>,
    slack: u64,
    sizes: Sizes,
}

impl Plan {
    /// The line, in bytes.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Every row, in the order of the table. Their bytes and [`Plan::slack`] add up to the line.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Bytes that belong to no row: at most a tenth of the line.
    #[must_use]
    pub fn slack(&self) -> u64 {
        self.slack
    }

    /// One row, or `None` if this application has no such row.
    #[must_use]
    pub fn row(&self, id: RowId) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Sum of the rows of a module, in bytes: what its measured peak is held under.
    #[must_use]
    pub fn module_bytes(&self, module: Module) -> u64 {
        self.rows.iter().filter(|row| row.module == Some(module)).map(|row| row.bytes).sum()
    }

    /// Sum of the rows outside of the heap, in bytes.
    #[must_use]
    pub fn outside_heap_bytes(&self) -> u64 {
        self.rows.iter().filter(|row| row.module.is_none()).map(|row| row.bytes).sum()
    }

    /// Bytes of one batch of the producer (Kafka's `batch.size`): also the largest record that can be written.
    #[must_use]
    pub fn batch_bytes(&self) -> usize {
        self.sizes.batch_bytes
    }

    /// Bytes of a row, 0 if there is none.
    #[cfg(test)]
    pub(crate) fn bytes(&self, id: RowId) -> u64 {
        self.row(id).map_or(0, |row| row.bytes)
    }

    /// Sizes of the pools that fit the rows.
    pub(crate) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Whether modules are measured by the allocator.
    pub(crate) fn is_tracked(&self) -> bool {
        self.tracked
    }
}

/// Makes the plan, or says why there is none.
pub(crate) fn plan(demand: &Demand) -> Result<Plan, PlanError> {
    if demand.threads == 0 {
        return Err(PlanError::NoThreads);
    }
    let line = demand.line.bytes.min(LARGEST_LINE);
    let consumers = Group::new(&CONSUMERS, demand.line.consumers);
    let producers = Group::new(&PRODUCERS, demand.line.producers);
    consumers.check("consumers", demand)?;
    producers.check("producers", demand)?;
    let needed = total_floor(demand, &consumers, &producers);
    if line < needed.saturating_add(slack_of(line)) {
        return Err(too_small(demand));
    }

    // Groups that the user sized are filled by themselves; all other rows share what is left above the floors.
    let mut rest: Vec<&Spec> = PROCESS.iter().collect();
    let mut rows = Vec::with_capacity(RowId::ALL.len());
    for group in [&consumers, &producers] {
        match group.given {
            Some(bytes) => fill(demand, &mut rows, group.specs.iter().collect(), bytes, true),
            None => rest.extend(group.specs),
        }
    }
    rest.extend(&STATE);
    let taken: u64 = rows.iter().map(|row: &Row| row.bytes).sum();
    let spread = line - slack_of(line) - taken;
    fill(demand, &mut rows, rest, spread, false);
    let used: u64 = rows.iter().map(|row| row.bytes).sum();
    let spare = line - slack_of(line) - used;
    if spare > SPARE_FROM {
        rows.push(row_of(&SPARE, demand, spare));
    }
    rows.retain(|row| row.bytes > 0);
    rows.sort_by_key(|row| row.id);
    let slack = line - rows.iter().map(|row| row.bytes).sum::<u64>();
    let sizes = Sizes::new(demand, &rows);
    Ok(Plan { line, tracked: demand.line.tracked, rows, slack, sizes })
}

/// Less than this that no row can use is rounding and stays in the slack.
const SPARE_FROM: u64 = 4096;

fn slack_of(line: u64) -> u64 {
    line / SLACK_DIVISOR
}

/// Rows whose sum the user may set.
struct Group {
    specs: &'static [Spec],
    given: Option<u64>,
}

impl Group {
    fn new(specs: &'static [Spec], given: Option<u64>) -> Self {
        Self { specs, given }
    }

    fn floor(&self, demand: &Demand) -> u64 {
        sum_of_floors(self.specs, demand)
    }

    fn check(&self, share: &'static str, demand: &Demand) -> Result<(), PlanError> {
        let needed = self.floor(demand);
        match self.given {
            Some(given) if given < needed => {
                Err(PlanError::ShareTooSmall { share, given, needed, floors: floors_of(self.specs.iter(), demand) })
            }
            _ => Ok(()),
        }
    }

    /// What the line must leave for the group.
    fn claim(&self, demand: &Demand) -> u64 {
        self.given.unwrap_or_else(|| self.floor(demand))
    }
}

fn sum_of_floors(specs: &[Spec], demand: &Demand) -> u64 {
    specs.iter().fold(0, |sum, spec| (spec.floor)(demand).saturating_add(sum))
}

fn total_floor(demand: &Demand, consumers: &Group, producers: &Group) -> u64 {
    sum_of_floors(&PROCESS, demand)
        .saturating_add(sum_of_floors(&STATE, demand))
        .saturating_add(consumers.claim(demand))
        .saturating_add(producers.claim(demand))
}

/// Gives each row its floor and a share of what is left. `user` lifts the ceilings: the user's sum is used up.
fn fill(demand: &Demand, rows: &mut Vec<Row>, specs: Vec<&Spec>, bytes: u64, user: bool) {
    let floors: u64 = specs.iter().map(|spec| (spec.floor)(demand)).sum();
    let claims: Vec<Claim> = specs
        .iter()
        .map(|spec| {
            let ceiling = (spec.ceiling)(demand);
            let ceiling = if user && ceiling > 0 { u64::MAX } else { ceiling };
            Claim { weight: spec.weight, room: ceiling.saturating_sub((spec.floor)(demand)) }
        })
        .collect();
    let parts = split(bytes.saturating_sub(floors), &claims);
    for (spec, part) in specs.into_iter().zip(parts) {
        rows.push(row_of(spec, demand, (spec.floor)(demand) + part));
    }
}

fn row_of(spec: &Spec, demand: &Demand, bytes: u64) -> Row {
    let (id, module, what, when_full) = (spec.id, spec.module, spec.what, spec.when_full);
    Row { id, module, what, bytes, floor: (spec.floor)(demand), when_full }
}

fn floors_of<'a>(specs: impl Iterator<Item = &'a Spec>, demand: &Demand) -> Vec<Floor> {
    let mut floors: Vec<Floor> = specs
        .map(|spec| Floor { row: spec.id, what: spec.what, bytes: (spec.floor)(demand) })
        .filter(|floor| floor.bytes > 0)
        .collect();
    floors.sort_by_key(|floor| std::cmp::Reverse(floor.bytes));
    floors
}

fn too_small(demand: &Demand) -> PlanError {
    let all = PROCESS.iter().chain(&CONSUMERS).chain(&PRODUCERS).chain(&STATE);
    PlanError::LineTooSmall { line: demand.line.bytes, needed: lowest_line(demand), floors: floors_of(all, demand) }
}

/// The smallest line that has a plan, in bytes, rounded up to a tenth of a MiB.
pub(crate) fn lowest_line(demand: &Demand) -> u64 {
    let fits = |line: u64| {
        let mut demand = *demand;
        demand.line.bytes = line;
        let consumers = Group::new(&CONSUMERS, demand.line.consumers);
        let producers = Group::new(&PRODUCERS, demand.line.producers);
        line >= total_floor(&demand, &consumers, &producers).saturating_add(slack_of(line))
    };
    let (mut low, mut high) = (0, LARGEST_LINE);
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low.next_multiple_of(STEP)
}

/// A lowest line is told in steps of this.
const STEP: u64 = (1 << 20) / 8;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<18} {:<11} {:>11} {:>6}  {:<82} when full", "row", "module", "bytes", "share", "formula")?;
        for row in &self.rows {
            let module = row.module.map_or("-", Module::name);
            let share = row.bytes as f64 * 100.0 / self.line as f64;
            write!(f, "{:<18} {:<11} {:>11} {:>5.1}%", row.id, module, Bytes(row.bytes), share)?;
            writeln!(f, "  {:<82} {}", row.what, row.when_full)?;
        }
        let share = self.slack as f64 * 100.0 / self.line as f64;
        writeln!(f, "{:<18} {:<11} {:>11} {:>5.1}%", "slack", "-", Bytes(self.slack), share)?;
        writeln!(f, "{:<18} {:<11} {:>11} {:>5.1}%", "line", "-", Bytes(self.line), 100.0)?;
        write!(f, "{}", self.sizes)
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
