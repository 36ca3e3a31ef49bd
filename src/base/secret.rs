//! A value that no log, error or `Debug` may show.
use std::fmt;

/// A password, key or token. Its bytes are overwritten before its memory is given back.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Secret(Vec<u8>);

impl Secret {
    /// Keeps the text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into().into_bytes())
    }

    /// The bytes, for the wire alone.
    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        // Keeps the store above from being taken for a useless one.
        std::hint::black_box(&self.0);
    }
}
