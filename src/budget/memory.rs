//! What the user says about memory: the line and, if wanted, parts of it.
use super::{PlanError, cgroup};
use crate::base::text;
use std::str::FromStr;

/// How much memory the process may use: the **line**, which has no default.
///
/// The line is the resident memory of the whole process: the engine, librdkafka, RocksDB, the program's own pages and
/// the host's share ([`Memory::app`]). All sizes are bytes.
///
/// ```
/// use plimsoll::Memory;
///
/// let line = Memory::total(256 << 20).app(16 << 20);
/// let same = "256 MiB".parse::<Memory>()?.app(16 << 20);
/// assert_eq!(line, same);
/// # Ok::<(), plimsoll::PlanError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Memory {
    line: Wanted,
    app: Option<u64>,
    producers: Option<u64>,
    consumers: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Wanted {
    Total(u64),
    Fraction(f64),
    Planned(u64),
}

/// A line in bytes, with the user's parts of it: what a plan is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub(crate) bytes: u64,
    /// The host's own part, if the user set one.
    pub(crate) app: Option<u64>,
    /// Part of all producing, if the user set one.
    pub(crate) producers: Option<u64>,
    /// Part of all consuming, if the user set one.
    pub(crate) consumers: Option<u64>,
    /// Whether the allocator must be installed and every module is measured.
    pub(crate) tracked: bool,
}

impl Memory {
    /// A line of this many bytes. Needs the tracking allocator (`plimsoll::install_allocator!()`).
    #[must_use]
    pub const fn total(bytes: u64) -> Self {
        Self::of(Wanted::Total(bytes))
    }

    /// A part of the memory limit of the cgroup (version 1 or 2) that the process runs in: `0.5` is half of it.
    ///
    /// Starting fails with [`PlanError::NoCgroupLimit`] where no limit is set, and with [`PlanError::BadFraction`]
    /// unless
    /// `0 < fraction <= 1`.
    #[must_use]
    pub const fn fraction_of_cgroup(fraction: f64) -> Self {
        Self::of(Wanted::Fraction(fraction))
    }

    /// A line of this many bytes for hosts that cannot install the allocator (shared libraries, another allocator).
    ///
    /// The rows are planned, the pools bounded and the resident size watched, but no module is measured: every report
    /// says
    /// `tracked: false`.
    #[must_use]
    pub const fn planned(bytes: u64) -> Self {
        Self::of(Wanted::Planned(bytes))
    }

    /// Bytes for the host and the user's own code (default: 4 to 8 MiB).
    #[must_use]
    pub const fn app(mut self, bytes: u64) -> Self {
        self.app = Some(bytes);
        self
    }

    /// Bytes for everything that produces: batches and compression (default: a share of the line).
    #[must_use]
    pub const fn producers(mut self, bytes: u64) -> Self {
        self.producers = Some(bytes);
        self
    }

    /// Bytes for everything that consumes: frames, arenas, restoring and the control-plane handle (default: a share).
    #[must_use]
    pub const fn consumers(mut self, bytes: u64) -> Self {
        self.consumers = Some(bytes);
        self
    }

    const fn of(line: Wanted) -> Self {
        Self { line, app: None, producers: None, consumers: None }
    }

    /// The line in bytes; reads the cgroup's limit if the user asked for a part of it.
    pub(crate) fn resolve(&self) -> Result<Line, PlanError> {
        self.resolve_with(cgroup::limit)
    }

    fn resolve_with(&self, cgroup_limit: impl FnOnce() -> Option<u64>) -> Result<Line, PlanError> {
        let bytes = match self.line {
            Wanted::Total(bytes) | Wanted::Planned(bytes) => bytes,
            Wanted::Fraction(fraction) if fraction > 0.0 && fraction <= 1.0 => {
                let limit = cgroup_limit().ok_or(PlanError::NoCgroupLimit)?;
                (limit as f64 * fraction) as u64
            }
            Wanted::Fraction(fraction) => return Err(PlanError::BadFraction { fraction }),
        };
        Ok(Line {
            bytes,
            app: self.app,
            producers: self.producers,
            consumers: self.consumers,
            tracked: !matches!(self.line, Wanted::Planned(_)),
        })
    }
}

impl FromStr for Memory {
    type Err = PlanError;

    /// Reads a total such as `"256 MiB"`, `"1.5 GiB"` or a plain number of bytes.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        text::parse_bytes(text).map(Self::total).map_err(|reason| PlanError::BadSize { text: text.to_owned(), reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_of_the_cgroups_limit_and_needs_one() {
        let half = Memory::fraction_of_cgroup(0.5);
        assert_eq!(half.resolve_with(|| Some(512 << 20)).unwrap().bytes, 256 << 20);
        assert!(matches!(half.resolve_with(|| None), Err(PlanError::NoCgroupLimit)));
    }

    #[test]
    fn a_fraction_outside_of_zero_to_one_is_refused() {
        for fraction in [0.0, -0.5, 1.01, f64::NAN, f64::INFINITY] {
            let asked = Memory::fraction_of_cgroup(fraction).resolve_with(|| Some(1 << 30));
            assert!(matches!(asked, Err(PlanError::BadFraction { .. })), "{fraction}");
        }
    }

    #[test]
    fn only_a_planned_line_is_untracked() {
        assert!(Memory::total(1).resolve().unwrap().tracked);
        assert!(!Memory::planned(1).resolve().unwrap().tracked);
    }

    #[test]
    fn text_that_is_no_size_is_named_in_the_error() {
        let error = "lots".parse::<Memory>().unwrap_err();
        assert!(error.to_string().contains("`lots`"), "{error}");
    }
}
