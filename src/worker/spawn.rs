//! The threads and their pools: from the plan's sizes to what each thread owns.
//!
//! What a thread owns is made on the thread itself, so that it lies in the thread's arenas from the start.
use super::failure::{Failure, RunError};
use super::mailbox::Mailbox;
use super::message::{Command, CommitSlot, Request};
use super::port::ThreadPort;
use super::restore::{RestoreCommand, RestoreHandle, RestoreThread};
use super::settings::Settings;
use super::stream::{Shared, StreamThread};
use super::turn::panic_text;
use crate::arena::{Arena, FramePool, Oversize};
use crate::base::clock::Clock;
use crate::budget::{Pressure, Shares, Sizes};
use crate::client::{Fetcher, FetcherSettings, SharedMetadata};
use crate::net::PollSet;
use crate::node::FaultCell;
use crate::observe::Observed;
use crate::produce::{Producer, ProducerSettings};
use crate::store::backend::Backend;
use crate::store::batch::StoreBatch;
use crate::store::rocks_upkeep::Upkeep;
use crate::topology::Topology;
use crate::wire::Compression;
use plimsoll_alloc::Module;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Frames of a thread that only a waiting task's partition may take.
const RESERVED_FRAMES: usize = 1;

/// What a stream thread is made from.
pub(super) struct StreamSeed {
    pub(super) index: usize,
    pub(super) shared: Shared,
    pub(super) commands: Mailbox<Command>,
    pub(super) slot: CommitSlot,
    pub(super) observed: Observed,
    pub(super) metadata: SharedMetadata,
    pub(super) polls: PollSet,
    pub(super) pressure: Arc<Pressure>,
    pub(super) sizes: Sizes,
    /// The process's one larger buffer.
    pub(super) oversize: Oversize,
}

/// What the restore thread is made from.
pub(super) struct RestoreSeed {
    pub(super) settings: Arc<Settings>,
    pub(super) topology: Arc<Topology>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) upkeep: Option<Upkeep>,
    pub(super) shares: Shares,
    pub(super) metadata: SharedMetadata,
    pub(super) commands: Mailbox<RestoreCommand>,
    /// To the control thread, for the end that must not come.
    pub(super) control: Mailbox<Request>,
    pub(super) polls: PollSet,
    /// The process's one larger buffer.
    pub(super) oversize: Oversize,
}

/// Starts a stream thread.
pub(super) fn spawn_stream(seed: StreamSeed) -> Result<JoinHandle<()>, RunError> {
    std::thread::Builder::new()
        .name(format!("plimsoll-stream-{}", seed.index + 1))
        .spawn(move || {
            let (index, control) = (seed.index, seed.shared.control.clone());
            // A panic here is a fault of this library; the application must end with it and not wait for a thread that
            // is gone.
            let outcome = catch_unwind(AssertUnwindSafe(|| make_stream(seed).map(StreamThread::run)));
            let error = match outcome {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(panic) => RunError::internal(panic_text(panic.as_ref())),
            };
            let _ = control.post(Request::Failed { thread: index, failure: Failure { task: None, error } });
            let _ = control.post(Request::Ended { thread: index });
        })
        .map_err(RunError::internal)
}

