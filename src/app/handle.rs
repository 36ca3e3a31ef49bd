//! The handle of a running application.
use super::builder::{AppBuilder, NoLine};
use super::error::StartError;
use super::stats::Stats;
use crate::base::clock::{Clock, SystemClock};
use crate::base::limits::DEFAULT_MAX_MESSAGE_BYTES;
use crate::budget::{Demand, Line, Machine, Memory, MemoryReport, Plan, Pressure, plan};
use crate::client::{MetadataClient, MetadataSettings, SharedMetadata};
use crate::net::{PollSet, Security};
use crate::observe::Observed;
use crate::store::error::StoreError;
use crate::store::rocks_lock::DirLock;
use crate::topology::Topology;
use crate::worker::bring_up::{BringUp, Planned};
use crate::worker::control::{Board, Control};
use crate::worker::failure::RunError;
use crate::worker::recovery::Recovery;
use crate::worker::settings::Settings;
use crate::worker::state::{State, StateCell, StateListener};
use crate::worker::{Mailbox, REQUESTS, panic_text};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Whether an application runs in this process.
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Holds [`RUNNING`]; the control thread lets it go when everything has ended.
struct OnlyOne;

impl OnlyOne {
    fn take() -> Result<Self, StartError> {
        let free = RUNNING.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire);
        free.map(|_| Self).map_err(|_| StartError::AlreadyRunning)
    }
}

impl Drop for OnlyOne {
    fn drop(&mut self) {
        RUNNING.store(false, Ordering::Release);
    }
}

/// A running application. Dropping it closes it and waits for at most ten seconds.
///
/// See [`AppBuilder`] for how to get one.
pub struct App {
    board: Arc<Board>,
    requests_waker: crate::net::Waker,
    planned: Arc<OnceLock<Planned>>,
    observed: Observed,
    control: Mutex<Option<JoinHandle<()>>>,
}

impl App {
    /// Begins an application: its `application.id`, which is also its group, and `bootstrap.servers`.
    pub fn builder(application_id: &str, bootstrap: &str) -> AppBuilder<NoLine> {
        AppBuilder::new(application_id, bootstrap)
    }

    /// Makes every check that needs no broker, then starts the control thread.
    pub(super) fn launch(
        memory: Memory,
        settings: Settings,
        topology: Topology,
        on_state: Option<StateListener>,
    ) -> Result<Self, StartError> {
        if topology.sources().is_empty() {
            return Err(StartError::EmptyTopology);
        }
        if topology.subtopologies().iter().any(|subtopology| !subtopology.global.is_empty()) {
            return Err(StartError::NotOffered { what: "a global table outside the test driver".to_owned() });
        }
        let security = Security::new(&settings.security, settings.oauth_token.clone())
            .map_err(|error| StartError::Security { reason: error.to_string() })?;
        let line = memory.resolve()?;
        if line.tracked {
            plimsoll_alloc::probe()?;
        }
        // With one partition a topic: what does not fit now fits never.
        plan(&first_demand(line, &settings, &topology))?;
        let only_one = OnlyOne::take()?;
        check_state_dir(&settings, &topology)?;
        let observed = Observed::new(settings.threads);
        let board = Arc::new(Board {
            state: StateCell::new(on_state),
            closing: AtomicBool::new(false),
            failure: Mutex::new(None),
            waiting: Mutex::new(None),
        });
        let polls = PollSet::new().map_err(|error| StartError::System { reason: error.to_string() })?;
        let waker = polls.waker();
        let metadata = SharedMetadata::secured(security);
        metadata.attach(waker.clone());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let metadata_settings = MetadataSettings::new(&settings.client_id, &settings.bootstrap);
        let control = Control {
            requests: Mailbox::new(REQUESTS, waker.clone()),
            settings: Arc::new(settings),
            topology: Arc::new(topology),
            clock,
            board: Arc::clone(&board),
            metadata_client: MetadataClient::new(metadata_settings, metadata.clone()),
            metadata,
            polls,
            epoch: None,
            asked: false,
            token_handle: Weak::new(),
            token_fault: false,
            refused: false,
            recovery: Recovery::default(),
        };
        let planned = Arc::new(OnceLock::new());
        let with = BringUp {
            line,
            planned: Arc::clone(&planned),
            pressure: Arc::new(Pressure::default()),
            observed: observed.clone(),
        };
        board.state.advance(State::Rebalancing);
        let join = spawn_control(control, with, only_one)?;
        Ok(Self { board, requests_waker: waker, planned, observed, control: Mutex::new(Some(join)) })
    }

    /// The state now.
    pub fn state(&self) -> State {
        self.board.state.get()
    }

