//! Testing a topology without a broker: the same nodes, overlay and commit order as a stream thread, in the test's own
//! thread.
//!
//! Owns the [`Driver`]. Invariant: what it answers is what Kafka Streams' `TopologyTestDriver` answers for the same
//! topology and input. Bound: the test. Called by users' tests.
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
mod driver;
mod error;
mod inbox;
mod input;
mod options;
mod output;
mod recorder;
mod store;
mod views;
mod windows;
#[cfg(all(feature = "bench", target_os = "linux"))]
#[doc(hidden)]
pub mod wire;

pub use driver::Driver;
pub use error::DriverError;
pub use input::InputTopic;
pub use options::DriverOptions;
pub use output::{OutputTopic, RawOutput, TestRecord};
pub use store::{StoreRow, StoreView};
pub use windows::{SessionRow, SessionStoreView, WindowRow, WindowStoreView};

#[cfg(target_os = "linux")]
pub use crate::ffi::kafka_error::{Code as KafkaCode, KafkaError};
#[cfg(target_os = "linux")]
pub use crate::ffi::kafka_mock::MockCluster;

#[cfg(test)]
mod tests;
