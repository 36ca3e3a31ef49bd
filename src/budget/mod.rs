//! The plan: how the line is divided into rows, and the governor that holds it.
//!
//! Owns every number of bytes that the engine may use. `plan` is a pure function from what an application needs
//! ([`Demand`]) to its rows; rooms above take their sizes from the [`Plan`] and never choose one themselves.
//! Invariant: rows and slack add up to the line, and no row is below its floor. Bound: the code here holds a few KiB
//! and allocates only before the start. Called by `app` (plan, start), `worker` (pressure, shares) and the user
//! (report).
mod cgroup;
mod demand;
mod error;
mod governor;
mod ledger;
mod memory;
mod meter;
mod owned;
mod plan;
mod pressure;
mod process;
mod report;
mod row;
mod share;
mod sizes;
mod split;
mod table;
mod watch;

pub(crate) use demand::{Demand, Machine};
pub use error::{Floor, PlanError};
pub(crate) use governor::{Governor, Lever, Rung};
pub(crate) use ledger::Ledger;
pub(crate) use memory::Line;
pub use memory::Memory;
pub(crate) use owned::owned;
pub use plan::Plan;
pub(crate) use plan::plan;
pub(crate) use pressure::{Level, Pressure};
pub use report::{MemoryReport, ModuleMemory};
pub use row::{Row, RowId};
pub(crate) use share::{Reserved, Shares};

pub(crate) use sizes::Sizes;
pub(crate) use table::MAX_BATCH_BYTES;