fn make_stream(seed: StreamSeed) -> Result<StreamThread, RunError> {
    plimsoll_alloc::bind_home(Module::Engine).map_err(RunError::internal)?;
    let settings = Arc::clone(&seed.shared.settings);
    let sizes = &seed.sizes;
    let reserve = |module, count: usize, bytes: usize| {
        seed.shared.shares.try_grow(module, (count * bytes) as u64).map_err(RunError::internal)
    };
    let reserved = [
        reserve(Module::Batch, sizes.frames_per_thread, sizes.frame_bytes)?,
        reserve(Module::Producer, sizes.batches_per_thread, sizes.batch_bytes)?,
        reserve(Module::Cache, 1, sizes.overlay_bytes_per_thread)?,
    ];
    let pool = FramePool::new(sizes.frames_per_thread, sizes.frame_bytes, RESERVED_FRAMES, seed.oversize);
    let fetcher = Fetcher::new(fetcher_settings(&settings), pool, seed.metadata.clone()).map_err(RunError::internal)?;
    // A codec writes into a buffer of its own, which is one of the row's.
    let compresses = settings.compression != Compression::None;
    let batches = sizes.batches_per_thread - usize::from(compresses);
    let producer_settings = ProducerSettings {
        compression: settings.compression,
        compression_level: settings.compression_level(),
        linger_ms: settings.linger_ms,
        delivery_timeout_ms: settings.delivery_timeout_ms,
        topic_timeout_ms: settings.max_block_ms,
        request_timeout_ms: settings.request_timeout_ms,
        client_id: settings.client_id.clone(),
        ..ProducerSettings::new(sizes.batch_bytes, batches)
    };
    let now = seed.shared.clock.mono_ms();
    let producer = Producer::new(producer_settings, seed.metadata, now).map_err(RunError::internal)?;
    let topology = &seed.shared.topology;
    let application = &settings.application_id;
    let sinks: Vec<String> = topology.sinks().iter().map(|sink| sink.topic.full(application)).collect();
    let changelogs: Vec<Option<String>> =
        topology.stores().iter().map(|store| store.changelog().map(|name| name.full(application))).collect();
    let port = ThreadPort::new(producer, seed.polls, Arc::clone(&seed.shared.clock), &sinks, &changelogs);
    let commit_at = seed.shared.clock.mono_ms() + settings.commit_interval_ms;
    let stores = topology.stores().len().max(1);
    // Rows in memory take the other half.
    let entries = sizes.overlay_bytes_per_thread / if topology.in_memory().contains(&true) { 2 } else { 1 };
    Ok(StreamThread {
        index: seed.index,
        commands: seed.commands,
        slot: seed.slot,
        observed: seed.observed,
        pressure: seed.pressure,
        fetcher,
        port,
        arena: Arena::new(sizes.arena_bytes),
        fault: FaultCell::new(),
        wired: Vec::new(),
        tasks: Vec::new(),
        spill: Rc::new(RefCell::new(StoreBatch::with_capacity(sizes.store_batch_bytes))),
        overlay_bytes: entries / stores,
        record_bytes: sizes.batch_bytes,
        epoch: None,
        commit_at,
        fewer_partitions: false,
        shed_at: 0,
        _reserved: reserved,
        refusals: (0, 0),
        allocated: (0, 0),
        awaited: Vec::new(),
        told_running: false,
        ending: false,
        shared: seed.shared,
    })
}

fn fetcher_settings(settings: &Settings) -> FetcherSettings {
    let rack = settings.control_plane.iter().find(|(key, _)| key == "client.rack").map(|(_, rack)| rack.clone());
    FetcherSettings {
        client_id: settings.client_id.clone(),
        max_wait_ms: settings.fetch_max_wait_ms,
        request_timeout_ms: settings.request_timeout_ms,
        rack: rack.unwrap_or_default(),
        ..FetcherSettings::default()
    }
}

/// Starts the restore thread.
pub(super) fn spawn_restore(seed: RestoreSeed, sizes: &Sizes) -> Result<RestoreHandle, RunError> {
    let sizes = *sizes;
    let commands = seed.commands.clone();
    let join = std::thread::Builder::new()
        .name("plimsoll-restore".to_owned())
        .spawn(move || {
            let control = seed.control.clone();
            let outcome = catch_unwind(AssertUnwindSafe(|| make_restore(seed, &sizes).map(RestoreThread::run)));
            let error = match outcome {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(panic) => RunError::internal(panic_text(panic.as_ref())),
            };
            let _ = control.post(Request::Failed { thread: usize::MAX, failure: Failure { task: None, error } });
        })
        .map_err(RunError::internal)?;
    Ok(RestoreHandle { commands, join: Some(join) })
}

fn make_restore(seed: RestoreSeed, sizes: &Sizes) -> Result<RestoreThread, RunError> {
    plimsoll_alloc::bind_home(Module::Restore).map_err(RunError::internal)?;
    let frames = sizes.restore_frames;
    let (bytes, oversize) = (sizes.restore_frame_bytes, seed.oversize);
    let reserved = seed.shares.try_grow(Module::Restore, (frames * bytes) as u64).map_err(RunError::internal)?;
    let pool = FramePool::new_in(Module::Restore, frames, bytes, RESERVED_FRAMES, oversize);
    let fetcher =
        Fetcher::new(fetcher_settings(&seed.settings), pool, seed.metadata.clone()).map_err(RunError::internal)?;
    Ok(RestoreThread {
        settings: seed.settings,
        topology: seed.topology,
        clock: seed.clock,
        backend: seed.backend,
        upkeep: seed.upkeep,
        metadata: seed.metadata,
        commands: seed.commands,
        fetcher,
        polls: seed.polls,
        batch: StoreBatch::with_capacity(sizes.store_batch_bytes),
        jobs: Vec::new(),
        _reserved: reserved,
        control: seed.control,
        stopped: false,
        ending: false,
    })
}
