//! Why an application cannot start.
use crate::budget::PlanError;
use plimsoll_alloc::NotInstalled;
use std::path::PathBuf;

/// Why [`AppBuilder::start`](crate::AppBuilder::start) refused. Nothing was opened and no thread runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The line does not hold the rows.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// `Memory::total` needs the tracking allocator.
    #[error("{0}; put plimsoll::install_allocator!() into the binary, or choose Memory::planned, which only plans")]
    AllocatorNotInstalled(#[from] NotInstalled),
    /// A second application in the process: one line has one owner.
    #[error("an application is already running in this process; one process holds one line, so close it first")]
    AlreadyRunning,
    /// A setting that the plan decides.
    #[error("{key} is decided by the plan's row \"{row}\"; change the memory total or its shares instead")]
    OwnedByPlan {
        /// The setting.
        key: String,
        /// The row that owns it.
        row: &'static str,
    },
    /// A setting that does not exist.
    #[error("the setting {key} is not known; settings have Kafka's names")]
    UnknownSetting {
        /// The setting.
        key: String,
    },
    /// A value that cannot be read.
    #[error("{key}={value} is not valid; expected {expected}")]
    InvalidSetting {
        /// The setting.
        key: String,
        /// What was given.
        value: String,
        /// What is read.
        expected: &'static str,
    },
    /// Security settings that do not fit together, are not supported, or name a file that cannot be read.
    #[error("{reason}")]
    Security {
        /// What is wrong and what to do; no secret is repeated.
        reason: String,
    },
    /// Something that Kafka Streams has and this version does not.
    #[error("{what} is not offered in this version")]
    NotOffered {
        /// What was asked for.
        what: String,
    },
    /// The topology reads nothing.
    #[error("the topology has no source; add a stream or a table")]
    EmptyTopology,
    /// Another process uses the state directory.
    #[error("the state directory {path} is locked by another process; give each process its own state.dir")]
    StateDirLocked {
        /// The directory.
        path: PathBuf,
    },
    /// The state directory cannot be made or written.
    #[error("the state directory {path} cannot be written: {reason}; choose another with state.dir")]
    StateDirNotWritable {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A thread or its waker could not be made.
    #[error("the system refused a thread or a descriptor: {reason}")]
    System {
        /// What the system said.
        reason: String,
    },
    /// The data path needs Linux.
    #[error("this platform is not supported by App; the driver in plimsoll::testing runs everywhere")]
    UnsupportedPlatform,
}
