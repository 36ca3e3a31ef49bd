//! TLS where feature `ssl` is off: settings that ask for it are refused, so none of this is ever made.
use super::NetError;
use super::security::{SecurityError, TlsSettings};
use std::convert::Infallible;
use std::io::IoSlice;
use std::os::fd::OwnedFd;

/// Never made.
#[derive(Clone, Debug)]
pub(super) struct TlsClient(Infallible);

impl TlsClient {
    pub(super) fn new(_: &TlsSettings) -> Result<Self, SecurityError> {
        Err(SecurityError::NeedsFeature { what: "TLS".to_owned() })
    }
}

/// Never made.
#[derive(Debug)]
pub(super) struct TlsSession(Infallible);

impl TlsSession {
    pub(super) fn start(client: &TlsClient, _host: &str) -> Result<Self, NetError> {
        match client.0 {}
    }

    pub(super) fn is_ready(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn handshake(&mut self, _fd: &OwnedFd) -> Result<(), NetError> {
        match self.0 {}
    }

    pub(super) fn has_plaintext(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn wants_write(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn flush(&mut self, _fd: &OwnedFd) -> Result<(), NetError> {
        match self.0 {}
    }

    pub(super) fn read(&mut self, _fd: &OwnedFd, _into: &mut [u8]) -> Result<usize, NetError> {
        match self.0 {}
    }

    pub(super) fn write(&mut self, _fd: &OwnedFd, _from: &[IoSlice<'_>]) -> Result<usize, NetError> {
        match self.0 {}
    }

    pub(super) fn close(&mut self, _fd: &OwnedFd) {
        match self.0 {}
    }
}
