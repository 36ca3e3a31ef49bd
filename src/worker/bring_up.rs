//! From a started application to running threads: topics, plan, internal topics, database, threads, subscription.
//!
//! Nothing is opened before the plan holds. A broker that does not answer is tried again until the application is
//! closed; all else that is wrong ends the start with a typed error.
use super::control::{ASK, Control, Running, ThreadHandle};
use super::failure::RunError;
use super::mailbox::Mailbox;
use super::message::{COMMANDS, CommitSlot, REQUESTS};
use super::purge::Purge;
use super::restore::RestoreHandle;
use super::spawn::{RestoreSeed, StreamSeed, spawn_restore, spawn_stream};
use super::stream::Shared;
use super::topics::{TopicPlan, resolve};
use crate::arena::Oversize;
use crate::base::id::StoreId;
use crate::base::limits::DEFAULT_MAX_MESSAGE_BYTES;
use crate::budget::{Demand, Governor, Ledger, Line, Machine, Plan, Pressure, Shares, plan};
use crate::client::admin::Admin;
use crate::client::internal_topics;
use crate::client::membership::Membership;
use crate::client::offered::ask_offered;
use crate::client::{Reach, TopicState};
use crate::ffi::kafka::Handle;
use crate::ffi::kafka_conf::HandleSettings;
use crate::ffi::rocks::DbOptions;
use crate::net::PollSet;
use crate::observe::Observed;
use crate::store::backend::Backend;
use crate::store::memory::MemoryBackend;
use crate::store::rocks::{RocksBackend, RocksSettings};
use crate::store::rocks_upkeep::Upkeep;
use crate::store::split::SplitBackend;
use crate::topology::TopicName;
use crate::wire::message::ApiKey;
use plimsoll_alloc::Module;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Longest sleep while an answer is awaited, milliseconds.
const WAIT_MS: i64 = 50;

/// What the start needs besides the control thread's own things.
pub(crate) struct BringUp {
    /// The line.
    pub(crate) line: Line,
    /// Where the plan goes once it is made.
    pub(crate) planned: Arc<OnceLock<Planned>>,
    /// Levels that the threads read.
    pub(crate) pressure: Arc<Pressure>,
    /// Counters of the threads.
    pub(crate) observed: Observed,
}

/// The input topic with the largest batches, and how large they may be.
struct Largest {
    topic: String,
    bytes: u32,
}

/// The plan and what is counted against it.
pub(crate) struct Planned {
    /// The rows.
    pub(crate) plan: Plan,
    /// Refusals, peaks, sizes.
    pub(crate) ledger: Arc<Ledger>,
}

impl Control {
    /// Brings the application up; `None` when it was asked to close before it ran.
    pub(super) fn bring_up(&mut self, with: BringUp) -> Result<Option<Running>, RunError> {
        if !self.await_token()? {
            return Ok(None);
        }
        let Some(topics) = self.await_topics()? else { return Ok(None) };
        let handle = self.connect()?;
        self.give_tokens_to(&handle);
        let Some(admin) = self.administrator(&handle)? else { return Ok(None) };
        let largest = self.largest_message(&admin, &topics)?;
        let plan = self.plan(&with, &topics, largest)?;
        if !self.await_internal_topics(&admin, &topics)? {
            return Ok(None);
        }
        let (backend, upkeep) = self.open_backend(&plan.plan)?;
        let levers = upkeep.as_ref().map(Upkeep::levers).unwrap_or_default();
        let governor = Governor::spawn(&plan.plan, Arc::clone(&plan.ledger), Arc::clone(&with.pressure), levers)
            .map_err(RunError::internal)?;
        let (threads, restore) = self.spawn_all(&with, plan, backend, upkeep)?;
        let mut membership = Membership::new(handle);
        let waker = self.polls.waker();
        membership.on_event(Box::new(move || waker.wake()));
        let names: Vec<&str> = topics.partitions.keys().map(String::as_str).collect();
        membership.subscribe(&names).map_err(RunError::client)?;
        self.board.wait_for(Some("the group to assign partitions".to_owned()));
        Ok(Some(Running {
            membership,
            admin,
            commits: Vec::new(),
            deferred: VecDeque::new(),
            threads,
            restore,
            purge: Purge::new(&topics, self.clock.mono_ms()),
            observed: with.observed,
            topics,
            _governor: governor,
        }))
    }

