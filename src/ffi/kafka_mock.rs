//! librdkafka's mock cluster: brokers inside this process, for demos and for tests that inject errors.
use std::ffi::c_char;
use std::ptr::NonNull;

use rdkafka_sys as rd;

use super::kafka::{buffer_text, text};
use super::kafka_conf::Conf;
use super::kafka_error::{Code, KafkaError};
use super::kafka_list::c_string;

/// Brokers inside this process, on loopback, without Kafka. They end when this is dropped.
///
/// What they cannot do, so that a demo or a test does not rely on it:
/// - a partition keeps at most 5 MiB or 100,000 batches, the oldest go **silently**; nothing is compacted or stored;
/// - there is no CreateTopics, DescribeConfigs or DescribeGroups (topics are made with [`Self::create_topic`]);
/// - transactions are not isolated, their offsets are dropped and zombies are not fenced;
/// - offsets cannot be looked up by timestamp, and each fetch answers one batch a partition;
/// - a group whose last member left gives nobody an assignment any more: use another `application.id`;
/// - a fetch that finds nothing waits its full `fetch.wait.max.ms`: ask for 10 ms.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = plimsoll::testing::MockCluster::start(1)?;
/// cluster.create_topic("lines", 4)?;
/// println!("{}", cluster.bootstrap_servers());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MockCluster {
    rk: NonNull<rd::rd_kafka_t>,
    cluster: NonNull<rd::rd_kafka_mock_cluster_t>,
    bootstrap: String,
}

// SAFETY: the mock cluster's functions hand their work to the cluster's own thread and may be called from any other.
unsafe impl Send for MockCluster {}
// SAFETY: as above.
unsafe impl Sync for MockCluster {}

impl MockCluster {
    /// Starts so many brokers. Groups form without their usual delay of 3 s.
    ///
    /// # Errors
    /// librdkafka cannot make the cluster (no free port, no memory).
    pub fn start(brokers: u32) -> Result<Self, KafkaError> {
        let conf = Conf::new()?;
        conf.set("log_level", "0")?;
        let mut reason = [0 as c_char; 512];
        let kind = rd::rd_kafka_type_t::RD_KAFKA_PRODUCER;
        // SAFETY: the configuration is live and given to the handle on success only; `reason` has its length.
        let rk = unsafe { rd::rd_kafka_new(kind, conf.as_ptr(), reason.as_mut_ptr(), reason.len()) };
        let rk = NonNull::new(rk).ok_or_else(|| KafkaError::Start { reason: buffer_text(&reason) })?;
        conf.release();
        // SAFETY: the handle is live; the cluster is checked before use; the text is copied.
        unsafe {
            let count = i32::try_from(brokers).unwrap_or(i32::MAX);
            let Some(cluster) = NonNull::new(rd::rd_kafka_mock_cluster_new(rk.as_ptr(), count)) else {
                rd::rd_kafka_destroy(rk.as_ptr());
                return Err(KafkaError::Start { reason: "the mock cluster cannot listen".to_owned() });
            };
            rd::rd_kafka_mock_group_initial_rebalance_delay_ms(cluster.as_ptr(), 0);
            let bootstrap = text(rd::rd_kafka_mock_cluster_bootstraps(cluster.as_ptr()));
            Ok(Self { rk, cluster, bootstrap })
        }
    }

    /// The brokers' `bootstrap.servers`.
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap
    }

    /// Creates a topic.
    ///
    /// # Errors
    /// The topic exists already, or its name holds a NUL byte.
    pub fn create_topic(&self, name: &str, partitions: u32) -> Result<(), KafkaError> {
        let name = c_string("topic", name)?;
        let partitions = i32::try_from(partitions).unwrap_or(i32::MAX);
        // SAFETY: the cluster is live; the text is copied.
        let code = unsafe { rd::rd_kafka_mock_topic_create(self.cluster.as_ptr(), name.as_ptr(), partitions, 1) };
        Code(code as i32).check("mock_topic_create")
    }

    /// Answers the next requests of an API with these error codes, one each.
    #[cfg(test)]
    pub(crate) fn fail_next(&self, api_key: i16, codes: &[Code]) {
        for code in codes {
            // SAFETY: the cluster is live; the variadic call gets exactly one code, an integer as C passes its enum.
            unsafe { raw::rd_kafka_mock_push_request_errors(self.cluster.as_ptr().cast(), api_key, 1, code.0) };
        }
    }
}

impl Drop for MockCluster {
    fn drop(&mut self) {
        // SAFETY: both are ours and live; the cluster goes before the handle that carries it.
        unsafe {
            rd::rd_kafka_mock_cluster_destroy(self.cluster.as_ptr());
            rd::rd_kafka_destroy(self.rk.as_ptr());
        }
    }
}

#[cfg(test)]
mod raw {
    use std::ffi::c_void;

    unsafe extern "C" {
        pub(super) fn rd_kafka_mock_push_request_errors(cluster: *mut c_void, api_key: i16, count: usize, ...);
    }
}
