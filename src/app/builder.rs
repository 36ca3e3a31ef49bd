//! The builder of an application: it has no `start` before it was told its line.
use super::config;
use super::error::StartError;
use super::handle::App;
use crate::base::token::OauthToken;
use crate::budget::Memory;
use crate::topology::{OffsetReset, Topology};
use crate::wire::Compression;
use crate::worker::failure::{DeserializationResponse, Failure, FailureResponse, UndecodableRecord};
use crate::worker::settings::Settings;
use crate::worker::state::{State, StateListener};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The line is not known yet; such a builder cannot start.
#[derive(Debug)]
pub struct NoLine(());

/// The line is known.
#[derive(Debug)]
pub struct WithLine(pub(super) Memory);

/// Settings of an application on their way. Made by [`App::builder`].
///
/// ```no_run
/// use plimsoll::prelude::*;
/// # let builder = StreamsBuilder::new();
/// # builder.stream("lines", Consumed::with(Bytes, Bytes)).to("copy");
/// let app = App::builder("word-count", "localhost:9092")
///     .memory(Memory::total(256 * MIB))
///     .threads(2)
///     .config("commit.interval.ms", "1000")
///     .start(builder.build()?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Without a line there is nothing to start:
///
/// ```compile_fail
/// use plimsoll::prelude::*;
/// # let builder = StreamsBuilder::new();
/// let app = App::builder("word-count", "localhost:9092").start(builder.build().unwrap());
/// ```
pub struct AppBuilder<L> {
    pub(super) line: L,
    pub(super) settings: Settings,
    pub(super) configs: Vec<(String, String)>,
    pub(super) on_state: Option<StateListener>,
}

/// Settings with Kafka Streams' defaults.
pub(crate) fn default_settings(application_id: &str, bootstrap: &str) -> Settings {
    Settings {
        application_id: application_id.to_owned(),
        bootstrap: bootstrap.to_owned(),
        client_id: application_id.to_owned(),
        threads: 1,
        state_dir: std::env::temp_dir().join("plimsoll"),
        commit_interval_ms: 30_000,
        max_task_idle_ms: 0,
        task_timeout_ms: 300_000,
        reset: OffsetReset::Earliest,
        max_poll_interval_ms: 300_000,
        linger_ms: 0,
        delivery_timeout_ms: 120_000,
        max_block_ms: 60_000,
        request_timeout_ms: 30_000,
        fetch_max_wait_ms: 500,
        compression: Compression::None,
        compression_levels: [Compression::Gzip, Compression::Lz4, Compression::Zstd].map(|codec| (codec, None)),
        replication_factor: -1,
        topic_configs: Vec::new(),
        control_plane: Vec::new(),
        security: Vec::new(),
        oauth_token: None,
        count_allocations: false,
        on_undecodable: Arc::new(|_: &UndecodableRecord| DeserializationResponse::Fail),
        on_failure: Arc::new(|_: &Failure| FailureResponse::ShutdownClient),
    }
}

impl AppBuilder<NoLine> {
    pub(super) fn new(application_id: &str, bootstrap: &str) -> Self {
        Self {
            line: NoLine(()),
            settings: default_settings(application_id, bootstrap),
            configs: Vec::new(),
            on_state: None,
        }
    }
}

impl<L> AppBuilder<L> {
    /// Says how much memory the process may use. There is no default.
    #[must_use]
    pub fn memory(self, memory: Memory) -> AppBuilder<WithLine> {
        AppBuilder { line: WithLine(memory), settings: self.settings, configs: self.configs, on_state: self.on_state }
    }

    /// Number of stream threads (`num.stream.threads`); 1 by default.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.settings.threads = threads.max(1);
        self
    }

    /// Where local state lies (`state.dir`); a folder of the application's id is made in it.
    #[must_use]
    pub fn state_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.state_dir = path.into();
        self
    }

    /// Time between two commits (`commit.interval.ms`); 30 seconds by default.
    #[must_use]
    pub fn commit_interval(mut self, interval: Duration) -> Self {
        self.settings.commit_interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        self
    }

    /// How long a task that starts goes on asking for its offsets while the brokers do not answer (`task.timeout.ms`);
    /// 5 minutes by default. [`App::waiting_for`] says so meanwhile; then the application fails with
    /// [`RunError::TaskTimeout`](crate::RunError::TaskTimeout).
    #[must_use]
    pub fn task_timeout(mut self, timeout: Duration) -> Self {
        self.settings.task_timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        self
    }

    /// Any setting by Kafka's name. It is checked by [`start`](AppBuilder::start).
    #[must_use]
    pub fn config(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.configs.push((key.into(), value.into()));
        self
    }

    /// Gives tokens for `sasl.mechanism=OAUTHBEARER`. Called on the control thread, never on one that processes
    /// records, before the first connection and again after four fifths of a token's life; it may ask an identity
    /// provider, but should answer within seconds. An error is shown by [`App::waiting_for`] and tried again with
    /// growing pauses.
    ///
    /// ```no_run
    /// # use plimsoll::{OauthToken, prelude::*};
    /// # fn ask_provider() -> std::io::Result<(String, std::time::SystemTime)> { unimplemented!() }
    /// let builder = App::builder("word-count", "kafka.example.com:9093")
    ///     .config("security.protocol", "sasl_ssl")
    ///     .config("sasl.mechanism", "OAUTHBEARER")
    ///     .oauth_token(|| {
    ///         let (token, expires_at) = ask_provider()?;
    ///         Ok(OauthToken::new(token, expires_at))
    ///     });
    /// ```
    #[must_use]
    pub fn oauth_token(
        mut self,
        callback: impl Fn() -> Result<OauthToken, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Self {
        self.settings.oauth_token = Some(Arc::new(callback));
        self
    }

    /// Counts the allocations of the stream threads for [`Stats::allocations`](crate::Stats::allocations): a few
    /// nanoseconds for each, so it is off by default.
    #[must_use]
    pub fn count_allocations(mut self, on: bool) -> Self {
        self.settings.count_allocations = on;
        self
    }

    /// Called with (new, old) at each change of state, on the thread that made it; it should return soon.
    #[must_use]
    pub fn on_state(mut self, listener: impl Fn(State, State) + Send + Sync + 'static) -> Self {
        self.on_state = Some(Box::new(listener));
        self
    }

    /// Asked when a task or a thread has failed; by default the application closes with state `ERROR`.
    #[must_use]
    pub fn on_failure(mut self, handler: impl Fn(&Failure) -> FailureResponse + Send + Sync + 'static) -> Self {
        self.settings.on_failure = Arc::new(handler);
        self
    }

    /// Asked for each record that a codec refuses; by default the task fails.
    #[must_use]
    pub fn on_undecodable(
        mut self,
        handler: impl Fn(&UndecodableRecord) -> DeserializationResponse + Send + Sync + 'static,
    ) -> Self {
        self.settings.on_undecodable = Arc::new(handler);
        self
    }
}

impl AppBuilder<WithLine> {
    /// Checks everything that can be checked without a broker, then starts the threads. What needs a broker comes later
    /// and goes to the failure handler: a broker that cannot be reached is tried again until the application is closed.
    ///
    /// # Errors
    /// [`StartError`]; nothing runs then.
    pub fn start(mut self, topology: Topology) -> Result<App, StartError> {
        for (key, value) in std::mem::take(&mut self.configs) {
            config::apply(&mut self.settings, &key, &value)?;
        }
        App::launch(self.line.0, self.settings, topology, self.on_state)
    }
}