    /// What the application waits for, in words, while it is not running: a broker that does not answer, say.
    pub fn waiting_for(&self) -> Option<String> {
        self.board.waiting.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the application is running, has ended, or the time is over; answers the state then.
    pub fn await_running(&self, timeout: Duration) -> State {
        self.board.state.wait_for(Some(timeout), |state| state == State::Running || state.is_final())
    }

    /// Waits until the application has ended.
    ///
    /// # Errors
    /// Why it failed, when its state is [`State::Error`].
    pub fn wait(&self) -> Result<(), RunError> {
        self.board.state.wait_for(None, State::is_final);
        self.failure().map_or(Ok(()), Err)
    }

    /// Why the application failed, if it did.
    pub fn failure(&self) -> Option<RunError> {
        self.board.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The plan, once the numbers of partitions are known.
    pub fn plan(&self) -> Option<Plan> {
        self.planned.get().map(|planned| planned.plan.clone())
    }

    /// Fills the caller's report: every module beside its row. Allocates nothing.
    pub fn memory(&self, report: &mut MemoryReport) {
        if let Some(planned) = self.planned.get() {
            planned.ledger.fill(report);
        }
    }

    /// What was done since the start.
    pub fn stats(&self) -> Stats {
        let totals = self.observed.totals();
        Stats {
            records_in: totals.records_in,
            records_dropped: totals.skipped,
            commits: totals.commits,
            allocated_bytes: totals.allocated_bytes,
            allocations: totals.allocations,
        }
    }

    /// Commits, leaves the group and ends every thread.
    ///
    /// # Errors
    /// Why the application failed, if it did, or that it did not end in time; it goes on ending then.
    pub fn close(&self, timeout: Duration) -> Result<(), RunError> {
        self.board.closing.store(true, Ordering::Release);
        self.requests_waker.wake();
        let state = self.board.state.wait_for(Some(timeout), State::is_final);
        if !state.is_final() {
            return Err(RunError::internal(format!("not closed after {} ms", timeout.as_millis())));
        }
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(control) = control {
            let _ = control.join();
        }
        self.failure().map_or(Ok(()), Err)
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.close(Duration::from_secs(10));
    }
}

/// Starts the control thread, which holds the process's one place until everything has ended.
fn spawn_control(control: Control, with: BringUp, only_one: OnlyOne) -> Result<JoinHandle<()>, StartError> {
    let board = Arc::clone(&control.board);
    let run = move || {
        let _only_one = only_one;
        let _ = plimsoll_alloc::bind_home(plimsoll_alloc::Module::Engine);
        // A panic here is a fault of this library: whoever waits for the application must hear of its end.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| control.run(with))) {
            board.fail(RunError::internal(panic_text(panic.as_ref())));
            board.state.advance(State::PendingError);
            board.state.advance(State::Error);
        }
    };
    let thread = std::thread::Builder::new().name("plimsoll-control".to_owned());
    thread.spawn(run).map_err(|error| StartError::System { reason: error.to_string() })
}

/// The least that the application needs, before the brokers have told the numbers of partitions.
fn first_demand(line: Line, settings: &Settings, topology: &Topology) -> Demand {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let stores = count(topology.stores().len());
    let logged = topology.stores().iter().filter(|store| store.logged).count();
    Demand {
        line,
        machine: Machine::measure(),
        threads: count(settings.threads),
        tasks: count(topology.subtopologies().len()),
        nodes: count(topology.nodes().len()),
        inputs: count(topology.sources().len()),
        outputs: count(topology.sinks().len() + logged),
        stores,
        families: stores,
        restores: stores > 0,
        global_tables: 0,
        brokers: 1,
        tls: tls_is_asked(settings),
        max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES,
        compression_bytes: settings.compression_bytes(),
    }
}

/// Whether connections are encrypted, as far as the settings' text tells; they have been checked.
fn tls_is_asked(settings: &Settings) -> bool {
    let protocol = settings.security.iter().rev().find(|(name, _)| name == "security.protocol");
    protocol.is_some_and(|(_, value)| value.to_ascii_lowercase().ends_with("ssl"))
}

fn check_state_dir(settings: &Settings, topology: &Topology) -> Result<(), StartError> {
    if topology.stores().is_empty() {
        return Ok(());
    }
    match DirLock::acquire(&settings.state_dir.join(&settings.application_id)) {
        Ok(_) => Ok(()),
        Err(StoreError::Locked { path, .. }) => Err(StartError::StateDirLocked { path }),
        Err(StoreError::NotWritable { path, source }) => {
            Err(StartError::StateDirNotWritable { path, reason: source.to_string() })
        }
        Err(other) => Err(StartError::System { reason: other.to_string() }),
    }
}