    fn connect(&self) -> Result<Arc<Handle>, RunError> {
        let settings = &self.settings;
        let mut user = settings.control_plane.clone();
        user.extend(settings.security.iter().cloned());
        user.push(("bootstrap.servers".to_owned(), settings.bootstrap.clone()));
        user.push(("max.poll.interval.ms".to_owned(), settings.max_poll_interval_ms.to_string()));
        let instance = user.iter().find(|(key, _)| key == "group.instance.id").map(|(_, value)| value.clone());
        user.retain(|(key, _)| key != "group.instance.id");
        let handle = Handle::start(&HandleSettings {
            user: &user,
            owned: &[],
            group_id: &settings.application_id,
            client_id: &settings.client_id,
            instance_id: instance.as_deref(),
            read_committed: false,
        });
        handle.map(Arc::new).map_err(RunError::client)
    }

    /// One round of the metadata connection while nothing else runs.
    pub(super) fn metadata_round(&mut self, most_ms: i64) -> Result<(), RunError> {
        self.refresh_token();
        let now = self.clock.mono_ms();
        self.polls.clear();
        let until = self.metadata_client.prepare(&mut self.polls, now);
        self.polls.wait_until(now, until.min(now + most_ms)).map_err(RunError::internal)?;
        self.metadata_client.process(&self.polls, self.clock.mono_ms());
        Ok(())
    }

    /// Waits until every input topic is known; a missing one is an error, a silent cluster is not. Output topics are
    /// asked for in the same breath, so that the first records need not wait for their leaders; a missing one is an
    /// error when something is sent to it.
    fn await_topics(&mut self) -> Result<Option<TopicPlan>, RunError> {
        let sources = self.topology.sources();
        let wanted: Vec<String> = sources
            .iter()
            .filter(|spec| matches!(spec.topic, TopicName::External(_)))
            .map(|spec| spec.topic.full(&self.settings.application_id))
            .collect();
        for topic in &wanted {
            self.metadata.want_topic(topic).map_err(RunError::client)?;
        }
        for sink in self.topology.sinks().iter().filter(|sink| sink.extractor.is_none()) {
            let topic = sink.topic.full(&self.settings.application_id);
            self.metadata.want_topic(&topic).map_err(RunError::client)?;
        }
        let topology = Arc::clone(&self.topology);
        loop {
            if self.closing() {
                return Ok(None);
            }
            self.metadata_round(WAIT_MS)?;
            let snapshot = self.metadata.latest();
            let known = |topic: &String| {
                snapshot.topic(topic).is_some_and(|info| matches!(info.state, TopicState::Known | TopicState::Missing))
            };
            if snapshot.version > 0 && wanted.iter().all(known) {
                self.board.wait_for(None);
                return resolve(&topology, &self.settings.application_id, &self.settings.topic_configs, |topic| {
                    snapshot.partitions(topic)
                })
                .map(Some);
            }
            self.board.wait_for(Some(match self.metadata.reach() {
                Reach::Unreachable { last, .. } => {
                    format!("no broker of {} answers ({last}); trying again", self.settings.bootstrap)
                }
                _ => format!("the brokers of {}", self.settings.bootstrap),
            }));
        }
    }

