//! One non-blocking connection.
//!
//! Owns: the socket and its options (no delay, fixed kernel buffers), and the TLS session over it if there is one.
//! Invariant: no call blocks, and no call raises SIGPIPE in a host that has not ignored it. Attempts, deadlines and
//! retries are the owner's, by its own clock.
use super::sys::{connect, recv, sendmsg, shutdown, socket_error};
use super::tls::TlsSession;
use super::{Interest, NetError, Peer, PollSet, Token};
use crate::base::limits::SOCKET_BUFFER_BYTES;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, SocketType, socket_with, sockopt,
};
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnState {
    /// The attempt is on its way, or the handshake of TLS: wait, then [`Conn::finish`].
    Connecting,
    /// Bytes can be read and written.
    Ready,
    /// Ended, by either side.
    Closed,
}

/// A connection to one address, encrypted or not.
#[derive(Debug)]
pub(crate) struct Conn {
    fd: Arc<OwnedFd>,
    tls: Option<Box<TlsSession>>,
    /// The attempt has succeeded; what is left of [`ConnState::Connecting`] is the handshake.
    attached: bool,
    state: ConnState,
}

impl Conn {
    /// Starts a connection attempt; it is finished by [`Self::finish`].
    pub(crate) fn connect(peer: &Peer<'_>) -> Result<Self, NetError> {
        let tls = peer.security.tls().map(|client| TlsSession::start(client, peer.host)).transpose()?;
        let family = if peer.addr.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, None).map_err(NetError::io("socket"))?;
        sockopt::set_tcp_nodelay(&fd, true).map_err(NetError::io("TCP_NODELAY"))?;
        // Before connecting, for the window scale is agreed on in the handshake. The kernel doubles the figures for its
        // own bookkeeping.
        sockopt::set_socket_recv_buffer_size(&fd, SOCKET_BUFFER_BYTES).map_err(NetError::io("SO_RCVBUF"))?;
        sockopt::set_socket_send_buffer_size(&fd, SOCKET_BUFFER_BYTES).map_err(NetError::io("SO_SNDBUF"))?;
        let attached = match connect(&fd, &peer.addr) {
            Ok(()) => true,
            Err(Errno::INPROGRESS | Errno::INTR) => false,
            Err(errno) => return Err(NetError::Io { op: "connect", errno }),
        };
        let tls = tls.map(Box::new);
        let mut conn = Self { fd: Arc::new(fd), tls, attached, state: ConnState::Connecting };
        if attached {
            conn.shake_hands()?;
        }
        Ok(conn)
    }

    /// How far this connection is.
    pub(crate) fn state(&self) -> ConnState {
        self.state
    }

    /// Enters the connection into a poll set. While it is connecting it waits for just that.
    pub(crate) fn register(&self, polls: &mut PollSet, interest: Interest) -> Result<Token, NetError> {
        let unsent = self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        let interest = match self.state {
            ConnState::Connecting if !self.attached => Interest { read: false, write: true },
            ConnState::Connecting => Interest { read: true, write: unsent },
            ConnState::Ready => Interest { write: interest.write || unsent, ..interest },
            ConnState::Closed => Interest::default(),
        };
        // What is decrypted already is not in the socket, so the socket would be waited for in vain.
        let waiting = interest.read && self.tls.as_ref().is_some_and(|tls| tls.has_plaintext());
        polls.add_buffered(&self.fd, interest, waiting)
    }

    /// Goes on with the connection attempt, once the connection was reported ready for anything.
    pub(crate) fn finish(&mut self) -> Result<(), NetError> {
        if self.state != ConnState::Connecting {
            return Ok(());
        }
        if !self.attached {
            let outcome = socket_error(&self.fd).map_err(NetError::io("SO_ERROR"))?;
            if let Err(errno) = outcome {
                self.close();
                return Err(NetError::Io { op: "connect", errno });
            }
            self.attached = true;
        }
        self.shake_hands()
    }

    /// Whether the attempt itself has succeeded.
    pub(crate) fn is_attached(&self) -> bool {
        self.attached
    }

    fn shake_hands(&mut self) -> Result<(), NetError> {
        let outcome = match &mut self.tls {
            None => Ok(true),
            Some(tls) => tls.handshake(&self.fd).map(|()| tls.is_ready()),
        };
        match outcome {
            Ok(true) => self.state = ConnState::Ready,
            Ok(false) => {}
            Err(error) => {
                self.close();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Sends what is encrypted and waits for room.
    pub(crate) fn flush(&mut self) -> Result<(), NetError> {
        match &mut self.tls {
            Some(tls) if self.state == ConnState::Ready => tls.flush(&self.fd),
            _ => Ok(()),
        }
    }

    /// Reads what is there, once. 0: nothing yet (or an empty buffer). The end of the stream is an error.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize, NetError> {
        if self.state != ConnState::Ready {
            return Err(NetError::NotConnected);
        }
        if into.is_empty() {
            return Ok(0);
        }
        let outcome = match &mut self.tls {
            Some(tls) => tls.read(&self.fd, into),
            None => match recv(&self.fd, into, RecvFlags::empty()) {
                Ok((0, _)) => Err(NetError::Closed),
                Ok((n, _)) => Ok(n),
                Err(Errno::AGAIN | Errno::INTR) => Ok(0),
                Err(errno) => Err(NetError::Io { op: "recv", errno }),
            },
        };
        self.closed_by(outcome)
    }

    /// Writes what there is room for, once. 0: no room now (or nothing to write).
    pub(crate) fn write(&mut self, from: &[IoSlice<'_>]) -> Result<usize, NetError> {
        if self.state != ConnState::Ready {
            return Err(NetError::NotConnected);
        }
        if from.iter().all(|s| s.is_empty()) {
            return Ok(0);
        }
        let outcome = match &mut self.tls {
            Some(tls) => tls.write(&self.fd, from),
            None => match sendmsg(&self.fd, from, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
                Ok(n) => Ok(n),
                Err(Errno::AGAIN | Errno::INTR) => Ok(0),
                Err(errno) => Err(NetError::Io { op: "sendmsg", errno }),
            },
        };
        self.closed_by(outcome)
    }

    /// An error ends the connection.
    fn closed_by(&mut self, outcome: Result<usize, NetError>) -> Result<usize, NetError> {
        if outcome.is_err() {
            self.close();
        }
        outcome
    }

    /// Ends the connection now, also when a poll set still shares the descriptor.
    pub(crate) fn close(&mut self) {
        if self.state != ConnState::Closed {
            if let Some(tls) = self.tls.as_mut().filter(|_| self.state == ConnState::Ready) {
                tls.close(&self.fd);
            }
            self.state = ConnState::Closed;
            // Fails only when the other side has ended it already.
            let _ = shutdown(&self.fd, Shutdown::Both);
        }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::plain;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    fn connected() -> (Conn, std::net::TcpStream, PollSet) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut conn = Conn::connect(&plain(listener.local_addr().unwrap())).unwrap();
        let mut polls = PollSet::new().unwrap();
        if conn.state() == ConnState::Connecting {
            conn.register(&mut polls, Interest::default()).unwrap();
            polls.wait(Some(Duration::from_secs(5))).unwrap();
            conn.finish().unwrap();
            polls.clear();
        }
        assert_eq!(conn.state(), ConnState::Ready);
        (conn, listener.accept().unwrap().0, polls)
    }

    #[test]
    fn bytes_go_both_ways_and_an_empty_socket_answers_zero() {
        let (mut conn, mut peer, mut polls) = connected();
        let mut buf = [0; 8];
        assert_eq!(conn.read(&mut buf), Ok(0));
        assert_eq!(conn.write(&[IoSlice::new(b"he"), IoSlice::new(b"llo")]), Ok(5));
        let mut got = [0; 5];
        peer.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"hello");
        peer.write_all(b"abc").unwrap();
        let token = conn.register(&mut polls, Interest { read: true, write: false }).unwrap();
        polls.wait(Some(Duration::from_secs(5))).unwrap();
        assert!(polls.ready(token).readable);
        assert_eq!(conn.read(&mut buf), Ok(3));
        assert_eq!(&buf[..3], b"abc");
    }

    #[test]
    fn kernel_buffers_are_fixed_and_small_requests_leave_at_once() {
        let (conn, _peer, _polls) = connected();
        // The kernel keeps twice what was asked for.
        assert_eq!(sockopt::socket_recv_buffer_size(&conn.fd).unwrap(), 2 * SOCKET_BUFFER_BYTES);
        assert_eq!(sockopt::socket_send_buffer_size(&conn.fd).unwrap(), 2 * SOCKET_BUFFER_BYTES);
        assert!(sockopt::tcp_nodelay(&conn.fd).unwrap());
    }

    #[test]
    fn a_refused_attempt_and_a_closed_peer_are_errors() {
        let addr = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap()
        };
        let refused = Conn::connect(&plain(addr)).and_then(|mut conn| {
            let mut polls = PollSet::new().unwrap();
            conn.register(&mut polls, Interest::default()).unwrap();
            polls.wait(Some(Duration::from_secs(5))).unwrap();
            conn.finish()
        });
        assert_eq!(refused, Err(NetError::Io { op: "connect", errno: Errno::CONNREFUSED }));

        let (mut conn, peer, mut polls) = connected();
        drop(peer);
        conn.register(&mut polls, Interest { read: true, write: false }).unwrap();
        polls.wait(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(conn.read(&mut [0; 8]), Err(NetError::Closed));
        assert_eq!(conn.state(), ConnState::Closed);
        assert_eq!(conn.read(&mut [0; 8]), Err(NetError::NotConnected));
    }
}
