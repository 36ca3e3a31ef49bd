//! The process's present token, which every connection shows.
//!
//! Owns the callback and what it gave last. Invariant: the callback runs on the control thread alone, so no record
//! waits for an identity provider; a token is renewed after four fifths of its life and never shown after its end.
//! Bound: one token; the callback is tried again with growing pauses. Called by the control thread
//! ([`TokenSource::refresh`]) and by logins ([`TokenSource::with`]).
use crate::base::token::OauthToken;
use crate::net::{Backoff, jitter_seed};
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gives a new token; may ask an identity provider and block while doing so.
pub(crate) type TokenCallback = dyn Fn() -> Result<OauthToken, Box<dyn Error + Send + Sync>> + Send + Sync;

/// Pauses after a failed callback, in milliseconds.
const FIRST_PAUSE_MS: u32 = 1_000;
const LONGEST_PAUSE_MS: u32 = 30_000;
/// Most characters of a callback's error that are shown.
const MAX_REASON: usize = 300;

/// What came of asking for a new token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenNews {
    /// The present one will do, or it is too early to try again.
    None,
    /// There is a new one.
    New,
    /// The callback failed; in words.
    Failed(String),
}

#[derive(Debug)]
struct State {
    token: Option<OauthToken>,
    /// When to ask again: wall time while there is a token to outlive, or the end of a pause.
    refresh_at_ms: i64,
    backoff: Backoff,
}

/// Where tokens come from, and the present one.
pub(crate) struct TokenSource {
    callback: Arc<TokenCallback>,
    state: Mutex<State>,
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSource").finish_non_exhaustive()
    }
}

impl TokenSource {
    /// No token yet.
    pub(crate) fn new(callback: Arc<TokenCallback>) -> Self {
        let backoff = Backoff::new(FIRST_PAUSE_MS, LONGEST_PAUSE_MS, jitter_seed());
        Self { callback, state: Mutex::new(State { token: None, refresh_at_ms: i64::MIN, backoff }) }
    }

    /// Asks the callback if it is time, by the wall clock.
    pub(crate) fn refresh(&self, now_ms: i64) -> TokenNews {
        {
            let mut state = self.state();
            if state.token.as_ref().is_some_and(|token| token.expires_at_ms() <= now_ms) {
                state.token = None;
            }
            if now_ms < state.refresh_at_ms {
                return TokenNews::None;
            }
        }
        // Without the lock: logins go on with the old token while the callback takes its time.
        let answer = catch_unwind(AssertUnwindSafe(|| (self.callback)()));
        let outcome = match answer {
            Ok(Ok(token)) => match token.fault() {
                Some(fault) => Err(fault.to_owned()),
                None if token.expires_at_ms() <= now_ms => Err("the token has expired already".to_owned()),
                None => Ok(token),
            },
            Ok(Err(error)) => Err(error.to_string().chars().take(MAX_REASON).collect()),
            Err(_) => Err("it panicked".to_owned()),
        };
        let mut state = self.state();
        match outcome {
            Ok(token) => {
                let life = token.expires_at_ms() - now_ms;
                state.refresh_at_ms = now_ms.saturating_add(life / 5 * 4).max(now_ms + i64::from(FIRST_PAUSE_MS));
                state.backoff.succeeded();
                state.token = Some(token);
                TokenNews::New
            }
            Err(reason) => {
                state.refresh_at_ms = now_ms.saturating_add(state.backoff.failed());
                TokenNews::Failed(reason)
            }
        }
    }

    /// Calls `read` with the present token; `None` without one.
    pub(in crate::net) fn with<T>(&self, read: impl FnOnce(&OauthToken) -> T) -> Option<T> {
        self.state().token.as_ref().map(read)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, UNIX_EPOCH};

    fn at(ms: u64) -> std::time::SystemTime {
        UNIX_EPOCH + Duration::from_millis(ms)
    }

    #[test]
    fn a_token_is_renewed_before_its_end_and_never_shown_after_it() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let source = TokenSource::new(Arc::new(move || match counted.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(OauthToken::new("first", at(110_000))),
            1 => Err("the provider is down".into()),
            _ => Ok(OauthToken::new("second", at(400_000))),
        }));
        assert_eq!(source.with(|_| ()), None);
        assert_eq!(source.refresh(10_000), TokenNews::New);
        assert_eq!(source.refresh(89_000), TokenNews::None);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert_eq!(source.refresh(90_000), TokenNews::Failed("the provider is down".to_owned()));
        assert_eq!(source.refresh(90_700), TokenNews::None, "a pause first");
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert_eq!(source.with(|token| token.expires_at_ms()), Some(110_000), "the old one still holds");
        assert_eq!(source.refresh(120_000), TokenNews::New);
        assert_eq!(source.with(|token| token.expires_at_ms()), Some(400_000));
    }

    #[test]
    fn an_expired_token_and_a_panic_are_failures_with_pauses() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let source = TokenSource::new(Arc::new(move || {
            assert!(counted.fetch_add(1, Ordering::Relaxed) > 0, "the first call panics");
            Ok(OauthToken::new("old", at(1)))
        }));
        assert_eq!(source.refresh(1_000), TokenNews::Failed("it panicked".to_owned()));
        for now in (1_000..60_000).step_by(10) {
            let news = source.refresh(now);
            assert!(matches!(news, TokenNews::None | TokenNews::Failed(_)), "{news:?}");
        }
        assert!((4..10).contains(&calls.load(Ordering::Relaxed)), "{calls:?} calls in a minute");
        assert_eq!(source.with(|_| ()), None);
    }
}
