//! The driver that runs a topology without a broker, and a cluster inside the process.
#[cfg(target_os = "linux")]
pub use crate::ffi::kafka_error::{Code as KafkaCode, KafkaError};
#[cfg(target_os = "linux")]
pub use crate::ffi::kafka_mock::MockCluster;