    /// The plan with every number known. Where only the size of one topic's records is in the way, that topic is named.
    fn plan<'w>(&self, with: &'w BringUp, topics: &TopicPlan, largest: Largest) -> Result<&'w Planned, RunError> {
        let demand = self.demand(with.line, topics, largest.bytes);
        let plan = plan(&demand).map_err(|error| {
            let usual = Demand { max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES, ..demand };
            match plan(&usual) {
                Ok(fits) if largest.bytes > DEFAULT_MAX_MESSAGE_BYTES => RunError::TopicExceedsFrame {
                    topic: largest.topic,
                    max_message_bytes: u64::from(largest.bytes),
                    frame_bytes: fits.sizes().oversize_bytes as u64,
                },
                _ => RunError::Plan(Arc::new(error)),
            }
        })?;
        let ledger = Arc::new(Ledger::new(&plan));
        Ok(with.planned.get_or_init(|| Planned { plan, ledger }))
    }

    /// Which input topic accepts the largest batches; Kafka's default where the brokers do not tell.
    fn largest_message(&self, admin: &Admin, topics: &TopicPlan) -> Result<Largest, RunError> {
        let usual = Largest { topic: String::new(), bytes: DEFAULT_MAX_MESSAGE_BYTES };
        if !admin.offered(ApiKey::DescribeConfigs) {
            return Ok(usual);
        }
        let internal = |name: &String| topics.internal.iter().any(|topic| topic.name == *name);
        let names: Vec<&str> = topics.partitions.keys().filter(|name| !internal(name)).map(String::as_str).collect();
        let configs = admin.configs(&names).map_err(RunError::client)?;
        let sizes = names.iter().zip(&configs).filter_map(|(name, config)| {
            let bytes = config.get("max.message.bytes")?.parse().ok()?;
            Some(Largest { topic: (*name).to_owned(), bytes })
        });
        Ok(sizes.max_by_key(|largest| largest.bytes).unwrap_or(usual))
    }

    fn demand(&self, line: Line, topics: &TopicPlan, max_message_bytes: u32) -> Demand {
        let application = &self.settings.application_id;
        let stores = self.topology.stores();
        let inputs: u32 = topics.partitions.values().sum();
        let written: u32 = self
            .topology
            .sinks()
            .iter()
            .map(|sink| {
                let name = sink.topic.full(application);
                topics.partitions.get(&name).copied().or_else(|| self.metadata.latest().partitions(&name)).unwrap_or(1)
            })
            .sum();
        let changelogs: u32 = topics
            .internal
            .iter()
            .filter(|topic| !topics.partitions.contains_key(&topic.name))
            .map(|t| t.partitions)
            .sum();
        Demand {
            line,
            machine: Machine::measure(),
            threads: u32::try_from(self.settings.threads).unwrap_or(u32::MAX),
            tasks: topics.tasks.iter().sum(),
            nodes: count(self.topology.nodes().len()),
            inputs,
            outputs: written + changelogs,
            stores: count(stores.len()),
            families: count(stores.len()),
            restores: !stores.is_empty(),
            global_tables: 0,
            brokers: count(self.metadata.latest().brokers.len()).max(1),
            tls: self.metadata.security().is_tls(),
            max_message_bytes,
            compression_bytes: self.settings.compression_bytes(),
        }
    }

    /// The administrator, once some broker has told what it offers; `None` when asked to close.
    fn administrator(&mut self, handle: &Arc<Handle>) -> Result<Option<Admin>, RunError> {
        let bootstrap: Vec<String> =
            self.settings.bootstrap.split(',').map(|server| server.trim().to_owned()).collect();
        loop {
            match ask_offered(&bootstrap, self.metadata.security(), &self.settings.client_id, ASK) {
                Ok(offered) => return Ok(Some(Admin::new(Arc::clone(handle), offered, ASK))),
                Err(fault) => {
                    self.board.wait_for(Some(format!("no broker tells what it offers ({fault}); trying again")))
                }
            }
            if self.closing() {
                return Ok(None);
            }
            self.metadata_round(WAIT_MS)?;
        }
    }

    /// Internal topics are made, or checked when they exist; then their leaders are awaited. False when asked to close.
    fn await_internal_topics(&mut self, admin: &Admin, topics: &TopicPlan) -> Result<bool, RunError> {
        if !topics.internal.is_empty() {
            internal_topics::ensure(admin, &topics.internal, self.settings.replication_factor, ASK)
                .map_err(|error| RunError::InternalTopic { reason: error.to_string() })?;
        }
        for topic in &topics.internal {
            self.metadata.want_topic(&topic.name).map_err(RunError::client)?;
        }
        loop {
            if self.closing() {
                return Ok(false);
            }
            let snapshot = self.metadata.latest();
            if topics.internal.iter().all(|topic| snapshot.partitions(&topic.name) == Some(topic.partitions)) {
                return Ok(true);
            }
            self.board.wait_for(Some("the leaders of the internal topics".to_owned()));
            self.metadata.request_refresh();
            self.metadata_round(WAIT_MS)?;
        }
    }

    fn open_backend(&self, plan: &Plan) -> Result<(Arc<dyn Backend>, Option<Upkeep>), RunError> {
        let stores = self.topology.stores();
        if stores.is_empty() {
            return Ok((Arc::new(MemoryBackend::new()), None));
        }
        let _scope = plimsoll_alloc::scope(Module::Store);
        let in_memory = self.topology.in_memory();
        let memory = MemoryBackend::with_limit(rows_in_memory(plan, &in_memory, self.settings.threads));
        if in_memory.iter().all(|in_memory| *in_memory) {
            return Ok((Arc::new(memory), None));
        }
        let numbered = stores.iter().enumerate().filter(|(at, _)| in_memory.get(*at) != Some(&true));
        let settings = RocksSettings {
            directory: self.settings.state_dir.join(&self.settings.application_id),
            stores: numbered.map(|(at, s)| (StoreId(u16::try_from(at).unwrap_or(u16::MAX)), s.name.clone())).collect(),
            options: DbOptions::planned(plan.sizes()),
        };
        let backend = RocksBackend::open(settings).map_err(|error| RunError::store(&error))?;
        let backend = Arc::new(backend);
        let disk = Arc::clone(&backend) as Arc<dyn Backend>;
        let upkeep = Some(Upkeep::new(backend));
        if !in_memory.contains(&true) {
            return Ok((disk, upkeep));
        }
        Ok((Arc::new(SplitBackend::new(disk, memory, in_memory)), upkeep))
    }

    /// Starts the restore thread. Without a store there is nothing to restore and no database to look after: then there
    /// is none.
    fn restore_thread(
        &self,
        plan: &Plan,
        backend: &Arc<dyn Backend>,
        upkeep: Option<Upkeep>,
        oversize: &Oversize,
        shares: &Shares,
    ) -> Result<RestoreHandle, RunError> {
        let polls = PollSet::new().map_err(RunError::internal)?;
        let commands = Mailbox::new(REQUESTS, polls.waker());
        if self.topology.stores().is_empty() {
            return Ok(RestoreHandle { commands, join: None });
        }
        let seed = RestoreSeed {
            settings: Arc::clone(&self.settings),
            topology: Arc::clone(&self.topology),
            clock: Arc::clone(&self.clock),
            backend: Arc::clone(backend),
            upkeep,
            shares: shares.clone(),
            metadata: self.metadata.clone(),
            commands,
            control: self.requests.clone(),
            polls,
            oversize: oversize.clone(),
        };
        spawn_restore(seed, plan.sizes())
    }

    fn spawn_all(
        &mut self,
        with: &BringUp,
        planned: &Planned,
        backend: Arc<dyn Backend>,
        upkeep: Option<Upkeep>,
    ) -> Result<(Vec<ThreadHandle>, RestoreHandle), RunError> {
        let plan = &planned.plan;
        let shares = Shares::new(Arc::clone(&planned.ledger));
        let oversize = Oversize::new(plan.sizes().oversize_bytes);
        let restore = self.restore_thread(plan, &backend, upkeep, &oversize, &shares)?;
        let shared = Shared {
            settings: Arc::clone(&self.settings),
            topology: Arc::clone(&self.topology),
            clock: Arc::clone(&self.clock),
            backend,
            control: self.requests.clone(),
            restore: restore.commands.clone(),
            shares,
            lives: Arc::default(),
        };
        let mut threads = Vec::with_capacity(self.settings.threads);
        for index in 0..self.settings.threads {
            let polls = PollSet::new().map_err(RunError::internal)?;
            let commands = Mailbox::new(COMMANDS, polls.waker());
            let slot = CommitSlot::default();
            let seed = StreamSeed {
                index,
                shared: shared.clone(),
                commands: commands.clone(),
                slot: slot.clone(),
                observed: with.observed.clone(),
                metadata: self.metadata.clone(),
                polls,
                pressure: Arc::clone(&with.pressure),
                sizes: *plan.sizes(),
                oversize: oversize.clone(),
            };
            let join = Some(spawn_stream(seed)?);
            threads.push(ThreadHandle {
                commands,
                slot,
                join,
                tasks: Vec::new(),
                running: false,
                revoked: None,
                turns: (0, 0),
                ended: false,
            });
        }
        Ok((threads, restore))
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Bytes that rows in memory may take: half of each thread's overlay, which leaves its entries the other half. The plan
/// has no row of its own for them.
fn rows_in_memory(plan: &Plan, in_memory: &[bool], threads: usize) -> usize {
    if in_memory.contains(&true) { plan.sizes().overlay_bytes_per_thread / 2 * threads } else { 0 }
}
