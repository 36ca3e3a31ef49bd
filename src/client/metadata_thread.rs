//! The metadata of one cluster, kept by a thread of its own: where no control thread does it, in tests and proofs.
//!
//! Owns the thread, which ends with this. Called by tests and by `testing::wire`.
use super::{MetadataClient, MetadataSettings, SharedMetadata};
use crate::net::{NetError, PollSet, Waker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// Longest wait of a turn, in milliseconds.
const TURN_MS: i64 = 100;

/// A cluster's metadata, kept up to date until dropped.
#[derive(Debug)]
pub(crate) struct MetadataThread {
    pub(crate) metadata: SharedMetadata,
    waker: Waker,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetadataThread {
    /// Starts the thread; `bootstrap` is a list of `host:port`.
    pub(crate) fn start(bootstrap: &str) -> Result<Self, NetError> {
        let metadata = SharedMetadata::new();
        let mut client = MetadataClient::new(MetadataSettings::new("plimsoll", bootstrap), metadata.clone());
        let mut polls = PollSet::new()?;
        let (waker, stop) = (polls.waker(), Arc::new(AtomicBool::new(false)));
        metadata.attach(waker.clone());
        let stopped = Arc::clone(&stop);
        let start = Instant::now();
        let now_ms = move || i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                polls.clear();
                let now = now_ms();
                let due = client.prepare(&mut polls, now);
                if polls.wait_until(now, due.min(now + TURN_MS)).is_ok() {
                    client.process(&polls, now_ms());
                }
            }
        });
        Ok(Self { metadata, waker, stop, thread: Some(thread) })
    }
}

impl Drop for MetadataThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
