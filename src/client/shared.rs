//! The one place where all threads meet the cluster's metadata: a snapshot to read, wishes to leave.
//!
//! Owns: the latest [`MetadataSnapshot`], the topics somebody wants to know about, and the wish for a refresh.
//! Invariant: a reader that sees no new version pays one atomic load. Bound: [`MAX_TOPICS`] topics.
//! Called by: the metadata client (publishes), fetchers and producers (read, ask, give hints).
use super::{LinkFault, MetadataSnapshot};
use crate::net::{Security, Waker};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most topics of one process.
pub(crate) const MAX_TOPICS: usize = 4_096;

/// The process names more topics than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {limit} topics in one process: split the application")]
pub(crate) struct TooManyTopics {
    /// The limit.
    pub(crate) limit: usize,
}

/// Whether the cluster can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Reach {
    /// No answer yet, and no failure either.
    #[default]
    Unknown,
    /// The last attempt was answered.
    Reachable,
    /// No broker answers; attempts go on.
    Unreachable {
        /// Failed attempts in a row.
        attempts: u32,
        /// The last failure.
        last: LinkFault,
    },
}

/// What a broker's answer told about a partition's new leader (KIP-951).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hint<'a> {
    /// Name of the topic.
    pub(crate) topic: &'a str,
    /// Number of the partition.
    pub(crate) partition: i32,
    /// Id of the new leader.
    pub(crate) leader: i32,
    /// Its epoch.
    pub(crate) leader_epoch: i32,
}

#[derive(Debug, Default)]
struct State {
    snapshot: Arc<MetadataSnapshot>,
    wanted: BTreeSet<Arc<str>>,
    waker: Option<Waker>,
    reach: Reach,
}

#[derive(Debug, Default)]
struct Inner {
    version: AtomicU64,
    /// Somebody waits for a newer snapshot.
    stale: AtomicBool,
    /// Somebody could not reach a broker at its known addresses.
    resolve: AtomicBool,
    state: Mutex<State>,
    security: Security,
}

/// Handle to the process's metadata.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedMetadata(Arc<Inner>);

impl SharedMetadata {
    /// Nothing known, nobody asking; brokers are spoken to in plaintext.
    #[cfg(any(test, feature = "bench"))]
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The same for a cluster whose brokers are spoken to by these settings.
    pub(crate) fn secured(security: Security) -> Self {
        Self(Arc::new(Inner { security, ..Inner::default() }))
    }

    /// How to speak to any of the cluster's brokers.
    pub(crate) fn security(&self) -> &Security {
        &self.0.security
    }

    /// Version of the latest snapshot; 0 before the first.
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// The latest snapshot.
    pub(crate) fn latest(&self) -> Arc<MetadataSnapshot> {
        Arc::clone(&self.state().snapshot)
    }

    /// Whether the cluster answers.
    pub(crate) fn reach(&self) -> Reach {
        self.state().reach
    }

    /// Asks for a newer snapshot, soon; wakes the thread that fetches it.
    pub(crate) fn request_refresh(&self) {
        if !self.0.stale.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// As [`Self::request_refresh`]; brokers' names are resolved anew, for one could not be reached.
    pub(crate) fn report_unreachable(&self) {
        self.0.resolve.store(true, Ordering::Release);
        self.request_refresh();
    }

    /// Adds a topic to those that snapshots tell about.
    pub(crate) fn want_topic(&self, name: &str) -> Result<(), TooManyTopics> {
        {
            let mut state = self.state();
            if state.wanted.contains(name) {
                return Ok(());
            }
            if state.wanted.len() >= MAX_TOPICS {
                return Err(TooManyTopics { limit: MAX_TOPICS });
            }
            state.wanted.insert(name.into());
        }
        self.request_refresh();
        Ok(())
    }

    /// Moves a leader at once when its broker is known, and asks for a refresh in any case.
    pub(crate) fn hint(&self, hint: &Hint<'_>) {
        {
            let mut state = self.state();
            let moved = state.snapshot.with_leader(hint.topic, hint.partition, hint.leader, hint.leader_epoch);
            if let Some(next) = moved {
                self.install(&mut state, next);
            }
        }
        self.request_refresh();
    }

    /// Who is to be woken by requests: the thread that runs the metadata client.
    pub(crate) fn attach(&self, waker: Waker) {
        self.state().waker = Some(waker);
    }

    /// Makes a snapshot the latest, under the next version.
    pub(crate) fn publish(&self, next: MetadataSnapshot) {
        let mut state = self.state();
        self.install(&mut state, next);
        state.reach = Reach::Reachable;
    }

    /// Notes that no broker could be reached.
    pub(super) fn unreachable(&self, attempts: u32, last: LinkFault) {
        self.state().reach = Reach::Unreachable { attempts, last };
    }

    /// Takes the wish for a refresh, if there is one.
    pub(crate) fn take_request(&self) -> bool {
        self.0.stale.swap(false, Ordering::AcqRel)
    }

    /// Whether there is a wish for a refresh.
    pub(super) fn is_requested(&self) -> bool {
        self.0.stale.load(Ordering::Acquire)
    }

    /// Takes the wish to resolve brokers' names anew.
    pub(super) fn take_resolve(&self) -> bool {
        self.0.resolve.swap(false, Ordering::AcqRel)
    }

    /// Calls `visit` with each wanted topic, by name.
    pub(super) fn wanted(&self, into: &mut Vec<Arc<str>>) {
        into.clear();
        into.extend(self.state().wanted.iter().cloned());
    }

    fn install(&self, state: &mut State, mut next: MetadataSnapshot) {
        next.version = state.snapshot.version + 1;
        let version = next.version;
        state.snapshot = Arc::new(next);
        self.0.version.store(version, Ordering::Release);
    }

    fn wake(&self) {
        let waker = self.state().waker.clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::snapshot::tests::snapshot;
    use crate::net::PollSet;
    use std::time::{Duration, Instant};

    #[test]
    fn a_new_topic_wakes_the_control_thread_once() {
        let shared = SharedMetadata::new();
        let mut polls = PollSet::new().unwrap();
        shared.attach(polls.waker());
        shared.want_topic("words").unwrap();
        polls.wait(Some(Duration::from_secs(5))).unwrap();
        assert!(shared.take_request());
        shared.want_topic("words").unwrap();
        assert!(!shared.is_requested());
        let start = Instant::now();
        polls.wait(Some(Duration::from_millis(20))).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn versions_grow_and_hints_move_leaders_before_the_refresh() {
        let shared = SharedMetadata::new();
        assert_eq!(shared.version(), 0);
        let addr = "127.0.0.1:9092".parse().unwrap();
        shared.publish(snapshot(77, &[addr, addr], &[("words", &[1])]));
        assert_eq!((shared.version(), shared.reach()), (1, Reach::Reachable));
        shared.hint(&Hint { topic: "words", partition: 0, leader: 2, leader_epoch: 4 });
        assert_eq!(shared.version(), 2);
        assert_eq!(shared.latest().partition("words", 0).unwrap().leader, 2);
        assert!(shared.take_request());
        shared.hint(&Hint { topic: "words", partition: 0, leader: 1, leader_epoch: 4 });
        assert_eq!(shared.version(), 2, "an old epoch is no news");
        assert!(shared.take_request());
    }

    #[test]
    fn there_are_at_most_so_many_topics() {
        let shared = SharedMetadata::new();
        for i in 0..MAX_TOPICS {
            shared.want_topic(&i.to_string()).unwrap();
        }
        assert_eq!(shared.want_topic("one more"), Err(TooManyTopics { limit: 4_096 }));
        shared.want_topic("17").unwrap();
    }
}
