//! Why there is no plan, in words that say what to change.
use super::RowId;
use crate::base::text::Bytes;
use std::fmt::{self, Write as _};

/// The least that one row must have, as an error lists it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Floor {
    /// The row.
    pub row: RowId,
    /// Its formula in words.
    pub what: &'static str,
    /// Bytes that it cannot do without.
    pub bytes: u64,
}

/// Why a line or a setting of memory was refused. The text says what to change.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The line is smaller than what the rows need together.
    #[error(
        "the line of {} is too small: raise it to at least {}; the floors by row are\n{}",
        Bytes(*.line), Bytes(*.needed), Floors(.floors)
    )]
    LineTooSmall {
        /// The line asked for, in bytes.
        line: u64,
        /// The lowest line that this application runs under, in bytes.
        needed: u64,
        /// What each row cannot do without, largest first.
        floors: Vec<Floor>,
    },
    /// A part that the user set (`producers`, `consumers`) is smaller than its own rows need.
    #[error(
        "{share}({}) is too small: raise it to at least {} or leave it out; the floors by row are\n{}",
        Bytes(*.given), Bytes(*.needed), Floors(.floors)
    )]
    ShareTooSmall {
        /// Name of the method of `Memory` that set it.
        share: &'static str,
        /// Bytes that the user gave.
        given: u64,
        /// The least that would do, in bytes.
        needed: u64,
        /// What each of its rows cannot do without, largest first.
        floors: Vec<Floor>,
    },
    /// A part of a cgroup's limit was asked for, and no cgroup of this process has a limit.
    #[error("no cgroup of this process has a memory limit: set one or use `Memory::total(bytes)`")]
    NoCgroupLimit,
    /// A part of a cgroup's limit must be above 0 and at most 1.
    #[error("the fraction {fraction} of the cgroup's limit is not in (0, 1]: give for example 0.5")]
    BadFraction {
        /// What was asked for.
        fraction: f64,
    },
    /// The text is not a size.
    #[error("`{text}` is not a size: write for example `256 MiB` ({reason})")]
    BadSize {
        /// The text.
        text: String,
        /// Why not.
        reason: String,
    },
    /// An application must have at least one stream thread.
    #[error("there are no stream threads: set `num.stream.threads` to 1 or more")]
    NoThreads,
}

struct Floors<'a>(&'a [Floor]);

impl fmt::Display for Floors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, floor) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_char('\n')?;
            }
            write!(f, "{:>12}  {:<18} {}", Bytes(floor.bytes), floor.row.name(), floor.what)?;
        }
        Ok(())
    }
}
