//! The system calls by which a connection carries bytes: one place, so that tests can put a simulated network there.
//!
//! A thread of a test that has installed a `sim` network reaches that one; everything else goes to the
//! system.
#[cfg(not(test))]
pub(super) use os::{connect, recv, sendmsg, shutdown, socket_error};
#[cfg(test)]
pub(super) use simulated::{connect, recv, sendmsg, shutdown, socket_error};

#[cfg(not(test))]
mod os {
    pub(in crate::net) use rustix::net::sockopt::socket_error;
    pub(in crate::net) use rustix::net::{connect, recv, sendmsg, shutdown};
}

#[cfg(test)]
mod simulated {
    use crate::net::sim;
    use rustix::io::Result;
    use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, sockopt};
    use std::io::IoSlice;
    use std::net::SocketAddr;
    use std::os::fd::{AsRawFd, OwnedFd};

    pub(in crate::net) fn connect(fd: &OwnedFd, addr: &SocketAddr) -> Result<()> {
        sim::with(|net| net.connect(fd.as_raw_fd(), *addr)).unwrap_or_else(|| net::connect(fd, addr))
    }

    pub(in crate::net) fn socket_error(fd: &OwnedFd) -> Result<Result<()>> {
        sim::with(|net| Ok(net.socket_error(fd.as_raw_fd()))).unwrap_or_else(|| sockopt::socket_error(fd))
    }

    pub(in crate::net) fn recv(fd: &OwnedFd, into: &mut [u8], flags: RecvFlags) -> Result<(usize, usize)> {
        match sim::with(|net| net.recv(fd.as_raw_fd(), into)) {
            Some(outcome) => outcome.map(|n| (n, n)),
            None => net::recv(fd, into, flags),
        }
    }

    pub(in crate::net) fn sendmsg(
        fd: &OwnedFd,
        from: &[IoSlice<'_>],
        control: &mut SendAncillaryBuffer<'_, '_, '_>,
        flags: SendFlags,
    ) -> Result<usize> {
        match sim::with(|net| net.send(fd.as_raw_fd(), from)) {
            Some(outcome) => outcome,
            None => net::sendmsg(fd, from, control, flags),
        }
    }

    pub(in crate::net) fn shutdown(fd: &OwnedFd, how: Shutdown) -> Result<()> {
        match sim::with(|net| net.hang_up(fd.as_raw_fd())) {
            Some(()) => Ok(()),
            None => net::shutdown(fd, how),
        }
    }
}
