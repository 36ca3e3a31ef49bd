//! What a measured program has to do. The bench sets the environment; Java reads the same names.
use crate::Outcome;
use std::str::FromStr;

/// One measured program's task. Each field is the environment variable of its name in capitals after `PEER_`.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// `pass` or `count`.
    pub case: String,
    /// Whether to process until standard input ends, instead of `records`.
    pub serve: bool,
    /// `bootstrap.servers`.
    pub bootstrap: String,
    /// `application.id`, or the consumer group.
    pub id: String,
    /// Input topic.
    pub input: String,
    /// Output topic.
    pub output: String,
    /// Partitions of both topics.
    pub partitions: u32,
    /// Records in the input topic.
    pub records: u64,
    /// `linger.ms` of the producer.
    pub linger_ms: u64,
    /// `commit.interval.ms`.
    pub commit_ms: u64,
    /// Bytes of the record cache, where it is not a row of the plan.
    pub cache_bytes: u64,
    /// `batch.size` of the producer, where it is not a part of the plan.
    pub batch_bytes: u64,
    /// `compression.type` of the producer.
    pub compression: String,
    /// A file with the authority of the brokers' certificates; empty: plaintext.
    pub authority: String,
    /// The memory line, where there is one.
    pub line: String,
    /// A directory for state.
    pub state: String,
}

impl Task {
    /// The task as environment.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PEER_CASE", self.case.clone()),
            ("PEER_SERVE", self.serve.to_string()),
            ("PEER_BOOTSTRAP", self.bootstrap.clone()),
            ("PEER_ID", self.id.clone()),
            ("PEER_INPUT", self.input.clone()),
            ("PEER_OUTPUT", self.output.clone()),
            ("PEER_PARTITIONS", self.partitions.to_string()),
            ("PEER_RECORDS", self.records.to_string()),
            ("PEER_LINGER_MS", self.linger_ms.to_string()),
            ("PEER_COMMIT_MS", self.commit_ms.to_string()),
            ("PEER_CACHE_BYTES", self.cache_bytes.to_string()),
            ("PEER_BATCH_BYTES", self.batch_bytes.to_string()),
            (
                "PEER_COMPRESSION",
                if self.compression.is_empty() { "none".to_owned() } else { self.compression.clone() },
            ),
            ("PEER_AUTHORITY", self.authority.clone()),
            ("PEER_LINE", self.line.clone()),
            ("PEER_STATE", self.state.clone()),
        ]
    }

    /// How the brokers are spoken to, in librdkafka's names.
    pub fn security(&self) -> Vec<(&'static str, &str)> {
        match self.authority.as_str() {
            "" => Vec::new(),
            authority => vec![("security.protocol", "ssl"), ("ssl.ca.location", authority)],
        }
    }

    /// Reads the environment.
    ///
    /// # Errors
    /// A variable is missing or not of its type.
    pub fn from_environment() -> Outcome<Self> {
        Ok(Self {
            case: read("PEER_CASE")?,
            serve: read("PEER_SERVE")?,
            bootstrap: read("PEER_BOOTSTRAP")?,
            id: read("PEER_ID")?,
            input: read("PEER_INPUT")?,
            output: read("PEER_OUTPUT")?,
            partitions: read("PEER_PARTITIONS")?,
            records: read("PEER_RECORDS")?,
            linger_ms: read("PEER_LINGER_MS")?,
            commit_ms: read("PEER_COMMIT_MS")?,
            cache_bytes: read("PEER_CACHE_BYTES")?,
            batch_bytes: read("PEER_BATCH_BYTES")?,
            compression: read("PEER_COMPRESSION")?,
            authority: read("PEER_AUTHORITY")?,
            line: read("PEER_LINE")?,
            state: read("PEER_STATE")?,
        })
    }
}

fn read<T: FromStr>(name: &str) -> Outcome<T> {
    let value = std::env::var(name).map_err(|_| format!("{name} is not set; `make bench-peer` sets it"))?;
    value.parse().map_err(|_| format!("{name}={value} cannot be read").into())
}
