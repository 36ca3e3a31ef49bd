//! Tokens for OAUTHBEARER: asked for on the control thread, handed to both planes.
//!
//! Owns nothing but the duty to ask in time. Called in every round of the control thread.
use super::control::Control;
use super::failure::RunError;
use crate::ffi::kafka::Handle;
use crate::net::TokenNews;
use std::sync::Arc;

/// Pause of the control thread while it waits for the first token, in milliseconds.
const WAIT_MS: i64 = 50;

impl Control {
    /// Renews the token if it is time. The data path's connections take the new one at their next login.
    pub(super) fn refresh_token(&mut self) {
        match self.metadata.security().refresh_token(self.clock.wall_ms()) {
            TokenNews::None => {}
            TokenNews::New => {
                self.give_token();
                if std::mem::take(&mut self.token_fault) {
                    self.board.wait_for(None);
                }
            }
            TokenNews::Failed(reason) => {
                self.token_fault = true;
                self.board.wait_for(Some(format!("the token callback failed ({reason}); trying again")));
            }
        }
    }

    /// Waits for the first token; false when asked to close.
    pub(super) fn await_token(&mut self) -> Result<bool, RunError> {
        while self.metadata.security().uses_tokens() && self.metadata.security().token().is_none() {
            if self.closing() {
                return Ok(false);
            }
            self.refresh_token();
            if self.token_fault {
                self.polls.clear();
                let now = self.clock.mono_ms();
                self.polls.wait_until(now, now + WAIT_MS).map_err(RunError::internal)?;
            }
        }
        Ok(true)
    }

    /// The control-plane handle to which tokens go from now on.
    pub(super) fn give_tokens_to(&mut self, handle: &Arc<Handle>) {
        self.token_handle = Arc::downgrade(handle);
        self.give_token();
    }

    fn give_token(&mut self) {
        let (Some(handle), Some(token)) = (self.token_handle.upgrade(), self.metadata.security().token()) else {
            return;
        };
        if let Err(error) = handle.set_oauth_token(&token) {
            self.token_fault = true;
            self.board.wait_for(Some(format!("librdkafka does not take the token: {error}")));
        }
    }
}
