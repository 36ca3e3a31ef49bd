//! A TLS session over a socket that does not block, by rustls.
//!
//! Owns the session's state and its buffers; the socket belongs to [`Conn`](super::Conn). Invariant: a session is read
//! only when the bytes of the last read were taken, so that at most one record's plaintext waits here. Bound: a session
//! takes at most [`TLS_CONNECTION_BYTES`](crate::base::limits::TLS_CONNECTION_BYTES) of module Engine, the plan's row
//! "connections". A record is decrypted into a buffer of its own: rustls allocates once a record (16 KiB), not once a
//! batch or a record of Kafka's.
use super::security::{SecurityError, TlsSettings};
use super::sys::{recv, sendmsg};
use super::{NetError, TlsFault, tls_verify};
use crate::base::limits::TLS_SEND_BYTES;
use plimsoll_alloc::{Module, scope};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, Error};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What all sessions have in common: trusted authorities, our certificate.
#[derive(Clone, Debug)]
pub(super) struct TlsClient(Arc<ClientConfig>);

impl TlsClient {
    /// Reads certificates and keys.
    pub(super) fn new(settings: &TlsSettings) -> Result<Self, SecurityError> {
        let _scope = scope(Module::Engine);
        let provider = Arc::new(default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|_| SecurityError::Certificate { setting: "security.protocol", reason: "no TLS version".into() })?
            .dangerous()
            .with_custom_certificate_verifier(tls_verify::verifier(settings, &provider)?);
        let mut config = match tls_verify::identity(settings)? {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|_| {
                let reason = "the key does not belong to the certificate, or is of a kind that is not read";
                SecurityError::Certificate { setting: "ssl.key", reason: reason.to_owned() }
            })?,
        };
        // Tickets would be kept for each host; a connection here lives for hours.
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }
}

/// One session.
#[derive(Debug)]
pub(super) struct TlsSession {
    session: ClientConnection,
    /// Bytes of plaintext that wait to be taken.
    plaintext: usize,
    /// The other side has said that nothing more will come.
    ended: bool,
}

