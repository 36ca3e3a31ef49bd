//! How a driver is made.
use super::driver::Driver;
use super::error::DriverError;
use crate::topology::Topology;

/// Options of a [`Driver`], made by [`Driver::options`].
///
/// ```
/// use plimsoll::prelude::*;
/// use plimsoll::testing::Driver;
///
/// let builder = StreamsBuilder::new();
/// builder.stream("in", Consumed::with(Utf8, Utf8)).to("out");
/// let topology = builder.build().unwrap();
/// let driver = Driver::options().application_id("my-app").wall_ms(1_700_000_000_000).build(&topology)?;
/// driver.input("in", Utf8, Utf8).pipe("k", "v")?;
/// assert_eq!(driver.output("out", Utf8, Utf8).read()?.unwrap().timestamp, 1_700_000_000_000);
/// # Ok::<(), plimsoll::testing::DriverError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DriverOptions {
    pub(crate) application_id: String,
    pub(crate) wall_ms: i64,
    pub(crate) overlay_bytes: usize,
    pub(crate) record_bytes: usize,
    pub(crate) commit_each: bool,
    pub(crate) keep_outputs: bool,
    pub(crate) skip_undecodable: bool,
}

impl Default for DriverOptions {
    fn default() -> Self {
        Self {
            application_id: "driver".to_owned(),
            wall_ms: 0,
            overlay_bytes: 10 << 20,
            record_bytes: 1 << 20,
            commit_each: true,
            keep_outputs: true,
            skip_undecodable: false,
        }
    }
}

impl DriverOptions {
    /// Begins the names of internal topics; `driver` by default.
    #[must_use]
    pub fn application_id(mut self, id: &str) -> Self {
        self.application_id = id.to_owned();
        self
    }

    /// Where the wall clock begins, milliseconds since the epoch; 0 by default.
    #[must_use]
    pub fn wall_ms(mut self, wall_ms: i64) -> Self {
        self.wall_ms = wall_ms;
        self
    }

    /// Bytes that the entries of each store may take in memory; 10 MiB by default. A small number shows what eviction
    /// does.
    #[must_use]
    pub fn overlay_bytes(mut self, bytes: usize) -> Self {
        self.overlay_bytes = bytes;
        self
    }

    /// Whether to commit after each record, which forwards what caches hold: the default, and what Kafka Streams'
    /// driver does. Off, [`Driver::commit`] does it.
    #[must_use]
    pub fn commit_each(mut self, on: bool) -> Self {
        self.commit_each = on;
        self
    }

    /// Whether to keep what sinks and changelogs write, to be read (the default), or only to count it.
    #[must_use]
    pub fn keep_outputs(mut self, on: bool) -> Self {
        self.keep_outputs = on;
        self
    }

    /// Whether to skip records that cannot be decoded, and count them; by default they are errors.
    #[must_use]
    pub fn skip_undecodable(mut self, on: bool) -> Self {
        self.skip_undecodable = on;
        self
    }

    /// Makes the driver.
    ///
    /// # Errors
    /// Only on a fault of the library.
    pub fn build(self, topology: &Topology) -> Result<Driver, DriverError> {
        Driver::wire(topology, self)
    }
}
