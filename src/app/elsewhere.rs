//! Applications where the data path does not run: they can be built, and starting one says why it cannot be.
use super::builder::{AppBuilder, NoLine};
use super::error::StartError;
use crate::budget::Memory;
use crate::topology::Topology;
use crate::worker::settings::Settings;
use crate::worker::state::StateListener;

/// A running application. On this platform there is none.
pub struct App(());

impl App {
    /// Begins an application: its `application.id`, which is also its group, and `bootstrap.servers`.
    pub fn builder(application_id: &str, bootstrap: &str) -> AppBuilder<NoLine> {
        AppBuilder::new(application_id, bootstrap)
    }

    pub(super) fn launch(
        _memory: Memory,
        _settings: Settings,
        _topology: Topology,
        _on_state: Option<StateListener>,
    ) -> Result<Self, StartError> {
        Err(StartError::UnsupportedPlatform)
    }
}
