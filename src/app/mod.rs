//! The application: what a user builds, starts, watches and closes.
//!
//! Owns the builder with the checks that need no broker, and the handle. Invariant: at most one application runs in a
//! process, since one process has one line. Bound: none of its own. Called by the user.
mod builder;
mod config;
mod error;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod handle;
#[cfg(target_os = "linux")]
mod handle;
mod stats;

pub use builder::{AppBuilder, NoLine, WithLine};
pub use error::StartError;
pub use handle::App;
pub use stats::Stats;