impl TlsSession {
    /// A session with a host, whose handshake begins with [`Self::handshake`].
    pub(super) fn start(client: &TlsClient, host: &str) -> Result<Self, NetError> {
        let _scope = scope(Module::Engine);
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsFault::HostName)?;
        let mut session = ClientConnection::new(Arc::clone(&client.0), name).map_err(fault)?;
        session.set_buffer_limit(Some(TLS_SEND_BYTES));
        Ok(Self { session, plaintext: 0, ended: false })
    }

    /// Whether bytes can be read and written.
    pub(super) fn is_ready(&self) -> bool {
        !self.session.is_handshaking()
    }

    /// Goes on with the handshake as far as the socket lets it.
    pub(super) fn handshake(&mut self, fd: &OwnedFd) -> Result<(), NetError> {
        let _scope = scope(Module::Engine);
        loop {
            self.flush(fd)?;
            if self.is_ready() || self.ended {
                return Ok(());
            }
            match self.pull(fd) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(NetError::Closed) => return Err(TlsFault::ClosedInHandshake.into()),
                Err(NetError::Io { errno: Errno::CONNRESET | Errno::PIPE, .. }) => {
                    return Err(TlsFault::ClosedInHandshake.into());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether plaintext waits here, so that the socket's silence means nothing.
    pub(super) fn has_plaintext(&self) -> bool {
        self.plaintext > 0
    }

    /// Whether encrypted bytes wait for room in the socket.
    pub(super) fn wants_write(&self) -> bool {
        self.session.wants_write()
    }

    /// Writes encrypted bytes while there is room.
    pub(super) fn flush(&mut self, fd: &OwnedFd) -> Result<(), NetError> {
        while self.session.wants_write() {
            let mut socket = Socket { fd, failed: None };
            match self.session.write_tls(&mut socket) {
                Ok(0) => return Err(NetError::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Err(socket.error("sendmsg")),
            }
        }
        Ok(())
    }

    /// Reads plaintext, once. 0: nothing yet.
    pub(super) fn read(&mut self, fd: &OwnedFd, into: &mut [u8]) -> Result<usize, NetError> {
        let _scope = scope(Module::Engine);
        while self.plaintext == 0 {
            if self.ended {
                return Err(NetError::Closed);
            }
            if !self.pull(fd)? {
                return Ok(0);
            }
        }
        let got = self.session.reader().read(into).map_err(|_| TlsFault::Broken("plaintext"))?;
        self.plaintext = self.plaintext.saturating_sub(got);
        Ok(got)
    }

    /// Encrypts what there is room for and sends what the socket takes. 0: no room now.
    pub(super) fn write(&mut self, fd: &OwnedFd, from: &[IoSlice<'_>]) -> Result<usize, NetError> {
        let _scope = scope(Module::Engine);
        self.flush(fd)?;
        let taken = self.session.writer().write_vectored(from).map_err(|_| TlsFault::Broken("write"))?;
        self.flush(fd)?;
        Ok(taken)
    }

    /// Says that nothing more will come, if there is room to say it.
    pub(super) fn close(&mut self, fd: &OwnedFd) {
        self.session.send_close_notify();
        // The connection ends in any case.
        let _ = self.flush(fd);
    }

    /// Takes in what the socket has, once. False: nothing now.
    fn pull(&mut self, fd: &OwnedFd) -> Result<bool, NetError> {
        let mut socket = Socket { fd, failed: None };
        match self.session.read_tls(&mut socket) {
            Ok(0) => return Err(NetError::Closed),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(_) => return Err(socket.error("recv")),
        }
        match self.session.process_new_packets() {
            Ok(state) => {
                self.plaintext = state.plaintext_bytes_to_read();
                self.ended = state.peer_has_closed();
                // Answers of the session itself (a new key, say).
                self.flush(fd)?;
                Ok(true)
            }
            Err(error) => {
                // The broker is told why, if the socket takes it.
                let _ = self.flush(fd);
                Err(fault(error))
            }
        }
    }
}

/// The socket as rustls wants it; keeps the system's own error.
struct Socket<'a> {
    fd: &'a OwnedFd,
    failed: Option<Errno>,
}

impl Socket<'_> {
    fn failed(&mut self, errno: Errno) -> io::Error {
        match errno {
            Errno::AGAIN | Errno::INTR => io::ErrorKind::WouldBlock.into(),
            errno => {
                self.failed = Some(errno);
                io::Error::from(errno)
            }
        }
    }

    fn error(&self, op: &'static str) -> NetError {
        self.failed.map_or(TlsFault::Broken("buffer").into(), |errno| NetError::Io { op, errno })
    }
}

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match recv(self.fd, into, RecvFlags::empty()) {
            Ok((n, _)) => Ok(n),
            Err(errno) => Err(self.failed(errno)),
        }
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(from)])
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match sendmsg(self.fd, from, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
            Ok(n) => Ok(n),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What an error of rustls means for the user.
fn fault(error: Error) -> NetError {
    let fault = match error {
        Error::InvalidCertificate(error) => certificate(&error),
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired | AlertDescription::NoCertificate => TlsFault::CertificateRequired,
            AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied => TlsFault::CertificateRefused,
            AlertDescription::HandshakeFailure
            | AlertDescription::ProtocolVersion
            | AlertDescription::InsufficientSecurity => TlsFault::NothingInCommon,
            _ => TlsFault::Broken("the broker sent an alert"),
        },
        Error::PeerIncompatible(_) => TlsFault::NothingInCommon,
        Error::InvalidMessage(_) => TlsFault::NotTls,
        Error::DecryptError => TlsFault::Broken("bytes were changed on the way"),
        Error::PeerMisbehaved(_) => TlsFault::Broken("the broker broke the protocol"),
        Error::NoCertificatesPresented => TlsFault::BadCertificate,
        _ => TlsFault::Broken("protocol"),
    };
    fault.into()
}

fn certificate(error: &CertificateError) -> TlsFault {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFault::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsFault::NotYetValid,
        CertificateError::UnknownIssuer => TlsFault::UnknownIssuer,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => TlsFault::WrongHost,
        _ => TlsFault::BadCertificate,
    }
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
